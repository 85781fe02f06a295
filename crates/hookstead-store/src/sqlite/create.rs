//! Making the files: a new database, whole or not at all, and the write-ahead log at its full size. It runs
//! before anything has the database open, under the store's lock.

use std::io;
use std::path::{Path, PathBuf};

use hookstead_core::Timestamp;
use rusqlite::{Connection, OpenFlags};

use super::connect::{APPLICATION_ID, NotKept, PAGE_BYTES, Target, check_journal_mode};
use super::migrations::MIGRATIONS;
use crate::fs::Fs;
use crate::open::{OpenError, random_key};
use crate::schema;

/// How much of the log is written at once.
const FILL_BYTES: usize = 1024 * 1024;

/// Makes the database beside its place and moves it there when it is durable, so that a crash at any point
/// leaves either none or a whole one.
pub(super) fn database(
    fs: &dyn Fs,
    target: &Target,
    identity_key: Option<[u8; 32]>,
    now: Timestamp,
) -> Result<(), OpenError> {
    let building = beside(&target.path, ".new");
    for leftover in [beside(&building, "-wal"), beside(&building, "-journal"), building.clone()] {
        if fs.facts(&leftover).map_err(io_error("look for a leftover", &leftover))?.is_some() {
            fs.remove(&leftover).map_err(io_error("remove the leftover", &leftover))?;
        }
    }
    // Made by us, so that its mode and thereby that of the log is ours.
    let file = fs.create_new(&building).map_err(io_error("make", &building))?;
    drop(file);
    build(&building, target, identity_key, now)?;
    let file = fs.open_or_create(&building).map_err(io_error("open", &building))?;
    file.sync().map_err(io_error("sync", &building))?;
    fs.rename(&building, &target.path).map_err(io_error("move into place", &building))
}

fn build(
    path: &Path,
    target: &Target,
    identity_key: Option<[u8; 32]>,
    now: Timestamp,
) -> Result<(), OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let failed = |source| database_error("make a new database", source);
    let connect = || match &target.vfs {
        None => Connection::open_with_flags(path, flags),
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs.as_str()),
    };
    let mut connection = connect().map_err(failed)?;
    // Without syncs and without a journal on disk: nobody sees this file before our own sync of all of it,
    // and a crash before that throws it away.
    let settings = format!(
        "PRAGMA page_size = {PAGE_BYTES};
         PRAGMA auto_vacuum = INCREMENTAL;
         PRAGMA synchronous = OFF;
         PRAGMA journal_mode = MEMORY;
         PRAGMA application_id = {APPLICATION_ID};"
    );
    connection.execute_batch(&settings).map_err(failed)?;
    schema::migrate(&mut connection, MIGRATIONS, now).map_err(|source| OpenError::Database {
        doing: "make a new database".to_owned(),
        source: source.into(),
        step: None,
    })?;
    let key = identity_key.map_or_else(random_key, Ok)?;
    connection
        .execute("INSERT INTO store VALUES (1, ?1, 0, 0, 0, 0, 1)", [key.as_slice()])
        .and_then(|_| connection.execute_batch("PRAGMA journal_mode = WAL;"))
        .map_err(failed)?;
    connection.close().map_err(|(_, source)| failed(source))?;
    let again = connect().map_err(failed)?;
    match check_journal_mode(&again).map_err(failed)? {
        None => Ok(()),
        Some(NotKept(setting, found)) => Err(OpenError::Setting { setting, found }),
    }
}

/// Extends the log to its cap by writing zeros, which SQLite takes for the end of the log. Its blocks are
/// then written ones: ext4 leaves a block that was allocated and not yet written unreadable after one failed
/// write, and reports it to nobody.
pub(super) fn fill_log(fs: &dyn Fs, wal: &Path, bytes: u64) -> Result<(), OpenError> {
    let file = fs.open_or_create(wal).map_err(io_error("open the log", wal))?;
    let mut at = file.facts().map_err(io_error("look at the log", wal))?.bytes;
    if at >= bytes {
        return Ok(());
    }
    let zeros = vec![0; FILL_BYTES];
    while at < bytes {
        let count = usize::try_from(bytes - at).unwrap_or(FILL_BYTES).min(FILL_BYTES);
        file.write_all_at(&zeros[..count], at).map_err(io_error("write the log", wal))?;
        at += count as u64;
    }
    file.sync().map_err(io_error("sync the log", wal))
}

/// A file named like another with something added.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

pub(super) fn io_error(doing: &str, path: &Path) -> impl FnOnce(io::Error) -> OpenError {
    let doing = format!("{doing} `{}`", path.display());
    move |source| OpenError::Io { doing, source, step: None }
}

pub(super) fn database_error(doing: &str, source: rusqlite::Error) -> OpenError {
    OpenError::Database { doing: doing.to_owned(), source: source.into(), step: None }
}
