//! Fetching events with their bodies for whoever delivers them: many in one read, so that the pages that they share are
//! read once, by one statement, and nothing is counted. Which of them is due it does not know.

use bytes::Bytes;
use hookstead_core::{Body, Event, EventId, Fetched, StoreError};
use rusqlite::{Connection, OptionalExtension, Row};

use super::accept::check_body;
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

/// All of them, or the first error: which then may be the fault of one.
pub(super) fn all(
    connection: &Connection,
    known: &Known<'_>,
    events: &[EventId],
    fits: &mut dyn FnMut(usize, u64) -> bool,
) -> Result<Vec<Fetched>, StoreError> {
    let ids = events.iter().enumerate();
    ids.map(|(at, id)| one(connection, known, id, &mut |bytes| fits(at, bytes))).collect()
}

/// One of them.
pub(super) fn one(
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
        None => Ok(Fetched::Unknown),
        Some(Found::Fetched(fetched)) => Ok(fetched),
        Some(Found::Long(event)) => match event::body_of(connection, event.seq) {
            Ok(Some(body)) => Ok(Fetched::Whole(event, body)),
            Ok(None) => Ok(Fetched::Unknown),
            Err(error) => Err(error),
        },
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
