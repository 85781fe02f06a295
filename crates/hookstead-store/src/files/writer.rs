//! Writing: the one place where it is decided what makes a batch durable, and in which order.
//!
//! 1. Every record of the batch is written under a name of its own that nobody reads (`.pending-…`, in the
//!    folder where it belongs), and synced. A record that an answer rests on and that this process has not
//!    written is copied the same way, and the copy takes its place.
//! 2. Each folder that was touched is synced, once. Where a batch has many records, one sync of the file system
//!    takes the place of all syncs of 1 and 2.
//! 3. **The commit point**: one line is appended to the log and synced. It holds the rows and says which
//!    pending file is which record.
//! 4. Each record gets its own name by a hard link, which never replaces anything.
//! 5. The rows are put into the tables, and readers see them.
//! 6. When the folder is synced the next time anyway, the pending names are taken away.
//!
//! A power cut before 3 leaves pending files, which the next start sweeps: nothing of the batch happened.
//! After 3 all of it happened: the next start makes the links that are missing. The seed's own loader, which
//! knows no log, sees a record from 4 on; after a power cut it may have to wait for our next start.
//!
//! What fails before 3 for want of space or handles is taken back, file by file, and can be tried again. Any
//! other failure, and any failure of a sync, poisons the store.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

use hookstead_core::{Seq, StoreError, Timestamp, Write, Written};

use super::batch::{Cache, NewFile, Plan, Surroundings, preload, rehearse};
use super::disk::{Disk, WriteError};
use super::failure::{corrupt, is_full, syncing, writing};
use super::layout::{Kind, RecordPath, folder_of};
use super::log::{self, AppendError, WorkLog};
use super::probe;
use super::row::Row;
use super::tables::Tables;

/// From so many new records on, the file system is synced as a whole, once, instead of each record and each
/// folder. Fewer are synced one by one: that does not wait for what other programs are writing to the disk.
const TOGETHER_MIN: usize = 8;

/// How new records become durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sync {
    /// Each by a sync of its own, then their folders.
    Each,
    /// All of them by a sync of the volume.
    Together,
}

/// The one writer of a store.
#[derive(Debug)]
pub(super) struct Writer {
    disk: Disk,
    log: WorkLog,
    /// Folders that are there and durable.
    folders: BTreeSet<RecordPath>,
    /// What lies in the folders and is no record that the store knows.
    strangers: HashSet<RecordPath>,
    trust: Trust,
    /// Pending names whose records have their own.
    surplus: Vec<RecordPath>,
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
    pub(super) folders: BTreeSet<RecordPath>,
    pub(super) strangers: HashSet<RecordPath>,
    pub(super) newest: Seq,
}

/// A record that is complete under a pending name.
#[derive(Debug)]
struct Staged {
    record: RecordPath,
    pending: RecordPath,
}

impl Writer {
    pub(super) fn new(parts: Parts) -> Self {
        Self {
            disk: parts.disk,
            log: parts.log,
            folders: parts.folders,
            strangers: parts.strangers,
            trust: Trust { newest_at_start: parts.newest, written: HashSet::new() },
            surplus: Vec::new(),
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
        self.log.check_place().map_err(|reason| StoreError::Poisoned { reason })?;
        let cache = preload(&*tables.read().map_err(panicked)?, &self.disk, writes);
        let around = Surroundings { disk: &self.disk, cache: &cache, strangers: &self.strangers, now };
        let plan = rehearse(&mut *locked(tables)?, around, writes)?;
        self.carry_out(tables, plan, &cache)
    }

    /// Writes down what was only counted in memory and takes pending names away.
    pub(super) fn close(&mut self, tables: &RwLock<Tables>) -> Result<(), StoreError> {
        self.log.check_place().map_err(|reason| StoreError::Poisoned { reason })?;
        if !self.uncounted.is_empty() {
            let line = log::Batch { rows: self.counts(tables)?, files: Vec::new() };
            self.append(&line, &[])?;
        }
        let folders: BTreeSet<_> = self.surplus.iter().map(|pending| folder_of(pending).to_owned()).collect();
        self.sync_folders(&folders)
    }

    /// Proves that the folder takes a file, a link and a sync, and that the log is still the one in it.
    pub(super) fn probe(&mut self) -> Result<(), StoreError> {
        self.log.check_place().map_err(|reason| StoreError::Poisoned { reason })?;
        probe::run(&self.disk).map_err(|failed| match failed {
            probe::Failed::Sync(error) => syncing("a probe", &error),
            probe::Failed::Link(error) | probe::Failed::Write(error) => writing("write a probe", &error),
            probe::Failed::Other => corrupt("a probe reads back as something else"),
        })
    }

    fn carry_out(
        &mut self,
        tables: &RwLock<Tables>,
        plan: Plan,
        cache: &Cache,
    ) -> Result<Vec<Written>, StoreError> {
        let renewals = self.renewals(&plan, cache)?;
        if plan.rows.is_empty() && renewals.is_empty() {
            self.publish(tables, &plan, &[])?;
            return Ok(plan.answers);
        }
        self.link_late(tables)?;
        let staged = self.stage(&plan.files, &renewals)?;
        if !plan.rows.is_empty() {
            let line = self.line(tables, &plan, &staged)?;
            self.append(&line, &staged)?;
            self.uncounted.clear();
        }
        let unlinked = self.link(staged)?;
        self.publish(tables, &plan, &unlinked)?;
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
                None => self.disk.read_known(record, None)?,
            };
            renewals.push(NewFile { record: record.clone(), bytes });
        }
        Ok(renewals)
    }

    /// Steps 1 and 2.
    fn stage(&mut self, files: &[NewFile], renewals: &[NewFile]) -> Result<Vec<Staged>, StoreError> {
        let all = || files.iter().chain(renewals);
        all().try_for_each(|file| self.ensure_folder(folder_of(&file.record)))?;
        let folders: BTreeSet<_> = all().map(|file| folder_of(&file.record).to_owned()).collect();
        let staged: Vec<_> = files
            .iter()
            .map(|file| Staged { record: file.record.clone(), pending: self.disk.pending(&file.record) })
            .collect();
        let volume = self.disk.volume.clone().filter(|_| files.len() >= TOGETHER_MIN);
        let sync = if volume.is_some() { Sync::Together } else { Sync::Each };
        write_pendings(&self.disk, files, &staged, sync)
            .and_then(|()| renewals.iter().try_for_each(|file| self.renew(file)))
            .map_err(|error| self.take_back(&staged, error))?;
        match volume {
            Some(volume) => {
                volume.sync().map_err(|error| syncing("the file system of the store", &error))?;
                self.drop_surplus(&folders)?;
            }
            None => self.sync_folders(&folders)?,
        }
        self.trust.written.extend(renewals.iter().map(|file| file.record.clone()));
        Ok(staged)
    }

    /// Puts a copy in a record's place: new bytes on the disk, and a new entry in the folder.
    fn renew(&self, file: &NewFile) -> Result<(), StoreError> {
        let pending = self.disk.pending(&file.record);
        let written = self
            .disk
            .write_new(&pending, &file.bytes)
            .map_err(|error| failed_write(&file.record, &error))
            .and_then(|()| {
                let (from, to) = (self.disk.path(&pending), self.disk.path(&file.record));
                self.disk.fs.rename(&from, &to).map_err(|error| writing("put a copy in place", &error))
            });
        written.map_err(|error| self.take_back(&[Staged { record: String::new(), pending }], error))
    }

    /// Removes what a batch that was not committed has written. What was to be reported is, unless it cannot
    /// be done cleanly.
    fn take_back(&self, staged: &[Staged], error: StoreError) -> StoreError {
        if !matches!(error, StoreError::Full { .. }) {
            return error;
        }
        for file in staged {
            match self.disk.fs.remove(&self.disk.path(&file.pending)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let reason = format!("remove `{}` after a failed write: {error}", file.pending);
                    return StoreError::Poisoned { reason };
                }
            }
        }
        error
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

    /// Syncs folders; then the pending names in them are surplus, as their records' own names are durable.
    fn sync_folders(&mut self, folders: &BTreeSet<RecordPath>) -> Result<(), StoreError> {
        for folder in folders {
            let path = self.disk.path(folder);
            self.disk.fs.sync_dir(&path).map_err(|error| syncing(format!("`{folder}`"), &error))?;
        }
        self.drop_surplus(folders)
    }

    /// Takes away the pending names in folders that are durable now, with their records' own names.
    fn drop_surplus(&mut self, folders: &BTreeSet<RecordPath>) -> Result<(), StoreError> {
        let (surplus, rest) = std::mem::take(&mut self.surplus)
            .into_iter()
            .partition(|pending| folders.contains(folder_of(pending)));
        self.surplus = rest;
        self.remove(&surplus)
    }

    /// The log's line of a batch, with the counts of duplicates that it does not know yet.
    fn line(
        &self,
        tables: &RwLock<Tables>,
        plan: &Plan,
        staged: &[Staged],
    ) -> Result<log::Batch, StoreError> {
        let mut rows = self.counts(tables)?;
        rows.extend(plan.rows.iter().cloned());
        rows.extend(plan.counts.iter().cloned());
        let files = staged.iter().map(|file| (file.record.clone(), file.pending.clone())).collect();
        Ok(log::Batch { rows, files })
    }

    fn counts(&self, tables: &RwLock<Tables>) -> Result<Vec<Row>, StoreError> {
        let tables = tables.read().map_err(panicked)?;
        let count = |seq: &Seq| Some(Row::Duplicates(*seq, tables.events.get(seq)?.event.duplicates));
        Ok(self.uncounted.iter().filter_map(count).collect())
    }

    /// Step 3.
    fn append(&mut self, line: &log::Batch, staged: &[Staged]) -> Result<(), StoreError> {
        self.log.append(line).map_err(|error| match error {
            AppendError::Undone(error) => self.take_back(staged, writing("append to the log", &error)),
            AppendError::Unknown(error) => syncing("the log", &error),
        })
    }

    /// Step 4. Returns what could not be linked for want of space: it is durable all the same, and is read
    /// under its pending name until there is room.
    fn link(&mut self, staged: Vec<Staged>) -> Result<Vec<Staged>, StoreError> {
        let mut unlinked = Vec::new();
        for file in staged {
            let (from, to) = (self.disk.path(&file.pending), self.disk.path(&file.record));
            match self.disk.fs.hard_link(&from, &to) {
                Ok(()) => {
                    self.trust.note(file.record);
                    self.surplus.push(file.pending);
                }
                Err(error) if is_full(&error) => unlinked.push(file),
                Err(error) => {
                    let reason = format!("link `{}`: {error}", file.record);
                    return Err(StoreError::Poisoned { reason });
                }
            }
        }
        Ok(unlinked)
    }

    /// Tries again to link what there was no room for.
    fn link_late(&mut self, tables: &RwLock<Tables>) -> Result<(), StoreError> {
        let late = std::mem::take(&mut locked(tables)?.pendings);
        if late.is_empty() {
            return Ok(());
        }
        let staged = late.into_iter().map(|(record, pending)| Staged { record, pending }).collect();
        let unlinked = self.link(staged)?;
        locked(tables)?.pendings.extend(unlinked.into_iter().map(|file| (file.record, file.pending)));
        Ok(())
    }

    /// Step 5.
    fn publish(
        &mut self,
        tables: &RwLock<Tables>,
        plan: &Plan,
        unlinked: &[Staged],
    ) -> Result<(), StoreError> {
        let mut tables = locked(tables)?;
        for row in plan.rows.iter().chain(&plan.counts) {
            tables.put(row)?;
        }
        let pendings = unlinked.iter().map(|file| (file.record.clone(), file.pending.clone()));
        tables.pendings.extend(pendings);
        self.surplus.extend(plan.gone.iter().filter_map(|record| tables.pendings.remove(record)));
        if plan.rows.is_empty() {
            self.uncounted.extend(plan.counts.iter().filter_map(counted));
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

/// Writes every record under its pending name.
fn write_pendings(disk: &Disk, files: &[NewFile], staged: &[Staged], sync: Sync) -> Result<(), StoreError> {
    files.iter().zip(staged).try_for_each(|(file, Staged { pending, .. })| {
        let written = match sync {
            Sync::Each => disk.write_new(pending, &file.bytes),
            Sync::Together => disk.write_unsynced(pending, &file.bytes).map(drop),
        };
        written.map_err(|error| failed_write(&file.record, &error))
    })
}

fn counted(row: &Row) -> Option<Seq> {
    match row {
        Row::Duplicates(seq, _) => Some(*seq),
        _ => None,
    }
}

fn failed_write(record: &str, error: &WriteError) -> StoreError {
    match error {
        WriteError::Write(error) => writing(format!("write `{record}`"), error),
        WriteError::Sync(error) => syncing(format!("`{record}`"), error),
    }
}

fn locked(tables: &RwLock<Tables>) -> Result<RwLockWriteGuard<'_, Tables>, StoreError> {
    tables.write().map_err(panicked)
}

/// A panic while the tables were locked is a bug of ours and may have left half a batch: it must stay loud.
pub(super) fn panicked<T>(_: PoisonError<T>) -> StoreError {
    StoreError::Poisoned { reason: "a write to the tables panicked".to_owned() }
}
