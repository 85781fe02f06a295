//! Making folders and copying files so that they are durable when it returns. It knows no kind of store.

use std::io;
use std::path::Path;

use aws_lc_rs::digest::{Context, SHA256};

use super::report::{BackupError, io_error};
use crate::fs::{Fs, FsFile};

/// How much of a file is in memory at once.
const CHUNK_BYTES: usize = 1024 * 1024;

/// Makes a folder and those above it where they are not there, each with its own entry durable.
pub(crate) fn make_folder(fs: &dyn Fs, folder: &Path) -> Result<(), BackupError> {
    if fs.facts(folder).map_err(io_error("look at", folder))?.is_some_and(|facts| facts.is_dir) {
        return Ok(());
    }
    let above = folder.parent().unwrap_or(Path::new("/"));
    make_folder(fs, above)?;
    fs.create_dir(folder).map_err(io_error("make the folder", folder))?;
    fs.sync_dir(above).map_err(io_error("sync", above))
}

/// Makes the entries of the folder of `path`, and of the one above that, durable.
pub(crate) fn sync_above(fs: &dyn Fs, path: &Path) -> Result<(), BackupError> {
    path.ancestors().skip(1).take(2).try_for_each(|dir| fs.sync_dir(dir).map_err(io_error("sync", dir)))
}

/// Copies a file to a new one, which is durable but for its name, and returns the digest of what was written, in hex.
pub(crate) fn copy_file(fs: &dyn Fs, from: &Path, to: &Path) -> Result<String, BackupError> {
    let source = fs.open_read(from).map_err(io_error("open", from))?;
    let target = fs.create_new(to).map_err(io_error("make", to))?;
    let digest = each_chunk(source.as_ref(), |chunk, at| target.write_all_at(chunk, at))
        .map_err(io_error("copy", from))?;
    target.sync().map_err(io_error("sync", to))?;
    Ok(digest)
}

/// The digest of a file in hex, and its length.
pub(super) fn digest_of(fs: &dyn Fs, path: &Path) -> Result<(String, u64), BackupError> {
    let file = fs.open_read(path).map_err(io_error("open", path))?;
    let mut bytes = 0;
    let digest = each_chunk(file.as_ref(), |chunk, _| {
        bytes += chunk.len() as u64;
        Ok(())
    });
    Ok((digest.map_err(io_error("read", path))?, bytes))
}

fn each_chunk(file: &dyn FsFile, mut each: impl FnMut(&[u8], u64) -> io::Result<()>) -> io::Result<String> {
    let mut context = Context::new(&SHA256);
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut at = 0;
    loop {
        let count = file.read_at(&mut chunk, at)?;
        if count == 0 {
            return Ok(hex::encode(context.finish()));
        }
        context.update(&chunk[..count]);
        each(&chunk[..count], at)?;
        at += count as u64;
    }
}
