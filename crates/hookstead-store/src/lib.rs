//! The stores of hookstead behind one function: [`open`] turns a URL into a [`Store`].
//!
//! This crate alone knows SQL and files. What a store promises stands in `hookstead-core`; here is how each
//! kind keeps it, and everything that can be known about a file before it is trusted.

mod backup;
mod files;
pub mod fs;
mod fs_os;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod lock;
mod open;
mod place;
mod poison;
mod room;
mod schema;
#[cfg(feature = "simulation")]
pub mod sim;
mod sqlite;
mod start;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hookstead_core::{MemoryStore, Store, Timestamp};
use start::Steps;

pub use backup::{BackupError, BackupPhase, BackupProgress, BackupReport, backup, restore};
pub use fs_os::OsFs;
pub use lock::{OwnerRecord, StoreLock};
pub use open::{Checkpoints, IdentityFilter, IdentityFlush, OpenError, OpenOptions, Opened, UpgradeCopy};
pub use rusqlite;
pub use sqlite::{EffectError, SqliteTransaction, sqlite_effect};
pub use start::{Finding, StartStep, Verdict};

const SCHEMES: &str = "`memory:`, `sqlite:PATH` and `files:DIR`";

/// Opens the store that `url` names: `memory:`, `sqlite:PATH`, whose database and folders are made if they
/// are not there, or `files:DIR`, likewise; a folder of the seed's own receiver becomes its source `seed`.
///
/// When it returns `Ok`, nobody else has the store open and nobody else can open it; a write was committed
/// and read back; what the store shows is on the disk and not only in the page cache; its newest events
/// match their digests. The steps that prove this are [`StartStep::SQLITE`] and [`StartStep::FILES`]; how they
/// came out stands in [`Opened::start`], and warnings are logged. When it returns `Err`, nothing was acknowledged,
/// and a database that was refused was not written to.
///
/// # Errors
///
/// [`OpenError`] says what is in the way and what to do about it.
pub fn open(url: &str, options: &OpenOptions, now: Timestamp) -> Result<Opened, OpenError> {
    let location = Location::parse(url)?;
    let mut steps = Steps::default();
    let opened = std::thread::scope(|scope| {
        open::draw_first_number(scope)?;
        match location {
            Location::Memory => {
                let key = options.identity_key.map_or_else(open::random_key, Ok)?;
                let store: Arc<dyn Store> = Arc::new(MemoryStore::new(key));
                Ok(Opened { store, lock: None, start: Vec::new() })
            }
            Location::Sqlite(path) => sqlite::open(path, options, now, &mut steps),
            Location::Files(folder) => files::open(folder, options, now, &mut steps),
        }
    });
    let mut opened = opened.map_err(|error| steps.place(error))?;
    opened.start = steps.into_findings();
    for finding in opened.start.iter().filter(|finding| finding.verdict == Verdict::Warning) {
        tracing::warn!(start.step = finding.name, fix = finding.fix, "{}", finding.words);
    }
    Ok(opened)
}

/// Opens the store that `url` names to read it, also beside the process that has it open. It takes no lock,
/// keeps no server from starting and writes to no database and no log; SQLite may make its shared memory and
/// an empty log beside a database that lacks them.
///
/// What it shows is what was committed when a read began. It may be visible before it is durable: nothing
/// may be acknowledged on the strength of it. [`Store::apply`] and [`Store::probe`] fail. A process that has
/// the store open must not open it again this way, but use what it has: when the files are closed SQLite's
/// locks are gone.
///
/// # Errors
///
/// [`OpenError::NotReadable`] for a store that is not `sqlite:`, [`OpenError::Damaged`] if nobody has it open
/// and its log or its newest events are damaged (see [`OpenOptions::spot_check_events`]),
/// [`OpenError::ForeignLog`] and [`OpenError::OtherCopy`] if nobody has it open and its log was not begun on it, and
/// others of [`open`]. It is never made.
pub fn open_read_only(url: &str, options: &OpenOptions) -> Result<Arc<dyn Store>, OpenError> {
    match Location::parse(url)? {
        Location::Sqlite(path) => sqlite::open_read_only(path, options),
        Location::Memory | Location::Files(_) => Err(OpenError::NotReadable {
            place: url.to_owned(),
            why: "only a `sqlite:` store can; stop its server and open it as its owner".to_owned(),
        }),
    }
}

/// Looks at the store that `url` names as a start of it would, also beside the process that has it open: the steps of
/// the start in their order, up to one that failed. It makes no store, and writes to no file of one; beside it, it
/// writes a probe of its own and removes it, and SQLite may make its shared memory and an empty log where they are
/// missing. What only a start can do, and what moves while another process writes, is skipped, and the finding says so.
///
/// A `sqlite:` store of an older schema is looked at for what would refuse the change of it: room for the copy that is
/// kept ([`OpenOptions::upgrade_copy`], [`OpenOptions::free_bytes_min`]), and, unless another process writes to it, whether
/// its pages fit together, for which all of it is read.
///
/// A process that has the store open must not look at it this way, but use what its own start found ([`Opened::start`]):
/// when the files are closed SQLite's locks are gone.
///
/// Where nobody has the store open, its lock is held for as long as the log is read: a server that starts just then
/// may be told that the store is in use.
pub fn examine(url: &str, options: &OpenOptions) -> Vec<Finding> {
    let mut steps = Steps::default();
    let examined = match Location::parse(url) {
        Ok(Location::Memory) => {
            return vec![Finding::good("store", "in memory: there is nothing to look at")];
        }
        Ok(Location::Sqlite(path)) => sqlite::examine(path, options, &mut steps),
        Ok(Location::Files(folder)) => files::examine(folder, options, &mut steps),
        Err(error) => return vec![Finding::failed("store", error.reason(), error.fix())],
    };
    if let Err(error) = examined {
        steps.fail(&error);
    }
    steps.into_findings()
}

/// Who has the store that `url` names open, and where that process listens; `None` if nobody has. It opens
/// nothing and keeps nobody out.
///
/// # Errors
///
/// [`OpenError::UnknownScheme`], [`OpenError::NoPath`], or [`OpenError::Io`] if the lock file cannot be read.
pub fn owner_record(url: &str, options: &OpenOptions) -> Result<Option<OwnerRecord>, OpenError> {
    let (path, lock_path): (&Path, fn(&Path) -> PathBuf) = match Location::parse(url)? {
        Location::Memory => return Ok(None),
        Location::Sqlite(path) => (path, lock::lock_path),
        Location::Files(folder) => (folder, files::lock_path),
    };
    let doing = format!("read who has `{}` open", path.display());
    std::path::absolute(path)
        .and_then(|path| lock::owner(options.fs.as_ref(), &lock_path(&path)))
        .map_err(|source| OpenError::Io { doing, source, step: None })
}

/// Where a URL points.
enum Location<'a> {
    Memory,
    Sqlite(&'a Path),
    Files(&'a Path),
}

impl<'a> Location<'a> {
    fn parse(url: &'a str) -> Result<Self, OpenError> {
        if url == "memory:" {
            return Ok(Self::Memory);
        }
        // `sqlite:///var/lib/x` is what people write who think of URLs: an empty host, then the path.
        let place =
            |path: &'a str| path.strip_prefix("//").filter(|rest| rest.starts_with('/')).unwrap_or(path);
        let no_path = || OpenError::NoPath { url: url.to_owned() };
        match url.split_once(':') {
            Some(("sqlite", path)) if place(path).is_empty() || path.ends_with('/') => Err(no_path()),
            Some(("sqlite", path)) => Ok(Self::Sqlite(Path::new(place(path)))),
            Some(("files", path)) if place(path).is_empty() => Err(no_path()),
            Some(("files", path)) => Ok(Self::Files(Path::new(place(path)))),
            _ => Err(OpenError::UnknownScheme { url: url.to_owned(), known: SCHEMES }),
        }
    }
}
