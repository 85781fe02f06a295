//! The part of the start that brings the folders in line with the log: what the log says is there gets its
//! name, what it says is gone goes, what nobody knows is left where it is and noted, and what was being written
//! when the power went is swept.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hookstead_core::{Digest, Identity, RunName, Seq};

use super::disk::Disk;
use super::entry::Entry;
use super::folder::{io_error, names};
use super::layout::{Kind, PENDING, RecordPath, SOURCES, folder_of};
use super::receipt;
use super::tables::Tables;
use crate::open::OpenError;

/// What a record must be, by what the store knows of it.
#[derive(Debug)]
pub(super) enum Expected {
    /// A body with this digest, of the event with this number.
    Body(Seq, Identity, Digest),
    /// The receipt of a run.
    Receipt(Seq, RunName),
    /// Nothing any more.
    Erased(Identity, Digest),
}

impl Expected {
    /// Whether a file's bytes are that. The error says what is wrong.
    pub(super) fn verify(&self, bytes: &[u8], tables: &Tables) -> Result<(), String> {
        match self {
            Self::Body(_, identity, digest) | Self::Erased(identity, digest) => {
                Entry::body_of(bytes, identity, *digest).map(drop)
            }
            Self::Receipt(seq, run) => {
                let (Some(row), Some(known)) = (tables.events.get(seq), tables.run(*seq, run)) else {
                    return Err("its event is unknown".to_owned());
                };
                receipt::read(bytes, &row.event, run, known).map(drop)
            }
        }
    }
}

/// Every record that the tables know, by its path.
pub(super) fn expected(tables: &Tables, disk: &Disk) -> HashMap<RecordPath, Expected> {
    let mut records = HashMap::new();
    for row in tables.events.values() {
        let event = &row.event;
        let body = |digest, erased| match erased {
            true => Expected::Erased(event.identity.clone(), digest),
            false => Expected::Body(event.seq, event.identity.clone(), digest),
        };
        records.insert(disk.layout.event(row), body(event.digest, !row.is_kept()));
        for (number, variant) in (1..).zip(&row.variants) {
            let record = disk.layout.conflict(&event.source, &event.identity, number);
            records.insert(record, body(variant.digest, variant.erased));
        }
    }
    for (seq, run, _) in tables.runs() {
        if let Some(row) = tables.events.get(&seq) {
            records.insert(disk.layout.receipt(row, run), Expected::Receipt(seq, run.clone()));
        }
    }
    records
}

/// What lies in the folders.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// The folders of records, and those above them.
    pub(super) folders: BTreeSet<RecordPath>,
    /// Every name in them that is no folder of theirs.
    pub(super) records: BTreeSet<RecordPath>,
    /// Every pending name in them, and in the root.
    pub(super) pendings: BTreeSet<RecordPath>,
}

/// Lists every folder of a store.
pub(super) fn scan(disk: &Disk) -> Result<Scan, OpenError> {
    let mut scan = Scan::default();
    let root = list(disk, "")?;
    note_pendings("", &root, &mut scan);
    if disk.layout.is_at_root(super::layout::SEED_SOURCE) {
        scan_source(disk, "", &root, &mut scan)?;
    }
    if !root.iter().any(|name| name == SOURCES) {
        return Ok(scan);
    }
    scan.folders.insert(SOURCES.to_owned());
    let sources = list(disk, SOURCES)?;
    note_pendings(&format!("{SOURCES}/"), &sources, &mut scan);
    for source in sources {
        let folder = format!("{SOURCES}/{source}");
        if source.starts_with(PENDING) || !is_folder(disk, &folder)? {
            continue;
        }
        let names = list(disk, &folder)?;
        let prefix = format!("{folder}/");
        note_pendings(&prefix, &names, &mut scan);
        scan_source(disk, &prefix, &names, &mut scan)?;
        scan.folders.insert(folder);
    }
    Ok(scan)
}

fn note_pendings(prefix: &str, names: &[String], scan: &mut Scan) {
    let pendings = names.iter().filter(|name| name.starts_with(PENDING));
    scan.pendings.extend(pendings.map(|name| format!("{prefix}{name}")));
}

fn scan_source(disk: &Disk, prefix: &str, names: &[String], scan: &mut Scan) -> Result<(), OpenError> {
    for kind in Kind::ALL {
        if !names.iter().any(|name| name == kind.folder()) {
            continue;
        }
        let folder = format!("{prefix}{}", kind.folder());
        for name in list(disk, &folder)? {
            let record = format!("{folder}/{name}");
            let pending = name.starts_with(PENDING);
            if pending { &mut scan.pendings } else { &mut scan.records }.insert(record);
        }
        scan.folders.insert(folder);
    }
    Ok(())
}

fn list(disk: &Disk, folder: &str) -> Result<Vec<String>, OpenError> {
    names(disk.fs.as_ref(), &disk.path(folder))
}

fn is_folder(disk: &Disk, folder: &str) -> Result<bool, OpenError> {
    let path = disk.path(folder);
    let facts = disk.fs.facts(&path).map_err(io_error("look at", &path))?;
    Ok(facts.is_some_and(|facts| facts.is_dir))
}

/// Gives records their own names that have only the one they were written with, and sweeps the other pending
/// names. A pending file whose record has a name that is something else is kept, as the only good copy.
pub(super) fn settle_pendings(
    disk: &Disk,
    tables: &Tables,
    expected: &HashMap<RecordPath, Expected>,
    written: &BTreeMap<RecordPath, RecordPath>,
    scan: &mut Scan,
) -> Result<(), OpenError> {
    let mut keep = BTreeSet::new();
    for (record, pending) in written {
        if !scan.pendings.contains(pending) {
            continue;
        }
        match expected.get(record) {
            None | Some(Expected::Erased(..)) => {}
            Some(_) if !scan.records.contains(record) => {
                let (from, to) = (disk.path(pending), disk.path(record));
                disk.fs.hard_link(&from, &to).map_err(io_error("link", &to))?;
                scan.records.insert(record.clone());
            }
            Some(what) if is_good(disk, record, what, tables) => {}
            Some(_) => {
                tracing::error!(record, pending, "the record is damaged; what was written is kept beside it");
                keep.insert(pending.clone());
            }
        }
    }
    sync_folders(disk, scan)?;
    for pending in scan.pendings.iter().filter(|pending| !keep.contains(*pending)) {
        let path = disk.path(pending);
        disk.fs.remove(&path).map_err(io_error("remove the leftover", &path))?;
    }
    scan.pendings = keep;
    Ok(())
}

fn is_good(disk: &Disk, record: &str, what: &Expected, tables: &Tables) -> bool {
    matches!(disk.read(record), Ok(Some(bytes)) if what.verify(&bytes, tables).is_ok())
}

/// Makes the entries of all folders durable. A name is made and taken away in each first: a sync that failed
/// in an earlier process leaves a folder that counts as clean, and only a change has it written again.
fn sync_folders(disk: &Disk, scan: &Scan) -> Result<(), OpenError> {
    let above = scan.folders.iter().map(|folder| folder_of(folder).to_owned());
    let folders: BTreeSet<String> =
        scan.folders.iter().cloned().chain(above).chain([String::new()]).collect();
    for folder in folders {
        let touch = disk.path(&disk.pending(&touch_in(&folder)));
        let path = disk.path(&folder);
        disk.fs.create_new(&touch).map_err(io_error("write to", &path))?;
        disk.fs.remove(&touch).map_err(io_error("write to", &path))?;
        disk.fs.sync_dir(&path).map_err(io_error("sync", &path))?;
    }
    Ok(())
}

/// Removes the records that the log says are erased and that are there all the same.
pub(super) fn remove_erased(
    disk: &Disk,
    tables: &Tables,
    expected: &HashMap<RecordPath, Expected>,
    scan: &mut Scan,
) -> Result<(), OpenError> {
    for (record, what) in expected {
        let erased = matches!(what, Expected::Erased(..)) && scan.records.contains(record);
        if erased && is_good(disk, record, what, tables) {
            let path = disk.path(record);
            disk.fs.remove(&path).map_err(io_error("remove what was erased", &path))?;
            scan.records.remove(record);
        }
    }
    Ok(())
}

fn touch_in(folder: &str) -> String {
    if folder.is_empty() { "touch".to_owned() } else { format!("{folder}/touch") }
}
