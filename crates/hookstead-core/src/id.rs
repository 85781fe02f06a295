//! Ids and numbers: what names an event, a source, a destination, a redelivery.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::time::Timestamp;

/// Our own key of an event: a UUIDv7 whose last byte is the event's [`Bucket`], so that an id alone finds
/// its shard. It is made by the caller of the store and is never taken from the provider.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId([u8; 16]);

impl EventId {
    /// A new id for an event that arrived at `at`. `entropy` must be random: it is what keeps ids of one
    /// millisecond apart.
    pub fn new(at: Timestamp, entropy: [u8; 10], bucket: Bucket) -> Self {
        let millis = u64::try_from(at.as_micros() / 1000).unwrap_or(0);
        let mut bytes = *uuid::Builder::from_unix_timestamp_millis(millis, &entropy).as_uuid().as_bytes();
        bytes[15] = bucket.0;
        Self(bytes)
    }

    /// An id as a store kept it.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The id's 16 bytes, in the order in which UUIDs sort by time.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The bucket of the event.
    pub const fn bucket(&self) -> Bucket {
        Bucket(self.0[15])
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Uuid::from_bytes(self.0).hyphenated())
    }
}

impl fmt::Debug for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventId({self})")
    }
}

impl FromStr for EventId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        Uuid::parse_str(text).map(|uuid| Self(*uuid.as_bytes())).map_err(|_| IdError {
            what: "event id",
            rule: "a UUID",
            given: excerpt(text),
        })
    }
}

/// A small number from the hash of an event's identity. It is part of every key, so that work and storage
/// can be spread over shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket(pub u8);

/// The store's own sequence number of an event, from 1 upwards in the order of commits. In text it is the
/// event's short id: Crockford base32, at least four digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const SHORT_ID_DIGITS_MIN: usize = 4;
const SHORT_ID_DIGITS_MAX: usize = 13;

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // From the last digit to the first.
        let mut digits = [b'0'; SHORT_ID_DIGITS_MAX];
        let mut start = SHORT_ID_DIGITS_MAX;
        let mut rest = self.0;
        while rest > 0 || SHORT_ID_DIGITS_MAX - start < SHORT_ID_DIGITS_MIN {
            start -= 1;
            digits[start] = CROCKFORD[usize::from(rest.to_le_bytes()[0] & 31)];
            rest >>= 5;
        }
        // Cannot fail: the digits are ASCII.
        f.write_str(std::str::from_utf8(&digits[start..]).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for Seq {
    type Err = IdError;

    /// Reads a short id as people type it: any case, `I` and `L` as 1, `O` as 0.
    fn from_str(text: &str) -> Result<Self, IdError> {
        let error = || IdError { what: "short id", rule: "4 to 13 base32 digits", given: excerpt(text) };
        if !(SHORT_ID_DIGITS_MIN..=SHORT_ID_DIGITS_MAX).contains(&text.len()) {
            return Err(error());
        }
        let value = text.bytes().try_fold(0_u64, |value, byte| {
            let digit = crockford_digit(byte)?;
            value.checked_mul(32)?.checked_add(digit)
        });
        value.map(Self).ok_or_else(error)
    }
}

fn crockford_digit(byte: u8) -> Option<u64> {
    let canonical = match byte.to_ascii_uppercase() {
        b'I' | b'L' => b'1',
        b'O' => b'0',
        other => other,
    };
    CROCKFORD.iter().position(|digit| *digit == canonical).map(|position| position as u64)
}

/// The store's stable number behind a source's name. It stays the same when the name is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceNumber(pub u32);

/// The store's stable number behind a destination's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DestinationNumber(pub u32);

/// One event owed to one destination, the how-many-eth time: the first delivery has generation 1, each
/// redelivery the next. The text form is `EVENT-ID.DESTINATION.GENERATION`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryId {
    /// The event that is owed.
    pub event: EventId,
    /// Whom it is owed to.
    pub destination: DestinationNumber,
    /// 1 for the delivery that was made with its event, one more for each redelivery.
    pub generation: u32,
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.event, self.destination.0, self.generation)
    }
}

impl FromStr for DeliveryId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let error =
            || IdError { what: "delivery id", rule: "EVENT-ID.DESTINATION.GENERATION", given: excerpt(text) };
        let mut parts = text.splitn(3, '.');
        let mut part = || parts.next().ok_or_else(error);
        let event = part()?.parse()?;
        let destination = DestinationNumber(part()?.parse().map_err(|_| error())?);
        let generation = part()?.parse().map_err(|_| error())?;
        Ok(Self { event, destination, generation })
    }
}

/// The id of a redelivery, chosen by whoever asked for it: asked twice with one id, it happens once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RedeliveryId(pub [u8; 16]);

impl RedeliveryId {
    /// The id as two numbers that sort as its bytes do, for cursors.
    pub fn halves(self) -> [u64; 2] {
        let number = u128::from_be_bytes(self.0);
        [number >> 64, number & u128::from(u64::MAX)].map(|half| u64::try_from(half).unwrap_or(u64::MAX))
    }

    /// The id of its two numbers.
    pub fn from_halves([first, last]: [u64; 2]) -> Self {
        Self(((u128::from(first) << 64) | u128::from(last)).to_be_bytes())
    }
}

impl FromStr for RedeliveryId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        Uuid::parse_str(text).map(|uuid| Self(*uuid.as_bytes())).map_err(|_| IdError {
            what: "redelivery id",
            rule: "a UUID",
            given: excerpt(text),
        })
    }
}

impl fmt::Display for RedeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Uuid::from_bytes(self.0).hyphenated())
    }
}

/// Why a text is not an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a {what}: expected {rule}")]
pub struct IdError {
    what: &'static str,
    rule: &'static str,
    given: String,
}

fn excerpt(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_ids_are_uuids_of_version_7_that_carry_their_bucket() {
        let id = EventId::new(Timestamp::from_secs(1_770_000_000), [0xff; 10], Bucket(0x2a));
        assert_eq!(id.bucket(), Bucket(0x2a));
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(Uuid::from_bytes(*id.as_bytes()).get_version_num(), 7);
        let later = EventId::new(Timestamp::from_secs(1_770_000_001), [0; 10], Bucket(0));
        assert!(id < later);
    }

    #[test]
    fn short_ids_read_as_people_type_them() {
        assert_eq!(Seq(1).to_string(), "0001");
        assert_eq!(Seq(u64::MAX).to_string().parse(), Ok(Seq(u64::MAX)));
        assert_eq!("oOil".parse(), Ok(Seq(33)));
        for bad in ["", "001", "00U1", "0 01", "ZZZZZZZZZZZZZ", "00000000000001"] {
            assert!(bad.parse::<Seq>().is_err(), "{bad}");
        }
    }

    #[test]
    fn redelivery_ids_sort_as_their_halves_do() {
        let id = RedeliveryId([0, 1, 2, 3, 4, 5, 6, 7, 0xf8, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(id.halves(), [0x0001_0203_0405_0607, 0xf809_0a0b_0c0d_0e0f]);
        assert_eq!(RedeliveryId::from_halves(id.halves()), id);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!("1".parse::<RedeliveryId>().is_err());
    }

    #[test]
    fn delivery_ids_round_trip() {
        let event = EventId::from_bytes([7; 16]);
        let id = DeliveryId { event, destination: DestinationNumber(3), generation: 2 };
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!("x.1.1".parse::<DeliveryId>().is_err());
        assert!(format!("{event}.1").parse::<DeliveryId>().is_err());
    }
}
