//! Check: every record is read and compared with what the store knows of it, and what lies in the folders and
//! is no record is named. Nothing is changed.

use std::collections::BTreeSet;
use std::sync::RwLock;

use bytes::Bytes;
use hookstead_core::{CheckProblem, CheckProgress, CheckReport, EventId, StoreError};

use super::disk::Disk;
use super::layout::{Kind, LOCK, LOG, MARKER, PENDING, RecordPath, SOURCES, segment_number};
use super::recover::{Expected, expected, scan};
use super::tables::Tables;
use super::writer::panicked;

/// How many records are read between two reports of progress.
const PROGRESS_EVERY: u64 = 256;

pub(super) fn run(
    disk: &Disk,
    tables: &RwLock<Tables>,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<CheckReport, StoreError> {
    let read = || tables.read().map_err(panicked);
    let (records, events) = {
        let tables = read()?;
        let mut records: Vec<_> = expected(&tables, disk).into_iter().collect();
        records.sort_by(|(a, _), (b, _)| a.cmp(b));
        (records, tables.events.len() as u64)
    };
    let mut report = CheckReport { events, ..CheckReport::default() };
    let total = records.len() as u64;
    for (done, (record, what)) in (1..).zip(&records) {
        check_one(disk, tables, record, what, &mut report)?;
        if done % PROGRESS_EVERY == 0 {
            progress(CheckProgress { done: done * events / total.max(1), total: events });
        }
    }
    name_strangers(disk, tables, &mut report)?;
    progress(CheckProgress { done: events, total: events });
    Ok(report)
}

fn check_one(
    disk: &Disk,
    tables: &RwLock<Tables>,
    record: &str,
    what: &Expected,
    report: &mut CheckReport,
) -> Result<(), StoreError> {
    if matches!(what, Expected::Erased(..)) {
        return Ok(());
    }
    report.bodies += u64::from(matches!(what, Expected::Body(..)));
    let unwritten = tables.read().map_err(panicked)?.unwritten.get(record).cloned();
    let bytes = unwritten.map_or_else(|| disk.read_known(record).map(Bytes::from), Ok);
    let tables = tables.read().map_err(panicked)?;
    let wrong = match bytes {
        Ok(bytes) => what.verify(&bytes, &tables).err().map(|error| format!("`{record}`: {error}")),
        Err(error) => Some(error.to_string()),
    };
    // It may have been erased since the list was made.
    if let Some(wrong) = wrong
        && !is_erased_now(&tables, what)
    {
        report.add_problem(CheckProblem { event: event_of(&tables, what), what: wrong });
    }
    Ok(())
}

fn is_erased_now(tables: &Tables, what: &Expected) -> bool {
    match what {
        Expected::Body(seq, ..) => tables.events.get(seq).is_some_and(|row| !row.is_kept()),
        Expected::Receipt(..) | Expected::Erased(..) => false,
    }
}

fn event_of(tables: &Tables, what: &Expected) -> Option<EventId> {
    match what {
        Expected::Body(seq, ..) | Expected::Receipt(seq, _) => tables.events.get(seq).map(|row| row.event.id),
        Expected::Erased(..) => None,
    }
}

fn name_strangers(disk: &Disk, tables: &RwLock<Tables>, report: &mut CheckReport) -> Result<(), StoreError> {
    let found = scan(disk).map_err(|error| StoreError::backend("list the store's folders", error))?;
    let known: BTreeSet<RecordPath> = {
        let tables = tables.read().map_err(panicked)?;
        let records = expected(&tables, disk).into_iter();
        records.filter(|(_, what)| !matches!(what, Expected::Erased(..))).map(|(record, _)| record).collect()
    };
    let mut strangers: BTreeSet<RecordPath> =
        found.records.into_iter().filter(|record| !known.contains(record)).collect();
    strangers.extend(strange_folders(disk)?);
    for record in strangers {
        let what = format!("`{record}` is no record of this store; it is served to nobody and left alone");
        report.add_problem(CheckProblem { event: None, what });
    }
    Ok(())
}

/// What lies in the root and in the sources' folders and does not belong there.
fn strange_folders(disk: &Disk) -> Result<Vec<RecordPath>, StoreError> {
    let list = |folder: &str| {
        let names = super::folder::names(disk.fs.as_ref(), &disk.path(folder));
        names.map_err(|error| StoreError::backend("list the store's folders", error))
    };
    let is_kind = |name: &str| Kind::ALL.iter().any(|kind| kind.folder() == name);
    let root = list("")?;
    let at_root = disk.layout.is_at_root(super::layout::SEED_SOURCE);
    let belongs = |name: &str| {
        [MARKER, LOG, LOCK, SOURCES, "lost+found"].contains(&name)
            || name.starts_with(PENDING)
            || segment_number(name).is_some()
            || (at_root && is_kind(name))
    };
    let mut strange: Vec<RecordPath> = root.iter().filter(|name| !belongs(name)).cloned().collect();
    if !root.iter().any(|name| name == SOURCES) {
        return Ok(strange);
    }
    for source in list(SOURCES)?.into_iter().filter(|name| !name.starts_with(PENDING)) {
        let folder = format!("{SOURCES}/{source}");
        let facts = disk.fs.facts(&disk.path(&folder));
        if !facts.is_ok_and(|facts| facts.is_some_and(|facts| facts.is_dir)) {
            strange.push(folder);
            continue;
        }
        let inside = list(&folder)?.into_iter().filter(|name| !is_kind(name) && !name.starts_with(PENDING));
        strange.extend(inside.map(|name| format!("{folder}/{name}")));
    }
    Ok(strange)
}
