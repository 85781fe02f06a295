//! Putting a backup back where no store is. Nothing is ever written over; an interrupted restore leaves what is no
//! store.

use std::path::Path;

use hookstead_core::{Digest, Timestamp};

use super::make::{DATABASE, STORE, report};
use super::manifest::{self, Manifest};
use super::report::{BackupError, BackupReport, Step, io_error};
use super::sums::{self, SUMS, Sums};
use crate::fs::Fs;
use crate::open::OpenOptions;
use crate::{Location, files, sqlite};

/// Puts the backup in the folder `from` back as the store that `url` names, where there must be none.
///
/// When it returns `Ok`, every file of the backup had the digest that was taken when it was made, the store is
/// durable, and all of it was checked. When it returns `Err`, what is at the URL is no store, or what was there before;
/// but where the last sync of its files or folders failed, the whole and checked store is there and may be gone after a
/// power cut. A `sqlite:` store of an older schema is put back as it is; see [`BackupReport::older_schema`].
///
/// # Errors
///
/// [`BackupError`] says what is in the way.
pub fn restore(
    from: &Path,
    url: &str,
    options: &OpenOptions,
    now: Timestamp,
    progress: Step<'_>,
) -> Result<BackupReport, BackupError> {
    let fs = options.fs.as_ref();
    let from = std::path::absolute(from).map_err(io_error("find", from))?;
    let manifest = manifest::read(fs, &from)?;
    let listed = listed(fs, &from, &manifest)?;
    let (found, _) = sums::take(fs, &from, STORE, progress)?;
    if let Some(what) = sums::difference(&listed, &found) {
        return Err(BackupError::Damaged { path: from, what });
    }
    let store = from.join(STORE);
    let copied = match (manifest.kind.as_str(), Location::parse(url)?) {
        ("sqlite", Location::Sqlite(path)) => {
            let database = format!("{STORE}/{DATABASE}");
            let digest = listed.get(&database).ok_or_else(|| damaged(&from, "it lists no database"))?;
            sqlite::restore(&store.join(DATABASE), digest, path, options, now, progress)?
        }
        ("files", Location::Files(path)) => files::restore(&store, path, options, now, progress)?.into(),
        (kind, _) => return Err(BackupError::OtherKind { found: kind.to_owned(), url: url.to_owned() }),
    };
    Ok(report(manifest, copied))
}

/// The list of digests, if it is the one that the manifest names.
fn listed(fs: &dyn Fs, from: &Path, manifest: &Manifest) -> Result<Sums, BackupError> {
    let path = from.join(SUMS);
    let file = fs.open_read(&path).map_err(io_error("open", &path))?;
    let bytes = file.facts().map_err(io_error("look at", &path))?.bytes;
    let mut text = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
    let count = file.read_at(&mut text, 0).map_err(io_error("read", &path))?;
    text.truncate(count);
    if Digest::of(&text).to_string() != manifest.sums_sha256 {
        return Err(damaged(from, &format!("`{SUMS}` has another digest than when it was made")));
    }
    let sums = std::str::from_utf8(&text).ok().and_then(sums::from_text);
    sums.ok_or_else(|| damaged(from, &format!("`{SUMS}` is no list of digests")))
}

fn damaged(from: &Path, what: &str) -> BackupError {
    BackupError::Damaged { path: from.to_owned(), what: what.to_owned() }
}
