//! Resolve, register and runs: what people decide, and what is made known.

use super::state::{NewEvent, State};
use crate::delivery::Delivery;
use crate::event::{ConflictState, Decision, Event};
use crate::id::{DeliveryId, DestinationNumber, EventId, SourceNumber};
use crate::redelivery::RedeliveryState;
use crate::run::{RunOutcome, RunReceipt};
use crate::store::{DestinationRow, RecordRun, Register, Registered, Resolve, Resolved, SourceRow, Subject};
use crate::time::Timestamp;

impl State {
    pub(super) fn resolve(&mut self, resolve: &Resolve, now: Timestamp) -> Resolved {
        let decision = &resolve.decision;
        match &resolve.subject {
            Subject::HoldDelivery(id) => self.change_delivery(id, |delivery| delivery.hold(decision.clone())),
            Subject::LetDeliveryGo(id) => self.change_delivery(id, |delivery| delivery.let_go(now)),
            Subject::MarkDeliveryDone(id) => {
                self.change_delivery(id, |delivery| delivery.mark_done(decision.clone()))
            }
            Subject::AcceptConflict { event, variant, revision, destinations } => {
                self.accept_conflict(event, *variant, *revision, destinations, decision, now)
            }
            Subject::DismissConflict { event, variant } => self.dismiss_conflict(event, *variant, decision),
            Subject::PauseDestination(number) => self.set_paused(*number, true),
            Subject::ResumeDestination(number) => self.set_paused(*number, false),
            Subject::CancelRedelivery(id) => match self.redeliveries.get_mut(id) {
                None => Resolved::Unknown,
                Some(redelivery) if redelivery.state == RedeliveryState::Running => {
                    redelivery.state = RedeliveryState::Cancelled;
                    Resolved::Changed
                }
                Some(_) => Resolved::Unchanged,
            },
        }
    }

    fn change_delivery(&mut self, id: &DeliveryId, change: impl FnOnce(&mut Delivery) -> bool) -> Resolved {
        let Some(work) = self.work_mut(id) else { return Resolved::Unknown };
        if change(&mut work.delivery) { Resolved::Changed } else { Resolved::Unchanged }
    }

    fn set_paused(&mut self, number: DestinationNumber, paused: bool) -> Resolved {
        let row = self.registry.destinations.iter_mut().find(|row| row.number == number);
        let Some(row) = row else { return Resolved::Unknown };
        if row.paused == paused {
            return Resolved::Unchanged;
        }
        row.paused = paused;
        Resolved::Changed
    }

    fn accept_conflict(
        &mut self,
        first: &EventId,
        variant: u16,
        revision: EventId,
        destinations: &[DestinationNumber],
        decision: &Decision,
        now: Timestamp,
    ) -> Resolved {
        let Some(stored) = self.stored_mut(first) else { return Resolved::Unknown };
        let first_event = stored.event.clone();
        let Some(variant) =
            usize::from(variant).checked_sub(1).and_then(|index| stored.variants.get_mut(index))
        else {
            return Resolved::Unknown;
        };
        let (ConflictState::Open, Some(body)) = (&variant.state, variant.body.clone()) else {
            return Resolved::Unchanged;
        };
        variant.state = ConflictState::Accepted { revision, decision: decision.clone() };
        let event = Event {
            id: revision,
            received_at: variant.received_at,
            committed_at: now,
            digest: variant.digest,
            body_bytes: variant.body_bytes,
            erased_at: None,
            headers: variant.headers.clone(),
            revises: Some(*first),
            same_body_as: None,
            ..first_event
        };
        let new = NewEvent { event, body, comparison: None };
        let seq = self.add_event(new, destinations, now);
        Resolved::Revised { event: revision, seq }
    }

    fn dismiss_conflict(&mut self, event: &EventId, variant: u16, decision: &Decision) -> Resolved {
        let index = usize::from(variant).checked_sub(1);
        let variants = self.stored_mut(event).map(|stored| &mut stored.variants);
        let Some(variant) = index.and_then(|index| variants?.get_mut(index)) else {
            return Resolved::Unknown;
        };
        if variant.state != ConflictState::Open {
            return Resolved::Unchanged;
        }
        variant.state = ConflictState::Dismissed(decision.clone());
        Resolved::Changed
    }

    pub(super) fn record_run(&mut self, run: &RecordRun, now: Timestamp) -> RunOutcome {
        let key = (run.event, run.run.clone());
        if let Some(receipt) = self.runs.get(&key) {
            return RunOutcome::Known(receipt.clone());
        }
        let Some(stored) = self.stored(&run.event) else { return RunOutcome::UnknownEvent };
        let receipt = RunReceipt {
            event: run.event,
            run: run.run.clone(),
            digest: stored.event.digest,
            processed_at: now,
            business_id: run.business_id.clone(),
            payload: run.payload.clone(),
        };
        self.runs.insert(key, receipt.clone());
        RunOutcome::New(receipt)
    }

    pub(super) fn register(&mut self, register: &Register) -> Registered {
        match register {
            Register::Source { name, identity_fingerprint } => {
                let rows = &mut self.registry.sources;
                let Some(row) = rows.iter_mut().find(|row| row.name == *name) else {
                    let row = SourceRow {
                        number: SourceNumber(next_number(rows.len())),
                        name: name.clone(),
                        generation: 1,
                        identity_fingerprint: identity_fingerprint.clone(),
                    };
                    rows.push(row.clone());
                    return Registered::Source { row, previous_fingerprint: None };
                };
                if row.identity_fingerprint == *identity_fingerprint {
                    return Registered::Source { row: row.clone(), previous_fingerprint: None };
                }
                row.generation += 1;
                let previous = std::mem::replace(&mut row.identity_fingerprint, identity_fingerprint.clone());
                Registered::Source { row: row.clone(), previous_fingerprint: Some(previous) }
            }
            Register::Destination { name, fingerprint, retry } => {
                let rows = &mut self.registry.destinations;
                if let Some(row) = rows.iter_mut().find(|row| row.name == *name) {
                    if row.fingerprint != *fingerprint || row.retry != *retry {
                        row.generation += 1;
                        row.fingerprint.clone_from(fingerprint);
                        row.retry = retry.clone();
                    }
                    return Registered::Destination(row.clone());
                }
                let row = DestinationRow {
                    number: DestinationNumber(next_number(rows.len())),
                    name: name.clone(),
                    generation: 1,
                    fingerprint: fingerprint.clone(),
                    retry: retry.clone(),
                    paused: false,
                };
                rows.push(row.clone());
                Registered::Destination(row)
            }
        }
    }
}

fn next_number(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX - 1) + 1
}
