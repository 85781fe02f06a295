//! The write probe: whether a store's folder takes everything that an accept needs. Run at the start, where it
//! refuses file systems that are unfit, and before writes are tried again after a failure.

use std::io;

use super::disk::{Disk, WriteError};

const CONTENT: &[u8] = b"{\"probe\":\"of hookstead; it may be removed\"}";

/// What did not work.
#[derive(Debug)]
pub(super) enum Failed {
    /// Making, writing, reading or removing a file.
    Write(io::Error),
    /// Giving a file a second name.
    Link(io::Error),
    /// Syncing a file or the folder.
    Sync(io::Error),
    /// What was read back is not what was written.
    Other,
}

/// Writes a file, syncs it, links it, syncs the folder, reads it back through its second name, removes both.
pub(super) fn run(disk: &Disk) -> Result<(), Failed> {
    let (first, second) = (disk.pending("probe"), disk.pending("probe"));
    let result = try_out(disk, &first, &second);
    let removed = [&first, &second].map(|name| match disk.fs.remove(&disk.path(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Failed::Write(error)),
        _ => Ok(()),
    });
    result.and(removed.into_iter().collect())
}

fn try_out(disk: &Disk, first: &str, second: &str) -> Result<(), Failed> {
    disk.write_new(first, CONTENT).map_err(|error| match error {
        WriteError::Write(error) => Failed::Write(error),
        WriteError::Sync(error) => Failed::Sync(error),
    })?;
    disk.fs.hard_link(&disk.path(first), &disk.path(second)).map_err(Failed::Link)?;
    disk.fs.sync_dir(disk.layout.root()).map_err(Failed::Sync)?;
    let file = disk.fs.open_read(&disk.path(second)).map_err(Failed::Write)?;
    let mut content = [0; CONTENT.len() + 1];
    let count = file.read_at(&mut content, 0).map_err(Failed::Write)?;
    if content[..count] == *CONTENT { Ok(()) } else { Err(Failed::Other) }
}
