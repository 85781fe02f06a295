//! The data folder and the small private files in it. Every write here is whole or not there: a temporary
//! file, synced, renamed, and the folder synced.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Largest private file that is read.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Why the data folder could not be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Another failure of the file system.
    #[error("{doing} `{}`", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A file of secrets can be read by others.
    #[error("`{}` can be read or written by other users; run: chmod 600 '{}'", path.display(), path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// A file does not hold what it should.
    #[error("`{}` is damaged: {what}; remove it to have it made again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

impl FolderError {
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { doing, path, source }
    }
}

/// Makes the data folder, with its parents, for its owner alone. One that is there keeps its mode: it may be
/// a project's folder, and what is private in it is private by itself.
///
/// # Errors
///
/// The folder cannot be made.
pub fn prepare(folder: &Path) -> Result<(), FolderError> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(FolderError::io("cannot make the data folder", folder))
}

/// Reads a private file as text. `None` if it is not there.
///
/// # Errors
///
/// It cannot be read, is no text, or others may read or write it.
pub(crate) fn read_private(path: &Path) -> Result<Option<String>, FolderError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(FolderError::io("cannot open", path)(error)),
    };
    let metadata = file.metadata().map_err(FolderError::io("cannot look at", path))?;
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(FolderError::Exposed { path: path.to_path_buf() });
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(FolderError::io("cannot read", path))?;
    Ok(Some(text))
}

/// Replaces a private file, durably.
///
/// # Errors
///
/// It cannot be written. The old content is there then, whole.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), FolderError> {
    let temporary = temporary(path);
    let write = || -> io::Result<()> {
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        // A left-over of a crash keeps its old mode when it is opened again.
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        match path.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    };
    write().map_err(FolderError::io("cannot write", path))
}

fn temporary(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}

/// Random bytes as lower-case hex digits.
///
/// # Errors
///
/// The operating system gives no randomness.
pub(crate) fn random_hex(bytes: usize) -> io::Result<String> {
    random(bytes).map(hex::encode)
}

/// Random bytes.
///
/// # Errors
///
/// The operating system gives no randomness.
pub(crate) fn random(bytes: usize) -> io::Result<Vec<u8>> {
    let mut random = vec![0; bytes];
    aws_lc_rs::rand::fill(&mut random).map_err(|_| io::Error::other("the system gave no randomness"))?;
    Ok(random)
}
