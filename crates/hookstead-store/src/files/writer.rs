//! Writing: the one place where it is decided what makes a batch durable, and in which order.
//!
//! 1. A record that an answer rests on and that this process has not written is copied, the copy synced and put
//!    in its place. Folders that are not there yet are made, and synced into those above them.
//! 2. **The commit point**: the batch's line for the log and all its records are appended to the journal, which
//!    is synced, once.
//! 3. The line is written to the log, and each record to a new file of its own name, which never replaces
//!    anything. Nothing of that is synced.
//! 4. The rows are put into the tables, and readers see them.
//! 5. Now and then, when the journal's segment is long enough, the next one is begun, and beside the writer a
//!    checkpoint makes the log and the records durable where they are. Then the old segment goes.
//!
//! A power cut before 2 leaves nothing, or a torn end of the journal, which the next start leaves out. After 2
//! all of the batch happened: the next start makes the log and the records again from the journal. The seed's
//! own loader, which knows no journal, sees a record from 3 on; after a power cut it may find it missing or torn
//! until our next start.
//!
//! What fails before 2 for want of space or handles is taken back and can be tried again. What fails so in 3
//! stays in memory and is served from there: nothing more is accepted until it is written. Any other failure,
//! and any failure of a sync, poisons the store.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

use hookstead_core::{Seq, StoreError, Timestamp, Write, Written};

use super::batch::{Cache, NewFile, Plan, Surroundings, preload, rehearse};
use super::checkpoint::{self, Checkpoint};
use super::disk::{Disk, WriteError};
use super::failure::{corrupt, is_full, syncing, writing};
use super::journal::{AppendError, Begin, Journal};
use super::layout::{Kind, RecordPath, folder_of, segment};
use super::log::{self, WorkLog};
use super::probe;
use super::row::Row;
use super::tables::Tables;

/// The one writer of a store.
#[derive(Debug)]
pub(super) struct Writer {
    disk: Disk,
    log: WorkLog,
    journal: Journal,
    journal_bytes_max: u64,
    checkpoint: Checkpoint,
    /// Folders that are there and durable.
    folders: BTreeSet<RecordPath>,
    /// Folders with records that came since the segment was begun.
    touched: BTreeSet<RecordPath>,
    /// What lies in the folders and is no record that the store knows.
    strangers: HashSet<RecordPath>,
    trust: Trust,
    /// Records that the journal has and that have no file yet, for want of space.
    late: Vec<NewFile>,
    /// Events whose count of duplicates the log does not know yet.
    uncounted: BTreeSet<Seq>,
}

/// Which records this process knows to be durable.
#[derive(Debug)]
struct Trust {
    /// Events after this one were written by this process.
    newest_at_start: Seq,
    /// Records before it that this process has written.
    written: HashSet<RecordPath>,
}

impl Trust {
    /// Bodies are known by their event's number; receipts of old events must be remembered.
    fn note(&mut self, record: RecordPath) {
        if folder_of(&record).ends_with(Kind::Receipt.folder()) {
            self.written.insert(record);
        }
    }

    fn covers(&self, seq: Seq, record: &str) -> bool {
        seq > self.newest_at_start || self.written.contains(record)
    }
}

/// What a start hands over to the writer.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) disk: Disk,
    pub(super) log: WorkLog,
    pub(super) journal: Journal,
    pub(super) journal_bytes_max: u64,
    pub(super) checkpoint: Checkpoint,
    pub(super) folders: BTreeSet<RecordPath>,
    pub(super) strangers: HashSet<RecordPath>,
    pub(super) newest: Seq,
}

impl Writer {
    pub(super) fn new(parts: Parts) -> Self {
        Self {
            disk: parts.disk,
            log: parts.log,
            journal: parts.journal,
            journal_bytes_max: parts.journal_bytes_max,
            checkpoint: parts.checkpoint,
            folders: parts.folders,
            touched: BTreeSet::new(),
            strangers: parts.strangers,
            trust: Trust { newest_at_start: parts.newest, written: HashSet::new() },
            late: Vec::new(),
            uncounted: BTreeSet::new(),
        }
    }

    /// Carries out a batch. The store is in `tables` as before if it fails.
    pub(super) fn apply(
        &mut self,
        tables: &RwLock<Tables>,
        writes: &[Write],
        now: Timestamp,
    ) -> Result<Vec<Written>, StoreError> {
        self.check_places()?;
        self.checkpoint.poll(&self.disk)?;
        let cache = preload(&*tables.read().map_err(panicked)?, &self.disk, writes);
        let around = Surroundings { disk: &self.disk, cache: &cache, strangers: &self.strangers, now };
        let plan = rehearse(&mut *locked(tables)?, around, writes)?;
        self.carry_out(tables, plan, &cache)
    }

    /// Writes down what was only counted in memory, makes everything durable where it is, and drops the
    /// journal.
    pub(super) fn close(&mut self, tables: &RwLock<Tables>) -> Result<(), StoreError> {
        self.check_places()?;
        self.write_late(tables)?;
        if !self.uncounted.is_empty() {
            let batch = log::Batch { rows: self.counts(tables)?, journal: None };
            self.commit(&batch, Vec::new())?;
            self.write_late(tables)?;
        }
        self.checkpoint.finish(&self.disk)?;
        checkpoint::sync_written(&self.disk, &self.touched)?;
        // The last segment goes only when it is certain that the one before it does not come back alone.
        self.sync_folder("")?;
        checkpoint::remove(&self.disk, self.journal.name())?;
        self.sync_folder("")
    }

    /// Proves that the folder takes a file, a link and a sync, and that log and journal are still those in it.
    pub(super) fn probe(&mut self) -> Result<(), StoreError> {
        self.check_places()?;
        probe::run(&self.disk).map_err(|failed| match failed {
            probe::Failed::Sync(error) => syncing("a probe", &error),
            probe::Failed::Link(error) | probe::Failed::Write(error) => writing("write a probe", &error),
            probe::Failed::Other => corrupt("a probe reads back as something else"),
        })
    }

    /// The files that are appended to must be those that a start will find.
    fn check_places(&self) -> Result<(), StoreError> {
        let places = self.log.check_place().and_then(|()| self.journal.check_place());
        places.map_err(|reason| StoreError::Poisoned { reason })
    }

    fn carry_out(
        &mut self,
        tables: &RwLock<Tables>,
        plan: Plan,
        cache: &Cache,
    ) -> Result<Vec<Written>, StoreError> {
        let renewals = self.renewals(&plan, cache)?;
        if plan.rows.is_empty() && renewals.is_empty() {
            self.publish(tables, &plan.rows, &plan.counts)?;
            return Ok(plan.answers);
        }
        self.write_late(tables)?;
        self.renew_all(renewals)?;
        if !plan.rows.is_empty() {
            self.make_room(&plan.files)?;
            let batch = self.line(tables, &plan)?;
            self.commit(&batch, plan.files)?;
            self.uncounted.clear();
            self.write_down()?;
            self.late.retain(|file| !plan.gone.contains(&file.record));
        }
        self.publish(tables, &plan.rows, &plan.counts)?;
        self.remove(&plan.gone)?;
        Ok(plan.answers)
    }

    /// The records that must be made durable again, with their bytes.
    fn renewals(&self, plan: &Plan, cache: &Cache) -> Result<Vec<NewFile>, StoreError> {
        let mut seen = HashSet::new();
        let mut renewals = Vec::new();
        for (seq, record) in &plan.rests_on {
            if self.trust.covers(*seq, record) || !seen.insert(record) {
                continue;
            }
            let bytes = match cache.get(record) {
                Some(bytes) => bytes.clone(),
                None => self.disk.read_known(record)?.into(),
            };
            renewals.push(NewFile { record: record.clone(), bytes });
        }
        Ok(renewals)
    }

    /// Step 1, for records.
    fn renew_all(&mut self, renewals: Vec<NewFile>) -> Result<(), StoreError> {
        renewals.iter().try_for_each(|file| self.renew(file))?;
        let folders: BTreeSet<_> = renewals.iter().map(|file| folder_of(&file.record)).collect();
        folders.into_iter().try_for_each(|folder| self.sync_folder(folder))?;
        self.trust.written.extend(renewals.into_iter().map(|file| file.record));
        Ok(())
    }

    /// Puts a copy in a record's place: new bytes on the disk, and a new entry in the folder.
    fn renew(&self, file: &NewFile) -> Result<(), StoreError> {
        let pending = self.disk.pending(&file.record);
        let (from, to) = (self.disk.path(&pending), self.disk.path(&file.record));
        let written = match self.disk.write_new(&pending, &file.bytes) {
            Ok(()) => self.disk.fs.rename(&from, &to),
            Err(WriteError::Write(error)) => Err(error),
            Err(WriteError::Sync(error)) => return Err(syncing(format!("`{}`", file.record), &error)),
        };
        written.map_err(|error| match writing(format!("copy `{}`", file.record), &error) {
            full @ StoreError::Full { .. } => self.take_back(&pending).err().unwrap_or(full),
            other => other,
        })
    }

    /// Removes a file that had no room. If it cannot be removed cleanly nobody knows what is on the disk.
    fn take_back(&self, file: &str) -> Result<(), StoreError> {
        match self.disk.fs.remove(&self.disk.path(file)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::Poisoned { reason: format!("remove `{file}` after a failed write: {error}") })
            }
            _ => Ok(()),
        }
    }

    /// Step 1, for folders, and step 5: everything that may be refused before the commit point.
    fn make_room(&mut self, files: &[NewFile]) -> Result<(), StoreError> {
        files.iter().try_for_each(|file| self.ensure_folder(folder_of(&file.record)))?;
        if self.journal.bytes() < self.journal_bytes_max {
            return Ok(());
        }
        self.checkpoint.finish(&self.disk)?;
        let begin = Begin::new(self.journal.number() + 1, self.log.position());
        let next = Journal::create(&self.disk, &begin).map_err(|error| match error {
            WriteError::Sync(error) => syncing("the journal", &error),
            WriteError::Write(error) => match writing("begin a segment of the journal", &error) {
                full @ StoreError::Full { .. } => {
                    self.take_back(&segment(begin.journal)).err().unwrap_or(full)
                }
                other => other,
            },
        })?;
        let full = std::mem::replace(&mut self.journal, next);
        let touched = std::mem::take(&mut self.touched);
        self.checkpoint.begin(&self.disk, &touched, full.name().to_owned())
    }

    /// Makes a folder, and those above it, unless they are there.
    fn ensure_folder(&mut self, folder: &str) -> Result<(), StoreError> {
        if self.folders.contains(folder) || folder.is_empty() {
            return Ok(());
        }
        let above = folder_of(folder);
        self.ensure_folder(above)?;
        match self.disk.fs.create_dir(&self.disk.path(folder)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(writing(format!("make the folder `{folder}`"), &error)),
        }
        self.disk
            .fs
            .sync_dir(&self.disk.path(above))
            .map_err(|error| syncing(format!("`{above}`"), &error))?;
        self.folders.insert(folder.to_owned());
        Ok(())
    }

    fn sync_folder(&self, folder: &str) -> Result<(), StoreError> {
        let synced = self.disk.fs.sync_dir(&self.disk.path(folder));
        synced.map_err(|error| syncing(format!("`{folder}`"), &error))
    }

    /// A batch for the log, with the counts of duplicates that it does not know yet.
    fn line(&self, tables: &RwLock<Tables>, plan: &Plan) -> Result<log::Batch, StoreError> {
        let mut rows = self.counts(tables)?;
        rows.extend(plan.rows.iter().cloned());
        rows.extend(plan.counts.iter().cloned());
        Ok(log::Batch { rows, journal: None })
    }

    fn counts(&self, tables: &RwLock<Tables>) -> Result<Vec<Row>, StoreError> {
        let tables = tables.read().map_err(panicked)?;
        let count = |seq: &Seq| Some(Row::Duplicates(*seq, tables.events.get(seq)?.event.duplicates));
        Ok(self.uncounted.iter().filter_map(count).collect())
    }

    /// Step 2.
    fn commit(&mut self, batch: &log::Batch, records: Vec<NewFile>) -> Result<(), StoreError> {
        let (line, next) =
            self.log.line(batch).map_err(|error| StoreError::backend("write a line of the log", error))?;
        self.journal.append(&line, &records).map_err(|error| match error {
            AppendError::Undone(error) => writing("append to the journal", &error),
            AppendError::Unknown(error) => syncing("the journal", &error),
        })?;
        self.log.add(&line, next);
        self.late = records;
        Ok(())
    }

    /// Step 3. What has no room stays, with everything behind it.
    fn write_down(&mut self) -> Result<(), StoreError> {
        match self.log.write_down() {
            Ok(()) => {}
            Err(error) if is_full(&error) => return Ok(()),
            Err(error) => return Err(writing("write to the log", &error)),
        }
        let mut records = std::mem::take(&mut self.late).into_iter();
        while let Some(file) = records.next() {
            if !self.write_record(&file)? {
                self.late.push(file);
                self.late.extend(records);
                return Ok(());
            }
            self.touched.insert(folder_of(&file.record).to_owned());
            self.trust.note(file.record);
        }
        Ok(())
    }

    /// Makes a record's file; `false` if there is no room for it. Where the file system cannot be synced as a
    /// whole, its bytes are synced here.
    fn write_record(&self, file: &NewFile) -> Result<bool, StoreError> {
        let error = match self.disk.write_unsynced(&file.record, &file.bytes) {
            Ok(open) if self.disk.volume.is_none() => {
                open.sync().map_err(|error| syncing(format!("`{}`", file.record), &error))?;
                return Ok(true);
            }
            Ok(_) => return Ok(true),
            Err(WriteError::Write(error) | WriteError::Sync(error)) => error,
        };
        match writing(format!("write `{}`", file.record), &error) {
            StoreError::Full { .. } => self.take_back(&file.record).map(|()| false),
            other => Err(other),
        }
    }

    /// Tries again to write what there was no room for. While there is none nothing else is written.
    fn write_late(&mut self, tables: &RwLock<Tables>) -> Result<(), StoreError> {
        let is_behind = |writer: &Self| !writer.late.is_empty() || writer.log.is_behind();
        if !is_behind(self) {
            return Ok(());
        }
        self.write_down()?;
        self.publish(tables, &[], &[])?;
        if is_behind(self) {
            return Err(StoreError::Full {
                what: "what was accepted before still waits for room".to_owned(),
            });
        }
        Ok(())
    }

    /// Step 4. Whoever meets the rows also finds the records.
    fn publish(&mut self, tables: &RwLock<Tables>, rows: &[Row], counts: &[Row]) -> Result<(), StoreError> {
        let mut tables = locked(tables)?;
        for row in rows.iter().chain(counts) {
            tables.put(row)?;
        }
        tables.unwritten = self.late.iter().map(|file| (file.record.clone(), file.bytes.clone())).collect();
        if rows.is_empty() {
            self.uncounted.extend(counts.iter().filter_map(counted));
        }
        Ok(())
    }

    /// Removes files that nobody needs. Where there is no room even for that, the next start does it.
    fn remove(&self, records: &[RecordPath]) -> Result<(), StoreError> {
        for record in records {
            match self.disk.fs.remove(&self.disk.path(record)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound || is_full(&error) => {}
                Err(error) => return Err(writing(format!("remove `{record}`"), &error)),
            }
        }
        Ok(())
    }
}

fn counted(row: &Row) -> Option<Seq> {
    match row {
        Row::Duplicates(seq, _) => Some(*seq),
        _ => None,
    }
}

fn locked(tables: &RwLock<Tables>) -> Result<RwLockWriteGuard<'_, Tables>, StoreError> {
    tables.write().map_err(panicked)
}

/// A panic while the tables were locked is a bug of ours and may have left half a batch: it must stay loud.
pub(super) fn panicked<T>(_: PoisonError<T>) -> StoreError {
    StoreError::Poisoned { reason: "a write to the tables panicked".to_owned() }
}
