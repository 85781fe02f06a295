//! A look at a database as its start would take it, that changes nothing and can be taken beside a server.

use std::path::Path;

use super::connect::{NotKept, Target, check_journal_mode};
use super::create::{database_error, io_error};
use super::files::wal_path;
use super::migrations::MIGRATIONS;
use super::open::{
    check_library, is_ours, pending_identities, read_schema, refuse_damaged_content, refuse_damaged_log,
    refuse_orphan, refused, sync_folders,
};
use super::own_log::refuse_foreign_log;
use super::upgrade;
use crate::fs::Fs;
use crate::lock::{self, Seen, lock_path};
use crate::open::{OpenError, OpenOptions, random_key};
use crate::schema;
use crate::start::{StartStep, Steps, check_file_system, nearest_existing, try_out};

/// Takes the steps of a start of the database at `path` that change nothing.
pub(crate) fn examine(path: &Path, options: &OpenOptions, steps: &mut Steps) -> Result<(), OpenError> {
    let fs = options.fs.as_ref();
    steps.begin(StartStep::Library);
    steps.say(check_library()?);
    let path = std::path::absolute(path).map_err(io_error("find the folder of", path))?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    check_file_system(fs, folder, steps)?;
    steps.begin(StartStep::Lock);
    let lock_file = lock_path(&path);
    let seen = lock::look(fs, &lock_file).map_err(io_error("lock", &lock_file))?;
    if seen.is_unknown() {
        return Err(OpenError::Locked { path, owner: None });
    }
    steps.say(seen.words());
    steps.begin(StartStep::Format);
    if is_ours(fs, &path)? {
        return examine_ours(&path, folder, options, seen, steps);
    }
    refuse_orphan(fs, &path, &wal_path(&path))?;
    if seen.is_alive() {
        return Err(io_error("find what that process has open,", &path)(std::io::ErrorKind::NotFound.into()));
    }
    steps.say("there is no database yet; the first start makes it");
    steps.begin(StartStep::WriteProbe);
    probe(fs, folder, steps)
}

fn examine_ours(
    path: &Path,
    folder: &Path,
    options: &OpenOptions,
    seen: Seen,
    steps: &mut Steps,
) -> Result<(), OpenError> {
    let fs = options.fs.as_ref();
    let is_written_to = seen.is_alive();
    steps.skip(StartStep::PageCache, "only a start syncs and drops what the page cache has of the store");
    if is_written_to {
        let why =
            "it moves while it is written to; the process that has it open looked at it when it started";
        steps.skip(StartStep::Log, why);
    } else {
        steps.begin(StartStep::Log);
        refuse_damaged_log(fs, path, &wal_path(path))?;
    }
    steps.begin(StartStep::Format);
    let target = Target::of(path, options);
    let reader = target.reader().map_err(|error| database_error("read the database", error))?;
    steps.say(read_schema(path, &reader)?);
    if !is_written_to {
        steps.begin(StartStep::Log);
        refuse_foreign_log(fs, &target, &reader, &wal_path(path))?;
    }
    // SQLite has read the log now; from here on a server may start.
    drop(seen);
    steps.begin(StartStep::Settings);
    let kept = check_journal_mode(&reader).map_err(|error| database_error("read the settings", error))?;
    if let Some(NotKept(setting, found)) = kept {
        return Err(OpenError::Setting { setting, found });
    }
    steps.say("WAL; synchronous=EXTRA is set and read back by whoever writes");
    steps.begin(StartStep::Integrity);
    refuse_damaged_content(path, &reader, options)?;
    steps.begin(StartStep::Format);
    if let Some(upgrade) = upgrade::examine(&target, &reader, options, is_written_to)? {
        steps.say(format!("a database of ours, {upgrade}"));
    }
    if schema::applied(&reader, MIGRATIONS).map_err(|error| refused(path, error))? == MIGRATIONS.len() {
        steps.begin(StartStep::Identities);
        pending_identities(path, &reader, options)?;
    } else {
        steps.skip(StartStep::Identities, "the start that migrates the database reads them");
    }
    steps.begin(StartStep::WriteProbe);
    // A file that cannot be opened for writing is no store for a server, whatever its folder takes.
    fs.open_or_create(path).map(drop).map_err(io_error("open to write", path))?;
    probe(fs, folder, steps)?;
    steps.begin(StartStep::Folders);
    sync_folders(fs, folder)
}

/// Whether the folder takes what a commit takes, or the one in which it would be made.
fn probe(fs: &dyn Fs, folder: &Path, steps: &mut Steps) -> Result<(), OpenError> {
    let folder = nearest_existing(fs, folder).map_err(io_error("look at", folder))?;
    let name = format!(".hookstead-probe-{}", hex::encode(&random_key()?[..8]));
    try_out(fs, folder, &name).map_err(io_error("write, sync and read back a file in", folder))?;
    steps.say("a file of its own was written beside the store, synced, read back and removed");
    Ok(())
}
