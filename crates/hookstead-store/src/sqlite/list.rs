//! Reading lists, in pages that a cursor continues.

use hookstead_core::{
    Attempt, Conflict, ConflictFilter, Delivery, DeliveryFilter, DeliveryId, DestinationNumber, Event,
    EventFilter, EventId, LeaseToken, List, Order, Page, Redelivery, RedeliveryState, RunReceipt, Seq,
    SourceNumber, StateName, StoreError, Timestamp,
};
use rusqlite::{Connection, Row};

use super::delivery::{self, seq_of};
use super::event::{self, Known};
use super::failure::reading;
use super::ledger::{count, int, source_name};
use super::walk::{Place, Reach, Stretch, Walk, walk};
use super::{redeliver, row, run};

/// What reads one stretch of a walk.
type Read<'r> = &'r dyn Fn(Stretch<'_>) -> Result<(), StoreError>;

/// A page of events.
pub(super) fn events(read: Read<'_>, filter: &EventFilter, page: &Page) -> Result<List<Event>, StoreError> {
    events_within(Reach::USUAL, read, filter, page)
}

pub(super) fn events_within(
    reach: Reach,
    read: Read<'_>,
    filter: &EventFilter,
    page: &Page,
) -> Result<List<Event>, StoreError> {
    walk(reach, page, |walk| {
        read(&mut |connection, known| stretch_of_events(connection, known, filter, walk))
    })
}

/// What a filter asks of comes first, by itself: what else an event is made of is read of those alone that it takes.
fn stretch_of_events(
    connection: &Connection,
    known: &Known<'_>,
    filter: &EventFilter,
    walk: &mut Walk<Event>,
) -> Result<(), StoreError> {
    const DOING: &str = "list events";
    let failed = reading(DOING);
    let sql = match walk.order() {
        Order::OldestFirst => EVENTS_OLDEST_FIRST,
        Order::NewestFirst => EVENTS_NEWEST_FIRST,
    };
    let mut statement = connection.prepare_cached(sql).map_err(&failed)?;
    let at = walk.at().map(|[seq, ..]| int(seq));
    let mut rows = statement.query((at, walk.rows_max())).map_err(&failed)?;
    walk.take(&mut rows, DOING, |row| {
        let seq = row::seq(row, 0).map_err(&failed)?;
        let event = if is_asked_for(row, filter).map_err(&failed)? {
            event::by_seq(connection, known, seq)?
        } else {
            None
        };
        Ok(([seq.0, 0, 0], event))
    })
}

/// [`EventFilter::matches`], of a row of the statements below.
fn is_asked_for(row: &Row<'_>, filter: &EventFilter) -> rusqlite::Result<bool> {
    let source = SourceNumber(row.get(1)?);
    if filter.source.is_some_and(|wanted| wanted != source) {
        return Ok(false);
    }
    let committed_at = row::time(row, 3)?;
    if filter.committed_from.is_some_and(|from| committed_at < from)
        || filter.committed_before.is_some_and(|before| committed_at >= before)
    {
        return Ok(false);
    }
    let Some(pattern) = &filter.event_type else { return Ok(true) };
    Ok(pattern.matches(row.get::<_, Option<String>>(2)?.as_deref()))
}

macro_rules! events_sql {
    ($beyond:literal, $order:literal) => {
        concat!(
            "SELECT seq, source, event_type, committed_at_us FROM events WHERE seq ",
            $beyond,
            " ORDER BY seq ",
            $order,
            " LIMIT ?2"
        )
    };
}

const EVENTS_OLDEST_FIRST: &str = events_sql!("> coalesce(?1, 0)", "");
const EVENTS_NEWEST_FIRST: &str = events_sql!("< coalesce(?1, 9223372036854775807)", "DESC");

/// A page of redeliveries.
pub(super) fn redeliveries(
    read: Read<'_>,
    state: Option<RedeliveryState>,
    page: &Page,
) -> Result<List<Redelivery>, StoreError> {
    walk(Reach::USUAL, page, |walk| read(&mut |connection, _| redeliver::stretch(connection, state, walk)))
}

/// A page of deliveries.
pub(super) fn deliveries(
    read: Read<'_>,
    filter: &DeliveryFilter,
    page: &Page,
) -> Result<List<Delivery>, StoreError> {
    deliveries_within(Reach::USUAL, read, filter, page)
}

pub(super) fn deliveries_within(
    reach: Reach,
    read: Read<'_>,
    filter: &DeliveryFilter,
    page: &Page,
) -> Result<List<Delivery>, StoreError> {
    walk(reach, page, |walk| read(&mut |connection, _| stretch_of_deliveries(connection, filter, walk)))
}

fn stretch_of_deliveries(
    connection: &Connection,
    filter: &DeliveryFilter,
    walk: &mut Walk<Delivery>,
) -> Result<(), StoreError> {
    const DOING: &str = "list deliveries";
    let failed = reading(DOING);
    let Some(Span { low, high }) = Span::of(connection, filter.event.as_ref(), walk)? else {
        return walk.end();
    };
    let order = direction(walk.order());
    let tables: &[&str] = match filter.state {
        None => &["work", "done"],
        Some(StateName::Done) => &["done"],
        Some(_) => &["work"],
    };
    let parts: Vec<String> = tables
        .iter()
        .map(|table| {
            format!(
                "SELECT {} FROM {table} WHERE (seq, destination, generation) > (?1, ?2, ?3)
                 AND (seq, destination, generation) < (?4, ?5, ?6)",
                delivery::columns!()
            )
        })
        .collect();
    let sql = format!(
        "{} ORDER BY seq {order}, destination {order}, generation {order} LIMIT ?7",
        parts.join(" UNION ALL ")
    );
    let mut statement = connection.prepare_cached(&sql).map_err(&failed)?;
    let mut rows = statement
        .query((low[0], low[1], low[2], high[0], high[1], high[2], walk.rows_max()))
        .map_err(&failed)?;
    walk.take(&mut rows, DOING, |row| delivery_if_asked_for(row, filter).map_err(&failed))
}

/// Only what is asked for is made a delivery of.
fn delivery_if_asked_for(
    row: &Row<'_>,
    filter: &DeliveryFilter,
) -> rusqlite::Result<(Place, Option<Delivery>)> {
    let (Seq(seq), destination, generation): (_, u32, u32) = (row::seq(row, 0)?, row.get(1)?, row.get(2)?);
    let place = [seq, u64::from(destination), u64::from(generation)];
    let is_asked_for = filter.destination.is_none_or(|wanted| wanted.0 == destination)
        && match filter.state {
            Some(state) => row::word(row, 4)? == state.as_str(),
            None => true,
        };
    let delivery = if is_asked_for { Some(delivery::keyed(row)?.1) } else { None };
    Ok((place, delivery))
}

/// The keys of a walk, between two that do not belong to it.
struct Span {
    low: [i64; 3],
    high: [i64; 3],
}

impl Span {
    /// What is left of the list, or of the part of it that is about one event. `None`: there is no such event.
    fn of<T>(
        connection: &Connection,
        event: Option<&EventId>,
        walk: &Walk<T>,
    ) -> Result<Option<Self>, StoreError> {
        // No destination, generation or variant has the number 0.
        let mut span = Self { low: [0; 3], high: [i64::MAX; 3] };
        if let Some(id) = event {
            let Some(Seq(seq)) = seq_of(connection, id)? else { return Ok(None) };
            span = Self { low: [int(seq), 0, 0], high: [int(seq.saturating_add(1)), 0, 0] };
        }
        let at = walk.at().map(|place| place.map(int));
        match (walk.order(), at) {
            (_, None) => {}
            (Order::OldestFirst, Some(at)) => span.low = span.low.max(at),
            (Order::NewestFirst, Some(at)) => span.high = span.high.min(at),
        }
        Ok(Some(span))
    }
}

fn direction(order: Order) -> &'static str {
    match order {
        Order::OldestFirst => "",
        Order::NewestFirst => "DESC",
    }
}

/// A page of conflicts.
pub(super) fn conflicts(
    read: Read<'_>,
    filter: &ConflictFilter,
    page: &Page,
) -> Result<List<Conflict>, StoreError> {
    walk(Reach::USUAL, page, |walk| {
        read(&mut |connection, known| stretch_of_conflicts(connection, known, filter, walk))
    })
}

/// Each row that is looked at is listed: those that are open have an index of their own.
fn stretch_of_conflicts(
    connection: &Connection,
    known: &Known<'_>,
    filter: &ConflictFilter,
    walk: &mut Walk<Conflict>,
) -> Result<(), StoreError> {
    const DOING: &str = "list conflicts";
    let failed = reading(DOING);
    let Some(Span { low, high }) = Span::of(connection, filter.event.as_ref(), walk)? else {
        return walk.end();
    };
    let (order, open) =
        (direction(walk.order()), if filter.open_only { "AND variants.state = 'open'" } else { "" });
    let sql = format!(
        "SELECT variants.seq, variants.variant, events.id, events.source, variants.digest,
            variants.body_bytes, variants.headers, variants.received_at_us, variants.state,
            variants.revision, variants.decision_by, variants.decision_note, variants.decision_at_us
         FROM variants CROSS JOIN events ON events.seq = variants.seq
         WHERE (variants.seq, variants.variant) > (?1, ?2) AND (variants.seq, variants.variant) < (?3, ?4) {open}
         ORDER BY variants.seq {order}, variants.variant {order} LIMIT ?5"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(&failed)?;
    let mut rows = statement.query((low[0], low[1], high[0], high[1], walk.rows_max())).map_err(&failed)?;
    walk.take(&mut rows, DOING, |row| {
        let conflict = conflict(row, known).map_err(&failed)?;
        Ok(([conflict.seq.0, u64::from(conflict.variant), 0], Some(conflict)))
    })
}

fn conflict(row: &Row<'_>, known: &Known<'_>) -> rusqlite::Result<Conflict> {
    let source = source_name(known.registry, SourceNumber(row.get(3)?));
    Ok(Conflict {
        seq: row::seq(row, 0)?,
        variant: row.get(1)?,
        event: row::event_id(row, 2)?,
        source: source.cloned().ok_or_else(|| row::bad_word(3, "a source that was never registered"))?,
        digest: row::digest(row, 4)?,
        body_bytes: count(row.get(5)?),
        headers: row::headers(row, 6)?,
        received_at: row::time(row, 7)?,
        state: super::conflict::state(row, 8)?,
    })
}

/// The attempts of a delivery, oldest first.
pub(super) fn attempts(connection: &Connection, id: &DeliveryId) -> Result<Vec<Attempt>, StoreError> {
    let Some(seq) = seq_of(connection, &id.event)? else { return Ok(Vec::new()) };
    connection
        .prepare_cached(
            "SELECT token, number, started_at_us, took_us, status, excerpt, error, rule FROM attempts
             WHERE seq = ?1 AND destination = ?2 AND generation = ?3 ORDER BY ordinal",
        )
        .and_then(|mut statement| {
            statement.query_map((int(seq.0), id.destination.0, id.generation), attempt)?.collect()
        })
        .map_err(reading("list attempts"))
}

/// The receipts of an event's runs, by run name.
pub(super) fn runs(connection: &Connection, event: &EventId) -> Result<Vec<RunReceipt>, StoreError> {
    let Some(seq) = seq_of(connection, event)? else { return Ok(Vec::new()) };
    connection
        .prepare_cached(
            "SELECT run, digest, processed_at_us, business_id, payload FROM runs WHERE seq = ?1 ORDER BY run",
        )
        .and_then(|mut statement| {
            statement.query_map([int(seq.0)], |row| run::receipt(row, *event))?.collect()
        })
        .map_err(reading("list runs"))
}

/// The earliest instant at which time makes work: a delivery of a destination that is not paused is due, or
/// a lease of any destination expires.
pub(super) fn next_due(
    connection: &Connection,
    known: &Known<'_>,
    destination: DestinationNumber,
) -> Result<Option<Timestamp>, StoreError> {
    let row = known.registry.destinations.iter().find(|row| row.number == destination);
    if row.is_none_or(|row| row.paused) {
        return Ok(None);
    }
    let due: Option<i64> = connection
        .prepare_cached("SELECT min(due_us) FROM work WHERE state = 'waiting' AND destination = ?1")
        .and_then(|mut statement| statement.query_row([destination.0], |row| row.get(0)))
        .map_err(reading("look for the next due time"))?;
    Ok(due.map(Timestamp::from_micros))
}

pub(super) fn next_expiry(connection: &Connection) -> Result<Option<Timestamp>, StoreError> {
    let expiry: Option<i64> = connection
        .prepare_cached("SELECT min(due_us) FROM work WHERE state = 'leased'")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .map_err(reading("look for the next end of a lease"))?;
    Ok(expiry.map(Timestamp::from_micros))
}

fn attempt(row: &Row<'_>) -> rusqlite::Result<Attempt> {
    Ok(Attempt {
        token: LeaseToken(row.get(0)?),
        number: row.get(1)?,
        started_at: row::time(row, 2)?,
        took_us: count(row.get(3)?),
        status: row.get(4)?,
        excerpt: row.get::<_, Vec<u8>>(5)?.into(),
        error: row.get(6)?,
        rule: row.get(7)?,
    })
}
