//! The files of an open database: whether the paths still name what was opened. A database that was moved,
//! deleted or replaced would take every commit along to where nobody will look for it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hookstead_core::StoreError;

use super::create::{beside, io_error};
use super::log_scan::{self, Scan};
use crate::fs::{FileFacts, Fs};
use crate::open::OpenError;

#[derive(Clone, Debug)]
pub(super) struct Files {
    fs: Arc<dyn Fs>,
    opened: [(PathBuf, FileFacts); 2],
}

impl Files {
    /// Remembers what database and log are now.
    pub(super) fn remember(fs: Arc<dyn Fs>, database: &Path) -> Result<Self, OpenError> {
        let fact = |path: PathBuf| match fs.facts(&path).map_err(io_error("look at", &path))? {
            Some(facts) => Ok((path, facts)),
            None => Err(io_error("find", &path)(io::ErrorKind::NotFound.into())),
        };
        let opened = [fact(database.to_owned())?, fact(wal_path(database))?];
        Ok(Self { fs, opened })
    }

    /// [`StoreError::Poisoned`] unless the paths name the files that were opened.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.opened.iter().try_for_each(|(path, opened)| {
            let reason = match self.fs.facts(path) {
                Ok(Some(now)) if now.same_file(opened) => return Ok(()),
                Ok(Some(_)) => format!("`{}` is another file than the one that was opened", path.display()),
                Ok(None) => format!("`{}` is gone", path.display()),
                Err(error) => format!("`{}` cannot be looked at: {error}", path.display()),
            };
            Err(StoreError::Poisoned { reason })
        })
    }

    /// What the file of the log holds, while the database is open.
    pub(super) fn scan_log(&self) -> io::Result<Scan> {
        let [_, (log, _)] = &self.opened;
        log_scan::scan(self.fs.as_ref(), log, None)
    }
}

/// The write-ahead log of a database.
pub(super) fn wal_path(database: &Path) -> PathBuf {
    beside(database, "-wal")
}
