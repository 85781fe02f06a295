//! A file that is replaced as a whole: whoever reads it finds the old text or the new one, and of a change that fails it is
//! said whether the old one is known to stand. Knows nothing of what is in the file.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

use anyhow::Error;
use hookstead_server::folder;

use crate::failure::{Exit, Failure};

/// A change that did not come about, or of which that is not known.
#[derive(Debug)]
pub(crate) struct NotChanged {
    /// How the file was left.
    pub(crate) file: Left,
    error: Error,
}

/// How a file was left by a change that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// As it was.
    AsItWas,
    /// With the new text; or a power cut may bring it back, or take it away.
    Unknown,
}

impl NotChanged {
    /// Nothing was touched, or it is as it was again.
    pub(crate) fn as_it_was(error: impl Into<Error>) -> Self {
        Self { file: Left::AsItWas, error: error.into() }
    }

    /// Either text may be in the file, now or after a power cut.
    pub(crate) fn unknown(failure: Failure) -> Self {
        Self { file: Left::Unknown, error: failure.into() }
    }

    /// With one more line for whoever reads of the failure.
    pub(crate) fn noting(self, label: &'static str, text: impl Into<String>) -> Self {
        let error = match self.error.downcast::<Failure>() {
            Ok(failure) => failure.line(label, text).into(),
            Err(other) => other,
        };
        Self { error, ..self }
    }
}

impl std::fmt::Display for NotChanged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.error)
    }
}

impl From<NotChanged> for Error {
    fn from(failed: NotChanged) -> Self {
        failed.error
    }
}

/// Replaces a file as a whole: it keeps its mode, its owner and its group. One that is new is its owner's alone.
///
/// # Errors
///
/// `not-written`: the file is as it was. `not-synced`: it has the new text, which a power cut may take away again.
pub(crate) fn replace(path: &Path, text: &[u8]) -> Result<(), NotChanged> {
    replace_and(path, text, sync_folder)
}

/// Removes a file, and has that on the disk.
///
/// # Errors
///
/// As of [`replace`].
pub(crate) fn remove(path: &Path) -> Result<(), NotChanged> {
    fs::remove_file(path).map_err(|error| NotChanged::as_it_was(not_written("remove", path, &error)))?;
    let folder = folder_of(path);
    sync_folder(folder).map_err(|error| NotChanged::unknown(not_synced(path, folder, &error)))
}

/// Has the names in a folder on the disk.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The folder that a file is in.
pub(crate) fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// As [`replace`], with the sync of the folder given.
fn replace_and(
    path: &Path,
    text: &[u8],
    sync: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<(), NotChanged> {
    let folder = folder_of(path);
    if !folder.exists() {
        folder::prepare(folder).map_err(NotChanged::as_it_was)?;
    }
    put(path, text).map_err(|error| NotChanged::as_it_was(not_written("write", path, &error)))?;
    sync(folder).map_err(|error| NotChanged::unknown(not_synced(path, folder, &error)))
}

/// Writes the text beside the file and gives it its name.
fn put(path: &Path, text: &[u8]) -> io::Result<()> {
    let mode = fs::metadata(path).map_or(0o600, |metadata| metadata.permissions().mode() & 0o7777);
    let new = path.with_extension(format!("toml.{}.new", std::process::id()));
    let put = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(text)?;
        keep_owner(&file, path)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    // What is left of a failed attempt is of no use; that it could not be removed says nothing new.
    put().inspect_err(|_| drop(fs::remove_file(&new)))
}

fn not_written(doing: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Failed, "not-written", format!("cannot {doing} {}: {error}", path.display()))
        .fix("nothing was changed; see that you may write there")
}

/// The file was replaced, and nobody can say whether it stays so.
fn not_synced(path: &Path, folder: &Path, error: &io::Error) -> Failure {
    let message = format!(
        "{} was changed, but its folder could not be synced, so that a power cut may undo it: {error}",
        path.display()
    );
    Failure::new(Exit::Failed, "not-synced", message).fix(format!(
        "see to the disk that {} is on, then look what is in the file; a running server was not told",
        folder.display()
    ))
}

/// Whoever reads the old file, such as a server under another name, is to be able to read the new one.
fn keep_owner(new: &File, path: &Path) -> io::Result<()> {
    let old = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        old => old?,
    };
    let made = new.metadata()?;
    if (old.uid(), old.gid()) == (made.uid(), made.gid()) {
        return Ok(());
    }
    fchown(new, Some(old.uid()), Some(old.gid()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(result: Result<(), NotChanged>) -> (&'static str, Left, String) {
        let failed = result.unwrap_err();
        let left = failed.file;
        let failure = Error::from(failed).downcast::<Failure>().unwrap();
        (failure.code(), left, format!("{failure} {:?}", failure.lines()))
    }

    #[test]
    fn a_folder_that_cannot_be_synced_is_no_file_that_was_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hookstead.toml");
        fs::write(&path, "old").unwrap();
        let (code, left, said) = code(replace_and(&path, b"new", |_| Err(io::Error::other("gone"))));
        assert_eq!((code, left), ("not-synced", Left::Unknown));
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(said.contains("was changed") && !said.contains("nothing was changed"), "{said}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_file_that_cannot_be_replaced_stays_and_its_folder_is_not_synced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hookstead.toml");
        // A folder is replaced by no file.
        fs::create_dir(&path).unwrap();
        let (code, left, said) = code(replace_and(&path, b"new", |_| panic!("nothing was renamed")));
        assert_eq!((code, left), ("not-written", Left::AsItWas));
        assert!(said.contains("nothing was changed"), "{said}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    }
}
