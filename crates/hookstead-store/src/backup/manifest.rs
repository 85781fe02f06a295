//! `backup.json`: what a backup is of. It is written last, so that a folder without it is none.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::report::{BackupError, io_error};
use crate::fs::Fs;

/// The name of the file.
pub(super) const MANIFEST: &str = "backup.json";

/// The format that this program writes; it reads no newer one.
pub(super) const FORMAT: u32 = 1;

/// Nothing of ours makes one this long.
const BYTES_MAX: usize = 64 * 1024;

/// What a backup is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) format: u32,
    pub(super) kind: String,
    pub(super) begun_at: String,
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) events: u64,
    pub(super) problems: u64,
    /// The digest of the list of digests.
    pub(super) sums_sha256: String,
}

/// Writes the manifest and makes the backup one: durable when it returns.
pub(super) fn write(fs: &dyn Fs, folder: &Path, manifest: &Manifest) -> Result<(), BackupError> {
    let path = folder.join(MANIFEST);
    let pending = folder.join(format!(".pending-{MANIFEST}"));
    let mut text =
        serde_json::to_vec_pretty(manifest).map_err(|error| io_error("write", &path)(error.into()))?;
    text.push(b'\n');
    put(fs, &pending, &text).map_err(io_error("write", &pending))?;
    fs.rename(&pending, &path).map_err(io_error("write", &path))?;
    fs.sync_dir(folder).map_err(io_error("sync", folder))
}

/// A new file of these bytes, durable but for its name.
pub(super) fn put(fs: &dyn Fs, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = fs.create_new(path)?;
    file.write_all_at(bytes, 0)?;
    file.sync()
}

/// Reads the manifest of a backup.
pub(super) fn read(fs: &dyn Fs, folder: &Path) -> Result<Manifest, BackupError> {
    let none = |what: String| BackupError::NoBackup { path: folder.to_owned(), what };
    let path = folder.join(MANIFEST);
    if fs.facts(&path).map_err(io_error("look at", &path))?.is_none() {
        return Err(none(format!("it has no `{MANIFEST}`, which a backup gets when it is complete")));
    }
    let file = fs.open_read(&path).map_err(io_error("open", &path))?;
    let mut bytes = vec![0; BYTES_MAX];
    let count = file.read_at(&mut bytes, 0).map_err(io_error("read", &path))?;
    let manifest: Manifest = serde_json::from_slice(&bytes[..count])
        .map_err(|error| none(format!("`{MANIFEST}` cannot be read: {error}")))?;
    if manifest.format > FORMAT {
        return Err(none(format!("its format is {} and this program knows {FORMAT}", manifest.format)));
    }
    Ok(manifest)
}
