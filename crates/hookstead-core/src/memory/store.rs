//! [`MemoryStore`]: the [`Store`] contract over [`State`].

use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::state::{State, key_from};
use crate::attempt::Attempt;
use crate::delivery::Delivery;
use crate::error::StoreError;
use crate::event::{Body, Conflict, Event, Fetched};
use crate::id::{DeliveryId, DestinationNumber, EventId, RedeliveryId};
use crate::identity::IdentityKey;
use crate::query::{
    BodySelector, ChangeMark, ConflictFilter, DeliveryFilter, EventFilter, EventSelector, List, Page,
};
use crate::redelivery::{Redelivery, RedeliveryState};
use crate::run::RunReceipt;
use crate::store::{CheckProgress, CheckReport, Registry, Stats, Store, StoreFacts, Subject, Write, Written};
use crate::time::Timestamp;

/// The kind of this store.
const KIND: &str = "memory";

/// A store that forgets everything when it is dropped. It keeps the whole contract but durability.
pub struct MemoryStore {
    facts: StoreFacts,
    state: Mutex<State>,
}

impl MemoryStore {
    /// An empty store whose identity hashes are keyed with `identity_key`, which must be random.
    pub fn new(identity_key: [u8; 32]) -> Self {
        Self::with_key(key_from(identity_key))
    }

    /// An empty store with the key of another store, to compare the two.
    pub fn with_key(identity_key: IdentityKey) -> Self {
        let facts = StoreFacts {
            kind: KIND,
            location: "memory:".to_owned(),
            durability: "none: gone with the process".to_owned(),
            persistent: false,
            batches_in_flight: NonZeroUsize::MIN,
            identity_key,
        };
        Self { facts, state: Mutex::new(State::default()) }
    }

    /// A panic while the lock was held is a bug of ours and may have left half a batch: it must stay loud.
    fn state(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        self.state.lock().map_err(|_: PoisonError<_>| StoreError::Poisoned {
            reason: "a write to the memory store panicked".to_owned(),
        })
    }

    /// The state, unless the store was closed, after which nothing is written.
    fn open_state(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        let state = self.state()?;
        if state.is_closed {
            return Err(StoreError::backend("write to the memory store", "the store is closed"));
        }
        Ok(state)
    }
}

impl Store for MemoryStore {
    fn facts(&self) -> &StoreFacts {
        &self.facts
    }

    fn apply(&self, writes: &[Write], now: Timestamp) -> Result<Vec<Written>, StoreError> {
        let mut state = self.open_state()?;
        writes.iter().try_for_each(|write| check_numbers(&state, write))?;
        writes.iter().map(|write| apply_one(&mut state, write, now)).collect()
    }

    fn probe(&self, _now: Timestamp) -> Result<(), StoreError> {
        self.open_state().map(drop)
    }

    fn close(&self, _now: Timestamp) -> Result<(), StoreError> {
        self.state()?.is_closed = true;
        Ok(())
    }

    fn event(&self, selector: &EventSelector) -> Result<Option<Event>, StoreError> {
        Ok(self.state()?.select(selector))
    }

    fn body(&self, selector: BodySelector) -> Result<Option<Body>, StoreError> {
        Ok(self.state()?.body(selector))
    }

    fn fetch(
        &self,
        events: &[EventId],
        fits: &mut dyn FnMut(usize, u64) -> bool,
    ) -> Result<Vec<Fetched>, StoreError> {
        let state = self.state()?;
        let fetched = events.iter().enumerate();
        Ok(fetched.map(|(at, id)| state.fetch(id, &mut |bytes| fits(at, bytes))).collect())
    }

    fn list_events(&self, filter: &EventFilter, page: &Page) -> Result<List<Event>, StoreError> {
        self.state()?.list_events(filter, page)
    }

    fn list_deliveries(&self, filter: &DeliveryFilter, page: &Page) -> Result<List<Delivery>, StoreError> {
        self.state()?.list_deliveries(filter, page)
    }

    fn attempts(&self, delivery: &DeliveryId) -> Result<Vec<Attempt>, StoreError> {
        Ok(self.state()?.attempts(delivery))
    }

    fn list_conflicts(&self, filter: &ConflictFilter, page: &Page) -> Result<List<Conflict>, StoreError> {
        self.state()?.list_conflicts(filter, page)
    }

    fn runs(&self, event: &EventId) -> Result<Vec<RunReceipt>, StoreError> {
        Ok(self.state()?.runs(event))
    }

    fn redelivery(&self, id: &RedeliveryId) -> Result<Option<Redelivery>, StoreError> {
        Ok(self.state()?.redeliveries.get(id).cloned())
    }

    fn list_redeliveries(
        &self,
        state: Option<RedeliveryState>,
        page: &Page,
    ) -> Result<List<Redelivery>, StoreError> {
        self.state()?.list_redeliveries(state, page)
    }

    fn registry(&self) -> Result<Registry, StoreError> {
        Ok(self.state()?.registry.clone())
    }

    fn next_due(&self, destination: DestinationNumber) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.state()?.next_due(destination))
    }

    fn next_expiry(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.state()?.next_expiry())
    }

    fn stats(&self) -> Result<Stats, StoreError> {
        Ok(self.state()?.stats())
    }

    fn check(&self, progress: &mut dyn FnMut(CheckProgress)) -> Result<CheckReport, StoreError> {
        let report = self.state()?.check();
        progress(CheckProgress { done: report.events, total: report.events });
        Ok(report)
    }

    fn changed(&self) -> Result<ChangeMark, StoreError> {
        Ok(ChangeMark(0))
    }
}

/// Numbers are looked up before anything is written, so that a batch with an unknown one changes nothing; and here no
/// effect can be run.
fn check_numbers(state: &State, write: &Write) -> Result<(), StoreError> {
    match write {
        Write::Accept(acceptance) => {
            state.source_name(acceptance.identity().source)?;
            acceptance.facts().destinations.iter().try_for_each(|number| state.check_destination(*number))
        }
        Write::Claim(claim) => state.check_destination(claim.destination),
        Write::Redeliver(step) => state.check_destination(step.plan.destination),
        Write::Resolve(resolve) => match &resolve.subject {
            Subject::AcceptConflict { destinations, .. } => {
                destinations.iter().try_for_each(|number| state.check_destination(*number))
            }
            _ => Ok(()),
        },
        Write::Sweep(sweep) => {
            sweep.retention.iter().try_for_each(|rule| state.source_name(rule.source).map(drop))
        }
        Write::Settle(settle) => match settle.verdict.effect() {
            Some(effect) => Err(effect.refused_by(KIND)),
            None => Ok(()),
        },
        Write::Extend(_) | Write::RecordRun(_) | Write::Register(_) => Ok(()),
    }
}

fn apply_one(state: &mut State, write: &Write, now: Timestamp) -> Result<Written, StoreError> {
    Ok(match write {
        Write::Accept(acceptance) => Written::Accepted(state.accept(acceptance, now)?),
        Write::Claim(claim) => Written::Claimed(state.claim(claim, now)),
        Write::Extend(extend) => Written::Extended(state.extend(extend, now)),
        Write::Settle(settle) => Written::Settled(state.settle(settle, now)),
        Write::RecordRun(run) => Written::RunRecorded(state.record_run(run, now)),
        Write::Redeliver(step) => Written::Redelivered(state.redeliver(step, now)),
        Write::Resolve(resolve) => Written::Resolved(state.resolve(resolve, now)),
        Write::Sweep(sweep) => Written::Swept(state.sweep(sweep, now)),
        Write::Register(register) => Written::Registered(state.register(register)),
    })
}
