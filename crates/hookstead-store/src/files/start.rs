//! The start procedure: only when all of it went well does anybody get the store.
//!
//! The steps are [`StartStep::FILES`], in this order: what may be refused without touching anything (file system, format, a folder that is not
//! ours), the lock, the write probe; then the log and the journal are read, the folders are brought in line with
//! them, what they do not know is taken in, and the log is written anew: that compacts it, and puts it on an
//! inode whose every sync this process saw succeed. From then on the old journal counts no more.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, RwLock};

use hookstead_core::{IdentityKey, StoreFacts, Timestamp};

use super::checkpoint::Checkpoint;
use super::disk::{Disk, WriteError};
use super::failure::is_full;
use super::folder::{self, Found, io_error};
use super::journal::{Begin, Journal};
use super::layout::{LOCK, LOG, Layout, MARKER, RecordPath};
use super::log::WorkLog;
use super::marker::Marker;
use super::recover::{self, Expected};
use super::replay::{self, Replayed};
use super::store::FilesStore;
use super::tables::Tables;
use super::writer::{Parts, Writer};
use super::{adopt, probe};
use crate::fs::{FileSystem, Fs};
use crate::lock::{LockError, StoreLock};
use crate::open::{OpenError, OpenOptions, Opened, random_key};
use crate::poison::Poison;
use crate::room::Room;
use crate::start::{StartStep, Steps, check_file_system};

/// The kind of this store.
pub(super) const KIND: &str = "files";

/// Opens the store in the folder `path`, made first if there is none.
pub(crate) fn open(
    path: &Path,
    options: &OpenOptions,
    now: Timestamp,
    steps: &mut Steps,
) -> Result<Opened, OpenError> {
    let fs = options.fs.as_ref();
    let root = std::path::absolute(path).map_err(io_error("find the folder", path))?;
    check_file_system(fs, &root, steps)?;
    folder::make(fs, &root)?;
    // What was made may lie elsewhere than what is above it.
    folder::refuse_network(fs, &root)?;
    steps.begin(StartStep::Format);
    steps.say(folder::look(fs, &root)?.words());
    steps.begin(StartStep::Lock);
    let lock = acquire(fs, &root, now)?;
    let opened = open_locked(&root, options, &lock, now, steps);
    if opened.is_err() {
        lock.release();
    }
    opened
}

/// The lock file of the store in a folder.
pub(crate) fn lock_path(folder: &Path) -> std::path::PathBuf {
    folder.join(LOCK)
}

pub(super) fn acquire(fs: &dyn Fs, root: &Path, now: Timestamp) -> Result<Arc<StoreLock>, OpenError> {
    let path = lock_path(root);
    StoreLock::acquire(fs, path.clone(), now).map_err(|error| match error {
        LockError::Held(owner) => OpenError::Locked { path: root.to_owned(), owner },
        LockError::Io(source) => io_error("lock", &path)(source),
    })
}

fn open_locked(
    root: &Path,
    options: &OpenOptions,
    lock: &Arc<StoreLock>,
    now: Timestamp,
    steps: &mut Steps,
) -> Result<Opened, OpenError> {
    let fs = &options.fs;
    // Looked at again, now that nobody else can change it.
    steps.begin(StartStep::Format);
    let found = folder::look(fs.as_ref(), root)?;
    steps.say(found.words());
    let disk = disk_of(fs, root, &found)?;
    steps.begin(StartStep::WriteProbe);
    prove(&disk)?;
    steps.begin(StartStep::PageCache);
    let marker = match found {
        Found::Ours(_) => reread_marker(fs.as_ref(), root)?,
        Found::Seed | Found::Empty => create(&disk, options.identity_key, now)?,
    };
    let key = marker.key().map_err(|error| OpenError::Damaged {
        path: root.to_owned(),
        what: format!("the key in `{MARKER}` cannot be read: {error}"),
        step: None,
    })?;
    let store = load(disk, &IdentityKey::from_bytes(&key), options, Arc::clone(lock), now, steps)?;
    Ok(Opened { store: Arc::new(store), lock: Some(Arc::clone(lock)), start: Vec::new() })
}

/// The folder and its file system, as what was found in it wants them.
pub(super) fn disk_of(fs: &Arc<dyn Fs>, root: &Path, found: &Found) -> Result<Disk, OpenError> {
    let seed_at_root = match found {
        Found::Ours(marker) => marker.seed_at_root,
        Found::Seed => true,
        Found::Empty => false,
    };
    Disk::new(Arc::clone(fs), Layout::new(root, seed_at_root), random_key()?)
        .map_err(io_error("open the file system of", root))
}

/// Refuses a folder that does not take what an accept needs.
pub(super) fn prove(disk: &Disk) -> Result<(), OpenError> {
    let root = disk.layout.root();
    probe::run(disk).map_err(|failed| match failed {
        probe::Failed::Link(source) if !is_full(&source) => {
            OpenError::Unfit { path: root.to_owned(), what: format!("makes no hard links ({source})") }
        }
        probe::Failed::Sync(source) => {
            OpenError::Unfit { path: root.to_owned(), what: format!("does not sync ({source})") }
        }
        probe::Failed::Write(source) | probe::Failed::Link(source) => io_error("write to", root)(source),
        probe::Failed::Other => OpenError::Unfit {
            path: root.to_owned(),
            what: "reads back other bytes than were written".to_owned(),
        },
    })
}

/// Makes a store: the log, then the marker, so that a folder with a marker always has a log.
fn create(disk: &Disk, identity_key: Option<[u8; 32]>, now: Timestamp) -> Result<Marker, OpenError> {
    let root = disk.layout.root();
    write_log(disk, std::iter::empty(), 0)?;
    let key = identity_key.map_or_else(random_key, Ok)?;
    let marker = Marker::new(key, now.to_string(), disk.layout.is_at_root(super::layout::SEED_SOURCE));
    let json = marker.to_json().map_err(|error| io_error("write", root)(error.into()))?;
    let (pending, path) = (disk.pending(MARKER), disk.path(MARKER));
    disk.write_new(&pending, &json).map_err(|error| match error {
        WriteError::Write(source) | WriteError::Sync(source) => io_error("write", &path)(source),
    })?;
    disk.fs.rename(&disk.path(&pending), &path).map_err(io_error("move into place", &path))?;
    disk.fs.sync_dir(root).map_err(io_error("sync", root))?;
    Ok(marker)
}

fn reread_marker(fs: &dyn Fs, root: &Path) -> Result<Marker, OpenError> {
    let path = root.join(MARKER);
    fs.evict(&path).map_err(io_error("sync", &path))?;
    folder::read_marker(fs, root)
}

fn load(
    disk: Disk,
    key: &IdentityKey,
    options: &OpenOptions,
    lock: Arc<StoreLock>,
    now: Timestamp,
    steps: &mut Steps,
) -> Result<FilesStore, OpenError> {
    steps.begin(StartStep::Log);
    let Replayed { mut tables, records, segments, next_segment } = replay::read(&disk)?;
    steps.begin(StartStep::Records);
    let expected = recover::expected(&tables, &disk);
    recover::restore(&disk, &expected, &records)?;
    let mut scan = recover::scan(&disk)?;
    recover::sweep_pendings(&disk, &scan)?;
    recover::remove_erased(&disk, &tables, &expected, &mut scan)?;
    warn_of_missing(&expected, &scan);
    let newest_logged = tables.newest();
    let unknown = adopt::unknown(&scan, &expected);
    let strangers = adopt::adopt(&disk, &mut tables, unknown, key, now);
    let adopted = tables.newest().0 - newest_logged.0;
    if adopted > 0 {
        tracing::info!(adopted, "events were found in the folder that the log did not know");
    }
    let brought_back = tables.bring_back(now);
    if brought_back > 0 {
        tracing::warn!(
            deliveries = brought_back,
            "deliveries waited for a time that only a clock far ahead can have set; they are owed now"
        );
    }
    let log = write_log(&disk, tables.rows(), next_segment)?;
    let journal = begin_journal(&disk, &log, next_segment, &segments)?;
    steps.begin(StartStep::Integrity);
    let damaged = spot_check(&disk, &tables, options.spot_check_events, &|_| false);
    warn_of_damaged(&damaged, steps);
    let facts = facts(&disk, key.clone())?;
    let parts = Parts {
        disk: disk.clone(),
        log,
        journal,
        journal_bytes_max: options.journal_bytes_max,
        checkpoint: Checkpoint::new(options.checkpoints),
        folders: scan.folders,
        strangers: strangers.into_iter().collect(),
        newest: tables.newest(),
    };
    Ok(FilesStore {
        facts,
        room: Room::new(options, disk.layout.root().to_owned()),
        disk,
        tables: RwLock::new(tables),
        writer: Mutex::new(Writer::new(parts)),
        poison: Poison::default(),
        lock,
        closed: AtomicBool::new(false),
    })
}

fn write_log(
    disk: &Disk,
    rows: impl Iterator<Item = super::row::Row>,
    journal: u64,
) -> Result<WorkLog, OpenError> {
    let (path, pending) = (disk.path(LOG), disk.path(&disk.pending(LOG)));
    WorkLog::create(&disk.fs, &path, &pending, rows, journal).map_err(io_error("write", &path))
}

/// Begins a journal behind a new log, in place of the segments before it, which count no more.
fn begin_journal(
    disk: &Disk,
    log: &WorkLog,
    number: u64,
    before: &[RecordPath],
) -> Result<Journal, OpenError> {
    for segment in before {
        let path = disk.path(segment);
        disk.fs.remove(&path).map_err(io_error("remove", &path))?;
    }
    Journal::create(disk, &Begin::new(number, log.position())).map_err(|error| match error {
        WriteError::Write(source) | WriteError::Sync(source) => {
            io_error("begin a journal in", disk.layout.root())(source)
        }
    })
}

fn warn_of_missing(expected: &std::collections::HashMap<RecordPath, Expected>, scan: &recover::Scan) {
    let missing = |(record, what): &(&RecordPath, &Expected)| {
        !matches!(what, Expected::Erased(..)) && !scan.records.contains(*record)
    };
    for (record, _) in expected.iter().filter(missing) {
        tracing::error!(record, "a record is missing that the log knows");
    }
}

/// Reads the newest events' records but for those that need not be there yet, and gives those that are damaged, each
/// with the reason.
pub(super) fn spot_check(
    disk: &Disk,
    tables: &Tables,
    events: u32,
    is_pending: &dyn Fn(&RecordPath) -> bool,
) -> Vec<(RecordPath, String)> {
    let check = |row: &super::row::EventRow| {
        let record = disk.layout.event(row);
        if is_pending(&record) {
            return None;
        }
        let event = &row.event;
        let checked = disk
            .read_known(&record)
            .map_err(|error| error.to_string())
            .and_then(|bytes| super::entry::Entry::body_of(&bytes, &event.identity, event.digest).map(drop));
        checked.err().map(|why| (record, why))
    };
    let newest = tables.events.values().rev().filter(|row| row.is_kept());
    newest.take(events as usize).filter_map(|row| check(row)).collect()
}

/// A damaged record is served to nobody, and the rest is: so the start goes on, it is said aloud here and refused
/// where it is asked for.
pub(super) fn warn_of_damaged(damaged: &[(RecordPath, String)], steps: &mut Steps) {
    for (record, why) in damaged {
        tracing::error!(record, why, "a record is damaged; `hookstead store check` names all");
    }
    if let Some((record, why)) = damaged.first() {
        steps.warn(
            format!("{} of the newest records are damaged, one is `{record}`: {why}", damaged.len()),
            "stop the server and run `hookstead store check`: it names all; put them back from a backup",
        );
    }
}

fn facts(disk: &Disk, identity_key: IdentityKey) -> Result<StoreFacts, OpenError> {
    let root = disk.layout.root();
    let system = disk.fs.file_system(root).map_err(io_error("look at the file system of", root))?;
    let volatile = match system {
        FileSystem::Volatile(kind) => format!(" on {kind}, which may go with the power or the container"),
        FileSystem::Local | FileSystem::Network(_) => String::new(),
    };
    Ok(StoreFacts {
        kind: KIND,
        location: format!("files:{}", root.display()),
        durability: format!("fsync of the journal, then of records and log by checkpoints{volatile}"),
        persistent: true,
        batches_in_flight: NonZeroUsize::MIN,
        identity_key,
    })
}
