//! Before the schema of an existing database is changed for the first time: a whole, checked copy of it as it is, beside
//! it, so that the program of before can go on with that. It changes nothing of the database itself.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode};

use super::connect::{PAGE_BYTES, Target};
use super::copy::{copy_pages, remove_beside};
use super::create::{beside, database_error, io_error};
use super::failure::reading;
use super::migrations::MIGRATIONS;
use super::open::{damaged, refused};
use crate::backup::{BackupError, BackupProgress};
use crate::fs::Fs;
use crate::open::{OpenError, OpenOptions, UpgradeCopy};
use crate::schema;

/// Keeps the copy of a database of an older schema, unless it is told not to. When it returns `Ok` the copy is
/// durable under its name, where it takes the place of one of the same schema, and its pages fit together.
pub(super) fn keep_copy(
    target: &Target,
    reader: &Connection,
    options: &OpenOptions,
) -> Result<(), OpenError> {
    let applied = schema::applied(reader, MIGRATIONS).map_err(|error| refused(&target.path, error))?;
    if applied == MIGRATIONS.len() {
        return Ok(());
    }
    let database = target.path.display();
    let (from, to) = (applied, MIGRATIONS.len());
    if options.upgrade_copy == UpgradeCopy::None {
        tracing::warn!(%database, from, to, "the database is brought to a newer schema; no copy of it is kept");
        return Ok(());
    }
    let fs = options.fs.as_ref();
    let [copy, building] = paths(target, applied);
    // What a copy that was cut short takes up is room for this one.
    remove_all(fs, &building)?;
    check_room(target, reader, fs, options.free_bytes_min, 0)?;
    let made = make(target, fs, &building, applied).and_then(|()| {
        fs.rename(&building, &copy).map_err(io_error("move into place", &copy))?;
        let folder = copy.parent().unwrap_or(Path::new("/"));
        fs.sync_dir(folder).map_err(io_error("sync the folder", folder))
    });
    if let Err(error) = made {
        // What is left is no copy under its name; the next start removes it if this does not.
        if let Err(left) = remove_all(fs, &building) {
            tracing::warn!(path = %building.display(), error = %left, "an unfinished copy could not be removed");
        }
        return Err(error);
    }
    tracing::info!(
        %database, copy = %copy.display(), from, to,
        "the database is brought to a newer schema; a copy of it as it was is kept"
    );
    Ok(())
}

/// Whether anything will refuse the change of the schema, and what it will do in words; `None` if there is nothing to do.
/// It changes nothing. The pages of a database that others write to are not read: that would take long, and keep its log
/// from being reset.
pub(super) fn examine(
    target: &Target,
    reader: &Connection,
    options: &OpenOptions,
    is_written_to: bool,
) -> Result<Option<String>, OpenError> {
    let applied = schema::applied(reader, MIGRATIONS).map_err(|error| refused(&target.path, error))?;
    if applied == MIGRATIONS.len() {
        return Ok(None);
    }
    let what = format!("schema {applied}, which the next start changes to {}", MIGRATIONS.len());
    if options.upgrade_copy == UpgradeCopy::None {
        return Ok(Some(format!("{what} without a copy of it as it was")));
    }
    let fs = options.fs.as_ref();
    let [copy, building] = paths(target, applied);
    let mut freed = 0;
    for path in with_beside(&building) {
        freed += fs.facts(&path).map_err(io_error("look at", &path))?.map_or(0, |facts| facts.bytes);
    }
    check_room(target, reader, fs, options.free_bytes_min, freed)?;
    if is_written_to {
        return Ok(Some(format!(
            "{what}, after a copy to `{}`; whether it holds is seen then",
            copy.display()
        )));
    }
    let told =
        quick_check(reader).map_err(|error| damaged(&target.path, reading("read its pages")(error)))?;
    if told == "ok" {
        return Ok(Some(format!("{what}, after a copy to `{}`", copy.display())));
    }
    let what = format!("it does not hold, and its schema is to be changed: {told}");
    Err(OpenError::Damaged { path: target.path.clone(), what, step: None })
}

/// Where the copy lies, and where until it is whole.
fn paths(target: &Target, applied: usize) -> [PathBuf; 2] {
    let copy = beside(&target.path, &format!(".schema-{applied}"));
    let building = beside(&copy, ".new");
    [copy, building]
}

/// The copy needs as much as the database, and `free_bytes_min` has to stay. `freed` will be free besides.
fn check_room(
    target: &Target,
    reader: &Connection,
    fs: &dyn Fs,
    free_bytes_min: u64,
    freed: u64,
) -> Result<(), OpenError> {
    let pages: rusqlite::Result<u32> = reader.query_row("PRAGMA page_count", [], |row| row.get(0));
    let pages = pages.map_err(|error| database_error("read how large the database is", error))?;
    let needed = (u64::from(pages) * PAGE_BYTES).saturating_add(free_bytes_min);
    let folder = target.path.parent().unwrap_or(Path::new("/"));
    let free = fs.free_bytes(folder).map_err(io_error("ask what is free in", folder))?;
    let free = free.saturating_add(freed);
    if free >= needed {
        return Ok(());
    }
    Err(OpenError::NoRoomForCopy { path: target.path.clone(), needed, free })
}

fn make(target: &Target, fs: &dyn Fs, building: &Path, applied: usize) -> Result<(), OpenError> {
    let file = fs.create_new(building).map_err(io_error("make", building))?;
    copy_pages(target, building, &mut |_: BackupProgress| ()).map_err(|error| not_copied(target, error))?;
    file.sync().map_err(io_error("sync", building))?;
    check(target, building, applied)?;
    remove_beside(fs, building).map_err(|error| OpenError::Database {
        doing: "remove what was made to read the copy".to_owned(),
        source: error.into(),
        step: None,
    })
}

fn not_copied(target: &Target, error: BackupError) -> OpenError {
    let (doing, source) = match error {
        BackupError::Database { doing, source } => (doing, source),
        other => ("copy the database".to_owned(), other.into()),
    };
    let code = source.downcast_ref::<rusqlite::Error>().and_then(rusqlite::Error::sqlite_error_code);
    if code == Some(ErrorCode::DatabaseCorrupt) {
        let what = format!("it cannot be copied before its schema is changed: {source}");
        return OpenError::Damaged { path: target.path.clone(), what, step: None };
    }
    OpenError::Database { doing, source, step: None }
}

/// A database that does not fit together would be damaged further by a change of its schema.
fn check(target: &Target, building: &Path, applied: usize) -> Result<(), OpenError> {
    let copy = Target { path: building.to_owned(), ..target.clone() };
    let failed = |error| database_error("read the copy", error);
    let reader = copy.reader().map_err(failed)?;
    let found = schema::applied(&reader, MIGRATIONS).map_err(|error| refused(building, error))?;
    let told = quick_check(&reader).map_err(failed)?;
    if found == applied && told == "ok" {
        return Ok(());
    }
    let what = format!("a copy of it, made before its schema was to be changed, does not hold: {told}");
    Err(OpenError::Damaged { path: target.path.clone(), what, step: None })
}

/// `ok`, or the first thing that is wrong.
fn quick_check(connection: &Connection) -> rusqlite::Result<String> {
    connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
}

/// An unfinished copy last, after what SQLite made beside it.
fn with_beside(building: &Path) -> [PathBuf; 4] {
    ["-wal", "-shm", "-journal", ""].map(|suffix| beside(building, suffix))
}

/// What was built there, and what SQLite made beside it.
pub(super) fn remove_all(fs: &dyn Fs, building: &Path) -> Result<(), OpenError> {
    let remove = |path: &PathBuf| match fs.facts(path).map_err(io_error("look at", path))? {
        Some(_) => fs.remove(path).map_err(io_error("remove the leftover", path)),
        None => Ok(()),
    };
    with_beside(building).iter().try_for_each(remove)
}
