//! What is told of a backup and of a restore: how far it is, what came of it, why it was not made.

use std::io;
use std::path::{Path, PathBuf};

use hookstead_core::{CheckReport, StoreError};

use crate::open::OpenError;

/// What a backup or a restore is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupPhase {
    /// Everything is copied; counted in pages of the database, or in records.
    Copying,
    /// Files are compared with their digests, or their digests are taken; counted in files.
    Digests,
    /// The copy is checked as `store check` does it; counted in events.
    Checking,
}

/// How far a backup or a restore is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupProgress {
    /// What it is at.
    pub phase: BackupPhase,
    /// Done of this phase.
    pub done: u64,
    /// To do in this phase, as far as known.
    pub total: u64,
}

/// Is told of each step.
pub(crate) type Step<'a> = &'a mut dyn FnMut(BackupProgress);

/// What a backup or a restore made. All of it is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupReport {
    /// `sqlite` or `files`.
    pub kind: String,
    /// When the backup was begun, RFC 3339: every event that was acknowledged before is in it.
    pub begun_at: String,
    /// How many files the store has in it.
    pub files: u64,
    /// Their length together, in bytes.
    pub bytes: u64,
    /// What the check of the copy found. Damage of the store is copied as it is.
    pub check: CheckReport,
    /// The schema of the copy, if it is an older one than this program's: the first start with it changes that, and the
    /// check compared what each schema has: pages, events, bodies and other bytes of conflicts with their digests, and
    /// the ids and deliveries that point at an event.
    pub older_schema: Option<u32>,
}

/// What became of a copy.
pub(crate) struct Copied {
    pub(crate) check: CheckReport,
    pub(crate) older_schema: Option<u32>,
}

impl From<CheckReport> for Copied {
    fn from(check: CheckReport) -> Self {
        Self { check, older_schema: None }
    }
}

/// Why there is no backup, or nothing was restored. What was begun is no backup and no store, but for one that
/// [`restore`](crate::restore) could not make durable.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// There is no such store.
    #[error("there is no store at `{url}`")]
    NoStore {
        /// Its URL.
        url: String,
    },
    /// It is of a kind that has no files.
    #[error("`{url}` has no files that could be copied; only `sqlite:` and `files:` stores have")]
    NoFiles {
        /// Its URL.
        url: String,
    },
    /// Something is where the copy would go.
    #[error("`{}` is there already, and nothing is ever written over; name a new folder, or move it away", path.display())]
    Taken {
        /// The file or folder.
        path: PathBuf,
    },
    /// The folder is no backup, or one that was not finished.
    #[error("`{}` is no backup: {what}", path.display())]
    NoBackup {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A file of a backup is not as it was made.
    #[error("the backup in `{}` is damaged: {what}; take another one", path.display())]
    Damaged {
        /// The backup.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The backup is of another kind of store.
    #[error("the backup is of a `{found}:` store and `{url}` is another kind; restore it to `{found}:PATH`")]
    OtherKind {
        /// What the backup is of.
        found: String,
        /// Where it was to go.
        url: String,
    },
    /// The store was changed in the way of each try.
    #[error("the store was changed during each of {tries} tries to copy it; try again when less is erased")]
    Unsteady {
        /// How many there were.
        tries: u32,
    },
    /// The copy cannot be read as a store.
    #[error("the copy cannot be checked")]
    Check(#[from] StoreError),
    /// A file could not be used.
    #[error("failed to {doing}; check that the place exists, is yours and has room")]
    Io {
        /// What was tried.
        doing: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The database engine failed.
    #[error("failed to {doing}")]
    Database {
        /// What was tried.
        doing: String,
        /// Why it failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// An error of the disk, with what was tried.
pub(crate) fn io_error<'a>(doing: &'a str, path: &'a Path) -> impl FnOnce(io::Error) -> BackupError + 'a {
    move |source| BackupError::Io { doing: format!("{doing} `{}`", path.display()), source }
}
