//! The part of the start that brings the folders in line with the log: what the journal holds is written again,
//! what the log says is gone goes, what nobody knows is left where it is and noted, and what was being written
//! when the power went is swept.

use std::collections::{BTreeSet, HashMap};
use std::io;

use bytes::Bytes;
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

/// Writes the records anew that the journal holds, all of them: what the folders show may be missing, torn, or
/// in the cache alone. Those that were erased since go.
pub(super) fn restore(
    disk: &Disk,
    expected: &HashMap<RecordPath, Expected>,
    records: &[(RecordPath, Bytes)],
) -> Result<(), OpenError> {
    for (record, bytes) in records {
        let path = disk.path(record);
        match expected.get(record) {
            Some(Expected::Erased(..)) => match disk.fs.remove(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(io_error("remove what was erased", &path)(error));
                }
                _ => {}
            },
            _ => write_again(disk, record, bytes).map_err(io_error("write again", &path))?,
        }
    }
    match &disk.volume {
        Some(volume) => volume.sync().map_err(io_error("sync the file system of", disk.layout.root())),
        None => Ok(()),
    }
}

/// Into the file that is there, if there is one: to take it away and make another costs ext4 forty times as
/// much. All of its bytes are written, so that all of them are synced, whatever became of them before.
fn write_again(disk: &Disk, record: &str, bytes: &[u8]) -> io::Result<()> {
    let file = disk.fs.open_or_create(&disk.path(record))?;
    file.write_all_at(bytes, 0)?;
    file.set_len(bytes.len() as u64)?;
    if disk.volume.is_none() { file.sync() } else { Ok(()) }
}

/// Sweeps what was being written when the store was left.
pub(super) fn sweep_pendings(disk: &Disk, scan: &Scan) -> Result<(), OpenError> {
    sync_folders(disk, scan)?;
    for pending in &scan.pendings {
        let path = disk.path(pending);
        disk.fs.remove(&path).map_err(io_error("remove the leftover", &path))?;
    }
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
