//! The whole suite and the model over the simulated disk, with the plug pulled after every batch or every few: what was
//! acknowledged is there, none of it torn, none of it twice.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use hookstead_core::conformance::{Backend, Instance};
use hookstead_core::{
    Attempt, Body, BodySelector, ChangeMark, CheckProgress, CheckReport, Conflict, ConflictFilter, Delivery,
    DeliveryFilter, DeliveryId, DestinationNumber, Duplicates, Event, EventFilter, EventId, EventSelector,
    Fetched, List, Outcome, Page, Redelivery, RedeliveryId, RedeliveryState, Registry, RunReceipt, Stats,
    Store, StoreError, StoreFacts, Timestamp, Write, Written,
};
use hookstead_store::sim::SimDisk;
use hookstead_store::{Checkpoints, OpenError, OpenOptions, Opened, open};

use super::backend::url;
use crate::backend::OPENED_AT;

/// Where the store is on every simulated disk.
pub(crate) const ROOT: &str = "/data/store";

/// Opens the store on a simulated disk, always with the same calls in the same order.
pub(crate) fn open_on(disk: &SimDisk) -> Result<Opened, OpenError> {
    open_with(disk, OpenOptions { checkpoints: Checkpoints::InTheCall, ..OpenOptions::default() })
}

/// The same, with a checkpoint in each batch.
pub(crate) fn open_short(disk: &SimDisk) -> Result<Opened, OpenError> {
    let checkpoints = Checkpoints::InTheCall;
    open_with(disk, OpenOptions { journal_bytes_max: 0, checkpoints, ..OpenOptions::default() })
}

pub(crate) fn open_with(disk: &SimDisk, options: OpenOptions) -> Result<Opened, OpenError> {
    let options = OpenOptions { fs: Arc::new(disk.clone()), identity_key: Some([7; 32]), ..options };
    open(&url(Path::new(ROOT)), &options, OPENED_AT)
}

/// Stores on simulated disks that lose their power after every so many batches. Where that is not each, there
/// are checkpoints between the cuts.
pub(crate) struct CutFiles {
    pub(crate) every_batches: u64,
}

/// So short that a few batches make a checkpoint due.
const JOURNAL_BYTES: u64 = 2_000;

fn open_for(disk: &SimDisk) -> Opened {
    let checkpoints = Checkpoints::InTheCall;
    let options = OpenOptions { journal_bytes_max: JOURNAL_BYTES, checkpoints, ..OpenOptions::default() };
    open_with(disk, options).expect("the store opens")
}

impl Backend for CutFiles {
    fn name(&self) -> &str {
        "files, with power cuts"
    }

    fn open(&self) -> Box<dyn Instance> {
        let disk = SimDisk::new(1);
        let opened = open_for(&disk);
        let facts = opened.store.facts().clone();
        let every_batches = self.every_batches;
        let now = Now { disk, opened, every_batches, batches: 0, cuts: 0, duplicates: HashMap::new() };
        Box::new(CutInstance(Arc::new(CutStore { facts, now: Mutex::new(now) })))
    }
}

struct CutInstance(Arc<CutStore>);

impl Instance for CutInstance {
    fn store(&self) -> Arc<dyn Store> {
        self.0.clone()
    }

    fn reopen(&mut self) {
        self.0.now().cut();
    }
}

/// The store as it is open now, and what a crash may forget: how often events came again is approximate
/// then, and this keeps it exactly, so that the suite can look at everything else.
struct Now {
    disk: SimDisk,
    opened: Opened,
    every_batches: u64,
    batches: u64,
    cuts: u64,
    duplicates: HashMap<EventId, Duplicates>,
}

impl Now {
    fn cut(&mut self) {
        self.cuts += 1;
        self.disk = self.disk.power_cut(self.cuts);
        self.opened = open_for(&self.disk);
    }

    fn count(&mut self, written: &[Written], now: Timestamp) {
        for written in written {
            let Written::Accepted(receipt) = written else { continue };
            if receipt.outcome == Outcome::Duplicate {
                let duplicates = self.duplicates.entry(receipt.event).or_default();
                *duplicates = Duplicates { count: duplicates.count + 1, last_at: Some(now) };
            }
        }
    }

    fn counted(&self, mut event: Event) -> Event {
        event.duplicates = self.duplicates.get(&event.id).copied().unwrap_or_default();
        event
    }
}

struct CutStore {
    facts: StoreFacts,
    now: Mutex<Now>,
}

impl CutStore {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().expect("no test panics inside a store")
    }

    fn store(&self) -> Arc<dyn Store> {
        self.now().opened.store.clone()
    }
}

impl Store for CutStore {
    fn facts(&self) -> &StoreFacts {
        &self.facts
    }

    fn apply(&self, writes: &[Write], at: Timestamp) -> Result<Vec<Written>, StoreError> {
        let mut now = self.now();
        let written = now.opened.store.apply(writes, at)?;
        now.count(&written, at);
        now.batches += 1;
        if now.batches.is_multiple_of(now.every_batches) {
            now.cut();
        }
        Ok(written)
    }

    fn probe(&self, at: Timestamp) -> Result<(), StoreError> {
        self.store().probe(at)
    }

    fn close(&self, at: Timestamp) -> Result<(), StoreError> {
        self.store().close(at)
    }

    fn event(&self, selector: &EventSelector) -> Result<Option<Event>, StoreError> {
        let now = self.now();
        Ok(now.opened.store.event(selector)?.map(|event| now.counted(event)))
    }

    fn body(&self, selector: BodySelector) -> Result<Option<Body>, StoreError> {
        self.store().body(selector)
    }

    fn fetch(
        &self,
        events: &[EventId],
        fits: &mut dyn FnMut(usize, u64) -> bool,
    ) -> Result<Vec<Fetched>, StoreError> {
        self.store().fetch(events, fits)
    }

    fn list_events(&self, filter: &EventFilter, page: &Page) -> Result<List<Event>, StoreError> {
        let now = self.now();
        let list = now.opened.store.list_events(filter, page)?;
        Ok(List { items: list.items.into_iter().map(|event| now.counted(event)).collect(), ..list })
    }

    fn list_deliveries(&self, filter: &DeliveryFilter, page: &Page) -> Result<List<Delivery>, StoreError> {
        self.store().list_deliveries(filter, page)
    }

    fn attempts(&self, delivery: &DeliveryId) -> Result<Vec<Attempt>, StoreError> {
        self.store().attempts(delivery)
    }

    fn list_conflicts(&self, filter: &ConflictFilter, page: &Page) -> Result<List<Conflict>, StoreError> {
        self.store().list_conflicts(filter, page)
    }

    fn runs(&self, event: &EventId) -> Result<Vec<RunReceipt>, StoreError> {
        self.store().runs(event)
    }

    fn redelivery(&self, id: &RedeliveryId) -> Result<Option<Redelivery>, StoreError> {
        self.store().redelivery(id)
    }

    fn list_redeliveries(
        &self,
        state: Option<RedeliveryState>,
        page: &Page,
    ) -> Result<List<Redelivery>, StoreError> {
        self.store().list_redeliveries(state, page)
    }

    fn registry(&self) -> Result<Registry, StoreError> {
        self.store().registry()
    }

    fn next_due(&self, destination: DestinationNumber) -> Result<Option<Timestamp>, StoreError> {
        self.store().next_due(destination)
    }

    fn next_expiry(&self) -> Result<Option<Timestamp>, StoreError> {
        self.store().next_expiry()
    }

    fn stats(&self) -> Result<Stats, StoreError> {
        self.store().stats()
    }

    fn check(&self, progress: &mut dyn FnMut(CheckProgress)) -> Result<CheckReport, StoreError> {
        self.store().check(progress)
    }

    fn changed(&self) -> Result<ChangeMark, StoreError> {
        self.store().changed()
    }
}
