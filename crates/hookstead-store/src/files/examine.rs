//! A look at a folder of records as its start would take it, that changes nothing and can be taken beside a server.

use std::collections::HashSet;
use std::path::Path;

use super::disk::Disk;
use super::folder::{self, Found, io_error};
use super::layout::RecordPath;
use super::replay;
use super::start::{disk_of, lock_path, prove, spot_check, warn_of_damaged};
use crate::fs::Fs;
use crate::lock;
use crate::open::{OpenError, OpenOptions, random_key};
use crate::start::{StartStep, Steps, check_file_system, nearest_existing, try_out};

/// Takes the steps of a start of the store in the folder `path` that change nothing.
pub(crate) fn examine(path: &Path, options: &OpenOptions, steps: &mut Steps) -> Result<(), OpenError> {
    let fs = options.fs.as_ref();
    let root = std::path::absolute(path).map_err(io_error("find the folder", path))?;
    check_file_system(fs, &root, steps)?;
    steps.begin(StartStep::Format);
    if fs.facts(&root).map_err(io_error("look at", &root))?.is_none() {
        steps.say("there is no store yet; the first start makes it");
        steps.begin(StartStep::WriteProbe);
        return probe_above(fs, &root);
    }
    let found = folder::look(fs, &root)?;
    steps.say(found.words());
    steps.begin(StartStep::Lock);
    let lock_file = lock_path(&root);
    let seen = lock::look(fs, &lock_file).map_err(io_error("lock", &lock_file))?;
    if seen.is_unknown() {
        return Err(OpenError::Locked { path: root, owner: None });
    }
    steps.say(seen.words());
    steps.begin(StartStep::WriteProbe);
    let disk = disk_of(&options.fs, &root, &found)?;
    prove(&disk)?;
    steps.say("a file of its own was written, synced, linked, read back and removed");
    match found {
        Found::Ours(_) if seen.is_alive() => leave_to_owner(steps),
        Found::Ours(_) => read_log(&disk, options, steps)?,
        Found::Seed | Found::Empty => {}
    }
    Ok(())
}

/// What cannot be read while another process writes.
fn leave_to_owner(steps: &mut Steps) {
    let why = "it moves while it is written to; the process that has it open looked at it when it started";
    for step in [StartStep::PageCache, StartStep::Log, StartStep::Records, StartStep::Integrity] {
        steps.skip(step, why);
    }
}

fn read_log(disk: &Disk, options: &OpenOptions, steps: &mut Steps) -> Result<(), OpenError> {
    steps.begin(StartStep::PageCache);
    steps.say("log and journal are synced and dropped before they are read");
    steps.begin(StartStep::Log);
    let replayed = replay::read(disk)?;
    steps.skip(StartStep::Records, "only a start changes them");
    steps.begin(StartStep::Integrity);
    // What the journal holds is written to its place by the next start.
    let pending: HashSet<&RecordPath> = replayed.records.iter().map(|(record, _)| record).collect();
    let is_pending = |record: &RecordPath| pending.contains(record);
    warn_of_damaged(&spot_check(disk, &replayed.tables, options.spot_check_events, &is_pending), steps);
    Ok(())
}

/// Whether the folder could be made.
fn probe_above(fs: &dyn Fs, root: &Path) -> Result<(), OpenError> {
    let above = nearest_existing(fs, root).map_err(io_error("look at", root))?;
    let name = format!(".hookstead-probe-{}", hex::encode(&random_key()?[..8]));
    try_out(fs, above, &name).map_err(io_error("write, sync and read back a file in", above))
}
