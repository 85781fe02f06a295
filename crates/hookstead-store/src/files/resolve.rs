//! Resolve: what people decide.

use std::sync::Arc;

use hookstead_core::{
    ConflictState, Decision, Delivery, DeliveryId, DestinationNumber, DestinationRow, Duplicates, Event,
    EventId, Redelivery, RedeliveryState, Resolve, Resolved, Seq, StoreError, Subject,
};

use super::batch::Batch;
use super::entry::Entry;
use super::row::{EventRow, Row};

impl Batch<'_> {
    pub(super) fn resolve(&mut self, resolve: &Resolve) -> Result<Resolved, StoreError> {
        let (decision, now) = (&resolve.decision, self.now);
        match &resolve.subject {
            Subject::HoldDelivery(id) => self.change_delivery(id, |delivery| delivery.hold(decision.clone())),
            Subject::LetDeliveryGo(id) => self.change_delivery(id, |delivery| delivery.let_go(now)),
            Subject::MarkDeliveryDone(id) => {
                self.change_delivery(id, |delivery| delivery.mark_done(decision.clone()))
            }
            Subject::AcceptConflict { event, variant, revision, destinations } => {
                self.accept_conflict(event, *variant, *revision, destinations, decision)
            }
            Subject::DismissConflict { event, variant } => self.dismiss_conflict(event, *variant, decision),
            Subject::PauseDestination(number) => self.set_paused(*number, true),
            Subject::ResumeDestination(number) => self.set_paused(*number, false),
            Subject::CancelRedelivery(id) => match self.tables.redeliveries.get(id).cloned() {
                None => Ok(Resolved::Unknown),
                Some(redelivery) => self.cancel(redelivery),
            },
        }
    }

    fn change_delivery(
        &mut self,
        id: &DeliveryId,
        change: impl FnOnce(&mut Delivery) -> bool,
    ) -> Result<Resolved, StoreError> {
        let Some((key, mut delivery)) = self.delivery(id) else { return Ok(Resolved::Unknown) };
        if !change(&mut delivery) {
            return Ok(Resolved::Unchanged);
        }
        self.put(Row::Delivery(key.0, delivery))?;
        Ok(Resolved::Changed)
    }

    fn set_paused(&mut self, number: DestinationNumber, paused: bool) -> Result<Resolved, StoreError> {
        let Ok(row) = self.tables.destination(number) else { return Ok(Resolved::Unknown) };
        if row.paused == paused {
            return Ok(Resolved::Unchanged);
        }
        self.put(Row::Destination(DestinationRow { paused, ..row.clone() }))?;
        Ok(Resolved::Changed)
    }

    fn cancel(&mut self, redelivery: Redelivery) -> Result<Resolved, StoreError> {
        if redelivery.state != RedeliveryState::Running {
            return Ok(Resolved::Unchanged);
        }
        self.put(Row::Redelivery(Redelivery { state: RedeliveryState::Cancelled, ..redelivery }))?;
        Ok(Resolved::Changed)
    }

    fn accept_conflict(
        &mut self,
        first: &EventId,
        number: u16,
        revision: EventId,
        destinations: &[DestinationNumber],
        decision: &Decision,
    ) -> Result<Resolved, StoreError> {
        let Some(row) = self.tables.by_id(first).map(Arc::clone) else { return Ok(Resolved::Unknown) };
        let Some(variant) = row.variant(number) else { return Ok(Resolved::Unknown) };
        if variant.state != ConflictState::Open || variant.erased {
            return Ok(Resolved::Unchanged);
        }
        let first_event = &row.event;
        let record = self.around.disk.layout.conflict(&first_event.source, &first_event.identity, number);
        let body =
            self.with_record(&record, |bytes| Entry::body_of(bytes, &first_event.identity, variant.digest))?;
        let state = ConflictState::Accepted { revision, decision: decision.clone() };
        self.put(Row::VariantState(first_event.seq, number, state))?;
        let seq = Seq(self.tables.newest().0 + 1);
        let event = Event {
            id: revision,
            seq,
            received_at: variant.received_at,
            committed_at: self.now,
            digest: variant.digest,
            body_bytes: variant.body_bytes,
            erased_at: None,
            headers: variant.headers.clone(),
            revises: Some(*first),
            same_body_as: None,
            duplicates: Duplicates::default(),
            ..first_event.clone()
        };
        let row = EventRow { event, comparison: None, body_watched: false, variants: Vec::new() };
        self.add_event(row, &body, destinations)?;
        Ok(Resolved::Revised { event: revision, seq })
    }

    fn dismiss_conflict(
        &mut self,
        event: &EventId,
        number: u16,
        decision: &Decision,
    ) -> Result<Resolved, StoreError> {
        let Some(row) = self.tables.by_id(event) else { return Ok(Resolved::Unknown) };
        let seq = row.event.seq;
        match row.variant(number).map(|variant| &variant.state) {
            None => return Ok(Resolved::Unknown),
            Some(ConflictState::Open) => {}
            Some(_) => return Ok(Resolved::Unchanged),
        }
        self.put(Row::VariantState(seq, number, ConflictState::Dismissed(decision.clone())))?;
        Ok(Resolved::Changed)
    }
}
