//! What a folder is before anything in it is trusted or touched: one of ours, one of the seed's, an empty one,
//! or something else, which is refused.

use std::io;
use std::path::Path;

use super::layout::{Kind, LOCK, LOG, MARKER, PENDING};
use super::log;
use super::marker::{FORMAT, Marker};
use crate::fs::{FileSystem, Fs};
use crate::open::OpenError;

/// What a folder is.
#[derive(Debug)]
pub(super) enum Found {
    /// A store.
    Ours(Marker),
    /// A folder of the seed's own receiver.
    Seed,
    /// Nothing that anybody put there.
    Empty,
}

impl Found {
    /// In words.
    pub(super) fn words(&self) -> &'static str {
        match self {
            Self::Ours(_) => "a store of ours, of a format that is known",
            Self::Seed => "a folder of the seed's own receiver, which becomes the source `seed`",
            Self::Empty => "a folder without a store, which is made in it",
        }
    }
}

/// Looks at a folder; writes nothing.
pub(super) fn look(fs: &dyn Fs, root: &Path) -> Result<Found, OpenError> {
    let names = names(fs, root)?;
    if names.iter().any(|name| name == MARKER) {
        return read_marker(fs, root).map(Found::Ours);
    }
    let strange = |name: &&String| {
        ![LOCK, LOG, "lost+found", "deliveries", "processed"].contains(&name.as_str())
            && !name.starts_with(PENDING)
    };
    if let Some(name) = names.iter().find(strange) {
        return Err(foreign(root, format!("it holds `{name}` and no `{MARKER}`")));
    }
    if names.iter().any(|name| name == LOG) && !is_unused_log(fs, root)? {
        let what = format!("`{LOG}` is there and `{MARKER}` is missing");
        return Err(OpenError::Damaged { path: root.to_owned(), what, step: None });
    }
    match names.iter().any(|name| name == Kind::Delivery.folder()) {
        true => look_at_seed(fs, root),
        false if names.iter().any(|name| name == Kind::Receipt.folder()) => {
            Err(foreign(root, "it holds `processed` and no `deliveries`".to_owned()))
        }
        false => Ok(Found::Empty),
    }
}

/// The seed's folder holds nothing but entries by the digest of their ids.
fn look_at_seed(fs: &dyn Fs, root: &Path) -> Result<Found, OpenError> {
    let deliveries = root.join(Kind::Delivery.folder());
    let names = names(fs, &deliveries)?;
    let is_entry = |name: &String| record_digest(name).is_some();
    if names.iter().any(is_entry) || names.iter().all(|name| name.starts_with(PENDING)) {
        return Ok(Found::Seed);
    }
    Err(foreign(root, "its folder `deliveries` holds no entry of a receiver".to_owned()))
}

/// The digest that a record's name begins with, if it is such a name.
pub(super) fn record_digest(name: &str) -> Option<&str> {
    let digest = name.strip_suffix(".json")?.get(..64)?;
    digest.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)).then_some(digest)
}

/// A log that was made with a store whose making was cut short has no rows.
fn is_unused_log(fs: &dyn Fs, root: &Path) -> Result<bool, OpenError> {
    let bytes = read(fs, &root.join(LOG))?;
    let mut rows = 0;
    let replayed = log::replay(&bytes, |batch| {
        rows += batch.rows.len();
        Ok(())
    });
    Ok(replayed.is_ok() && rows == 0)
}

/// Reads the marker of a store.
pub(super) fn read_marker(fs: &dyn Fs, root: &Path) -> Result<Marker, OpenError> {
    let bytes = read(fs, &root.join(MARKER))?;
    match Marker::read(&bytes) {
        Ok(Ok(marker)) => Ok(marker),
        Ok(Err(found)) => Err(OpenError::Newer { path: root.to_owned(), found, known: FORMAT }),
        Err(error) => Err(foreign(root, format!("`{MARKER}` cannot be read: {error}"))),
    }
}

/// A file's bytes.
pub(super) fn read(fs: &dyn Fs, path: &Path) -> Result<Vec<u8>, OpenError> {
    let read = || {
        let file = fs.open_read(path)?;
        super::disk::read_all(file.as_ref(), file.facts()?.bytes)
    };
    read().map_err(io_error("read", path))
}

/// The names in a folder. A name that is no UTF-8 is none of ours, and is shown with its bytes replaced.
pub(super) fn names(fs: &dyn Fs, folder: &Path) -> Result<Vec<String>, OpenError> {
    let names = fs.list(folder).map_err(io_error("list", folder))?;
    Ok(names.into_iter().map(|name| name.to_string_lossy().into_owned()).collect())
}

/// Makes the folder, and those above it, where they are not there, each with its own entry durable.
pub(super) fn make(fs: &dyn Fs, root: &Path) -> Result<(), OpenError> {
    match fs.facts(root).map_err(io_error("look at", root))? {
        Some(facts) if facts.is_dir => return Ok(()),
        Some(_) => return Err(foreign(root, "it is a file".to_owned())),
        None => {}
    }
    let above = root.parent().unwrap_or(Path::new("/"));
    make(fs, above)?;
    refuse_network(fs, above)?;
    match fs.create_dir(root) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(io_error("make the folder", root)(error)),
    }
    fs.sync_dir(above).map_err(io_error("sync", above))
}

/// A folder on another machine is refused.
pub(super) fn refuse_network(fs: &dyn Fs, folder: &Path) -> Result<(), OpenError> {
    match fs.file_system(folder).map_err(io_error("look at the file system of", folder))? {
        FileSystem::Network(kind) => Err(OpenError::NetworkFileSystem { path: folder.to_owned(), kind }),
        FileSystem::Local | FileSystem::Volatile(_) => Ok(()),
    }
}

/// A folder that is no store.
fn foreign(root: &Path, what: String) -> OpenError {
    OpenError::ForeignFolder { path: root.to_owned(), what }
}

/// An error of the disk, with what was tried.
pub(super) fn io_error<'a>(doing: &'a str, path: &'a Path) -> impl FnOnce(io::Error) -> OpenError + 'a {
    move |source| OpenError::Io { doing: format!("{doing} `{}`", path.display()), source, step: None }
}
