//! The part of the start that reads the log and the journal, from the disk and not from what the page cache
//! pretends, and makes the tables of them. Nothing is changed.
//!
//! The log is certain up to where the first segment of the journal begins; behind that it may be torn anywhere,
//! and the journal says the same with certainty. Only the newest segments count, in a row without a gap: an
//! earlier one that is still there was dropped, and its removal did not reach the disk. Without any segment the
//! store was closed, or was just made, and all of the log counts.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::disk::Disk;
use super::folder::{self, io_error};
use super::journal::{self, Segment};
use super::layout::{LOG, RecordPath, segment, segment_number};
use super::log::{self, Batch, Chain};
use super::tables::Tables;
use crate::open::OpenError;

/// What the log and the journal say.
#[derive(Debug, Default)]
pub(super) struct Replayed {
    pub(super) tables: Tables,
    /// Records that may not be durable but in the journal.
    pub(super) records: Vec<(RecordPath, Bytes)>,
    /// Every segment that is there, to be removed when a new log is.
    pub(super) segments: Vec<RecordPath>,
    /// A number that no segment has or had.
    pub(super) next_segment: u64,
}

/// The bytes of each segment that is there, by its number.
type Segments = BTreeMap<u64, Bytes>;

pub(super) fn read(disk: &Disk) -> Result<Replayed, OpenError> {
    let (root, path) = (disk.layout.root(), disk.path(LOG));
    let damaged = |what: String| OpenError::Damaged { path: root.to_owned(), what, step: None };
    if disk.fs.facts(&path).map_err(io_error("look at", &path))?.is_none() {
        let what = "it holds the state of all work; put it back, or make an empty one to start over from the \
                    entries alone";
        return Err(damaged(format!("`{LOG}` is missing: {what}")));
    }
    let log = read_from_disk(disk, LOG)?;
    let all = segments(disk)?;
    let first = match all.is_empty() || log.is_empty() {
        true => 0,
        false => log::journal_of(&log).map_err(|error| damaged(format!("`{LOG}`, {error}")))?,
    };
    let mut replayed = Replayed {
        segments: all.keys().map(|number| segment(*number)).collect(),
        next_segment: all.keys().next_back().map_or(first, |last| first.max(last.saturating_add(1))),
        ..Replayed::default()
    };
    let valid = valid(&all, first).map_err(damaged)?;
    match log.is_empty() {
        true => replayed.add_lost(&valid),
        false => replayed.add(&log, &valid).map_err(damaged)?,
    }
    Ok(replayed)
}

fn read_from_disk(disk: &Disk, name: &str) -> Result<Bytes, OpenError> {
    let path = disk.path(name);
    disk.fs.evict(&path).map_err(io_error("sync", &path))?;
    folder::read(disk.fs.as_ref(), &path).map(Bytes::from)
}

fn segments(disk: &Disk) -> Result<Segments, OpenError> {
    let names = folder::names(disk.fs.as_ref(), disk.layout.root())?;
    let numbers = names.iter().filter_map(|name| segment_number(name));
    numbers.map(|number| Ok((number, read_from_disk(disk, &segment(number))?))).collect()
}

/// The segments that count, each with its bytes. The error names what is damaged.
fn valid(all: &Segments, first: u64) -> Result<Vec<(&Bytes, Segment<'_>)>, String> {
    let mut valid: Vec<(&Bytes, Segment<'_>)> = Vec::new();
    for (number, bytes) in all.range(first..).rev() {
        let is_last = all.last_key_value().is_some_and(|(last, _)| last == number);
        if valid.last().is_some_and(|(_, after)| after.begin.journal != number.saturating_add(1)) {
            break;
        }
        let read = journal::read(bytes).and_then(|segment| match segment {
            None if is_last => Ok(None),
            None => Err("it is empty".to_owned()),
            Some(segment) if segment.begin.journal != *number => Err("it is another segment".to_owned()),
            Some(segment) if segment.torn_bytes > 0 && !valid.is_empty() => {
                Err("its last batch is torn, and another segment goes on".to_owned())
            }
            Some(segment) => Ok(Some(segment)),
        });
        let read = read.map_err(|error| format!("`{}`: {error}", segment(*number)))?;
        valid.extend(read.map(|segment| (bytes, segment)));
    }
    valid.reverse();
    Ok(valid)
}

impl Replayed {
    /// Takes the log up to where the journal begins, and the journal.
    fn add(&mut self, log: &Bytes, journal: &[(&Bytes, Segment<'_>)]) -> Result<(), String> {
        let Some((_, Segment { begin, .. })) = journal.first() else {
            let replay = self.add_log(log)?;
            warn_of_torn(LOG, replay.torn_bytes);
            return Ok(());
        };
        let certain = usize::try_from(begin.log_bytes).ok().and_then(|bytes| log.get(..bytes));
        let certain = certain.ok_or_else(|| format!("`{LOG}` is shorter than the journal says"))?;
        let replay = self.add_log(certain)?;
        let mut chain = replay.chain;
        for (bytes, segment) in journal {
            if segment.begin.chain() != chain {
                return Err(format!("`{}` does not go on where the log ends", name(segment)));
            }
            chain = self.add_segment(bytes, segment, chain)?;
            warn_of_torn(&name(segment), segment.torn_bytes);
        }
        Ok(())
    }

    fn add_log(&mut self, text: &[u8]) -> Result<log::Replay, String> {
        log::replay(text, |batch| put(&mut self.tables, &batch)).map_err(|error| format!("`{LOG}`, {error}"))
    }

    fn add_segment(
        &mut self,
        bytes: &Bytes,
        segment: &Segment<'_>,
        mut chain: Chain,
    ) -> Result<Chain, String> {
        for batch in &segment.batches {
            let (rows, next) =
                chain.read(batch.line).map_err(|error| format!("`{}`: {error}", name(segment)))?;
            put(&mut self.tables, &rows).map_err(|error| format!("`{}`: {error}", name(segment)))?;
            chain = next;
        }
        self.add_records(bytes, segment);
        Ok(chain)
    }

    fn add_records(&mut self, bytes: &Bytes, segment: &Segment<'_>) {
        let records = segment.batches.iter().flat_map(|batch| &batch.records);
        self.records.extend(records.map(|(record, part)| (record.clone(), bytes.slice_ref(part))));
    }

    /// The log was lost: what the journal knows of it hangs in the air, but its records are good.
    fn add_lost(&mut self, journal: &[(&Bytes, Segment<'_>)]) {
        journal.iter().for_each(|(bytes, segment)| self.add_records(bytes, segment));
    }
}

fn put(tables: &mut Tables, batch: &Batch) -> Result<(), String> {
    batch.rows.iter().try_for_each(|row| tables.put(row).map(drop)).map_err(|error| error.to_string())
}

fn name(of: &Segment<'_>) -> RecordPath {
    segment(of.begin.journal)
}

fn warn_of_torn(file: &str, bytes: usize) {
    if bytes > 0 {
        tracing::warn!(file, bytes, "what was written last was cut short; it is left out");
    }
}
