//! How a store is opened, and why it may be refused. It knows the kinds of stores by name only.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::Scope;
use std::time::Duration;

use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use hookstead_core::Store;

use crate::fs::Fs;
use crate::fs_os::OsFs;
use crate::lock::{OwnerRecord, StoreLock};
use crate::start::{Finding, StartStep};

/// What a caller may choose. The default is right for a server.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// The disk that every file call outside the database engine goes to.
    pub fs: Arc<dyn Fs>,
    /// The name of the SQLite VFS; `None`: the operating system's. It must lie over the same disk as `fs`.
    pub vfs: Option<String>,
    /// How large the write-ahead log may become, in bytes. It is written to this size once and kept. When it
    /// cannot be reset for longer than `busy_timeout`, because a reader is stuck, writes are refused with
    /// [`hookstead_core::StoreError::Full`].
    pub wal_bytes_max: u64,
    /// How long a write waits for a lock that somebody else holds, and a read for a free connection.
    pub busy_timeout: Duration,
    /// How many reads may run at once.
    pub readers_max: usize,
    /// How many of the newest events are compared with their digests before the store counts as open. A
    /// damaged one refuses the start; 0 opens such a store, to check it. With [`crate::open_read_only`] 0 also
    /// opens a database whose log is damaged, if SQLite can read what is left; its check names the damage.
    pub spot_check_events: u32,
    /// How many bytes must stay free where the store is: with less, new events are refused with
    /// [`hookstead_core::StoreError::Full`] until there is more again. 0: nothing is asked for.
    pub free_bytes_min: u64,
    /// How long a segment of the journal of a `files:` store becomes, in bytes, before the store makes what it
    /// holds durable elsewhere and drops it. A batch is never split, so one may be longer by a batch. There are
    /// at most two, and a start after a crash writes their records again.
    pub journal_bytes_max: u64,
    /// When a `files:` store does that.
    pub checkpoints: Checkpoints,
    /// How long an effect may take that is committed with the settle of a delivery (see [`crate::sqlite_effect`]): all
    /// that is waiting to be committed waits for it.
    pub effect_time_max: Duration,
    /// Whether an older database is copied before its schema is changed.
    pub upgrade_copy: UpgradeCopy,
    /// The key of the identity hashes of a store that is made now; `None`: a random one. A store that exists
    /// keeps its own.
    pub identity_key: Option<[u8; 32]>,
    /// How the index of identities of a `sqlite:` store is written.
    pub identity_flush: IdentityFlush,
    /// How a `sqlite:` store knows without a search that an identity is new.
    pub identity_filter: IdentityFilter,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            fs: Arc::new(OsFs),
            vfs: None,
            wal_bytes_max: 16 * 1024 * 1024,
            busy_timeout: Duration::from_secs(1),
            readers_max: 4,
            spot_check_events: 64,
            free_bytes_min: 0,
            journal_bytes_max: JOURNAL_BYTES_MAX,
            checkpoints: Checkpoints::Beside,
            effect_time_max: EFFECT_TIME_MAX,
            upgrade_copy: UpgradeCopy::Beside,
            identity_key: None,
            identity_flush: IdentityFlush::default(),
            identity_filter: IdentityFilter::default(),
        }
    }
}

/// A few statements take less than a millisecond. This leaves room for a disk that is slow for a moment, and is well
/// below the time for which events wait before they are refused.
const EFFECT_TIME_MAX: Duration = Duration::from_secs(1);

/// About 7,000 events of a kilobyte: their checkpoint takes 0.15 s on an idle disk, and their restoring after a
/// crash less than a second.
const JOURNAL_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Who waits for a checkpoint of a `files:` store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checkpoints {
    /// Nobody, unless the next one is due before it is through: it runs in a thread of its own.
    Beside,
    /// The write that makes it due. For tests: the order of all calls to the disk is always the same.
    InTheCall,
}

/// How the index of identities of a `sqlite:` store is written: the newest identities are kept in memory and in a small
/// table by sequence number, and move to the index a range at a time, of 256. So each page of the index that is written
/// takes up several of them.
///
/// What is not in the index yet is bounded by `events * (256 / ranges + 1)` identities, each about 40 bytes of memory and
/// 16 bytes to be read at a start. When that is reached more is flushed at once; nothing is refused for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentityFlush {
    /// After so many new events something is flushed; 0 counts as 1.
    pub events: u32,
    /// So many ranges are flushed then, from 1 to 256; others count as the nearest of these. 256 with 1 event: nothing is
    /// deferred.
    pub ranges: u16,
}

impl Default for IdentityFlush {
    fn default() -> Self {
        Self { events: IDENTITY_FLUSH_EVENTS, ranges: 1 }
    }
}

/// With one range: up to 65,792 identities, 3 MB of memory. A commit that flushes moves about as many of them.
const IDENTITY_FLUSH_EVENTS: u32 = 256;

/// How a `sqlite:` store knows of nearly every new identity, without a search of its index, that no event has it: by a
/// filter in memory, which never takes a known identity for a new one. Nothing of it is on disk: it is made after a start,
/// by the commits that write to the index, and until it is made the index is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentityFilter {
    /// Such a commit reads up to so many identities of the index for it; 0 counts as 1.
    pub rows_per_commit: u32,
    /// The filter becomes no larger than this, but for one of its 256 ranges while that is made anew. It takes at least 8
    /// bits an identity: for a store with more identities than fit there is none, nor with less than 16 KiB.
    pub bytes_max: u64,
}

impl Default for IdentityFilter {
    fn default() -> Self {
        Self { rows_per_commit: IDENTITY_FILTER_ROWS, bytes_max: IDENTITY_FILTER_BYTES }
    }
}

/// 14 pages of an index of 400,000 identities, about a millisecond where they are in the cache. A million identities are
/// read by the commits of 63,000 events.
const IDENTITY_FILTER_ROWS: u32 = 4_096;

/// 33 million identities; up to 22 million the filter has 12 bits or more for each.
const IDENTITY_FILTER_BYTES: u64 = 32 * 1024 * 1024;

/// What a start does before it changes the schema of a database that an earlier program made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpgradeCopy {
    /// It keeps a copy of the database as it was, checked and durable, in `<database>.schema-<number>` beside it, in place
    /// of an earlier copy of the same schema. Without room for it, and [`OpenOptions::free_bytes_min`] beside it, the
    /// start is refused and nothing is changed.
    Beside,
    /// It keeps none: the caller has a backup.
    None,
}

/// An open store.
pub struct Opened {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Its lock, to write down where its owner listens; `None` for a store that nobody else can open.
    pub lock: Option<Arc<StoreLock>>,
    /// How the steps of the start came out, in their order: each of them went well, some with a warning. Empty for a
    /// store in memory.
    pub start: Vec<Finding>,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("store", self.store.facts()).field("lock", &self.lock).finish()
    }
}

/// Why a store was not opened. Each says in which step of the start it came up ([`OpenError::step`]), why
/// ([`OpenError::reason`]) and what to do ([`OpenError::fix`]); shown, it is the last two.
#[derive(Debug)]
pub enum OpenError {
    /// The URL names no kind of store.
    UnknownScheme {
        /// The URL.
        url: String,
        /// What it could begin with.
        known: &'static str,
    },
    /// The URL names a kind of store and no place.
    NoPath {
        /// The URL.
        url: String,
    },
    /// Another process has the store open.
    Locked {
        /// The database.
        path: PathBuf,
        /// Who that is, as far as it said.
        owner: Option<OwnerRecord>,
    },
    /// The store cannot be opened only to be read.
    NotReadable {
        /// The store.
        place: String,
        /// Why not, and what to do.
        why: String,
    },
    /// A newer program made the database or has changed it.
    Newer {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: u32,
        /// The newest schema that this program knows.
        known: u32,
    },
    /// The file is there and is no database of ours. Nothing was written to it.
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        what: String,
    },
    /// The folder is there and is no store of ours. Nothing was written to it.
    ForeignFolder {
        /// The folder.
        path: PathBuf,
        /// What it is instead.
        what: String,
    },
    /// The file system lacks what a store of files rests on.
    Unfit {
        /// The folder.
        path: PathBuf,
        /// What it does not do.
        what: String,
    },
    /// The database was made by another program of the same name.
    Changed {
        /// The database.
        path: PathBuf,
        /// The migration's number.
        number: u32,
        /// The migration's name.
        name: String,
    },
    /// The database is gone and its write-ahead log is not.
    OrphanedLog {
        /// The database.
        path: PathBuf,
        /// The log.
        wal: PathBuf,
    },
    /// The log is that of another database.
    ForeignLog {
        /// The database.
        path: PathBuf,
        /// The log.
        wal: PathBuf,
    },
    /// The log was begun on another copy of the same store than the database. Nothing was written to either.
    OtherCopy {
        /// The database.
        path: PathBuf,
        /// The log.
        wal: PathBuf,
    },
    /// The folder lies on another machine.
    NetworkFileSystem {
        /// The folder.
        path: PathBuf,
        /// Its kind.
        kind: &'static str,
    },
    /// Something in the store is damaged.
    Damaged {
        /// The database.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
        /// The step that found it.
        step: Option<StartStep>,
    },
    /// The linked SQLite can lose data.
    OldSqlite {
        /// Its version.
        found: &'static str,
        /// The oldest that will do.
        needed: &'static str,
    },
    /// A setting that durability rests on did not hold.
    Setting {
        /// The setting and its value.
        setting: &'static str,
        /// What it was when it was read back.
        found: String,
    },
    /// A file or folder could not be used.
    Io {
        /// What was tried.
        doing: String,
        /// Why it failed.
        source: io::Error,
        /// The step in which it was tried.
        step: Option<StartStep>,
    },
    /// There is no room for the copy that is kept before the schema is changed. Nothing was changed.
    NoRoomForCopy {
        /// The database.
        path: PathBuf,
        /// How many bytes must be free.
        needed: u64,
        /// How many are.
        free: u64,
    },
    /// The database engine failed.
    Database {
        /// What was tried.
        doing: String,
        /// Why it failed.
        source: Box<dyn std::error::Error + Send + Sync>,
        /// The step in which it was tried.
        step: Option<StartStep>,
    },
}

impl OpenError {
    /// The step of the start that it ended; `None` before the first one, and outside of a start.
    pub fn step(&self) -> Option<StartStep> {
        match self {
            Self::UnknownScheme { .. } | Self::NoPath { .. } | Self::NotReadable { .. } => None,
            Self::OldSqlite { .. } => Some(StartStep::Library),
            Self::NetworkFileSystem { .. } => Some(StartStep::FileSystem),
            Self::Locked { .. } => Some(StartStep::Lock),
            Self::Newer { .. }
            | Self::Changed { .. }
            | Self::Foreign { .. }
            | Self::ForeignFolder { .. }
            | Self::OrphanedLog { .. }
            | Self::NoRoomForCopy { .. } => Some(StartStep::Format),
            Self::ForeignLog { .. } | Self::OtherCopy { .. } => Some(StartStep::Log),
            Self::Setting { .. } => Some(StartStep::Settings),
            Self::Unfit { .. } => Some(StartStep::WriteProbe),
            Self::Damaged { step, .. } | Self::Io { step, .. } | Self::Database { step, .. } => *step,
        }
    }

    /// Why, as a fragment without a full stop; what stands behind it is its source.
    pub fn reason(&self) -> String {
        match self {
            Self::UnknownScheme { url, .. } => format!("`{url}` names no kind of store"),
            Self::NoPath { url } => format!("`{url}` names no place"),
            Self::Locked { path, owner } => {
                format!("`{}` is open in another process ({})", path.display(), owned_by(owner))
            }
            Self::NotReadable { place, why } => format!("`{place}` cannot be opened only to be read: {why}"),
            Self::Newer { path, found, known } => {
                format!("`{}` has schema {found} and this program knows {known}", path.display())
            }
            Self::Foreign { path, what } => {
                format!("`{}` is not a hookstead database: {what}", path.display())
            }
            Self::ForeignFolder { path, what } => {
                format!("`{}` is not a hookstead store: {what}", path.display())
            }
            Self::Unfit { path, what } => format!("`{}` lies on a file system that {what}", path.display()),
            Self::Changed { path, number, name } => format!(
                "`{}` was made by another build: migration {number} ({name}) has another checksum",
                path.display()
            ),
            Self::OrphanedLog { path, wal } => format!(
                "`{}` is missing or empty, but its log `{}` is there and may hold events",
                path.display(),
                wal.display()
            ),
            Self::ForeignLog { path, wal } => {
                format!("the log `{}` belongs to another database than `{}`", wal.display(), path.display())
            }
            Self::OtherCopy { path, wal } => format!(
                "the log `{}` was begun on another copy of the same store than `{}`, an older or a newer one",
                wal.display(),
                path.display()
            ),
            Self::NetworkFileSystem { path, kind } => format!(
                "`{}` lies on a network file system ({kind}), where locks and syncs cannot be trusted",
                path.display()
            ),
            Self::Damaged { path, what, .. } => format!("`{}` is damaged: {what}", path.display()),
            Self::OldSqlite { found, .. } => format!("SQLite {found} can damage a write-ahead log"),
            Self::NoRoomForCopy { path, needed, free } => format!(
                "`{}` is of an older schema, and a copy of it is kept before that is changed: {needed} bytes must be \
                 free, min_free included, and {free} are",
                path.display()
            ),
            Self::Setting { setting, found } => format!("SQLite did not keep `{setting}`: it is `{found}`"),
            Self::Io { doing, .. } | Self::Database { doing, .. } => format!("failed to {doing}"),
        }
    }

    /// What to do about it, as a fragment without a full stop.
    pub fn fix(&self) -> String {
        let fix = match self {
            Self::UnknownScheme { known, .. } => return format!("known are {known}"),
            Self::OldSqlite { needed, .. } => return format!("link {needed} or later"),
            Self::NoPath { .. } => "write `sqlite:PATH` or `files:DIR`",
            Self::Locked { .. } => "stop it, or ask it instead",
            // Why it is not says what to do.
            Self::NotReadable { .. } => "",
            Self::Newer { .. } => "run the newer program, or restore a backup",
            Self::Foreign { .. } => "choose another path",
            Self::ForeignFolder { .. } => "choose an empty folder",
            Self::Unfit { .. } => "use a local disk, or `sqlite:PATH`",
            Self::Changed { .. } => "run that build",
            Self::OrphanedLog { .. } => "put the database back, or move the log away",
            Self::ForeignLog { .. } => "put its own log beside the database, or restore a backup",
            Self::OtherCopy { .. } => {
                "put the database back that it goes with, or move it and `-shm` away, and what only that database and \
                 its log have is not in this one"
            }
            Self::NetworkFileSystem { .. } => "use a local disk",
            Self::Damaged { .. } => "run `hookstead store check`, or restore a backup",
            Self::NoRoomForCopy { .. } => {
                "make room, or take a backup elsewhere and set `store.upgrade_copy = false`"
            }
            Self::Setting { .. } => "the disk or file system cannot carry a store: use another one",
            Self::Io { .. } => "check that the folder exists, is yours and has room",
            Self::Database { .. } => "look at the disk (free space, dmesg), then run `hookstead store check`",
        };
        fix.to_owned()
    }

    /// The same in this step, unless it knows its step already.
    pub(crate) fn at(mut self, at: StartStep) -> Self {
        if let Self::Damaged { step, .. } | Self::Io { step, .. } | Self::Database { step, .. } = &mut self {
            step.get_or_insert(at);
        }
        self
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fix = self.fix();
        f.write_str(&self.reason())?;
        if fix.is_empty() { Ok(()) } else { write!(f, "; {fix}") }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Database { source, .. } => Some(source.as_ref()),
            _ => None,
        }
    }
}

fn owned_by(owner: &Option<OwnerRecord>) -> String {
    owner.as_ref().map_or_else(|| "it did not say which".to_owned(), ToString::to_string)
}

/// Has the process draw its first random number, beside what the opening does on the disk. It costs up to a
/// tenth of a second, because the generator measures the machine's jitter for its seed (aws-lc 0.47: 90 ms in
/// a debug server on two busy cores, all later ones microseconds); otherwise the first event after a start,
/// whose id needs one, would wait for it.
pub(crate) fn draw_first_number<'scope>(scope: &'scope Scope<'scope, '_>) -> Result<(), OpenError> {
    let draw = || {
        if let Err(error) = random_key() {
            tracing::warn!(%error, "no random number could be drawn");
        }
    };
    std::thread::Builder::new()
        .name("hookstead-random".to_owned())
        .spawn_scoped(scope, draw)
        .map(drop)
        .map_err(|source| OpenError::Io { doing: "start a thread".to_owned(), source, step: None })
}

/// The key of a store that is made now.
pub(crate) fn random_key() -> Result<[u8; 32], OpenError> {
    let mut key = [0; 32];
    SystemRandom::new().fill(&mut key).map_err(|_| OpenError::Database {
        doing: "draw a random key".to_owned(),
        source: "the system has no randomness".into(),
        step: None,
    })?;
    Ok(key)
}
