//! The SQLite store as a backend of the conformance suite, and the folder that each test has to itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hookstead_core::conformance::{Backend, Instance};
use hookstead_core::{Store, Timestamp};
use hookstead_store::{IdentityFilter, IdentityFlush, OpenOptions, Opened, open};

/// When every store of these tests is opened.
pub(crate) const OPENED_AT: Timestamp = Timestamp::from_secs(1_770_000_000);

/// Stores in folders that vanish with them.
pub(crate) struct Sqlite(pub(crate) IdentityFlush);

impl Backend for Sqlite {
    fn name(&self) -> &str {
        "sqlite"
    }

    fn open(&self) -> Box<dyn Instance> {
        let folder = Folder::new();
        let options = OpenOptions { identity_flush: self.0, ..options() };
        let opened = folder.open_with(&options);
        Box::new(OpenSqlite { folder, options, opened: Some(opened) })
    }
}

struct OpenSqlite {
    folder: Folder,
    options: OpenOptions,
    opened: Option<Opened>,
}

impl Instance for OpenSqlite {
    fn store(&self) -> Arc<dyn Store> {
        self.opened.as_ref().expect("it is open between the calls").store.clone()
    }

    fn reopen(&mut self) {
        if let Some(opened) = self.opened.take() {
            opened.store.close(OPENED_AT).expect("it can be closed");
        }
        self.opened = Some(self.folder.open_with(&self.options));
    }
}

/// A folder for one database.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("there is a place for temporary files"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path("events.db")
    }

    pub(crate) fn url(&self) -> String {
        url(&self.database())
    }

    pub(crate) fn open(&self) -> Opened {
        self.open_with(&options())
    }

    pub(crate) fn open_with(&self, options: &OpenOptions) -> Opened {
        open(&self.url(), options, OPENED_AT).expect("the store opens")
    }

    /// Database and log as they are now, in a folder of their own: what a start finds after a kill. Nothing may be
    /// written meanwhile.
    pub(crate) fn as_after_a_kill(&self) -> Self {
        let killed = Self::new();
        // The database first: what is moved into it from then on is in the log as well.
        for name in ["events.db", "events.db-wal"] {
            std::fs::copy(self.path(name), killed.path(name)).expect("it can be copied");
        }
        killed
    }
}

/// A flush every third event, of a quarter of the ranges: of everything within 15 events.
pub(crate) const SMALL_FLUSHES: IdentityFlush = IdentityFlush { events: 3, ranges: 64 };

/// Of a few rows at a time, so that a range is being read while others are flushed.
pub(crate) const SMALL_FILTER: IdentityFilter = IdentityFilter { rows_per_commit: 3, bytes_max: 256 * 1024 };

pub(crate) fn url(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

/// Small, so that a test opens a store in a few milliseconds.
pub(crate) fn options() -> OpenOptions {
    // A small log, so that it is reset often; patience, so that a busy machine is not taken for a stuck reader.
    OpenOptions {
        wal_bytes_max: 1024 * 1024,
        busy_timeout: Duration::from_secs(20),
        identity_flush: SMALL_FLUSHES,
        identity_filter: SMALL_FILTER,
        ..OpenOptions::default()
    }
}
