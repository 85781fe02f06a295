//! The check: everything is read and compared with its digests, and the tables with each other.
//!
//! It reads in steps, each on a state of its own, so that it does not keep the write-ahead log from being
//! reset for longer than a step. Events that are committed while it runs are not looked at.

use std::path::Path;

use hookstead_core::{
    CheckProblem, CheckProgress, CheckReport, Digest, EventId, EventSelector, Identity, Seq, StoreError,
};
use rusqlite::{Connection, OptionalExtension, Row};

use super::accept::check_body;
use super::body_reuse;
use super::delivery::seq_of;
use super::event::{Known, check_variant, select, seq_of_identity};
use super::failure::reading;
use super::files::wal_path;
use super::identities::{Lookup, pending_count};
use super::ledger::{count, int};
use super::row;

/// How many events a step looks at.
const EVENTS_PER_STEP: u64 = 500;

/// How many entries of the index of bodies a step looks at. Each reads one row of an event, without its body.
const BODIES_PER_STEP: u32 = 5_000;

/// The most that SQLite's own check reports.
const ENGINE_PROBLEMS_MAX: u32 = 100;

/// Up to this size SQLite's own check runs over the whole file, in one step. Beyond it that would hold up
/// the log for too long: then it runs table by table and leaves the events to ours, which reads each.
const ENGINE_CHECKS_ALL_UP_TO_BYTES: i64 = 256 * 1024 * 1024;

/// A step, carried out on one state of the database.
type Step<'s> = &'s mut dyn FnMut(&Connection, &Known<'_>) -> Result<(), StoreError>;

/// Runs the whole check; `read` runs one step of it.
pub(super) fn run(
    progress: &mut dyn FnMut(CheckProgress),
    read: &dyn Fn(Step<'_>) -> Result<(), StoreError>,
) -> Result<CheckReport, StoreError> {
    let mut report = CheckReport::default();
    attempt(&mut report, |report| read(&mut |connection, _| engine(connection, report)));
    let mut total = 0;
    read(&mut |_, known| {
        total = known.published.stats().events;
        Ok(())
    })?;
    let mut done = 0;
    while done < total {
        let last = total.min(done + EVENTS_PER_STEP);
        read(&mut |connection, known| {
            let mut index = Lookup::for_many(connection);
            (done + 1..=last).for_each(|seq| event(connection, known, &mut index, Seq(seq), &mut report));
            Ok(())
        })?;
        done = last;
        progress(CheckProgress { done, total });
    }
    attempt(&mut report, |report| read(&mut |connection, _| loose_ends(connection, report)));
    attempt(&mut report, |report| index_of_bodies(report, read));
    Ok(report)
}

/// The index of bodies, a step at a time.
fn index_of_bodies(
    report: &mut CheckReport,
    read: &dyn Fn(Step<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut after = Some((0, Vec::new(), 0));
    while let Some(place) = after {
        after = None;
        read(&mut |connection, _| {
            after = body_reuse::check_index(connection, &place, BODIES_PER_STEP, report)?;
            Ok(())
        })?;
    }
    Ok(())
}

/// A part that cannot be read is a problem of the store and no failure of the check.
pub(super) fn attempt(
    report: &mut CheckReport,
    part: impl FnOnce(&mut CheckReport) -> Result<(), StoreError>,
) {
    if let Err(error) = part(report) {
        report.add_problem(CheckProblem { event: None, what: error.to_string() });
    }
}

/// SQLite's own check of its pages and indexes.
pub(super) fn engine(connection: &Connection, report: &mut CheckReport) -> Result<(), StoreError> {
    let failed = reading("run SQLite's own check");
    let pages: i64 = pragma(connection, "page_count").map_err(&failed)?;
    let page_bytes: i64 = pragma(connection, "page_size").map_err(&failed)?;
    let scopes = if pages.saturating_mul(page_bytes) <= ENGINE_CHECKS_ALL_UP_TO_BYTES {
        vec![ENGINE_PROBLEMS_MAX.to_string()]
    } else {
        tables(connection).map_err(&failed)?
    };
    for scope in scopes {
        let mut statement = connection.prepare(&format!("PRAGMA quick_check({scope})")).map_err(&failed)?;
        let mut rows = statement.query([]).map_err(&failed)?;
        while let Some(row) = rows.next().map_err(&failed)? {
            let what: String = row.get(0).map_err(&failed)?;
            if what != "ok" {
                report.add_problem(CheckProblem { event: None, what: format!("SQLite: {what}") });
            }
        }
    }
    Ok(())
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

fn tables(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('events')")?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// One event: its row, its body, the conflicts with it, and what points at it.
fn event(
    connection: &Connection,
    known: &Known<'_>,
    index: &mut Lookup<'_>,
    seq: Seq,
    report: &mut CheckReport,
) {
    look_at(connection, seq, report, |found, bodies| {
        let in_index = index_of_identities(connection, known, index, seq, found);
        vec![
            as_it_is_shown(connection, known, seq),
            index_of_ids(connection, seq, &found.id),
            in_index,
            deliveries(connection, seq, &found.id),
            variants(connection, seq, bodies),
            body_reuse::check_mark(connection, seq),
        ]
    });
}

/// An event's row and body, and what `others` finds out about it: every problem goes into the report under its id.
pub(super) fn look_at(
    connection: &Connection,
    seq: Seq,
    report: &mut CheckReport,
    others: impl FnOnce(&Record, &mut u64) -> Vec<Result<(), StoreError>>,
) {
    report.events += 1;
    let found = match record(connection, seq) {
        Ok(Some(found)) => found,
        Ok(None) => return problem(report, None, format!("event {seq} is missing")),
        Err(error) => return problem(report, None, format!("event {seq} cannot be read: {error}")),
    };
    report.bodies += u64::from(found.has_body);
    let others = others(&found, &mut report.bodies);
    for error in [found.body].into_iter().chain(others).filter_map(Result::err) {
        let what = match error {
            StoreError::Corrupt { what } => what,
            other => format!("event {seq}: {other}"),
        };
        problem(report, Some(found.id), what);
    }
}

/// All columns of the event, also those that the check compares with nothing.
fn as_it_is_shown(connection: &Connection, known: &Known<'_>, seq: Seq) -> Result<(), StoreError> {
    select(connection, known, &EventSelector::Seq(seq)).map(drop)
}

/// An event's row, as far as the check looks at it.
pub(super) struct Record {
    pub(super) id: EventId,
    identity: Identity,
    is_revision: bool,
    pub(super) has_body: bool,
    pub(super) body: Result<(), StoreError>,
}

fn record(connection: &Connection, seq: Seq) -> Result<Option<Record>, StoreError> {
    let parse = |row: &Row<'_>| {
        let (digest, body_bytes) = (row::digest(row, 5)?, count(row.get(6)?));
        let (erased_at, body) = (row::optional_time(row, 7)?, row.get_ref(8)?.as_blob_or_null()?);
        Ok(Record {
            id: row::event_id(row, 0)?,
            identity: row::identity(row, 1)?,
            is_revision: row::optional_bytes::<16>(row, 4)?.is_some(),
            has_body: body.is_some(),
            body: check_body(seq, &digest, body_bytes, erased_at.is_some(), body),
        })
    };
    connection
        .prepare_cached(
            "SELECT id, source, scope, provider_event_id, revises, digest, body_bytes, erased_at_us, body
             FROM events WHERE seq = ?1",
        )
        .and_then(|mut statement| statement.query_row([int(seq.0)], parse).optional())
        .map_err(reading("read an event"))
}

pub(super) fn index_of_ids(connection: &Connection, seq: Seq, id: &EventId) -> Result<(), StoreError> {
    match seq_of(connection, id)? {
        Some(found) if found == seq => Ok(()),
        Some(found) => {
            Err(row::corrupt(format!("the index of ids has event {found} for the id of event {seq}")))
        }
        None => Err(row::corrupt(format!("event {seq} is not in the index of ids"))),
    }
}

fn index_of_identities(
    connection: &Connection,
    known: &Known<'_>,
    index: &mut Lookup<'_>,
    seq: Seq,
    event: &Record,
) -> Result<(), StoreError> {
    match seq_of_identity(connection, index, known.identity_key, &event.identity)? {
        Some(found) if event.is_revision || found == seq => Ok(()),
        Some(found) => Err(row::corrupt(format!("events {found} and {seq} have one identity"))),
        None => Err(row::corrupt(format!("event {seq} is not in the index of identities"))),
    }
}

pub(super) fn deliveries(connection: &Connection, seq: Seq, id: &EventId) -> Result<(), StoreError> {
    let strays: i64 = connection
        .prepare_cached(
            "SELECT (SELECT count(*) FROM work WHERE seq = ?1 AND event_id <> ?2)
                + (SELECT count(*) FROM done WHERE seq = ?1 AND event_id <> ?2)
                + (SELECT count(*) FROM work JOIN done USING (seq, destination, generation) WHERE seq = ?1)",
        )
        .and_then(|mut statement| statement.query_row((int(seq.0), id.as_bytes()), |row| row.get(0)))
        .map_err(reading("compare the deliveries of an event"))?;
    if strays == 0 {
        return Ok(());
    }
    Err(row::corrupt(format!("{strays} deliveries of event {seq} contradict it or each other")))
}

pub(super) fn variants(connection: &Connection, seq: Seq, bodies: &mut u64) -> Result<(), StoreError> {
    let failed = reading("read the conflicts with an event");
    let mut statement = connection
        .prepare_cached("SELECT variant, digest, body_bytes, body FROM variants WHERE seq = ?1")
        .map_err(&failed)?;
    let mut rows = statement.query([int(seq.0)]).map_err(&failed)?;
    while let Some(row) = rows.next().map_err(&failed)? {
        let parse = |row: &Row<'_>| -> rusqlite::Result<(u16, Digest, u64)> {
            Ok((row.get(0)?, row::digest(row, 1)?, count(row.get(2)?)))
        };
        let (variant, digest, body_bytes) = parse(row).map_err(&failed)?;
        let body = row.get_ref(3).and_then(|value| Ok(value.as_blob_or_null()?)).map_err(&failed)?;
        *bodies += u64::from(body.is_some());
        check_variant(seq, variant, &digest, body_bytes, body)?;
    }
    Ok(())
}

/// Rows that belong to no event. Each event was found in the indexes, so that counting finds what is left.
fn loose_ends(connection: &Connection, report: &mut CheckReport) -> Result<(), StoreError> {
    const IDENTITIES: &str = "the index of identities";
    const LOOSE_ENDS: [(&str, &str); 5] = [
        ("SELECT coalesce(max(seq), 0) - (SELECT count(*) FROM event_ids) FROM events", "the index of ids"),
        // A revision has the identity of its first event, and was made of a conflict.
        (
            "SELECT coalesce(max(seq), 0) - (SELECT count(*) FROM variants WHERE state = 'accepted')
                - (SELECT count(*) FROM identities) FROM events",
            IDENTITIES,
        ),
        ("SELECT count(*) FROM work WHERE seq < 1 OR seq > (SELECT max(seq) FROM events)", "work"),
        ("SELECT count(*) FROM done WHERE seq < 1 OR seq > (SELECT max(seq) FROM events)", "done"),
        (
            "SELECT count(*) FROM reused_bodies WHERE seq < 1 OR seq > (SELECT max(seq) FROM events)",
            "the marks of bodies",
        ),
    ];
    // Some of the index of identities are pending. Since each event was found, equal numbers say that none is twice.
    let pending = int(pending_count(connection)?);
    for (sql, what) in LOOSE_ENDS {
        let rows: i64 = connection
            .query_row(sql, [], |row| row.get(0))
            .map_err(reading("look for what belongs to no event"))?;
        let rows = if what == IDENTITIES { rows - pending } else { rows };
        if rows != 0 {
            let what = format!("{what} and the events differ by {} rows", rows.abs());
            report.add_problem(CheckProblem { event: None, what });
        }
    }
    Ok(())
}

/// Damage of the write-ahead log, as a problem of the store.
pub(super) fn damaged_log(database: &Path, what: &str) -> CheckProblem {
    CheckProblem {
        event: None,
        what: format!("the log `{}` is damaged: {what}", wal_path(database).display()),
    }
}

fn problem(report: &mut CheckReport, event: Option<EventId>, what: String) {
    report.add_problem(CheckProblem { event, what });
}
