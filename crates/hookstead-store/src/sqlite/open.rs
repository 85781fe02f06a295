//! The start procedure: only when all of it went well does anybody get the store.
//!
//! The steps are [`StartStep::SQLITE`], in this order: what may be refused without touching anything (library, file
//! system), the lock, what the file is, then the page cache is emptied of what a failed write may have left in it, the
//! log is read for damage that SQLite would not tell, the schema is read, the newest events are compared with their
//! digests, an older database is copied, the log is brought to its size, the pending identities are read, a writer empties
//! the log and proves itself with a probe, and the folder's entries are made durable.

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use hookstead_core::{IdentityKey, Seq, StoreError, StoreFacts, Timestamp};
use rusqlite::{Connection, Row};

use super::accept::check_body;
use super::checkpoint::{Checkpointer, Log};
use super::connect::{APPLICATION_ID, NotKept, SQLITE_NEEDED, Target, check_writer};
use super::create::{self, database_error, io_error};
use super::effect::KIND;
use super::failure::reading;
use super::files::{Files, wal_path};
use super::guard::Guard;
use super::identities::{self, Pending};
use super::ledger::{Ledger, count};
use super::log_scan;
use super::migrations::{MIGRATIONS, PENDING_IDENTITIES_SINCE};
use super::own_log::refuse_foreign_log;
use super::published::Published;
use super::readers::Readers;
use super::row;
use super::store::SqliteStore;
use super::upgrade;
use super::writer::{Parts, Writer};
use crate::fs::Fs;
use crate::lock::{LockError, StoreLock, lock_path};
use crate::open::{OpenError, OpenOptions, Opened};
use crate::poison::Poison;
use crate::room::Room;
use crate::schema::{self, SchemaError};
use crate::start::{StartStep, Steps, check_file_system};

/// The header that begins every SQLite database, and where in it the application id stands.
const HEADER_BYTES: usize = 100;
const MAGIC: &[u8] = b"SQLite format 3\0";
const APPLICATION_ID_AT: usize = 68;

/// The spot check stops after so many bytes of bodies: the start must stay short.
const SPOT_CHECK_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Opens the database at `path`, made first if there is none.
pub(crate) fn open(
    path: &Path,
    options: &OpenOptions,
    now: Timestamp,
    steps: &mut Steps,
) -> Result<Opened, OpenError> {
    let store = open_store(path, options, now, steps)?;
    let lock = Arc::clone(&store.lock);
    Ok(Opened { store: Arc::new(store), lock: Some(lock), start: Vec::new() })
}

/// The same, as what it is.
pub(super) fn open_store(
    path: &Path,
    options: &OpenOptions,
    now: Timestamp,
    steps: &mut Steps,
) -> Result<SqliteStore, OpenError> {
    steps.begin(StartStep::Library);
    steps.say(check_library()?);
    let fs = options.fs.as_ref();
    let path = std::path::absolute(path).map_err(io_error("find the folder of", path))?;
    let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
    prepare_folder(fs, &folder, steps)?;
    steps.begin(StartStep::Lock);
    let lock = acquire(fs, &path, now)?;
    let opened = open_locked(&path, &folder, options, &lock, now, steps);
    if opened.is_err() {
        lock.release();
    }
    opened
}

fn open_locked(
    path: &Path,
    folder: &Path,
    options: &OpenOptions,
    lock: &Arc<StoreLock>,
    now: Timestamp,
    steps: &mut Steps,
) -> Result<SqliteStore, OpenError> {
    let fs = options.fs.as_ref();
    let target = Target::of(path, options);
    let wal = wal_path(path);
    steps.begin(StartStep::Format);
    if is_ours(fs, path)? {
        look_through(&target, &wal, options, steps)?;
    } else {
        refuse_orphan(fs, path, &wal)?;
        create::database(fs, &target, options.identity_key, now)?;
        steps.say("a new database");
        steps.skip(StartStep::PageCache, "the database was just made");
    }
    steps.begin(StartStep::Log);
    create::fill_log(fs, &wal, target.wal.bytes())?;
    let store = start(&target, options, Arc::clone(lock), now, steps)?;
    steps.begin(StartStep::Folders);
    // The log was read or filled in one go, so that the page cache holds it in pieces of up to a megabyte,
    // and Linux counts, and some file systems write, a whole piece for each frame that is changed in it.
    forget_cached(fs, &wal)?;
    sync_folders(fs, folder)?;
    Ok(store)
}

/// Everything that may refuse a database that is there, before anything is written to it; then the copy of an older one.
fn look_through(
    target: &Target,
    wal: &Path,
    options: &OpenOptions,
    steps: &mut Steps,
) -> Result<(), OpenError> {
    let (fs, path) = (options.fs.as_ref(), target.path.as_path());
    steps.begin(StartStep::PageCache);
    forget_cached(fs, path)?;
    forget_cached(fs, wal)?;
    steps.begin(StartStep::Log);
    refuse_damaged_log(fs, path, wal)?;
    steps.begin(StartStep::Format);
    let reader = target.reader().map_err(|error| database_error("read the database", error))?;
    steps.say(read_schema(path, &reader)?);
    steps.begin(StartStep::Log);
    refuse_foreign_log(fs, target, &reader, wal)?;
    // Next in the list of steps; they are read back when there is a writer.
    steps.begin(StartStep::Settings);
    steps.begin(StartStep::Integrity);
    refuse_damaged_content(path, &reader, options)?;
    steps.begin(StartStep::Format);
    upgrade::keep_copy(target, &reader, options)
}

/// Opens the connections and proves that they write what they should.
fn start(
    target: &Target,
    options: &OpenOptions,
    lock: Arc<StoreLock>,
    now: Timestamp,
    steps: &mut Steps,
) -> Result<SqliteStore, OpenError> {
    steps.begin(StartStep::Settings);
    let mut connection = target.writer().map_err(|error| database_error("open the database", error))?;
    if let Some(NotKept(setting, found)) =
        check_writer(&connection).map_err(|error| database_error("read the settings back", error))?
    {
        return Err(OpenError::Setting { setting, found });
    }
    schema::migrate(&mut connection, MIGRATIONS, now).map_err(|error| refused(&target.path, error))?;
    let log = Arc::new(Log::new(target.wal.frames));
    log.follow(&mut connection).map_err(|error| database_error("follow the log", error))?;
    let guard = Arc::new(Guard::new(options.effect_time_max));
    guard.watch(&mut connection).map_err(|error| database_error("watch over effects", error))?;
    steps.begin(StartStep::Integrity);
    let failed = |error| store_error("read the database", error);
    let identity_key = identity_key(&connection).map_err(failed)?;
    let ledger = Ledger::load(&connection).map_err(failed)?;
    steps.begin(StartStep::Identities);
    let identities = pending_identities(&target.path, &connection, options)?;
    let published = Arc::new(Published::new(Arc::clone(&ledger.registry), ledger.stats));
    let files = Files::remember(Arc::clone(&options.fs), &target.path, target.wal.bytes())?;
    let mut writer = Writer::new(Parts {
        target: target.clone(),
        guard,
        files,
        identity_key: identity_key.clone(),
        log: Arc::clone(&log),
        published: Arc::clone(&published),
        ledger,
        identities,
        identity_flush: options.identity_flush,
        identity_filter: options.identity_filter,
        connection,
    });
    steps.begin(StartStep::WriteProbe);
    writer.empty_log().map_err(|error| store_error("move the log into the database", error))?;
    writer.probe().map_err(|error| store_error("write a probe", error))?;
    let brought_back = writer.bring_back(now).map_err(|error| store_error("bring deliveries back", error))?;
    if brought_back > 0 {
        tracing::warn!(
            deliveries = brought_back,
            "deliveries waited for a time that only a clock far ahead can have set; they are owed now"
        );
    }
    let anchor = target.reader().map_err(|error| database_error("open the database to read", error))?;
    // Only a connection that has read something holds the database open.
    schema::applied(&anchor, MIGRATIONS).map_err(|error| refused(&target.path, error))?;
    let poison = Arc::new(Poison::default());
    let checkpointer = Checkpointer::start(target.clone(), log, Arc::clone(&poison))
        .map_err(io_error("start a thread for", &target.path))?;
    Ok(SqliteStore {
        facts: facts(&target.path, identity_key),
        path: target.path.clone(),
        room: Room::new(options, target.path.parent().unwrap_or(&target.path).to_owned()),
        poison,
        published,
        writer: Mutex::new(writer),
        readers: Readers::new(target.clone(), options.readers_max),
        anchor: Mutex::new(Some(anchor)),
        checkpointer: Mutex::new(checkpointer),
        lock,
        closed: AtomicBool::new(false),
    })
}

pub(super) fn facts(path: &Path, identity_key: IdentityKey) -> StoreFacts {
    StoreFacts {
        kind: KIND,
        location: path.display().to_string(),
        durability: format!("SQLite {}, WAL, synchronous=EXTRA, log synced", rusqlite::version()),
        persistent: true,
        batches_in_flight: NonZeroUsize::MIN,
        identity_key,
    }
}

/// The version that is linked, in words, if it will do.
pub(super) fn check_library() -> Result<String, OpenError> {
    let (number, needed) = SQLITE_NEEDED;
    if rusqlite::version_number() >= number {
        return Ok(format!("SQLite {}", rusqlite::version()));
    }
    Err(OpenError::OldSqlite { found: rusqlite::version(), needed })
}

/// Makes the folder and what is missing above it, unless it would lie where a store cannot.
pub(super) fn prepare_folder(fs: &dyn Fs, folder: &Path, steps: &mut Steps) -> Result<(), OpenError> {
    check_file_system(fs, folder, steps)?;
    let mut missing = Vec::new();
    let mut existing = folder;
    while fs.facts(existing).map_err(io_error("look at", existing))?.is_none() {
        missing.push(existing);
        existing = existing.parent().unwrap_or(Path::new("/"));
    }
    missing.iter().rev().try_for_each(|dir| fs.create_dir(dir).map_err(io_error("make the folder", dir)))
}

pub(super) fn acquire(fs: &dyn Fs, path: &Path, now: Timestamp) -> Result<Arc<StoreLock>, OpenError> {
    let lock = lock_path(path);
    StoreLock::acquire(fs, lock.clone(), now).map_err(|error| match error {
        LockError::Held(owner) => OpenError::Locked { path: path.to_owned(), owner },
        LockError::Io(source) => io_error("lock", &lock)(source),
    })
}

/// `false`: there is no database yet. One that is not ours is refused by its first bytes, before SQLite
/// opens it and makes files beside it.
pub(super) fn is_ours(fs: &dyn Fs, path: &Path) -> Result<bool, OpenError> {
    let Some(found) = fs.facts(path).map_err(io_error("look at", path))? else { return Ok(false) };
    let foreign = |what: &str| OpenError::Foreign { path: path.to_owned(), what: what.to_owned() };
    if found.is_dir {
        return Err(foreign("it is a folder"));
    }
    if found.bytes == 0 {
        return Ok(false);
    }
    let mut header = [0; HEADER_BYTES];
    let file = fs.open_read(path).map_err(io_error("open", path))?;
    let count = file.read_at(&mut header, 0).map_err(io_error("read", path))?;
    if count < HEADER_BYTES || !header.starts_with(MAGIC) {
        return Err(foreign("it is no SQLite database"));
    }
    if header[APPLICATION_ID_AT..APPLICATION_ID_AT + 4] != APPLICATION_ID.to_be_bytes() {
        return Err(foreign("it is another program's SQLite database"));
    }
    Ok(true)
}

pub(super) fn refuse_orphan(fs: &dyn Fs, path: &Path, wal: &Path) -> Result<(), OpenError> {
    match fs.facts(wal).map_err(io_error("look at", wal))? {
        Some(found) if found.bytes > 0 => {
            Err(OpenError::OrphanedLog { path: path.to_owned(), wal: wal.to_owned() })
        }
        _ => Ok(()),
    }
}

/// After a failed write the page cache can show what the disk does not have; what is answered from it is
/// lost with the next power cut.
fn forget_cached(fs: &dyn Fs, file: &Path) -> Result<(), OpenError> {
    if fs.facts(file).map_err(io_error("look at", file))?.is_none() {
        return Ok(());
    }
    fs.evict(file).map_err(io_error("sync and evict", file))
}

/// Before SQLite reads the log: it would take whatever comes after a damaged frame for never committed.
pub(super) fn refuse_damaged_log(fs: &dyn Fs, path: &Path, wal: &Path) -> Result<(), OpenError> {
    let scan = log_scan::scan(fs, wal, Some(path)).map_err(io_error("read the log", wal))?;
    match scan.damage {
        None => Ok(()),
        Some(damage) => {
            Err(OpenError::Damaged { path: wal.to_owned(), what: damage.to_string(), step: None })
        }
    }
}

/// Which schema the database has, in words, if it is one of ours.
pub(super) fn read_schema(path: &Path, reader: &Connection) -> Result<String, OpenError> {
    let applied = schema::applied(reader, MIGRATIONS).map_err(|error| refused(path, error))?;
    Ok(format!("a database of ours, schema {applied} of {}", MIGRATIONS.len()))
}

pub(super) fn refused(path: &Path, error: SchemaError) -> OpenError {
    let path = path.to_owned();
    match error {
        SchemaError::Newer { found, known } => OpenError::Newer { path, found, known },
        SchemaError::Changed { number, name } => OpenError::Changed { path, number, name },
        SchemaError::Foreign(what) => OpenError::Foreign { path, what },
        SchemaError::Database { doing, source } => {
            OpenError::Database { doing, source: source.into(), step: None }
        }
    }
}

/// What is pending of the index of identities, as a start reads it.
pub(super) fn pending_identities(
    path: &Path,
    connection: &Connection,
    options: &OpenOptions,
) -> Result<Pending, OpenError> {
    identities::load(connection, options.identity_flush, options.identity_filter)
        .map_err(|error| damaged(path, error))
}

pub(super) fn identity_key(connection: &Connection) -> Result<IdentityKey, StoreError> {
    key_bytes(connection).map(|key| IdentityKey::from_bytes(&key))
}

pub(super) fn key_bytes(connection: &Connection) -> Result<[u8; 32], StoreError> {
    connection
        .query_row("SELECT identity_key FROM store", [], |row| row::bytes(row, 0))
        .map_err(reading("read the key of the identities"))
}

/// Before a newer schema is written to it.
pub(super) fn refuse_damaged_content(
    path: &Path,
    reader: &Connection,
    options: &OpenOptions,
) -> Result<(), OpenError> {
    spot_check(reader, options.spot_check_events).map_err(|error| damaged(path, error))?;
    let applied = schema::applied(reader, MIGRATIONS).map_err(|error| refused(path, error))?;
    if applied == MIGRATIONS.len() {
        // What else may refuse it is read when the store is made, with nothing written until then.
        return Ok(());
    }
    identity_key(reader).and_then(|_| Ledger::load(reader)).map_err(|error| damaged(path, error))?;
    if applied >= PENDING_IDENTITIES_SINCE {
        pending_identities(path, reader, options)?;
    }
    Ok(())
}

/// The newest events are those that a crash could have harmed.
pub(super) fn spot_check(connection: &Connection, events: u32) -> Result<(), StoreError> {
    let failed = reading("read the newest events");
    let mut statement = connection
        .prepare("SELECT seq, digest, body_bytes, erased_at_us, body FROM events ORDER BY seq DESC LIMIT ?1")
        .map_err(&failed)?;
    let mut rows = statement.query([events]).map_err(&failed)?;
    let mut bytes = 0;
    while let Some(row) = rows.next().map_err(&failed)? {
        bytes += spot_check_one(row).map_err(&failed)??;
        if bytes > SPOT_CHECK_BYTES_MAX {
            break;
        }
    }
    Ok(())
}

fn spot_check_one(row: &Row<'_>) -> rusqlite::Result<Result<u64, StoreError>> {
    let seq = Seq(count(row.get(0)?));
    let (digest, body_bytes) = (row::digest(row, 1)?, count(row.get(2)?));
    let (erased_at, body) = (row::optional_time(row, 3)?, row.get_ref(4)?.as_blob_or_null()?);
    Ok(check_body(seq, &digest, body_bytes, erased_at.is_some(), body).map(|()| body_bytes))
}

pub(super) fn damaged(path: &Path, error: StoreError) -> OpenError {
    match error {
        StoreError::Corrupt { what } => OpenError::Damaged { path: path.to_owned(), what, step: None },
        other => store_error("read the newest events", other),
    }
}

pub(super) fn store_error(doing: &str, error: StoreError) -> OpenError {
    OpenError::Database { doing: doing.to_owned(), source: error.into(), step: None }
}

/// Makes the entries of the folder durable, and those of the folders above it: an earlier start may have
/// made them and died. SQLite ignores what its own sync of a folder says.
pub(super) fn sync_folders(fs: &dyn Fs, folder: &Path) -> Result<(), OpenError> {
    fs.sync_dir(folder).map_err(io_error("sync the folder", folder))?;
    let device = |dir: &PathBuf| fs.facts(dir).map(|facts| facts.map(|facts| facts.device));
    let own = device(&folder.to_owned()).map_err(io_error("look at", folder))?;
    for above in folder.ancestors().skip(1) {
        // What lies on another device, or may not even be read by us, was not made by us.
        if device(&above.to_owned()).map_err(io_error("look at", above))? != own {
            break;
        }
        match fs.sync_dir(above) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => break,
            Err(error) => return Err(io_error("sync the folder", above)(error)),
        }
    }
    Ok(())
}
