//! Accept: stored, duplicate or conflict.

use std::sync::Arc;

use hookstead_core::bodies::REUSED_BODIES_READ_MAX;
use hookstead_core::event::VARIANTS_MAX;
use hookstead_core::{
    AcceptReceipt, Acceptance, BodyReuse, ConflictState, Delivery, DeliveryId, DeliveryTally,
    DestinationNumber, Digest, Duplicates, Event, EventId, Outcome, Seq, SourceNumber, StoreError,
    StoredBytes,
};

use super::batch::Batch;
use super::entry;
use super::row::{EventRow, Row, VariantRow};

impl Batch<'_> {
    pub(super) fn accept(&mut self, acceptance: &Acceptance) -> Result<AcceptReceipt, StoreError> {
        let Some(row) = self.tables.by_identity(acceptance.identity()).map(Arc::clone) else {
            return self.store_unless_reused(acceptance);
        };
        let body = self.body(&row)?;
        let stored = StoredBytes {
            digest: row.event.digest,
            body_bytes: row.event.body_bytes,
            body: body.as_deref(),
            comparison: row.comparison,
        };
        if stored.same_as(acceptance) {
            return self.count_duplicate(&row);
        }
        let (variant, revision) = self.keep_variant(&row, acceptance)?;
        let Some(revision) = revision.and_then(|id| self.tables.by_id(&id)).map(Arc::clone) else {
            return Ok(receipt(&row.event, Outcome::Conflict { variant }));
        };
        self.body(&revision)?;
        self.count_duplicate(&revision)
    }

    /// Stores an event whose identity is new, unless its body came before and is refused for that.
    fn store_unless_reused(&mut self, acceptance: &Acceptance) -> Result<AcceptReceipt, StoreError> {
        let (source, digest) = (acceptance.identity().source, acceptance.digest());
        let rule = acceptance.facts().body_reuse;
        if rule == BodyReuse::Ignore {
            return self.store_first(acceptance, None);
        }
        if let (BodyReuse::Refuse, Some(sound)) = (rule, self.sound_one_with_body(source, digest)?) {
            return Ok(receipt(&sound.event, Outcome::BodyReused));
        }
        let earlier = self.tables.with_body(source, digest).next().map(|row| row.event.id);
        self.store_first(acceptance, earlier)
    }

    /// The oldest event with this body that has it unharmed. Where none has, what comes again may be all that is left of
    /// these bytes: to refuse it, so that its sender gives up, would lose them.
    fn sound_one_with_body(
        &self,
        source: SourceNumber,
        digest: Digest,
    ) -> Result<Option<Arc<EventRow>>, StoreError> {
        for row in self.tables.with_body(source, digest).take(REUSED_BODIES_READ_MAX as usize) {
            match self.body(row) {
                Ok(Some(_)) => return Ok(Some(Arc::clone(row))),
                Ok(None) | Err(StoreError::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn store_first(
        &mut self,
        acceptance: &Acceptance,
        same_body_as: Option<EventId>,
    ) -> Result<AcceptReceipt, StoreError> {
        let facts = acceptance.facts();
        let event = Event {
            id: acceptance.id(),
            seq: Seq(self.tables.newest().0 + 1),
            source: self.tables.source_name(acceptance.identity().source)?,
            identity: acceptance.identity().clone(),
            event_type: facts.event_type.clone(),
            account: facts.account.clone(),
            received_from: facts.received_from.clone(),
            verified_by: facts.verified_by.clone(),
            received_at: facts.received_at,
            committed_at: self.now,
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
        let receipt = AcceptReceipt { same_body_as, ..receipt(&event, Outcome::Stored) };
        let row = EventRow {
            event,
            comparison: facts.comparison,
            body_watched: facts.body_reuse != BodyReuse::Ignore,
            variants: Vec::new(),
        };
        self.add_event(row, acceptance.body(), &facts.destinations)?;
        Ok(receipt)
    }

    /// Keeps a new event, its body and its deliveries.
    pub(super) fn add_event(
        &mut self,
        row: EventRow,
        body: &[u8],
        destinations: &[DestinationNumber],
    ) -> Result<(), StoreError> {
        let (id, seq) = (row.event.id, row.event.seq);
        let bytes = entry::write_event(&row, body).map_err(unwritable)?;
        self.put_file(self.around.disk.layout.event(&row), bytes)?;
        self.put(Row::Event(Arc::new(row)))?;
        for destination in destinations {
            if self.tables.work.contains_key(&(seq, *destination, 1)) {
                continue;
            }
            let delivery = DeliveryId { event: id, destination: *destination, generation: 1 };
            self.put(Row::Delivery(seq, Delivery::new(delivery, self.now, self.now)))?;
        }
        Ok(())
    }

    fn count_duplicate(&mut self, row: &EventRow) -> Result<AcceptReceipt, StoreError> {
        let event = &row.event;
        let duplicates = Duplicates { count: event.duplicates.count + 1, last_at: Some(self.now) };
        self.put_count(Row::Duplicates(event.seq, duplicates))?;
        if row.is_kept() {
            self.rest_on(event.seq, self.around.disk.layout.event(row));
        }
        Ok(receipt(event, Outcome::Duplicate))
    }

    /// Finds the other bytes among the variants or keeps them; says which variant they are and, if a person
    /// accepted them, the event that was made of them.
    fn keep_variant(
        &mut self,
        row: &EventRow,
        acceptance: &Acceptance,
    ) -> Result<(Option<u16>, Option<EventId>), StoreError> {
        let body_bytes = acceptance.body().len() as u64;
        for (number, variant) in (1..).zip(&row.variants) {
            if variant.digest != acceptance.digest() || variant.body_bytes != body_bytes {
                continue;
            }
            let revision = match &variant.state {
                ConflictState::Accepted { revision, .. } => Some(*revision),
                ConflictState::Open | ConflictState::Dismissed(_) => None,
            };
            return Ok((Some(number), revision));
        }
        let number = u16::try_from(row.variants.len() + 1).unwrap_or(u16::MAX);
        if number > VARIANTS_MAX {
            return Ok((None, None));
        }
        let variant = VariantRow {
            digest: acceptance.digest(),
            body_bytes,
            erased: false,
            headers: acceptance.facts().headers.clone(),
            received_at: acceptance.facts().received_at,
            state: ConflictState::Open,
        };
        let event = &row.event;
        let bytes = entry::write_variant(event, number, &variant, acceptance.body()).map_err(unwritable)?;
        self.put_file(self.around.disk.layout.conflict(&event.source, &event.identity, number), bytes)?;
        self.put(Row::Variant(event.seq, variant))?;
        Ok((Some(number), None))
    }
}

fn receipt(event: &Event, outcome: Outcome) -> AcceptReceipt {
    let Event { id, seq, digest, committed_at, .. } = event;
    let (event, seq, digest, committed_at) = (*id, *seq, *digest, *committed_at);
    AcceptReceipt { outcome, event, seq, digest, committed_at, same_body_as: None }
}

/// A record that could not be put into JSON: nothing was written.
pub(super) fn unwritable(error: serde_json::Error) -> StoreError {
    StoreError::backend("write a record", error)
}
