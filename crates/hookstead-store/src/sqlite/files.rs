//! The files of an open database: whether the paths still name what was opened. A database that was moved,
//! deleted or replaced would take every commit along to where nobody will look for it, and one that was cut short has
//! lost events already. By itself the database never becomes shorter, since nothing vacuums it, and the log never
//! shorter than its cap: SQLite cuts one that a large batch made longer back to that.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hookstead_core::StoreError;

use super::create::{beside, io_error};
use super::log_scan::{self, Scan};
use crate::fs::{FileFacts, Fs};
use crate::open::OpenError;
use crate::place;

#[derive(Clone, Debug)]
pub(super) struct Files {
    fs: Arc<dyn Fs>,
    opened: [Arc<Opened>; 2],
}

#[derive(Debug)]
struct Opened {
    path: PathBuf,
    facts: FileFacts,
    /// It is never shorter than this.
    bytes_min: AtomicU64,
    grows: bool,
}

impl Files {
    /// Remembers what database and log are now; `log_bytes` is the log's cap.
    pub(super) fn remember(fs: Arc<dyn Fs>, database: &Path, log_bytes: u64) -> Result<Self, OpenError> {
        let fact = |path: PathBuf, bytes_max: Option<u64>| match fs
            .facts(&path)
            .map_err(io_error("look at", &path))?
        {
            Some(facts) => {
                let bytes_min = AtomicU64::new(facts.bytes.min(bytes_max.unwrap_or(u64::MAX)));
                Ok(Arc::new(Opened { path, facts, bytes_min, grows: bytes_max.is_none() }))
            }
            None => Err(io_error("find", &path)(io::ErrorKind::NotFound.into())),
        };
        let opened = [fact(database.to_owned(), None)?, fact(wal_path(database), Some(log_bytes))?];
        Ok(Self { fs, opened })
    }

    /// [`StoreError::Poisoned`] unless the paths name the files that were opened, none of them shorter than it was. Two
    /// calls of `stat`, so that it can be asked around each commit.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.opened.iter().try_for_each(|opened| {
            let now = self.fs.facts(&opened.path);
            let bytes_min = opened.bytes_min.load(Ordering::Relaxed);
            let now = place::check(&opened.path, &opened.facts, bytes_min, now)
                .map_err(|reason| StoreError::Poisoned { reason })?;
            if opened.grows {
                opened.bytes_min.fetch_max(now.bytes, Ordering::Relaxed);
            }
            Ok(())
        })
    }

    /// What the file of the log holds, while the database is open.
    pub(super) fn scan_log(&self) -> io::Result<Scan> {
        let [_, log] = &self.opened;
        log_scan::scan(self.fs.as_ref(), &log.path, None)
    }
}

/// The write-ahead log of a database.
pub(super) fn wal_path(database: &Path) -> PathBuf {
    beside(database, "-wal")
}
