//! Copies of a store's folder, also while it is written to: what comes out is a closed store, with a new log and no
//! journal.
//!
//! It takes no lock and reads as a start after a crash does: the log up to where the journal begins, then the journal,
//! which name every record that was acknowledged. A record's file never changes, so it can be copied later than that;
//! one that the journal holds is taken from there. If a segment or a record goes meanwhile, by a checkpoint or because
//! it was erased, all is read again. Files that the store does not know are left out.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, RwLock};

use bytes::Bytes;
use hookstead_core::{CheckReport, Timestamp};

use super::check;
use super::disk::{Disk, WriteError};
use super::folder::{self, Found};
use super::layout::{LOCK, LOG, Layout, MARKER, RecordPath, folder_of};
use super::log::WorkLog;
use super::recover::{Expected, expected};
use super::replay::{self, Replayed};
use super::start::acquire;
use super::tables::Tables;
use crate::backup::{BackupError, BackupPhase, BackupProgress, Step, checking, io_error, make_folder};
use crate::open::{OpenError, OpenOptions, random_key};

/// How often the store is read again because it changed in the way of the copying. Each try needs a checkpoint or an
/// erasure within the moment in which it reads the journal, or between that and a record's copy.
const TRIES_MAX: u32 = 20;

/// How often log and journal are read before they count as damaged.
const LOOKS_MAX: u32 = 10;

/// Copies the store in `from` into the folder `to`, which holds nothing. It is durable when it returns, and checked.
pub(crate) fn copy(
    from: &Path,
    to: &Path,
    options: &OpenOptions,
    step: Step<'_>,
) -> Result<CheckReport, BackupError> {
    let from = std::path::absolute(from).map_err(io_error("find", from))?;
    let mut copying = Copying::begin(&from, to, options)?;
    for _ in 0..TRIES_MAX {
        if let Some(report) = copying.run(step)? {
            return Ok(report);
        }
    }
    Err(BackupError::Unsteady { tries: TRIES_MAX })
}

/// Puts a store from a backup into the folder `to`, in which nothing may be.
pub(crate) fn restore(
    from: &Path,
    to: &Path,
    options: &OpenOptions,
    now: Timestamp,
    step: Step<'_>,
) -> Result<CheckReport, BackupError> {
    let fs = options.fs.as_ref();
    let to = std::path::absolute(to).map_err(io_error("find", to))?;
    refuse_taken(options, &to)?;
    folder::make(fs, &to)?;
    folder::refuse_network(fs, &to)?;
    let lock = acquire(fs, &to, now)?;
    let restored = refuse_taken(options, &to).and_then(|()| copy(from, &to, options, step));
    lock.release();
    restored
}

fn refuse_taken(options: &OpenOptions, to: &Path) -> Result<(), BackupError> {
    let fs = options.fs.as_ref();
    let taken = match fs.facts(to).map_err(io_error("look at", to))? {
        None => false,
        Some(facts) if !facts.is_dir => true,
        Some(_) => {
            fs.list(to).map_err(io_error("list", to))?.iter().any(|name| name != LOCK && name != "lost+found")
        }
    };
    if taken { Err(BackupError::Taken { path: to.to_owned() }) } else { Ok(()) }
}

struct Copying {
    source: Disk,
    target: Disk,
    marker: Bytes,
    /// What is in the target.
    copied: BTreeSet<RecordPath>,
    folders: BTreeSet<RecordPath>,
}

impl Copying {
    fn begin(from: &Path, to: &Path, options: &OpenOptions) -> Result<Self, BackupError> {
        let fs = &options.fs;
        let Found::Ours(marker) = folder::look(fs.as_ref(), from)? else {
            let what = "no store was ever opened there".to_owned();
            return Err(OpenError::ForeignFolder { path: from.to_owned(), what }.into());
        };
        let disk = |root: &Path| {
            let layout = Layout::new(root, marker.seed_at_root);
            let disk = Disk::new(Arc::clone(fs), layout, random_key()?);
            disk.map_err(io_error("open the file system of", root))
        };
        let (source, target) = (disk(from)?, disk(to)?);
        let marker = folder::read(fs.as_ref(), &from.join(MARKER))?.into();
        Ok(Self { source, target, marker, copied: BTreeSet::new(), folders: BTreeSet::new() })
    }

    /// One try; `None` if the store changed in its way.
    fn run(&mut self, step: Step<'_>) -> Result<Option<CheckReport>, BackupError> {
        let read = self.read()?;
        let known = expected(&read.tables, &self.source);
        if !self.copy_records(&known, &read, step)? {
            return Ok(None);
        }
        self.take_away(&known)?;
        self.finish(read.tables, step).map(Some)
    }

    /// What the log and the journal say. A checkpoint or a start between the reading of the two can make them disagree,
    /// so only what every look finds is damage.
    fn read(&self) -> Result<Replayed, OpenError> {
        let mut looks = 1;
        loop {
            match replay::read(&self.source) {
                Err(_) if looks < LOOKS_MAX => looks += 1,
                read => return read,
            }
        }
    }

    /// `false` if a record went meanwhile.
    fn copy_records(
        &mut self,
        known: &HashMap<RecordPath, Expected>,
        read: &Replayed,
        step: Step<'_>,
    ) -> Result<bool, BackupError> {
        let journal: HashMap<_, _> = read.records.iter().cloned().collect();
        let total = known.len() as u64;
        for (done, (record, what)) in (1..).zip(known) {
            step(BackupProgress { phase: BackupPhase::Copying, done, total });
            if self.copied.contains(record) || matches!(what, Expected::Erased(..)) {
                continue;
            }
            let bytes = match journal.get(record) {
                Some(bytes) => Some(bytes.clone()),
                None => self.source.read(record)?.map(Bytes::from),
            };
            match bytes {
                Some(bytes) => self.put(record, &bytes)?,
                // Erased since, or lost: the log says which.
                None if self.was_erased(record)? => return Ok(false),
                None => {}
            }
        }
        Ok(true)
    }

    fn was_erased(&self, record: &str) -> Result<bool, BackupError> {
        let now = self.read()?.tables;
        Ok(matches!(expected(&now, &self.source).get(record), Some(Expected::Erased(..))))
    }

    fn put(&mut self, record: &str, bytes: &[u8]) -> Result<(), BackupError> {
        let folder = folder_of(record);
        if !self.folders.contains(folder) {
            make_folder(self.target.fs.as_ref(), &self.target.path(folder))?;
            self.folders.insert(folder.to_owned());
        }
        self.write(record, bytes)?;
        self.copied.insert(record.to_owned());
        Ok(())
    }

    /// A file; synced here where the file system cannot be synced as a whole.
    fn write(&self, record: &str, bytes: &[u8]) -> Result<(), BackupError> {
        let path = self.target.path(record);
        let file = self.target.write_unsynced(record, bytes).map_err(|error| match error {
            WriteError::Write(source) | WriteError::Sync(source) => io_error("write", &path)(source),
        })?;
        match self.target.volume {
            Some(_) => Ok(()),
            None => file.sync().map_err(io_error("sync", &path)),
        }
    }

    /// What an earlier try copied and has been erased since.
    fn take_away(&mut self, known: &HashMap<RecordPath, Expected>) -> Result<(), BackupError> {
        let erased = |record: &RecordPath| matches!(known.get(record), None | Some(Expected::Erased(..)));
        for record in self.copied.extract_if(.., erased) {
            let path = self.target.path(&record);
            self.target.fs.remove(&path).map_err(io_error("remove", &path))?;
        }
        Ok(())
    }

    /// The log, then everything is synced, then the marker, so that a folder with one is a whole store.
    fn finish(&self, tables: Tables, step: Step<'_>) -> Result<CheckReport, BackupError> {
        let (fs, root) = (&self.target.fs, self.target.layout.root());
        let (log, pending) = (self.target.path(LOG), self.target.path(&self.target.pending(LOG)));
        WorkLog::create(fs, &log, &pending, tables.rows(), 0).map_err(io_error("write", &log))?;
        for folder in &self.folders {
            let path = self.target.path(folder);
            fs.sync_dir(&path).map_err(io_error("sync", &path))?;
        }
        if let Some(volume) = &self.target.volume {
            volume.sync().map_err(io_error("sync the file system of", root))?;
        }
        let report = check::run(&self.target, &RwLock::new(tables), &mut checking(step))?;
        let marker = self.target.path(MARKER);
        self.write(MARKER, &self.marker)?;
        let written = fs.open_read(&marker).and_then(|file| file.sync());
        written.map_err(io_error("sync", &marker))?;
        fs.sync_dir(root).map_err(io_error("sync", root))?;
        Ok(report)
    }
}
