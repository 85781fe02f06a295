//! Memory stores that break one promise each, as a careless backend would.

use std::sync::Arc;

use hookstead_core::conformance::{Backend, Instance};
use hookstead_core::{
    Attempt, Body, BodySelector, ChangeMark, CheckProgress, CheckReport, Conflict, ConflictFilter, Decision,
    Delivery, DeliveryFilter, DeliveryId, DestinationNumber, Event, EventFilter, EventId, EventSelector,
    Fetched, List, MemoryStore, Outcome, Page, Redelivery, RedeliveryId, RedeliveryState, Registry, Resolve,
    RunReceipt, Stats, Store, StoreError, StoreFacts, Subject, Timestamp, Write, Written,
};

/// The promise that is broken.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// A taken identity is answered as a duplicate, whatever the bytes.
    DuplicatesUncompared,
    /// Attempts are taken and never shown.
    AttemptsForgotten,
    /// A paused destination gets leases.
    PauseIgnored,
    /// A batch that fails leaves the writes before the one to blame.
    BatchesTorn,
    /// Nothing is there when the store is opened again.
    ForgetsOnReopen,
}

/// The backend of such stores.
pub(crate) struct Broken(pub(crate) Fault);

impl Backend for Broken {
    fn name(&self) -> &str {
        "a broken store"
    }

    fn open(&self) -> Box<dyn Instance> {
        Box::new(OpenBroken { fault: self.0, store: Arc::new(BrokenStore::new(self.0)) })
    }
}

struct OpenBroken {
    fault: Fault,
    store: Arc<BrokenStore>,
}

impl Instance for OpenBroken {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn reopen(&mut self) {
        if matches!(self.fault, Fault::ForgetsOnReopen) {
            self.store = Arc::new(BrokenStore::new(self.fault));
        }
    }
}

struct BrokenStore {
    fault: Fault,
    inner: MemoryStore,
}

impl BrokenStore {
    fn new(fault: Fault) -> Self {
        Self { fault, inner: MemoryStore::new([7; 32]) }
    }

    /// Resumes each paused destination for the length of a claim.
    fn apply_ignoring_pauses(&self, writes: &[Write], now: Timestamp) -> Result<Vec<Written>, StoreError> {
        let registry = self.inner.registry()?;
        let is_paused = |number| registry.destinations.iter().any(|row| row.number == number && row.paused);
        let (mut all, mut places) = (Vec::new(), Vec::new());
        for write in writes {
            let paused = match write {
                Write::Claim(claim) if is_paused(claim.destination) => Some(claim.destination),
                _ => None,
            };
            all.extend(paused.map(|number| decide(Subject::ResumeDestination(number), now)));
            places.push(all.len());
            all.push(write.clone());
            all.extend(paused.map(|number| decide(Subject::PauseDestination(number), now)));
        }
        let written = self.inner.apply(&all, now)?;
        Ok(places.iter().map(|place| written[*place].clone()).collect())
    }

    fn apply_one_by_one(&self, writes: &[Write], now: Timestamp) -> Result<Vec<Written>, StoreError> {
        let one = |write: &Write| self.inner.apply(std::slice::from_ref(write), now);
        writes.iter().map(|write| one(write).map(|mut written| written.remove(0))).collect()
    }
}

fn decide(subject: Subject, at: Timestamp) -> Write {
    let decision = Decision { by: "a fault".into(), note: String::new(), at };
    Write::Resolve(Box::new(Resolve { subject, decision }))
}

fn uncompared(written: Written) -> Written {
    match written {
        Written::Accepted(mut receipt) if matches!(receipt.outcome, Outcome::Conflict { .. }) => {
            receipt.outcome = Outcome::Duplicate;
            Written::Accepted(receipt)
        }
        other => other,
    }
}

impl Store for BrokenStore {
    fn apply(&self, writes: &[Write], now: Timestamp) -> Result<Vec<Written>, StoreError> {
        match self.fault {
            Fault::DuplicatesUncompared => {
                Ok(self.inner.apply(writes, now)?.into_iter().map(uncompared).collect())
            }
            Fault::PauseIgnored => self.apply_ignoring_pauses(writes, now),
            Fault::BatchesTorn => self.apply_one_by_one(writes, now),
            Fault::AttemptsForgotten | Fault::ForgetsOnReopen => self.inner.apply(writes, now),
        }
    }

    fn attempts(&self, delivery: &DeliveryId) -> Result<Vec<Attempt>, StoreError> {
        match self.fault {
            Fault::AttemptsForgotten => Ok(Vec::new()),
            _ => self.inner.attempts(delivery),
        }
    }

    fn facts(&self) -> &StoreFacts {
        self.inner.facts()
    }

    fn probe(&self, now: Timestamp) -> Result<(), StoreError> {
        self.inner.probe(now)
    }

    fn close(&self, now: Timestamp) -> Result<(), StoreError> {
        self.inner.close(now)
    }

    fn event(&self, selector: &EventSelector) -> Result<Option<Event>, StoreError> {
        self.inner.event(selector)
    }

    fn body(&self, selector: BodySelector) -> Result<Option<Body>, StoreError> {
        self.inner.body(selector)
    }

    fn fetch(
        &self,
        events: &[EventId],
        fits: &mut dyn FnMut(usize, u64) -> bool,
    ) -> Result<Vec<Fetched>, StoreError> {
        self.inner.fetch(events, fits)
    }

    fn list_events(&self, filter: &EventFilter, page: &Page) -> Result<List<Event>, StoreError> {
        self.inner.list_events(filter, page)
    }

    fn list_deliveries(&self, filter: &DeliveryFilter, page: &Page) -> Result<List<Delivery>, StoreError> {
        self.inner.list_deliveries(filter, page)
    }

    fn list_conflicts(&self, filter: &ConflictFilter, page: &Page) -> Result<List<Conflict>, StoreError> {
        self.inner.list_conflicts(filter, page)
    }

    fn runs(&self, event: &EventId) -> Result<Vec<RunReceipt>, StoreError> {
        self.inner.runs(event)
    }

    fn redelivery(&self, id: &RedeliveryId) -> Result<Option<Redelivery>, StoreError> {
        self.inner.redelivery(id)
    }

    fn list_redeliveries(
        &self,
        state: Option<RedeliveryState>,
        page: &Page,
    ) -> Result<List<Redelivery>, StoreError> {
        self.inner.list_redeliveries(state, page)
    }

    fn registry(&self) -> Result<Registry, StoreError> {
        self.inner.registry()
    }

    fn next_due(&self, destination: DestinationNumber) -> Result<Option<Timestamp>, StoreError> {
        self.inner.next_due(destination)
    }

    fn next_expiry(&self) -> Result<Option<Timestamp>, StoreError> {
        self.inner.next_expiry()
    }

    fn stats(&self) -> Result<Stats, StoreError> {
        self.inner.stats()
    }

    fn check(&self, progress: &mut dyn FnMut(CheckProgress)) -> Result<CheckReport, StoreError> {
        self.inner.check(progress)
    }

    fn changed(&self) -> Result<ChangeMark, StoreError> {
        self.inner.changed()
    }
}
