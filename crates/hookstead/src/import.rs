//! Taking events over that another inbox accepted: the same commit, deduplication and conflicts as for a request, and no
//! signature, which was checked elsewhere and long ago. Whoever calls answers for where they come from. It knows nothing
//! of the form in which they travel.

use std::sync::Arc;

use bytes::Bytes;
use hookstead_core::{
    AcceptReceipt, AcceptanceFacts, Identity, ProviderEventId, RawHeaders, Scope, Timestamp,
};

use crate::commit::Pending;
use crate::error::Unavailable;
use crate::inbox::Inbox;
use crate::receive::{accepted, comparison, kept};
use crate::source::Source;

/// What [`AcceptanceFacts::verified_by`] of an imported event says: this inbox checked nothing.
const IMPORTED: &str = "imported";

/// An event as another inbox accepted it.
#[derive(Clone, Debug)]
pub struct Import {
    /// The source that it came through, under the same name.
    pub source: Arc<Source>,
    /// The scope of its identity.
    pub scope: Scope,
    /// The provider's id of it.
    pub id: ProviderEventId,
    /// When its request was complete. It is kept.
    pub received_at: Timestamp,
    /// Its header fields and its query; those parts that are secrets of the source are left out.
    pub headers: RawHeaders,
    /// The provider's type of it.
    pub event_type: Option<String>,
    /// The provider's account.
    pub account: Option<String>,
    /// The address that its request came from.
    pub received_from: Option<String>,
    /// How it proved itself there. It is kept as hearsay: `imported: ` stands before it.
    pub verified_by: Option<String>,
    /// The raw body.
    pub body: Bytes,
}

/// Whether imported events are owed to anybody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImportDeliveries {
    /// To nobody: the inbox that they come from has delivered them, or still does. A redelivery can make it up.
    #[default]
    None,
    /// To whomever the configuration of this moment would owe them if they came now.
    AsIfReceived,
}

impl Inbox {
    /// Takes events over, as if they were accepted one after the other. Each answer is that of its event, in their
    /// order, and rests on a durable commit: stored, or there before with the same bytes, or with other bytes, which
    /// leave it untouched.
    ///
    /// The rules of the source hold: its comparison of bodies, its rule about reused ones, its largest body is for the
    /// caller to check. How many are given at once is limited by
    /// [`CommitLimits`](crate::CommitLimits): what does not fit is refused with [`Unavailable::Overloaded`].
    pub async fn import(
        &self,
        events: Vec<Import>,
        deliveries: ImportDeliveries,
    ) -> Vec<Result<AcceptReceipt, Unavailable>> {
        let mut pending = Vec::with_capacity(events.len());
        for event in events {
            pending.push(self.submit_import(event, deliveries).await);
        }
        let mut answers = Vec::with_capacity(pending.len());
        for submitted in pending {
            answers.push(match submitted {
                Ok(answer) => accepted(answer.await),
                Err(error) => Err(error),
            });
        }
        answers
    }

    async fn submit_import(
        &self,
        event: Import,
        deliveries: ImportDeliveries,
    ) -> Result<Pending, Unavailable> {
        let Import { source, scope, id, received_at, headers, .. } = event;
        let identity = Identity { source: self.number_of(&source).await?, scope, id };
        let fields = headers.fields().map(|(name, value)| (name.as_bytes(), value));
        let facts = AcceptanceFacts {
            received_at,
            destinations: match deliveries {
                ImportDeliveries::None => Vec::new(),
                ImportDeliveries::AsIfReceived => {
                    self.wanted(&source, event.event_type.as_deref(), &event.body)
                }
            },
            headers: kept(&source, headers.query(), fields),
            event_type: event.event_type,
            account: event.account,
            received_from: event.received_from,
            verified_by: Some(hearsay(event.verified_by)),
            comparison: comparison(&source, &event.body),
            body_reuse: source.body_reuse(),
        };
        self.submit_acceptance(identity, event.body, facts)
    }
}

/// What another inbox said of a proof, however often it travelled.
fn hearsay(verified_by: Option<String>) -> String {
    match verified_by {
        Some(said) if said == IMPORTED || said.starts_with("imported: ") => said,
        Some(said) => format!("{IMPORTED}: {said}"),
        None => IMPORTED.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_of_elsewhere_is_hearsay_once() {
        let once = hearsay(Some("stripe, secret 1".to_owned()));
        assert_eq!(once, "imported: stripe, secret 1");
        assert_eq!(hearsay(Some(once.clone())), once);
        assert_eq!(hearsay(None), "imported");
        assert_eq!(hearsay(Some("imported".to_owned())), "imported");
    }
}
