//! A file that a look at a store writes beside it, to find out whether a start could: it takes what a commit takes,
//! and touches nothing that is there.

use std::io;
use std::path::Path;

use crate::fs::Fs;

const CONTENT: &[u8] = b"a probe of hookstead; it may be removed";

/// Writes a file of this name into a folder, syncs it and the folder, reads it back and removes it.
///
/// # Errors
///
/// The first of these that failed; the file is removed then as well, if that can be done.
pub(crate) fn try_out(fs: &dyn Fs, folder: &Path, name: &str) -> io::Result<()> {
    let path = folder.join(name);
    let tried = write_and_read(fs, folder, &path);
    let removed = match fs.remove(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    };
    tried.and(removed)
}

fn write_and_read(fs: &dyn Fs, folder: &Path, path: &Path) -> io::Result<()> {
    let file = fs.create_new(path)?;
    file.write_all_at(CONTENT, 0)?;
    file.sync()?;
    fs.sync_dir(folder)?;
    let mut content = [0; CONTENT.len() + 1];
    let count = fs.open_read(path)?.read_at(&mut content, 0)?;
    match content[..count] == *CONTENT {
        true => Ok(()),
        false => Err(io::Error::other("what was read back is not what was written")),
    }
}
