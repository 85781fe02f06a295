//! A database that is opened to be read, beside whoever has it open or while nobody has: for a check, and for
//! listing events. It takes no lock for longer than the opening takes, repairs nothing and moves nothing.
//!
//! SQLite itself coordinates readers through its shared memory beside the database (`-shm`), which it makes
//! if it is missing, together with an empty log. Database and log are not written to.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hookstead_core::{
    Attempt, Body, BodySelector, ChangeMark, CheckProgress, CheckReport, Conflict, ConflictFilter, Delivery,
    DeliveryFilter, DeliveryId, DestinationNumber, Event, EventFilter, EventId, EventSelector, Fetched,
    IdentityKey, List, Page, Redelivery, RedeliveryId, RedeliveryState, Registry, RunReceipt, Stats, Store,
    StoreError, StoreFacts, Timestamp, Write, Written,
};
use rusqlite::{Connection, ErrorCode};

use super::connect::Target;
use super::create::{database_error, io_error};
use super::event::Known;
use super::failure::reading;
use super::files::wal_path;
use super::ledger::Ledger;
use super::log_scan::{self, LogDamage};
use super::migrations::MIGRATIONS;
use super::open::{check_library, damaged, facts, identity_key, is_ours, refused, spot_check, store_error};
use super::own_log::refuse_foreign_log;
use super::published::Published;
use super::readers::Readers;
use super::{check, event, fetch, list, redeliver, register};
use crate::fs::{Fs, FsFile, LockKind, LockOutcome};
use crate::lock::lock_path;
use crate::open::{OpenError, OpenOptions};
use crate::schema::{self, SchemaError};

/// Opens the database at `path` to read it.
pub(crate) fn open_read_only(path: &Path, options: &OpenOptions) -> Result<Arc<dyn Store>, OpenError> {
    match open_any_schema(path, options)? {
        Readable::Store(store) => Ok(store),
        Readable::Older { schema } => {
            let why = format!("its schema is {schema} of {}; start its server once", MIGRATIONS.len());
            Err(OpenError::NotReadable { place: path.display().to_string(), why })
        }
    }
}

/// A database that can be read.
pub(super) enum Readable {
    Store(Arc<dyn Store>),
    /// Of a schema before this program's: it is one of ours, its newest events and its log hold; it is not open.
    Older {
        schema: usize,
    },
}

/// The same, and a database of an older schema is none that cannot be read. The log is looked at only if nobody has the
/// store open: it does not stand still otherwise, and its owner has looked at it.
pub(super) fn open_any_schema(path: &Path, options: &OpenOptions) -> Result<Readable, OpenError> {
    check_library()?;
    let fs = options.fs.as_ref();
    let path = std::path::absolute(path).map_err(io_error("find the folder of", path))?;
    if fs.facts(&path).map_err(io_error("look at", &path))?.is_none() {
        return Err(io_error("find", &path)(std::io::ErrorKind::NotFound.into()));
    }
    let owner = Owner::find(fs, &path)?;
    let log_damage = match &owner {
        Owner::Alive => None,
        Owner::None { .. } => look_at_files(fs, &path)?,
    };
    let damaged_log = |damage: &LogDamage| OpenError::Damaged {
        path: wal_path(&path),
        what: damage.to_string(),
        step: None,
    };
    if let Some(damage) = log_damage.as_ref().filter(|_| options.spot_check_events > 0) {
        return Err(damaged_log(damage));
    }
    match open_files(&path, options, owner, log_damage.clone()) {
        Ok(readable) => Ok(readable),
        // What SQLite says of such a database comes from that.
        Err(error) => Err(log_damage.as_ref().map_or(error, damaged_log)),
    }
}

/// Whether another process writes.
enum Owner {
    Alive,
    /// Nobody does, and nobody begins to while this is held. There is no lock file where no store was ever
    /// opened, as beside a copy.
    None {
        _held: Option<Box<dyn FsFile>>,
    },
}

impl Owner {
    fn find(fs: &dyn Fs, database: &Path) -> Result<Self, OpenError> {
        let path = lock_path(database);
        if fs.facts(&path).map_err(io_error("look at", &path))?.is_none() {
            return Ok(Self::None { _held: None });
        }
        let file = fs.open_read(&path).map_err(io_error("open", &path))?;
        match file.try_lock(LockKind::Shared).map_err(io_error("lock", &path))? {
            LockOutcome::Taken => Ok(Self::None { _held: Some(file) }),
            LockOutcome::Held => Ok(Self::Alive),
        }
    }
}

/// What can only be seen while nobody has the database open.
fn look_at_files(fs: &dyn Fs, path: &Path) -> Result<Option<LogDamage>, OpenError> {
    if !is_ours(fs, path)? {
        return Err(OpenError::Foreign { path: path.to_owned(), what: "it is empty".to_owned() });
    }
    let log = wal_path(path);
    log_scan::scan(fs, &log, Some(path)).map(|scan| scan.damage).map_err(io_error("read the log", &log))
}

fn open_files(
    path: &Path,
    options: &OpenOptions,
    owner: Owner,
    log_damage: Option<LogDamage>,
) -> Result<Readable, OpenError> {
    let target = Target::of(path, options);
    let connection = target.reader().map_err(|error| not_readable(path, error))?;
    let applied = schema::applied(&connection, MIGRATIONS).map_err(|error| match error {
        SchemaError::Database { source, .. } => not_readable(path, source),
        other => refused(path, other),
    })?;
    // Beside a running server the log is its own; what a damaged one leads to does not tell whose it is.
    if matches!(owner, Owner::None { .. }) && log_damage.is_none() {
        refuse_foreign_log(options.fs.as_ref(), &target, &connection, &wal_path(path))?;
    }
    // SQLite has read the log now. Until here no server could start: while it does, the log does not stand
    // still.
    drop(owner);
    let failed = |error| store_error("read the database", error);
    let key = identity_key(&connection).map_err(failed)?;
    spot_check(&connection, options.spot_check_events).map_err(|error| damaged(path, error))?;
    if applied < MIGRATIONS.len() {
        return Ok(Readable::Older { schema: applied });
    }
    let ledger = Ledger::load(&connection).map_err(failed)?;
    Ok(Readable::Store(Arc::new(ReadOnlyStore {
        facts: read_facts(path, key),
        published: Published::new(ledger.registry, ledger.stats),
        readers: Readers::new(target, options.readers_max),
        connection: Mutex::new(Some(connection)),
        log_damage,
        closed: AtomicBool::new(false),
    })))
}

fn read_facts(path: &Path, key: IdentityKey) -> StoreFacts {
    StoreFacts { durability: "nothing: it is open to be read".to_owned(), ..facts(path, key) }
}

fn not_readable(path: &Path, error: rusqlite::Error) -> OpenError {
    if error.sqlite_error_code() != Some(ErrorCode::CannotOpen) {
        return database_error("read the database", error);
    }
    let why =
        "SQLite could not open it, or its shared memory `-shm` beside it; read it as its owner, or where \
               that file can be made"
            .to_owned();
    OpenError::NotReadable { place: path.display().to_string(), why }
}

/// A store that only reads.
struct ReadOnlyStore {
    facts: StoreFacts,
    /// Renewed before it is used: a server may write meanwhile.
    published: Published,
    readers: Readers,
    /// Sees when others have committed.
    connection: Mutex<Option<Connection>>,
    log_damage: Option<LogDamage>,
    closed: AtomicBool,
}

impl ReadOnlyStore {
    fn read<T>(
        &self,
        read: impl FnOnce(&Connection, &Known<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.check_open()?;
        self.readers.read(|connection| {
            let registry = register::load(connection)?;
            let known = Known {
                identity_key: &self.facts.identity_key,
                registry: &registry,
                published: &self.published,
            };
            read(connection, &known)
        })
    }

    fn check_open(&self) -> Result<(), StoreError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(StoreError::backend("use the store", "it is closed"));
        }
        Ok(())
    }

    fn ledger(&self) -> Result<Ledger, StoreError> {
        self.read(|connection, _| Ledger::load(connection))
    }
}

/// Why nothing can be written.
fn only_read(doing: &'static str) -> StoreError {
    StoreError::backend(doing, "the store was opened to be read")
}

impl Store for ReadOnlyStore {
    fn facts(&self) -> &StoreFacts {
        &self.facts
    }

    fn apply(&self, _writes: &[Write], _now: Timestamp) -> Result<Vec<Written>, StoreError> {
        Err(only_read("write"))
    }

    fn probe(&self, _now: Timestamp) -> Result<(), StoreError> {
        Err(only_read("commit a probe"))
    }

    fn close(&self, _now: Timestamp) -> Result<(), StoreError> {
        self.closed.store(true, Ordering::Release);
        self.readers.close_idle();
        drop(self.connection.lock().unwrap_or_else(PoisonError::into_inner).take());
        Ok(())
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
        self.read(|connection, _| register::load(connection))
    }

    fn next_due(&self, destination: DestinationNumber) -> Result<Option<Timestamp>, StoreError> {
        self.read(|connection, known| list::next_due(connection, known, destination))
    }

    fn next_expiry(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read(|connection, _| list::next_expiry(connection))
    }

    fn stats(&self) -> Result<Stats, StoreError> {
        self.ledger().map(|ledger| ledger.stats)
    }

    fn check(&self, progress: &mut dyn FnMut(CheckProgress)) -> Result<CheckReport, StoreError> {
        let ledger = self.ledger()?;
        self.published.publish(ledger.registry, ledger.stats);
        let mut report =
            check::run(progress, &|step| self.read(|connection, known| step(connection, known)))?;
        if let Some(damage) = &self.log_damage {
            report.add_problem(check::damaged_log(Path::new(&self.facts.location), &damage.to_string()));
        }
        Ok(report)
    }

    fn changed(&self) -> Result<ChangeMark, StoreError> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(connection) = connection.as_ref() else {
            return Err(StoreError::backend("use the store", "it is closed"));
        };
        let version: i64 = connection
            .pragma_query_value(None, "data_version", |row| row.get(0))
            .map_err(reading("ask whether others have written"))?;
        Ok(ChangeMark(version.unsigned_abs()))
    }
}
