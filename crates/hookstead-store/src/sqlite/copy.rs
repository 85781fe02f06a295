//! Copies of a database: of one that is written to, through SQLite's own backup within one read transaction, and of
//! one in a backup, byte by byte.

use std::path::Path;

use hookstead_core::Timestamp;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::check_older;
use super::connect::{Target, WalCap};
use super::create::beside;
use super::failure::reading;
use super::files::wal_path;
use super::open::{acquire, prepare_folder, sync_folders};
use super::own_log::mark_as_copy;
use super::read_only::{Readable, open_any_schema};
use super::upgrade::remove_all;
use crate::backup::{BackupError, BackupPhase, BackupProgress, Copied, Step, checking, copy_file, io_error};
use crate::fs::Fs;
use crate::open::OpenOptions;
use crate::start::Steps;

/// Pages between two reports of progress: 8 MiB.
const PAGES_PER_STEP: i32 = 1024;

/// Copies the database `from`, also while it is written to, to the new file `to`, which is durable when it returns, and
/// checks the copy.
pub(crate) fn copy(
    from: &Path,
    to: &Path,
    options: &OpenOptions,
    step: Step<'_>,
) -> Result<Copied, BackupError> {
    let from = std::path::absolute(from).map_err(io_error("find", from))?;
    // It refuses what is not ours, and where nobody has it open, a log that is damaged or another database's: its pages
    // would be copied over this one's, and the mixture sealed as a sound backup.
    drop(open_any_schema(&from, options)?);
    let target = Target {
        path: from,
        vfs: options.vfs.clone(),
        busy_timeout: options.busy_timeout,
        wal: WalCap::within(options.wal_bytes_max),
    };
    let fs = options.fs.as_ref();
    let file = fs.create_new(to).map_err(io_error("make", to))?;
    copy_pages(&target, to, step)?;
    file.sync().map_err(io_error("sync", to))?;
    let folder = to.parent().unwrap_or(Path::new("/"));
    fs.sync_dir(folder).map_err(io_error("sync", folder))?;
    let copied = check(to, options, step)?;
    remove_beside(fs, to)?;
    Ok(copied)
}

/// Within one read transaction, so that writes that come meanwhile do not make it begin again. The copy is marked as one.
pub(super) fn copy_pages(source: &Target, to: &Path, step: Step<'_>) -> Result<(), BackupError> {
    let failed = |source: rusqlite::Error| BackupError::Database {
        doing: "copy the database".to_owned(),
        source: source.into(),
    };
    let reader = source.reader().map_err(failed)?;
    reader.execute_batch("BEGIN; SELECT count(*) FROM store;").map_err(failed)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = match &source.vfs {
        None => Connection::open_with_flags(to, flags),
        Some(vfs) => Connection::open_with_flags_and_vfs(to, flags, vfs.as_str()),
    };
    let mut copy = opened.map_err(failed)?;
    // Nobody takes the file for a backup before our own sync of all of it.
    copy.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY;").map_err(failed)?;
    let backup = Backup::new(&reader, &mut copy).map_err(failed)?;
    loop {
        let result = backup.step(PAGES_PER_STEP).map_err(failed)?;
        let pages = backup.progress();
        let count = |pages: i32| u64::try_from(pages).unwrap_or(0);
        let (total, left) = (count(pages.pagecount), count(pages.remaining));
        step(BackupProgress { phase: BackupPhase::Copying, done: total.saturating_sub(left), total });
        match result {
            StepResult::Done => break,
            StepResult::More => {}
            // Nobody else has the copy, and readers of a log wait for nobody.
            other => {
                let doing = "copy the database".to_owned();
                return Err(BackupError::Database { doing, source: format!("SQLite says {other:?}").into() });
            }
        }
    }
    drop(backup);
    mark_as_copy(&copy)?;
    // What the mark was written to is a log of the copy's own; a close says nothing of one that it could not empty.
    copy.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(failed)?;
    copy.close().map_err(|(_, error)| failed(error))
}

/// Puts a database from a backup where there is none. Its digest must be `digest`.
pub(crate) fn restore(
    from: &Path,
    digest: &str,
    to: &Path,
    options: &OpenOptions,
    now: Timestamp,
    step: Step<'_>,
) -> Result<Copied, BackupError> {
    let fs = options.fs.as_ref();
    let to = std::path::absolute(to).map_err(io_error("find", to))?;
    let folder = to.parent().unwrap_or(Path::new("/")).to_owned();
    refuse_taken(fs, &to)?;
    prepare_folder(fs, &folder, &mut Steps::default())?;
    let lock = acquire(fs, &to, now)?;
    let placed = place(from, digest, &to, options, step)
        .and_then(|copied| sync_folders(fs, &folder).map(|()| copied).map_err(BackupError::from));
    lock.release();
    placed
}

/// Beside its place first, where it is checked, and from there without ever replacing anything.
fn place(
    from: &Path,
    digest: &str,
    to: &Path,
    options: &OpenOptions,
    step: Step<'_>,
) -> Result<Copied, BackupError> {
    let fs = options.fs.as_ref();
    // Looked at again, now that no server can start.
    refuse_taken(fs, to)?;
    let building = beside(to, ".new");
    // A log of a check that was cut short would be read as this one's.
    remove_all(fs, &building)?;
    let placed = build(from, digest, &building, options, step).and_then(|copied| {
        fs.hard_link(&building, to).map_err(io_error("move into place", to))?;
        Ok(copied)
    });
    // The store is in its place, or the reason why it is not says more than that something is left.
    if let Err(left) = remove_all(fs, &building) {
        tracing::warn!(path = %building.display(), error = %left, "what was built of a store could not be removed");
    }
    placed
}

fn build(
    from: &Path,
    digest: &str,
    building: &Path,
    options: &OpenOptions,
    step: Step<'_>,
) -> Result<Copied, BackupError> {
    if copy_file(options.fs.as_ref(), from, building)? != digest {
        let what = "the database changed while it was read".to_owned();
        return Err(BackupError::Damaged { path: from.to_owned(), what });
    }
    let copied = check(building, options, step)?;
    remove_beside(options.fs.as_ref(), building)?;
    Ok(copied)
}

fn refuse_taken(fs: &dyn Fs, to: &Path) -> Result<(), BackupError> {
    for path in [to.to_owned(), wal_path(to)] {
        if fs.facts(&path).map_err(io_error("look at", &path))?.is_some() {
            return Err(BackupError::Taken { path });
        }
    }
    Ok(())
}

fn check(path: &Path, options: &OpenOptions, step: Step<'_>) -> Result<Copied, BackupError> {
    // Damage is to be named and not to end the copying.
    let options = OpenOptions { spot_check_events: 0, ..options.clone() };
    let schema = match open_any_schema(path, &options)? {
        Readable::Store(store) => return Ok(store.check(&mut checking(step))?.into()),
        Readable::Older { schema } => schema,
    };
    let reader = Target::of(path, &options).reader().map_err(reading("open the copy to check it"))?;
    let check = check_older::run(&reader, &mut checking(step))?;
    Ok(Copied { check, older_schema: u32::try_from(schema).ok() })
}

/// What SQLite made to read the copy; nothing is in it.
pub(super) fn remove_beside(fs: &dyn Fs, database: &Path) -> Result<(), BackupError> {
    for path in [wal_path(database), beside(database, "-shm")] {
        if fs.facts(&path).map_err(io_error("look at", &path))?.is_some() {
            fs.remove(&path).map_err(io_error("remove", &path))?;
        }
    }
    Ok(())
}
