//! Accept: stored, duplicate or conflict.

use super::state::{NewEvent, State, StoredEvent, Variant, number};
use crate::delivery::DeliveryTally;
use crate::error::StoreError;
use crate::event::{
    AcceptReceipt, Acceptance, BodyReuse, ConflictState, Duplicates, Event, Outcome, VARIANTS_MAX,
};
use crate::id::{EventId, Seq};
use crate::time::Timestamp;

impl State {
    pub(super) fn accept(
        &mut self,
        acceptance: &Acceptance,
        now: Timestamp,
    ) -> Result<AcceptReceipt, StoreError> {
        let Some(seq) = self.by_identity.get(acceptance.identity()).copied() else {
            return match self.reused(acceptance)? {
                Some(refused) if acceptance.facts().body_reuse == BodyReuse::Refuse => Ok(refused),
                earlier => self.store_first(acceptance, earlier.map(|earlier| earlier.event), now),
            };
        };
        let Some(stored) = self.events.get_mut(&seq) else { return Err(lost(seq)) };
        if stored.bytes().same_as(acceptance) {
            return Ok(count_duplicate(stored, now));
        }
        let (variant, revision) = keep_variant(stored, acceptance);
        if let Some(revision) = revision.and_then(|id| self.stored_mut(&id)) {
            return Ok(count_duplicate(revision, now));
        }
        let stored = self.events.get(&seq).ok_or_else(|| lost(seq))?;
        Ok(receipt(stored, Outcome::Conflict { variant }))
    }

    /// The receipt of the event that had these bytes first, if they are looked for.
    fn reused(&self, acceptance: &Acceptance) -> Result<Option<AcceptReceipt>, StoreError> {
        if acceptance.facts().body_reuse == BodyReuse::Ignore {
            return Ok(None);
        }
        let Some(seq) = self.by_body.first_of(acceptance.identity().source, acceptance.digest()) else {
            return Ok(None);
        };
        let stored = self.events.get(&seq).ok_or_else(|| lost(seq))?;
        Ok(Some(receipt(stored, Outcome::BodyReused)))
    }

    fn store_first(
        &mut self,
        acceptance: &Acceptance,
        same_body_as: Option<EventId>,
        now: Timestamp,
    ) -> Result<AcceptReceipt, StoreError> {
        let facts = acceptance.facts();
        let event = Event {
            id: acceptance.id(),
            seq: Seq(0),
            source: self.source_name(acceptance.identity().source)?,
            identity: acceptance.identity().clone(),
            event_type: facts.event_type.clone(),
            account: facts.account.clone(),
            received_from: facts.received_from.clone(),
            verified_by: facts.verified_by.clone(),
            received_at: facts.received_at,
            committed_at: now,
            digest: acceptance.digest(),
            body_bytes: acceptance.body().len() as u64,
            erased_at: None,
            headers: facts.headers.clone(),
            revises: None,
            same_body_as,
            duplicates: Duplicates::default(),
            conflicts: 0,
            deliveries: DeliveryTally::default(),
        };
        let new = NewEvent { event, body: acceptance.body().clone(), comparison: facts.comparison };
        let seq = self.add_event(new, &facts.destinations, now);
        self.by_identity.insert(acceptance.identity().clone(), seq);
        if facts.body_reuse != BodyReuse::Ignore {
            self.by_body.remember(acceptance.identity().source, acceptance.digest(), seq);
        }
        let stored = self.events.get(&seq).ok_or_else(|| lost(seq))?;
        Ok(AcceptReceipt { same_body_as, ..receipt(stored, Outcome::Stored) })
    }
}

/// Finds the other bytes among the variants or keeps them; says which variant they are and, if a person
/// accepted them, the event that was made of them.
fn keep_variant(stored: &mut StoredEvent, acceptance: &Acceptance) -> (Option<u16>, Option<EventId>) {
    let same = |variant: &Variant| {
        variant.digest == acceptance.digest() && variant.body_bytes == acceptance.body().len() as u64
    };
    if let Some(index) = stored.variants.iter().position(same) {
        let revision = match &stored.variants[index].state {
            ConflictState::Accepted { revision, .. } => Some(*revision),
            ConflictState::Open | ConflictState::Dismissed(_) => None,
        };
        return (Some(number(index)), revision);
    }
    if stored.variants.len() >= usize::from(VARIANTS_MAX) {
        return (None, None);
    }
    stored.variants.push(Variant {
        digest: acceptance.digest(),
        body_bytes: acceptance.body().len() as u64,
        body: Some(acceptance.body().clone()),
        headers: acceptance.facts().headers.clone(),
        received_at: acceptance.facts().received_at,
        state: ConflictState::Open,
    });
    (Some(number(stored.variants.len() - 1)), None)
}

fn count_duplicate(stored: &mut StoredEvent, now: Timestamp) -> AcceptReceipt {
    stored.event.duplicates.count += 1;
    stored.event.duplicates.last_at = Some(now);
    receipt(stored, Outcome::Duplicate)
}

fn receipt(stored: &StoredEvent, outcome: Outcome) -> AcceptReceipt {
    let Event { id, seq, digest, committed_at, .. } = stored.event;
    AcceptReceipt { outcome, event: id, seq, digest, committed_at, same_body_as: None }
}

fn lost(seq: Seq) -> StoreError {
    StoreError::Corrupt { what: format!("event {seq} is in an index and not in the table") }
}
