//! The tables of the index: `identities` by hash, `pending_identities` by sequence number, and the marks of the ranges.
//! The tables decide what is pending: a hash whose event is beyond the mark of its range. It knows nothing of batches.

use std::iter;

use hookstead_core::{IdentityHash, Seq, StoreError};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};

use super::super::failure::{reading, writing};
use super::super::ledger::int;
use super::super::row::{self, corrupt};
use super::super::rows::{self, Inserts, inserts};
use super::pending::{Pending, range_of};
use crate::open::{IdentityFilter, IdentityFlush};

/// Bytes of a hash.
const HASH_BYTES: usize = 16;

const IDENTITIES: Inserts = inserts!("identities (hash, seq)");

/// Reads what is pending, as the database says it: at a start, and after a commit of which nobody knows what became of
/// it. No events are read; there is at most a megabyte. Its filters know nothing yet.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if a hash is pending twice or the tables contradict themselves.
pub(in crate::sqlite) fn load(
    connection: &Connection,
    when: IdentityFlush,
    filter: IdentityFilter,
) -> Result<Pending, StoreError> {
    let marks = marks(connection)?;
    let mut pending = Pending::new(&marks, when, filter);
    let mut twice = None;
    for_each_pending(connection, &marks, |hash, seq| {
        if !pending.insert(hash, seq) {
            twice.get_or_insert(seq);
        }
    })?;
    match twice {
        None => Ok(pending),
        Some(seq) => Err(corrupt(format!("the hash of event {seq} was taken by another event before it"))),
    }
}

/// How many hashes are pending.
pub(in crate::sqlite) fn pending_count(connection: &Connection) -> Result<u64, StoreError> {
    let mut hashes = 0;
    for_each_pending(connection, &marks(connection)?, |_, _| hashes += 1)?;
    Ok(hashes)
}

/// Calls `each` with every hash that is pending, by its event's sequence number.
pub(super) fn for_each_pending(
    connection: &Connection,
    marks: &[Seq],
    mut each: impl FnMut(IdentityHash, Seq),
) -> Result<(), StoreError> {
    let failed = reading("read the pending identities");
    let oldest = marks.iter().min().copied().unwrap_or(Seq(0));
    let mut statement = connection
        .prepare_cached(
            "SELECT last_seq, hashes, last_seq > (SELECT coalesce(max(seq), 0) FROM events)
             FROM pending_identities WHERE last_seq > ?1 ORDER BY last_seq",
        )
        .map_err(&failed)?;
    let mut rows = statement.query([int(oldest.0)]).map_err(&failed)?;
    let mut before = Seq(0);
    while let Some(row) = rows.next().map_err(&failed)? {
        let last = row::seq(row, 0).map_err(&failed)?;
        let Some((first, hashes)) = run(row, last, before).map_err(&failed)? else {
            let what = format!("the pending identities up to event {last} do not fit to those around them");
            return Err(corrupt(what));
        };
        for (hash, seq) in iter::zip(hashes, first..) {
            let (hash, seq) = (IdentityHash(*hash), Seq(seq));
            if seq > marks[usize::from(range_of(hash))] {
                each(hash, seq);
            }
        }
        before = last;
    }
    Ok(())
}

/// The number of the first event of a row, and the hashes.
type Run<'r> = (u64, &'r [[u8; HASH_BYTES]]);

/// What a row holds that ends at `last`. `None`: that cannot be, since the row before ends at `before`.
fn run<'r>(row: &'r Row<'_>, last: Seq, before: Seq) -> rusqlite::Result<Option<Run<'r>>> {
    let is_beyond_events: bool = row.get(2)?;
    let ValueRef::Blob(bytes) = row.get_ref(1)? else { return Ok(None) };
    let (hashes, rest) = bytes.as_chunks();
    let first = (last.0 + 1).checked_sub(hashes.len() as u64).filter(|first| *first > before.0);
    let is_sound = rest.is_empty() && !hashes.is_empty() && !is_beyond_events;
    Ok(first.filter(|_| is_sound).map(|first| (first, hashes)))
}

/// The marks of the ranges.
pub(super) fn marks(connection: &Connection) -> Result<Vec<Seq>, StoreError> {
    let failed = reading("read the ranges of identities");
    let marks: Vec<(u8, Seq)> = connection
        .prepare_cached("SELECT number, flushed_to FROM identity_ranges ORDER BY number")
        .and_then(|mut statement| {
            statement.query_map([], |row| Ok((row.get(0)?, row::seq(row, 1)?)))?.collect()
        })
        .map_err(&failed)?;
    if !marks.iter().map(|(number, _)| *number).eq(0..=u8::MAX) {
        return Err(corrupt("the table of the ranges of identities does not have one row for each range"));
    }
    Ok(marks.into_iter().map(|(_, flushed_to)| flushed_to).collect())
}

/// Writes down hashes that were taken, by sequence number.
pub(super) fn append(connection: &Connection, by_seq: &[(Seq, IdentityHash)]) -> Result<(), StoreError> {
    let failed = writing("write down the pending identities");
    let mut statement = connection
        .prepare_cached("INSERT INTO pending_identities (last_seq, hashes) VALUES (?1, ?2)")
        .map_err(&failed)?;
    for run in by_seq.chunk_by(|(one, _), (next, _)| next.0 == one.0 + 1) {
        let hashes: Vec<u8> = run.iter().flat_map(|(_, hash)| hash.0).collect();
        let last = run.last().map_or(0, |(seq, _)| int(seq.0));
        statement.execute((last, hashes)).map_err(&failed)?;
    }
    Ok(())
}

/// Moves hashes into the index. They must be sorted, so that each page is changed once.
pub(super) fn insert(connection: &Connection, sorted: &[(IdentityHash, Seq)]) -> Result<(), StoreError> {
    rows::insert(connection, &IDENTITIES, sorted, |hash| &hash.0).map_err(|failed| match failed.taken {
        // Nobody could take it while it was there.
        Some(seq) => {
            corrupt(format!("the hash of event {seq} was pending and is in the index of identities already"))
        }
        None => writing("flush identities")(failed.error),
    })
}

/// The hashes of a range that are in the index, sorted: up to `max` of them, those behind `after`.
///
/// What is not among them counts as new from then on, so that an index which is out of order must be noticed here: then
/// it is [`StoreError::Poisoned`], as where a flush meets damage.
pub(super) fn range(
    connection: &Connection,
    range: u8,
    after: Option<IdentityHash>,
    max: usize,
) -> Result<Vec<IdentityHash>, StoreError> {
    let failed = writing("read a range of identities");
    let mut last = [u8::MAX; HASH_BYTES];
    last[0] = range;
    // The byte alone is before every hash that begins with it.
    let first = [range];
    let after = after.as_ref().map_or(&first[..], |hash| &hash.0);
    let hash = |row: &Row<'_>| row.get(0).map(IdentityHash);
    let sql = "SELECT hash FROM identities WHERE hash > ?1 AND hash <= ?2 ORDER BY hash LIMIT ?3";
    let hashes: Vec<IdentityHash> = connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.query_map((after, last, int(max as u64)), hash)?.collect())
        .map_err(&failed)?;
    let is_in_order = hashes.is_sorted_by(|one, next| one < next)
        && hashes.iter().all(|hash| range_of(*hash) == range && hash.0.as_slice() > after);
    // A key that was changed may end the reading before the end: seen from there, the last one is another.
    let sql = "SELECT hash FROM identities WHERE hash > ?1 AND hash <= ?2 ORDER BY hash DESC LIMIT 1";
    let ends_there = hashes.len() == max
        || connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row((after, last), hash).optional())
            .map_err(&failed)?
            == hashes.last().copied();
    if is_in_order && ends_there {
        return Ok(hashes);
    }
    let reason = format!("the index of identities is out of order in its range {range}");
    Err(StoreError::Poisoned { reason })
}

/// Moves the mark of a range.
pub(super) fn mark(connection: &Connection, range: u8, flushed_to: Seq) -> Result<(), StoreError> {
    let changed = connection
        .prepare_cached("UPDATE identity_ranges SET flushed_to = ?2 WHERE number = ?1")
        .and_then(|mut statement| statement.execute((range, int(flushed_to.0))))
        .map_err(writing("mark a range of identities"))?;
    if changed == 1 {
        return Ok(());
    }
    Err(corrupt(format!("range {range} of the identities is not in its table")))
}

/// Drops the rows that hold nothing pending: every range was flushed up to `oldest`.
pub(super) fn forget(connection: &Connection, oldest: Seq) -> Result<(), StoreError> {
    connection
        .prepare_cached("DELETE FROM pending_identities WHERE last_seq <= ?1")
        .and_then(|mut statement| statement.execute([int(oldest.0)]))
        .map(drop)
        .map_err(writing("drop identities that are flushed"))
}
