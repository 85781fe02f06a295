//! [`SqliteStore`]: the [`Store`] contract over one writer and a few readers.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hookstead_core::{
    Attempt, Body, BodySelector, ChangeMark, CheckProgress, CheckReport, Conflict, ConflictFilter, Delivery,
    DeliveryFilter, DeliveryId, DestinationNumber, Event, EventFilter, EventId, EventSelector, Fetched, List,
    Page, Redelivery, RedeliveryId, RedeliveryState, Registry, RunReceipt, Stats, Store, StoreError,
    StoreFacts, Timestamp, Write, Written,
};
use rusqlite::Connection;

use super::checkpoint::Checkpointer;
use super::event::Known;
use super::published::Published;
use super::readers::Readers;
use super::writer::Writer;
use super::{check, event, fetch, list, redeliver};
use crate::lock::StoreLock;
use crate::poison::Poison;
use crate::room::Room;

/// A store in one SQLite database.
pub(super) struct SqliteStore {
    pub(super) facts: StoreFacts,
    pub(super) path: PathBuf,
    pub(super) room: Room,
    pub(super) poison: Arc<Poison>,
    pub(super) published: Arc<Published>,
    pub(super) writer: Mutex<Writer>,
    pub(super) readers: Readers,
    /// A connection that is idle for as long as the store is open. Without it a foreign process could be the
    /// last one to close the database, at a moment when a failure has cost us our writer; SQLite removes the
    /// log then.
    pub(super) anchor: Mutex<Option<Connection>>,
    pub(super) checkpointer: Mutex<Checkpointer>,
    pub(super) lock: Arc<StoreLock>,
    pub(super) closed: AtomicBool,
}

impl SqliteStore {
    /// Runs `write` on the writer, unless the store is poisoned or closed; what it fails with may poison.
    fn write<T>(&self, write: impl FnOnce(&mut Writer) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut writer = self.writer()?;
        self.poison.check()?;
        self.check_open()?;
        write(&mut writer).inspect_err(|error| self.poison.note(error))
    }

    fn read<T>(
        &self,
        read: impl FnOnce(&Connection, &Known<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.check_open()?;
        self.readers.read(|connection| {
            let registry = self.published.registry();
            let known = Known {
                identity_key: &self.facts.identity_key,
                registry: &registry,
                published: &self.published,
            };
            read(connection, &known)
        })
    }

    /// A panic inside a write is a bug of ours and may have left half a batch: nothing is written after it.
    fn writer(&self) -> Result<MutexGuard<'_, Writer>, StoreError> {
        self.writer.lock().map_err(|_: PoisonError<_>| {
            let error = StoreError::Poisoned { reason: "a write panicked".to_owned() };
            self.poison.note(&error);
            error
        })
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
        self.checkpointer.lock().unwrap_or_else(PoisonError::into_inner).stop();
        // What a poisoned store still holds in memory must not reach the disk.
        let written = match self.poison.check() {
            Ok(()) => self.writer().and_then(|mut writer| writer.close()),
            Err(_) => Ok(()),
        };
        self.readers.close_idle();
        drop(self.anchor.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.lock.release();
        written.inspect_err(|error| self.poison.note(error))
    }
}

impl Store for SqliteStore {
    fn facts(&self) -> &StoreFacts {
        &self.facts
    }

    fn apply(&self, writes: &[Write], now: Timestamp) -> Result<Vec<Written>, StoreError> {
        self.write(|writer| {
            self.room.check_batch(writes)?;
            writer.apply(writes, now)
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
        self.read(|connection, known| event::select(connection, known, selector))
    }

    fn body(&self, selector: BodySelector) -> Result<Option<Body>, StoreError> {
        self.read(|connection, _| event::body(connection, selector))
    }

    fn fetch(
        &self,
        events: &[EventId],
        fits: &mut dyn FnMut(usize, u64) -> bool,
    ) -> Result<Vec<Fetched>, StoreError> {
        self.check_open()?;
        fetch::events(&|one| self.read(|connection, known| one(connection, known)), events, fits)
    }

    fn list_events(&self, filter: &EventFilter, page: &Page) -> Result<List<Event>, StoreError> {
        list::events(&|stretch| self.read(|connection, known| stretch(connection, known)), filter, page)
    }

    fn list_deliveries(&self, filter: &DeliveryFilter, page: &Page) -> Result<List<Delivery>, StoreError> {
        list::deliveries(&|stretch| self.read(|connection, known| stretch(connection, known)), filter, page)
    }

    fn attempts(&self, delivery: &DeliveryId) -> Result<Vec<Attempt>, StoreError> {
        self.read(|connection, _| list::attempts(connection, delivery))
    }

    fn list_conflicts(&self, filter: &ConflictFilter, page: &Page) -> Result<List<Conflict>, StoreError> {
        list::conflicts(&|stretch| self.read(|connection, known| stretch(connection, known)), filter, page)
    }

    fn runs(&self, event: &EventId) -> Result<Vec<RunReceipt>, StoreError> {
        self.read(|connection, _| list::runs(connection, event))
    }

    fn redelivery(&self, id: &RedeliveryId) -> Result<Option<Redelivery>, StoreError> {
        self.read(|connection, _| redeliver::find(connection, id))
    }

    fn list_redeliveries(
        &self,
        state: Option<RedeliveryState>,
        page: &Page,
    ) -> Result<List<Redelivery>, StoreError> {
        list::redeliveries(&|stretch| self.read(|connection, known| stretch(connection, known)), state, page)
    }

    fn registry(&self) -> Result<Registry, StoreError> {
        self.check_open()?;
        Ok(Registry::clone(&self.published.registry()))
    }

    fn next_due(&self, destination: DestinationNumber) -> Result<Option<Timestamp>, StoreError> {
        self.read(|connection, known| list::next_due(connection, known, destination))
    }

    fn next_expiry(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read(|connection, _| list::next_expiry(connection))
    }

    fn stats(&self) -> Result<Stats, StoreError> {
        self.check_open()?;
        Ok(self.published.stats())
    }

    fn check(&self, progress: &mut dyn FnMut(CheckProgress)) -> Result<CheckReport, StoreError> {
        let mut report =
            check::run(progress, &|step| self.read(|connection, known| step(connection, known)))?;
        if let Some(what) = self.writer()?.log_damage()? {
            report.add_problem(check::damaged_log(&self.path, &what));
        }
        Ok(report)
    }

    /// The lock keeps every other process from making work.
    fn changed(&self) -> Result<ChangeMark, StoreError> {
        Ok(ChangeMark(0))
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        if let Err(error) = self.shut() {
            tracing::error!(path = %self.path.display(), %error, "the store was not closed cleanly");
        }
    }
}
