//! The text form of a lease: opaque to whoever holds it, and everything that settling it needs.
//!
//! It proves nothing: whoever may work a destination's deliveries could have the same lease by claiming. So the
//! destination inside it is checked against the token each time, and the fencing token by the store.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hookstead::core::{DeliveryId, DestinationNumber, EventId, Lease, LeaseToken, Timestamp};

const PREFIX: &str = "ls_";

/// Event, destination, generation, token, attempt, and when it was claimed.
const BYTES: usize = 16 + 4 + 4 + 4 + 4 + 8;

/// What the text of a lease holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeaseId {
    pub(super) delivery: DeliveryId,
    pub(super) token: LeaseToken,
    /// Which attempt it is, from 1.
    pub(super) attempt: u32,
    pub(super) claimed_at: Timestamp,
}

impl LeaseId {
    pub(super) fn of(lease: &Lease, claimed_at: Timestamp) -> Self {
        Self { delivery: lease.delivery, token: lease.token, attempt: lease.attempt, claimed_at }
    }

    pub(super) fn text(&self) -> String {
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.extend_from_slice(self.delivery.event.as_bytes());
        let numbers = [self.delivery.destination.0, self.delivery.generation, self.token.0, self.attempt];
        numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_be_bytes()));
        bytes.extend_from_slice(&self.claimed_at.as_micros().to_be_bytes());
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
    }

    /// `None` for a text that no lease of ours has.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix(PREFIX)?).ok()?;
        let bytes: [u8; BYTES] = bytes.try_into().ok()?;
        let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let event = EventId::from_bytes(bytes.get(..16)?.try_into().ok()?);
        let delivery =
            DeliveryId { event, destination: DestinationNumber(number(16)?), generation: number(20)? };
        let claimed_at = i64::from_be_bytes(bytes.get(32..)?.try_into().ok()?);
        Some(Self {
            delivery,
            token: LeaseToken(number(24)?),
            attempt: number(28)?,
            claimed_at: Timestamp::from_micros(claimed_at),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_read_back_from_its_text_and_from_no_other() {
        let delivery = DeliveryId {
            event: EventId::from_bytes([7; 16]),
            destination: DestinationNumber(3),
            generation: u32::MAX,
        };
        let claimed_at = Timestamp::from_secs(1_770_000_000);
        let id = LeaseId { delivery, token: LeaseToken(9), attempt: 2, claimed_at };
        let text = id.text();
        assert_eq!(LeaseId::parse(&text), Some(id));
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{text}");
        let cut = &text[..text.len() - 1];
        for bad in ["", "ls_", "x", &text[3..], cut, &format!("{text}A"), &text.replace("ls_", "LS_")] {
            assert_eq!(LeaseId::parse(bad), None, "{bad}");
        }
    }
}
