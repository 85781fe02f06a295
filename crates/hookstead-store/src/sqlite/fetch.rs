//! Fetching events with their bodies for whoever delivers them: many in one read, so that the pages that they share are
//! read once, by one statement, and nothing is counted. Which of them is due it does not know.

use bytes::Bytes;
use hookstead_core::{Body, Event, EventId, Fetched, StoreError};
use rusqlite::{Connection, OptionalExtension, Row};

use super::accept::check_body;
use super::delivery::seq_of;
use super::event::{self, Known, bare};
use super::failure::reading;
use super::ledger::int;
use super::row;

/// Bodies up to this many bytes come along with their events; whether a longer one is wanted is asked before it is read.
const BODY_ALONG_MAX: u64 = 64 * 1024;

/// The columns that [`bare`] reads, with nothing where it would find counts, and the body.
const SQL: &str =
    "SELECT seq, id, source, scope, provider_event_id, event_type, account, received_from, verified_by,
        received_at_us, committed_at_us, digest, body_bytes, erased_at_us, revises, headers, NULL, NULL, 0,
        (SELECT same_body_as FROM reused_bodies WHERE reused_bodies.seq = events.seq),
        CASE WHEN body_bytes <= ?2 THEN body END
     FROM events WHERE seq = (SELECT seq FROM event_ids WHERE id = ?1)";

/// A read of one state of the database, at which the closure is run once at the most.
type Read<'r> = &'r dyn Fn(Fetching<'_>) -> Result<(), StoreError>;
type Fetching<'f> = &'f mut dyn FnMut(&Connection, &Known<'_>) -> Result<(), StoreError>;

/// All of them in one read. A record that is damaged may fail it: then each is read by itself, so that it fails alone.
///
/// # Errors
///
/// What is of no record: the store is busy, say. Each would wait for that as long as all of them did.
pub(super) fn events(
    read: Read<'_>,
    events: &[EventId],
    fits: &mut dyn FnMut(usize, u64) -> bool,
) -> Result<Vec<Fetched>, StoreError> {
    let mut fetched = Vec::new();
    let all = read(&mut |connection, known| {
        fetched = all(connection, known, events, fits)?;
        Ok(())
    });
    match all {
        Ok(()) => return Ok(fetched),
        Err(error) if !may_be_of_a_record(&error) => return Err(error),
        Err(_) => {}
    }
    events.iter().enumerate().map(|(at, id)| alone(read, id, &mut |bytes| fits(at, bytes))).collect()
}

fn alone(read: Read<'_>, id: &EventId, fits: &mut dyn FnMut(u64) -> bool) -> Result<Fetched, StoreError> {
    let mut fetched = Fetched::Unknown;
    let read = read(&mut |connection, known| {
        fetched = one(connection, known, id, fits)?;
        Ok(())
    });
    match read {
        Ok(()) => Ok(fetched),
        Err(error) if may_be_of_a_record(&error) => Ok(Fetched::Failed(error)),
        Err(error) => Err(error),
    }
}

/// Whether another record may be read where this came of one.
fn may_be_of_a_record(error: &StoreError) -> bool {
    match error {
        StoreError::Corrupt { .. } | StoreError::Backend { .. } => true,
        StoreError::Busy { .. } | StoreError::Full { .. } | StoreError::Poisoned { .. } => false,
    }
}

/// All of them, or the first error: which then may be the fault of one.
fn all(
    connection: &Connection,
    known: &Known<'_>,
    events: &[EventId],
    fits: &mut dyn FnMut(usize, u64) -> bool,
) -> Result<Vec<Fetched>, StoreError> {
    let ids = events.iter().enumerate();
    ids.map(|(at, id)| one(connection, known, id, &mut |bytes| fits(at, bytes))).collect()
}

/// One of them.
fn one(
    connection: &Connection,
    known: &Known<'_>,
    id: &EventId,
    fits: &mut dyn FnMut(u64) -> bool,
) -> Result<Fetched, StoreError> {
    let found = connection
        .prepare_cached(SQL)
        .and_then(|mut statement| {
            statement
                .query_row((id.as_bytes(), int(BODY_ALONG_MAX)), |row| read(row, known, id, fits))
                .optional()
        })
        .map_err(reading("fetch an event"))?;
    match found {
        None => without_a_row(connection, id),
        Some(Found::Fetched(fetched)) => Ok(fetched),
        Some(Found::Long(event)) => match event::body_of(connection, event.seq) {
            Ok(Some(body)) => Ok(Fetched::Whole(event, body)),
            Ok(None) => Ok(Fetched::Unknown),
            Err(damaged @ StoreError::Corrupt { .. }) => Ok(Fetched::Failed(damaged)),
            Err(error) => Err(error),
        },
    }
}

/// An event that never was, or one to which the index of ids leads no more.
fn without_a_row(connection: &Connection, id: &EventId) -> Result<Fetched, StoreError> {
    match seq_of(connection, id) {
        Ok(_) => Ok(Fetched::Unknown),
        Err(misled @ StoreError::Corrupt { .. }) => Ok(Fetched::Failed(misled)),
        Err(error) => Err(error),
    }
}

enum Found {
    Fetched(Fetched),
    /// Its body is wanted, and too long to have come along.
    Long(Box<Event>),
}

fn read(
    row: &Row<'_>,
    known: &Known<'_>,
    id: &EventId,
    fits: &mut dyn FnMut(u64) -> bool,
) -> rusqlite::Result<Found> {
    let event = bare(row, known.registry)?;
    if event.id != *id {
        return Ok(Found::Fetched(Fetched::Failed(row::misled(id, event.seq))));
    }
    if !fits(event.body_bytes) {
        return Ok(Found::Fetched(Fetched::TooLarge));
    }
    if event.body_bytes > BODY_ALONG_MAX {
        return Ok(Found::Long(Box::new(event)));
    }
    let body = row.get_ref(20)?.as_blob_or_null()?;
    let checked = check_body(event.seq, &event.digest, event.body_bytes, event.erased_at.is_some(), body);
    Ok(Found::Fetched(match checked {
        Err(damaged) => Fetched::Failed(damaged),
        Ok(()) => {
            let body = body.map_or(Body::Erased, |body| Body::Kept(Bytes::copy_from_slice(body)));
            Fetched::Whole(Box::new(event), body)
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fetches three events where the reads fail with these, one after the other; says how many reads there were.
    fn fetched(failures: &[fn() -> StoreError]) -> (Result<Vec<Fetched>, StoreError>, usize) {
        let reads = std::cell::Cell::new(0);
        let fail = |_: Fetching<'_>| {
            let failure = failures[reads.get()];
            reads.set(reads.get() + 1);
            Err(failure())
        };
        let ids = [1, 2, 3].map(|byte| EventId::from_bytes([byte; 16]));
        (events(&fail, &ids, &mut |_, _| true), reads.get())
    }

    fn busy() -> StoreError {
        StoreError::Busy { what: "all connections are taken".to_owned() }
    }

    fn damaged() -> StoreError {
        row::corrupt("a record")
    }

    #[test]
    fn a_busy_store_is_waited_for_once_and_not_once_for_each_event() {
        let (fetched_at_first, reads) = fetched(&[busy]);
        assert!(matches!(fetched_at_first, Err(StoreError::Busy { .. })), "{fetched_at_first:?}");
        assert_eq!(reads, 1);
        let (fetched_later, reads) = fetched(&[damaged, damaged, busy]);
        assert!(matches!(fetched_later, Err(StoreError::Busy { .. })), "{fetched_later:?}");
        assert_eq!(reads, 3);
    }

    #[test]
    fn what_is_wrong_with_each_is_told_of_each() {
        let (fetched, reads) = fetched(&[damaged as fn() -> StoreError; 4]);
        let fetched = fetched.expect("damage is of a record");
        assert!(fetched.iter().all(|one| matches!(one, Fetched::Failed(StoreError::Corrupt { .. }))));
        assert_eq!((fetched.len(), reads), (3, 4));
    }
}
