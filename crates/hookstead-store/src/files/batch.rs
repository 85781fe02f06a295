//! A batch that is being worked out: what its writes come to, row by row, over the tables as they are and
//! then as the batch changes them. Nothing is written. In the end the tables are put back, and what is left
//! is the [`Plan`]: the answers, the rows and the files that make them true.
//!
//! So readers never see what is not durable; and since the rows are put again when they are, what is in
//! memory after a commit is what a replay of the log makes of it.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use hookstead_core::{Seq, StoreError, Subject, Timestamp, Write, Written};

use super::disk::Disk;
use super::entry::Entry;
use super::failure::{corrupt, reading};
use super::layout::RecordPath;
use super::row::{EventRow, Row};
use super::start::KIND;
use super::tables::{Tables, Undo};

/// What a batch comes to, and what must be written for it.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) answers: Vec<Written>,
    /// What the log must say.
    pub(super) rows: Vec<Row>,
    /// Counts of duplicates, which the log may say later.
    pub(super) counts: Vec<Row>,
    /// The records that become durable with what the log says.
    pub(super) files: Vec<NewFile>,
    /// Records that an answer rests on, of the event with this number.
    pub(super) rests_on: Vec<(Seq, RecordPath)>,
    /// Records that must not be there once the log has said so.
    pub(super) gone: Vec<RecordPath>,
}

/// A record to be written.
#[derive(Debug)]
pub(super) struct NewFile {
    pub(super) record: RecordPath,
    pub(super) bytes: Bytes,
}

/// Records that were read before the tables were locked.
pub(super) type Cache = HashMap<RecordPath, Bytes>;

/// What a batch may look at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings<'a> {
    pub(super) disk: &'a Disk,
    pub(super) cache: &'a Cache,
    /// What lies in the folders and is no record that the store knows.
    pub(super) strangers: &'a HashSet<RecordPath>,
    pub(super) now: Timestamp,
}

/// A batch in the making.
pub(super) struct Batch<'a> {
    pub(super) tables: &'a mut Tables,
    pub(super) around: Surroundings<'a>,
    pub(super) now: Timestamp,
    plan: Plan,
    undo: Vec<Undo>,
    new_files: HashMap<RecordPath, usize>,
}

/// Works out what `writes` come to. The tables are as before when it returns.
pub(super) fn rehearse(
    tables: &mut Tables,
    around: Surroundings<'_>,
    writes: &[Write],
) -> Result<Plan, StoreError> {
    writes.iter().try_for_each(|write| check_numbers(tables, write))?;
    let mut batch = Batch {
        tables,
        around,
        now: around.now,
        plan: Plan::default(),
        undo: Vec::new(),
        new_files: HashMap::new(),
    };
    let answers = writes.iter().map(|write| batch.write(write)).collect::<Result<_, _>>();
    batch.undo.drain(..).rev().for_each(|undo| batch.tables.undo(undo));
    Ok(Plan { answers: answers?, ..batch.plan })
}

impl Batch<'_> {
    fn write(&mut self, write: &Write) -> Result<Written, StoreError> {
        Ok(match write {
            Write::Accept(acceptance) => Written::Accepted(self.accept(acceptance)?),
            Write::Claim(claim) => Written::Claimed(self.claim(claim)?),
            Write::Extend(extend) => Written::Extended(self.extend(extend)?),
            Write::Settle(settle) => Written::Settled(self.settle(settle)?),
            Write::RecordRun(run) => Written::RunRecorded(self.record_run(run)?),
            Write::Redeliver(step) => Written::Redelivered(self.redeliver(step)?),
            Write::Resolve(resolve) => Written::Resolved(self.resolve(resolve)?),
            Write::Sweep(sweep) => Written::Swept(self.sweep(sweep)?),
            Write::Register(register) => Written::Registered(self.register(register)?),
        })
    }

    /// Changes the tables, for the batch and for the log.
    pub(super) fn put(&mut self, row: Row) -> Result<(), StoreError> {
        self.undo.push(self.tables.put(&row)?);
        self.plan.rows.push(row);
        Ok(())
    }

    /// Changes a count of duplicates: for the batch, and for the log when it is written anyway.
    pub(super) fn put_count(&mut self, row: Row) -> Result<(), StoreError> {
        self.undo.push(self.tables.put(&row)?);
        self.plan.counts.push(row);
        Ok(())
    }

    /// Has a record written. [`StoreError::Corrupt`] if something has its name that the store does not know:
    /// whatever that is, it is not overwritten.
    pub(super) fn put_file(&mut self, record: RecordPath, bytes: Vec<u8>) -> Result<(), StoreError> {
        let path = self.around.disk.path(&record);
        let taken =
            self.around.disk.fs.facts(&path).map_err(|error| reading(&format!("`{record}`"), error))?;
        if taken.is_some() || self.around.strangers.contains(&record) {
            return Err(corrupt(format!("`{record}` is there and is no record that this store wrote")));
        }
        self.new_files.insert(record.clone(), self.plan.files.len());
        self.plan.files.push(NewFile { record, bytes: bytes.into() });
        Ok(())
    }

    /// Has a record removed once its erasure is durable.
    pub(super) fn remove_file(&mut self, record: RecordPath) {
        self.plan.gone.push(record);
    }

    /// Notes that an answer rests on a record.
    pub(super) fn rest_on(&mut self, seq: Seq, record: RecordPath) {
        if !self.new_files.contains_key(&record) {
            self.plan.rests_on.push((seq, record));
        }
    }

    /// Lets `look` at a record that the store knows.
    pub(super) fn with_record<T>(
        &self,
        record: &str,
        look: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<T, StoreError> {
        let damaged = |error| corrupt(format!("`{record}`: {error}"));
        if let Some(index) = self.new_files.get(record) {
            return look(&self.plan.files[*index].bytes).map_err(damaged);
        }
        if let Some(bytes) = self.around.cache.get(record) {
            return look(bytes).map_err(damaged);
        }
        look(&self.tables.record(self.around.disk, record)?).map_err(damaged)
    }

    /// An event's body, verified; `None` if it was erased.
    pub(super) fn body(&self, row: &EventRow) -> Result<Option<Bytes>, StoreError> {
        if !row.is_kept() {
            return Ok(None);
        }
        let event = &row.event;
        let record = self.around.disk.layout.event(row);
        self.with_record(&record, |bytes| Entry::body_of(bytes, &event.identity, event.digest)).map(Some)
    }
}

/// Numbers are looked up before anything else, so that a batch with an unknown one changes nothing; and here no effect
/// can be run.
fn check_numbers(tables: &Tables, write: &Write) -> Result<(), StoreError> {
    let destination = |number| tables.destination(number).map(drop);
    match write {
        Write::Accept(acceptance) => {
            tables.source_name(acceptance.identity().source)?;
            acceptance.facts().destinations.iter().copied().try_for_each(destination)
        }
        Write::Claim(claim) => destination(claim.destination),
        Write::Redeliver(step) => destination(step.plan.destination),
        Write::Resolve(resolve) => match &resolve.subject {
            Subject::AcceptConflict { destinations, .. } => {
                destinations.iter().copied().try_for_each(destination)
            }
            _ => Ok(()),
        },
        Write::Sweep(sweep) => {
            sweep.retention.iter().try_for_each(|rule| tables.source_name(rule.source).map(drop))
        }
        Write::Settle(settle) => match settle.verdict.effect() {
            Some(effect) => Err(effect.refused_by(KIND)),
            None => Ok(()),
        },
        Write::Extend(_) | Write::RecordRun(_) | Write::Register(_) => Ok(()),
    }
}

/// Reads what the writes will be compared with, so that the tables need not be locked for it. What cannot be
/// read is left out, and is met again when it is needed.
pub(super) fn preload(tables: &Tables, disk: &Disk, writes: &[Write]) -> Cache {
    let records = writes.iter().filter_map(|write| needed(tables, disk, write));
    let mut cache = Cache::new();
    for record in records {
        if !cache.contains_key(&record)
            && let Ok(bytes) = tables.record(disk, &record)
        {
            cache.insert(record, bytes);
        }
    }
    cache
}

fn needed(tables: &Tables, disk: &Disk, write: &Write) -> Option<RecordPath> {
    match write {
        Write::Accept(acceptance) => {
            let row = tables.by_identity(acceptance.identity())?;
            row.is_kept().then(|| disk.layout.event(row))
        }
        Write::RecordRun(run) => {
            let row = tables.by_id(&run.event)?;
            tables.run(row.event.seq, &run.run).map(|_| disk.layout.receipt(row, &run.run))
        }
        _ => None,
    }
}
