//! [`FilesStore`]: the [`Store`] contract over one writer, and tables that any number of readers share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use bytes::Bytes;
use hookstead_core::{
    Attempt, Body, BodySelector, ChangeMark, CheckProgress, CheckReport, Conflict, ConflictFilter, Delivery,
    DeliveryFilter, DeliveryId, DestinationNumber, Event, EventFilter, EventId, EventSelector, Fetched,
    Identity, List, Page, Redelivery, RedeliveryId, RedeliveryState, Registry, RunReceipt, Stats, Store,
    StoreError, StoreFacts, Timestamp, Write, Written,
};

use super::disk::Disk;
use super::entry::Entry;
use super::failure::corrupt;
use super::layout::RecordPath;
use super::row::EventRow;
use super::tables::Tables;
use super::writer::{Writer, panicked};
use super::{check, receipt};
use crate::lock::StoreLock;
use crate::poison::Poison;
use crate::room::Room;

/// A store in a folder.
pub(super) struct FilesStore {
    pub(super) facts: StoreFacts,
    pub(super) disk: Disk,
    pub(super) room: Room,
    pub(super) tables: RwLock<Tables>,
    pub(super) writer: Mutex<Writer>,
    pub(super) poison: Poison,
    pub(super) lock: Arc<StoreLock>,
    pub(super) closed: AtomicBool,
}

/// Where a body is and what it must be.
struct Wanted {
    record: RecordPath,
    /// Its record, where that has no file yet.
    unwritten: Option<Bytes>,
    identity: Identity,
    digest: hookstead_core::Digest,
}

impl FilesStore {
    /// Runs `write` on the writer, unless the store is poisoned or closed; what it fails with may poison.
    fn write<T>(&self, write: impl FnOnce(&mut Writer) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut writer = self.writer()?;
        self.poison.check()?;
        self.check_open()?;
        write(&mut writer).inspect_err(|error| self.poison.note(error))
    }

    /// A panic inside a write is a bug of ours and may have left half a batch: nothing is written after it.
    fn writer(&self) -> Result<MutexGuard<'_, Writer>, StoreError> {
        self.writer.lock().map_err(|_: PoisonError<_>| {
            let error = StoreError::Poisoned { reason: "a write panicked".to_owned() };
            self.poison.note(&error);
            error
        })
    }

    fn tables(&self) -> Result<RwLockReadGuard<'_, Tables>, StoreError> {
        self.check_open()?;
        self.tables.read().map_err(panicked)
    }

    fn check_open(&self) -> Result<(), StoreError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(StoreError::backend("use the store", "it is closed"));
        }
        Ok(())
    }

    /// Ends everything once; the lock goes last.
    fn shut(&self) -> Result<(), StoreError> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let written = match self.poison.check() {
            Ok(()) => self.writer().and_then(|mut writer| writer.close(&self.tables)),
            Err(_) => Ok(()),
        };
        self.lock.release();
        written.inspect_err(|error| self.poison.note(error))
    }

    /// What is asked for; `None` if there is no such body, `Some(None)` if it was erased.
    fn wanted(&self, selector: BodySelector) -> Result<Option<Option<Wanted>>, StoreError> {
        let tables = self.tables()?;
        let (BodySelector::Event(id) | BodySelector::Variant(id, _)) = selector;
        let Some(row) = tables.by_id(&id) else { return Ok(None) };
        let event = &row.event;
        let (record, digest, kept) = match selector {
            BodySelector::Event(_) => (self.disk.layout.event(row), event.digest, row.is_kept()),
            BodySelector::Variant(_, number) => {
                let Some(variant) = row.variant(number) else { return Ok(None) };
                let record = self.disk.layout.conflict(&event.source, &event.identity, number);
                (record, variant.digest, !variant.erased)
            }
        };
        let unwritten = tables.unwritten.get(&record).cloned();
        Ok(Some(kept.then(|| Wanted { record, unwritten, identity: event.identity.clone(), digest })))
    }

    fn fetch_one(&self, id: &EventId, fits: &mut dyn FnMut(u64) -> bool) -> Result<Fetched, StoreError> {
        let Some(event) = self.tables()?.by_id(id).map(|row| row.event.clone().uncounted()) else {
            return Ok(Fetched::Unknown);
        };
        if !fits(event.body_bytes) {
            return Ok(Fetched::TooLarge);
        }
        let body = self.body(BodySelector::Event(*id))?;
        Ok(body.map_or(Fetched::Unknown, |body| Fetched::Whole(Box::new(event), body)))
    }

    fn read_body(&self, wanted: &Wanted) -> Result<Body, StoreError> {
        let bytes = match &wanted.unwritten {
            Some(bytes) => bytes.clone(),
            None => self.disk.read_known(&wanted.record)?.into(),
        };
        Entry::body_of(&bytes, &wanted.identity, wanted.digest)
            .map(Body::Kept)
            .map_err(|error| corrupt(format!("`{}`: {error}", wanted.record)))
    }
}

impl Store for FilesStore {
    fn facts(&self) -> &StoreFacts {
        &self.facts
    }

    fn apply(&self, writes: &[Write], now: Timestamp) -> Result<Vec<Written>, StoreError> {
        self.write(|writer| {
            self.room.check_batch(writes)?;
            writer.apply(&self.tables, writes, now)
        })
    }

    fn probe(&self, _now: Timestamp) -> Result<(), StoreError> {
        self.write(|writer| {
            self.room.check()?;
            writer.probe()
        })
    }

    fn close(&self, _now: Timestamp) -> Result<(), StoreError> {
        self.shut()
    }

    fn event(&self, selector: &EventSelector) -> Result<Option<Event>, StoreError> {
        let tables = self.tables()?;
        let row: Option<&Arc<EventRow>> = match selector {
            EventSelector::Id(id) => tables.by_id(id),
            EventSelector::Seq(seq) => tables.events.get(seq),
            EventSelector::Identity(identity) => tables.by_identity(identity),
            EventSelector::Newest => tables.events.values().next_back(),
        };
        Ok(row.map(|row| tables.event(row)))
    }

    fn body(&self, selector: BodySelector) -> Result<Option<Body>, StoreError> {
        let wanted = match self.wanted(selector)? {
            None => return Ok(None),
            Some(None) => return Ok(Some(Body::Erased)),
            Some(Some(wanted)) => wanted,
        };
        match self.read_body(&wanted) {
            Ok(body) => Ok(Some(body)),
            // It may have been erased between the look and the read.
            Err(error) => match self.wanted(selector)? {
                Some(None) => Ok(Some(Body::Erased)),
                _ => Err(error),
            },
        }
    }

    fn fetch(
        &self,
        events: &[EventId],
        fits: &mut dyn FnMut(usize, u64) -> bool,
    ) -> Result<Vec<Fetched>, StoreError> {
        self.check_open()?;
        let each = events
            .iter()
            .enumerate()
            .map(|(at, id)| self.fetch_one(id, &mut |bytes| fits(at, bytes)).unwrap_or_else(Fetched::Failed));
        Ok(each.collect())
    }

    fn list_events(&self, filter: &EventFilter, page: &Page) -> Result<List<Event>, StoreError> {
        self.tables()?.list_events(filter, page)
    }

    fn list_deliveries(&self, filter: &DeliveryFilter, page: &Page) -> Result<List<Delivery>, StoreError> {
        self.tables()?.list_deliveries(filter, page)
    }

    fn attempts(&self, delivery: &DeliveryId) -> Result<Vec<Attempt>, StoreError> {
        let tables = self.tables()?;
        let key = tables.work_key(delivery);
        Ok(key.map(|key| tables.attempts(&key).to_vec()).unwrap_or_default())
    }

    fn list_conflicts(&self, filter: &ConflictFilter, page: &Page) -> Result<List<Conflict>, StoreError> {
        self.tables()?.list_conflicts(filter, page)
    }

    fn runs(&self, event: &EventId) -> Result<Vec<RunReceipt>, StoreError> {
        let tables = self.tables()?;
        let Some(row) = tables.by_id(event).map(Arc::clone) else { return Ok(Vec::new()) };
        let runs = tables.runs_of(row.event.seq);
        let known: Vec<_> = runs
            .map(|(run, known)| {
                let record = self.disk.layout.receipt(&row, run);
                let unwritten = tables.unwritten.get(&record).cloned();
                (run.clone(), known.clone(), record, unwritten)
            })
            .collect();
        drop(tables);
        let read = |(run, known, record, unwritten): &(_, _, RecordPath, Option<Bytes>)| {
            let bytes = match unwritten {
                Some(bytes) => bytes.clone(),
                None => self.disk.read_known(record)?.into(),
            };
            receipt::read(&bytes, &row.event, run, known)
                .map_err(|error| corrupt(format!("`{record}`: {error}")))
        };
        known.iter().map(read).collect()
    }

    fn redelivery(&self, id: &RedeliveryId) -> Result<Option<Redelivery>, StoreError> {
        Ok(self.tables()?.redeliveries.get(id).cloned())
    }

    fn list_redeliveries(
        &self,
        state: Option<RedeliveryState>,
        page: &Page,
    ) -> Result<List<Redelivery>, StoreError> {
        self.tables()?.list_redeliveries(state, page)
    }

    fn registry(&self) -> Result<Registry, StoreError> {
        Ok(self.tables()?.registry.clone())
    }

    fn next_due(&self, destination: DestinationNumber) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.tables()?.next_due(destination))
    }

    fn next_expiry(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.tables()?.next_expiry())
    }

    fn stats(&self) -> Result<Stats, StoreError> {
        Ok(self.tables()?.stats())
    }

    fn check(&self, progress: &mut dyn FnMut(CheckProgress)) -> Result<CheckReport, StoreError> {
        self.check_open()?;
        check::run(&self.disk, &self.tables, progress)
    }

    /// The lock keeps every other process from making work.
    fn changed(&self) -> Result<ChangeMark, StoreError> {
        Ok(ChangeMark(0))
    }
}

impl Drop for FilesStore {
    fn drop(&mut self) {
        if let Err(error) = self.shut() {
            let folder = self.disk.layout.root().display();
            tracing::error!(%folder, %error, "the store was not closed cleanly");
        }
    }
}
