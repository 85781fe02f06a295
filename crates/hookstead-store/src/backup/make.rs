//! Making a backup, also while the store is written to. It reads the store's own files, as any reader may, and asks
//! nothing of whoever has it open: so it works beside a server, beside an application with the library, and alone.
//!
//! ```text
//! FOLDER/store/      a whole, closed store: hookstead.db, or the folder of a `files:` store
//! FOLDER/SHA256SUMS  the digests of its files
//! FOLDER/backup.json what it is of; written last, so that a folder without it is no backup
//! ```

use std::path::{Path, PathBuf};

use hookstead_core::{Digest, Timestamp};

use super::folder::{make_folder, sync_above};
use super::manifest::{self, FORMAT, Manifest, put};
use super::report::{BackupError, BackupPhase, BackupProgress, BackupReport, Copied, Step, io_error};
use super::sums::{self, SUMS};
use crate::open::OpenOptions;
use crate::{Location, files, sqlite};

/// The folder in a backup that the store lies in.
pub(super) const STORE: &str = "store";

/// Copies the store that `url` names into the new folder `to`, also while a server writes to it. `now` is the time
/// at which it is begun.
///
/// When it returns `Ok`, the copy is durable, it is the store at one moment not before the call, so that every event
/// that was acknowledged before the call is in it, and it was checked. Damage of the store is in the copy as well and
/// stands in the report. When it returns `Err`, `to` may hold a part of a copy, which no restore takes for a backup.
///
/// While a `sqlite:` store is copied its log cannot be reset: a server that writes more than
/// [`OpenOptions::wal_bytes_max`] meanwhile refuses new events until the copy is through.
///
/// # Errors
///
/// [`BackupError`] says what is in the way.
pub fn backup(
    url: &str,
    to: &Path,
    options: &OpenOptions,
    now: Timestamp,
    progress: Step<'_>,
) -> Result<BackupReport, BackupError> {
    let fs = options.fs.as_ref();
    let to = std::path::absolute(to).map_err(io_error("find", to))?;
    let source = Source::find(url, options)?;
    refuse_taken(options, &to)?;
    make_folder(fs, &to.join(STORE))?;
    let copied = source.copy(&to.join(STORE), options, progress)?;
    let (sums, bytes) = sums::take(fs, &to, STORE, progress)?;
    let text = sums::to_text(&sums);
    let path = to.join(SUMS);
    put(fs, &path, text.as_bytes()).map_err(io_error("write", &path))?;
    let manifest = Manifest {
        format: FORMAT,
        kind: source.kind().to_owned(),
        begun_at: now.to_string(),
        files: sums.len() as u64,
        bytes,
        events: copied.check.events,
        problems: copied.check.problem_count,
        sums_sha256: Digest::of(text.as_bytes()).to_string(),
    };
    manifest::write(fs, &to, &manifest)?;
    sync_above(fs, &to)?;
    Ok(report(manifest, copied))
}

pub(super) fn report(manifest: Manifest, copied: Copied) -> BackupReport {
    let Manifest { kind, begun_at, files, bytes, .. } = manifest;
    let Copied { check, older_schema } = copied;
    BackupReport { kind, begun_at, files, bytes, check, older_schema }
}

/// A backup gets a folder of its own: one that is not there, or an empty one.
fn refuse_taken(options: &OpenOptions, to: &Path) -> Result<(), BackupError> {
    let fs = options.fs.as_ref();
    let taken = match fs.facts(to).map_err(io_error("look at", to))? {
        None => false,
        Some(facts) if facts.is_dir => !fs.list(to).map_err(io_error("list", to))?.is_empty(),
        Some(_) => true,
    };
    if taken { Err(BackupError::Taken { path: to.to_owned() }) } else { Ok(()) }
}

/// The store that is copied.
enum Source {
    Sqlite(PathBuf),
    Files(PathBuf),
}

impl Source {
    fn find(url: &str, options: &OpenOptions) -> Result<Self, BackupError> {
        let source = match Location::parse(url)? {
            Location::Memory => return Err(BackupError::NoFiles { url: url.to_owned() }),
            Location::Sqlite(path) => Self::Sqlite(path.to_owned()),
            Location::Files(path) => Self::Files(path.to_owned()),
        };
        let (Self::Sqlite(path) | Self::Files(path)) = &source;
        match options.fs.facts(path).map_err(io_error("look at", path))? {
            Some(_) => Ok(source),
            None => Err(BackupError::NoStore { url: url.to_owned() }),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
            Self::Files(_) => "files",
        }
    }

    fn copy(&self, into: &Path, options: &OpenOptions, step: Step<'_>) -> Result<Copied, BackupError> {
        match self {
            Self::Sqlite(path) => sqlite::copy(path, &into.join(DATABASE), options, step),
            Self::Files(root) => files::copy(root, into, options, step).map(Copied::from),
        }
    }
}

/// The name of a database in a backup.
pub(super) const DATABASE: &str = "hookstead.db";

/// Says of a check how far it is.
pub(crate) fn checking(step: Step<'_>) -> impl FnMut(hookstead_core::CheckProgress) {
    move |seen| step(BackupProgress { phase: BackupPhase::Checking, done: seen.done, total: seen.total })
}
