//! Where an export is written: stdout, or a file that appears under its name when all of it is on the disk.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use tempfile::{Builder, NamedTempFile};

use crate::failure::{Exit, Failure};
use crate::output;
use crate::replace::{folder_of, sync_folder};

/// Where it goes.
pub(super) struct Target {
    way: Way,
    bytes: u64,
}

enum Way {
    Stdout,
    File { path: PathBuf, force: bool, written: BufWriter<NamedTempFile> },
}

impl Target {
    /// Stdout, or this file, which must not be there unless it may be replaced.
    pub(super) fn open(file: Option<&Path>, force: bool) -> Result<Self> {
        let way = match file {
            None => Way::Stdout,
            Some(path) if !force && path.symlink_metadata().is_ok() => return Err(exists(path).into()),
            Some(path) => Way::File { path: path.to_owned(), force, written: begin(path)? },
        };
        Ok(Self { way, bytes: 0 })
    }

    /// Writes lines.
    pub(super) fn write(&mut self, lines: &[u8]) -> Result<()> {
        self.bytes += lines.len() as u64;
        match &mut self.way {
            Way::Stdout => output::bytes(lines),
            Way::File { path, written, .. } => Ok(written.write_all(lines).map_err(failed(path))?),
        }
    }

    /// All is written: a file is synced and gets its name. How many bytes there were.
    pub(super) fn finish(self) -> Result<u64> {
        let Way::File { path, force, written } = self.way else { return Ok(self.bytes) };
        let written = written.into_inner().map_err(|error| failed(&path)(error.into_error()))?;
        written.as_file().sync_all().map_err(failed(&path))?;
        let named = if force { written.persist(&path) } else { written.persist_noclobber(&path) };
        match named {
            Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => Err(exists(&path))?,
            named => named.map_err(|error| failed(&path)(error.error))?,
        };
        sync_folder(folder_of(&path)).map_err(|error| not_synced(&path, &error))?;
        Ok(self.bytes)
    }
}

/// A file beside it, for the owner's eyes alone, which goes away unless it is finished.
fn begin(path: &Path) -> Result<BufWriter<NamedTempFile>> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    let file =
        Builder::new().prefix(&name).suffix(".part").tempfile_in(folder_of(path)).map_err(failed(path))?;
    Ok(BufWriter::new(file))
}

fn exists(path: &Path) -> Failure {
    Failure::new(Exit::Failed, "not-written", format!("{} exists", path.display()))
        .fix("name another file, or replace it with --force")
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Failure {
    move |error| {
        Failure::new(Exit::Failed, "not-written", format!("cannot write {}: {error}", path.display()))
            .fix("see that there is room and that you may write there; nothing was left behind")
    }
}

/// It is whole and has its name, in place of what was there before.
fn not_synced(path: &Path, error: &std::io::Error) -> Failure {
    let message = format!(
        "{} is written, but its folder could not be synced, so that a power cut may take it away: {error}",
        path.display()
    );
    Failure::new(Exit::Failed, "not-synced", message)
        .fix("see to the disk that it is on, then export again with --force, or to another disk")
}
