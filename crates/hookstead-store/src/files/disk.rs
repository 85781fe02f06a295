//! Reading and writing single records below a store's folder. It knows names and bytes; what is in them and
//! what makes them durable together is decided elsewhere.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hookstead_core::StoreError;

use super::failure::{corrupt, reading};
use super::layout::{Layout, PENDING, folder_of};
use crate::fs::{Fs, FsFile, FsVolume};

/// The longest record that is read: no body that a listener lets in makes one this long.
const RECORD_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// A store's folder and the disk that it lies on.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    pub(super) fs: Arc<dyn Fs>,
    pub(super) layout: Layout,
    /// The file system of the folder, opened before anything is written.
    pub(super) volume: Option<Arc<dyn FsVolume>>,
    names: Arc<Names>,
}

/// Names that no other file has: random for the process, then counted.
#[derive(Debug)]
struct Names {
    prefix: String,
    next: AtomicU64,
}

impl Disk {
    /// `random` keeps the names of this process apart from those that an earlier one left behind.
    pub(super) fn new(fs: Arc<dyn Fs>, layout: Layout, random: [u8; 32]) -> io::Result<Self> {
        let volume = fs.volume(layout.root())?.map(Arc::from);
        let names = Names { prefix: hex::encode(&random[..8]), next: AtomicU64::new(0) };
        Ok(Self { fs, layout, volume, names: Arc::new(names) })
    }

    /// The path of a record.
    pub(super) fn path(&self, record: &str) -> PathBuf {
        self.layout.path(record)
    }

    /// A name for a file that is being written in the folder of `record`.
    pub(super) fn pending(&self, record: &str) -> String {
        let number = self.names.next.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PENDING}{}-{number:x}", self.names.prefix);
        match folder_of(record) {
            "" => name,
            folder => format!("{folder}/{name}"),
        }
    }

    /// Makes a new file of `bytes`, durable but for its name.
    pub(super) fn write_new(&self, record: &str, bytes: &[u8]) -> Result<(), WriteError> {
        self.write_unsynced(record, bytes)?.sync().map_err(WriteError::Sync)
    }

    /// Makes a new file of `bytes`; a sync of it or of the volume must follow.
    pub(super) fn write_unsynced(&self, record: &str, bytes: &[u8]) -> Result<Box<dyn FsFile>, WriteError> {
        let file = self.fs.create_new(&self.path(record)).map_err(WriteError::Write)?;
        file.write_all_at(bytes, 0).map_err(WriteError::Write)?;
        Ok(file)
    }

    /// A record's bytes; `None` if there is no such file (or a link to none).
    pub(super) fn read(&self, record: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let failed = |error| reading(&format!("`{record}`"), error);
        let file = match self.fs.open_read(&self.path(record)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let facts = file.facts().map_err(failed)?;
        if facts.is_dir || facts.bytes > RECORD_BYTES_MAX {
            return Err(corrupt(format!("`{record}` is no record")));
        }
        read_all(file.as_ref(), facts.bytes).map(Some).map_err(failed)
    }

    /// The bytes of a record that the store has written.
    pub(super) fn read_known(&self, record: &str) -> Result<Vec<u8>, StoreError> {
        self.read(record)?.ok_or_else(|| corrupt(format!("`{record}` is missing")))
    }
}

/// Why a new file could not be made.
#[derive(Debug)]
pub(super) enum WriteError {
    /// It could not be made or written.
    Write(io::Error),
    /// It could not be synced.
    Sync(io::Error),
}

/// Everything in an open file.
pub(super) fn read_all(file: &dyn FsFile, bytes: u64) -> io::Result<Vec<u8>> {
    let mut content = vec![0; usize::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?];
    let count = file.read_at(&mut content, 0)?;
    content.truncate(count);
    Ok(content)
}
