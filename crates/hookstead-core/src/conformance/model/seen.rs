//! What runs have come by: each answer and each state, counted, so that a test can tell whether the model
//! reaches what is worth comparing.

use std::collections::BTreeMap;

use crate::conformance::picture::Picture;
use crate::delivery::{DeadReason, Delivery, DeliveryState};
use crate::event::{AcceptReceipt, ConflictState, Event, Outcome};
use crate::lease::{Extension, Settled, Settlement};
use crate::redelivery::{Redelivery, RedeliveryState};
use crate::retention::Swept;
use crate::run::RunOutcome;
use crate::store::{Registered, Resolved, Written};

/// How often each thing was seen, by name.
#[derive(Debug, Default)]
pub(super) struct Seen(pub(super) BTreeMap<&'static str, u64>);

impl Seen {
    fn note(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    fn note_if(&mut self, seen: bool, what: &'static str) {
        if seen {
            self.note(what);
        }
    }

    pub(super) fn failed_batch(&mut self) {
        self.note("a batch that failed");
    }

    pub(super) fn answer(&mut self, written: &Written) {
        match written {
            Written::Accepted(receipt) => self.receipt(receipt),
            Written::Claimed(leases) if leases.is_empty() => self.note("a claim of nothing"),
            Written::Claimed(leases) => {
                self.note_if(leases.len() > 1, "a claim of several");
                self.note("a claim");
            }
            Written::Extended(extension) => self.note(match extension {
                Extension::Extended { .. } => "an extension",
                Extension::LeaseLost => "an extension of a lost lease",
                Extension::Unknown => "an extension of an unknown delivery",
            }),
            Written::Settled(settlement) => self.note(settlement_name(settlement)),
            Written::RunRecorded(outcome) => self.note(match outcome {
                RunOutcome::New(_) => "a new run",
                RunOutcome::Known(_) => "a known run",
                RunOutcome::UnknownEvent => "a run of an unknown event",
            }),
            Written::Redelivered(redelivery) => self.redelivery(redelivery),
            Written::Resolved(resolved) => self.note(match resolved {
                Resolved::Changed => "a decision carried out",
                Resolved::Revised { .. } => "a revision made",
                Resolved::Unchanged => "a decision that changes nothing",
                Resolved::Unknown => "a decision about nothing",
            }),
            Written::Swept(swept) => self.swept(*swept),
            Written::Registered(Registered::Source { previous_fingerprint, .. }) => {
                self.note_if(previous_fingerprint.is_some(), "a source with a new rule");
            }
            Written::Registered(Registered::Destination(row)) => {
                self.note_if(row.generation > 1, "a destination that changed");
            }
        }
    }

    fn receipt(&mut self, receipt: &AcceptReceipt) {
        self.note(match receipt.outcome {
            Outcome::Stored => "an event stored",
            Outcome::Duplicate => "a duplicate",
            Outcome::Conflict { variant: Some(_) } => "a conflict",
            Outcome::Conflict { variant: None } => "a conflict beyond the maximum",
            Outcome::BodyReused => "a body refused",
        });
        self.note_if(receipt.same_body_as.is_some(), "a body flagged");
    }

    fn redelivery(&mut self, redelivery: &Redelivery) {
        self.note_if(redelivery.made > 0, "a redelivery that made deliveries");
        self.note_if(redelivery.skipped > 0, "a redelivery that passed events over");
        self.note(match redelivery.state {
            RedeliveryState::Running => "a running redelivery",
            RedeliveryState::Complete => "a complete redelivery",
            RedeliveryState::Cancelled => "a cancelled redelivery",
        });
    }

    fn swept(&mut self, swept: Swept) {
        self.note_if(swept.expired > 0, "a lease taken away");
        self.note_if(swept.erased > 0, "a body erased");
        self.note_if(swept.expired > 0 && swept.erased > 0, "leases and bodies in one sweep");
        self.note(if swept.more { "a sweep that left more" } else { "a sweep that left nothing" });
    }

    pub(super) fn picture(&mut self, picture: &Picture) {
        picture.deliveries.iter().for_each(|delivery| self.delivery(delivery));
        picture.events.iter().for_each(|event| self.event(event));
        for conflict in &picture.conflicts {
            self.note(match conflict.state {
                ConflictState::Open => "an open conflict",
                ConflictState::Accepted { .. } => "an accepted conflict",
                ConflictState::Dismissed(_) => "a dismissed conflict",
            });
        }
        self.note_if(picture.attempts.iter().any(|(_, made)| made.len() > 1), "several attempts on record");
        self.note_if(picture.registry.destinations.iter().any(|row| row.paused), "a paused destination");
        self.note_if(picture.next_due.iter().any(|(_, due)| due.is_some()), "something due");
        self.note_if(picture.next_due.iter().all(|(_, due)| due.is_none()), "nothing due");
    }

    fn delivery(&mut self, delivery: &Delivery) {
        self.note(match &delivery.state {
            DeliveryState::Waiting { .. } if delivery.attempts > 0 => "a delivery that waits again",
            DeliveryState::Waiting { .. } => "a waiting delivery",
            DeliveryState::Leased { .. } => "a leased delivery",
            DeliveryState::Done { decision: None, .. } => "a done delivery",
            DeliveryState::Done { decision: Some(_), .. } => "a delivery that a person marked done",
            DeliveryState::Dead { reason: DeadReason::Refused(_), .. } => "a refused delivery",
            DeliveryState::Dead { reason: DeadReason::AttemptsUsedUp, .. } => "a delivery out of attempts",
            DeliveryState::Dead { reason: DeadReason::AgeUsedUp, .. } => "a delivery too old",
            DeliveryState::Held { .. } => "a held delivery",
        });
        self.note_if(delivery.id.generation > 1, "a redelivered delivery");
        self.note_if(delivery.key_generation > 1, "a fresh idempotency key");
    }

    fn event(&mut self, event: &Event) {
        self.note_if(event.revises.is_some(), "a revision");
        self.note_if(event.revises.is_some() && event.duplicates.count > 0, "a duplicate of a revision");
        self.note_if(event.erased_at.is_some(), "an erased event");
        self.note_if(
            event.erased_at.is_some() && event.duplicates.count > 0,
            "an erased event that came again",
        );
        self.note_if(event.erased_at.is_some() && event.conflicts > 0, "an erased event with conflicts");
        self.note_if(event.is_finished(), "a finished event");
    }
}

fn settlement_name(settlement: &Settlement) -> &'static str {
    match settlement {
        Settlement::Settled(Settled::Done) => "settled as done",
        Settlement::Settled(Settled::Retry { .. }) => "settled as a retry",
        Settlement::Settled(Settled::Dead(DeadReason::Refused(_))) => "settled as refused",
        Settlement::Settled(Settled::Dead(DeadReason::AttemptsUsedUp)) => "settled as out of attempts",
        Settlement::Settled(Settled::Dead(DeadReason::AgeUsedUp)) => "settled as too old",
        Settlement::Settled(Settled::Released) => "settled as released",
        Settlement::LeaseLost => "a settle of a lost lease",
        Settlement::Unknown => "a settle of an unknown delivery",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::conformance::backend::{Backend, Instance};
    use crate::conformance::model::Extent;
    use crate::conformance::model::check::explore;
    use crate::memory::MemoryStore;
    use crate::store::Store;

    struct Memory;

    struct OpenMemory(Arc<MemoryStore>);

    impl Backend for Memory {
        fn name(&self) -> &str {
            "memory"
        }

        fn open(&self) -> Box<dyn Instance> {
            Box::new(OpenMemory(Arc::new(MemoryStore::new([1; 32]))))
        }
    }

    impl Instance for OpenMemory {
        fn store(&self) -> Arc<dyn Store> {
            self.0.clone()
        }

        fn reopen(&mut self) {}
    }

    /// Every name that [`Seen`] knows, read from its own source, so that none can be forgotten here.
    fn names() -> Vec<&'static str> {
        let source = include_str!("seen.rs").split("#[cfg(test)]").next().unwrap();
        let literals = source.lines().filter(|line| !line.trim_start().starts_with("//"));
        literals.flat_map(|line| line.split('"').skip(1).step_by(2)).collect()
    }

    #[test]
    fn a_run_of_the_usual_extent_comes_by_everything_that_is_worth_comparing() {
        let extent = Extent { seed: 1, operations: 8_000 };
        let seen = explore(&Memory, extent).unwrap();
        let missed: Vec<_> = names().into_iter().filter(|name| !seen.0.contains_key(name)).collect();
        assert_eq!(missed, [""; 0], "{seen:#?}");
        assert!(names().len() > 60);
    }
}
