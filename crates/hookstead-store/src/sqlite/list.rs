//! Reading lists, in pages that a cursor continues.

use hookstead_core::{
    Attempt, Conflict, ConflictFilter, Cursor, Delivery, DeliveryFilter, DeliveryId, DestinationNumber,
    Event, EventFilter, EventId, LeaseToken, List, Order, Page, QueryError, Redelivery, RedeliveryId,
    RedeliveryState, RunReceipt, Seq, StateName, StoreError, Timestamp,
};
use rusqlite::{Connection, Params, Row};

use super::delivery::{self, seq_of};
use super::event::{self, Known};
use super::failure::reading;
use super::ledger::{count, int, source_name};
use super::{redeliver, row, run};

/// A place in a list: up to three numbers, compared in order.
type Place = [u64; 3];

/// Gathers the items of a page; one more than fit says that there is more.
struct Gather<T> {
    items: Vec<(Place, T)>,
    limit: usize,
}

impl<T> Gather<T> {
    fn new(page: &Page) -> Self {
        Self { items: Vec::new(), limit: page.limit() }
    }

    /// `false`: the page is full.
    fn add(&mut self, place: Place, item: T) -> bool {
        self.items.push((place, item));
        self.items.len() <= self.limit
    }

    fn finish(mut self, page: &Page) -> List<T> {
        let more = self.items.len() > self.limit;
        self.items.truncate(self.limit);
        let next = self.items.last().map(|(place, _)| cursor(*place)).or_else(|| page.after.clone());
        List { items: self.items.into_iter().map(|(_, item)| item).collect(), next, more }
    }
}

/// A page of events.
pub(super) fn events(
    connection: &Connection,
    known: &Known<'_>,
    filter: &EventFilter,
    page: &Page,
) -> Result<List<Event>, StoreError> {
    let failed = reading("list events");
    let after = place(page)?.map(|[seq, ..]| int(seq));
    let sql = match page.order {
        Order::OldestFirst => EVENTS_OLDEST_FIRST,
        Order::NewestFirst => EVENTS_NEWEST_FIRST,
    };
    let mut statement = connection.prepare_cached(sql).map_err(&failed)?;
    let mut rows = statement
        .query((
            after,
            filter.source.map(|source| source.0),
            filter.committed_from.map(Timestamp::as_micros),
            filter.committed_before.map(Timestamp::as_micros),
        ))
        .map_err(&failed)?;
    let mut gather = Gather::new(page);
    while let Some(row) = rows.next().map_err(&failed)? {
        let event_type: Option<String> = row.get(5).map_err(&failed)?;
        if filter.event_type.as_ref().is_some_and(|pattern| !pattern.matches(event_type.as_deref())) {
            continue;
        }
        let event = event::event(connection, known, row)?;
        if !gather.add([event.seq.0, 0, 0], event) {
            break;
        }
    }
    Ok(gather.finish(page))
}

macro_rules! events_sql {
    ($beyond:literal, $order:literal) => {
        concat!(
            "SELECT ",
            event::columns!(),
            " FROM events WHERE seq ",
            $beyond,
            " AND (?2 IS NULL OR source = ?2)
              AND (?3 IS NULL OR committed_at_us >= ?3) AND (?4 IS NULL OR committed_at_us < ?4)
              ORDER BY seq ",
            $order
        )
    };
}

const EVENTS_OLDEST_FIRST: &str = events_sql!("> coalesce(?1, 0)", "");
const EVENTS_NEWEST_FIRST: &str = events_sql!("< coalesce(?1, 9223372036854775807)", "DESC");

/// A page of redeliveries.
pub(super) fn redeliveries(
    connection: &Connection,
    state: Option<RedeliveryState>,
    page: &Page,
) -> Result<List<Redelivery>, StoreError> {
    let after = place(page)?.map(|[first, last, _]| RedeliveryId::from_halves([first, last]));
    let mut gather = Gather::new(page);
    for redelivery in redeliver::list(connection, state, after, page.order, page.limit() + 1)? {
        let [first, last] = redelivery.plan.id.halves();
        gather.add([first, last, 0], redelivery);
    }
    Ok(gather.finish(page))
}

/// A page of deliveries.
pub(super) fn deliveries(
    connection: &Connection,
    filter: &DeliveryFilter,
    page: &Page,
) -> Result<List<Delivery>, StoreError> {
    let after = place(page)?;
    let seq = match &filter.event {
        None => None,
        Some(id) => match seq_of(connection, id)? {
            Some(seq) => Some(int(seq.0)),
            None => return Ok(Gather::new(page).finish(page)),
        },
    };
    let (first, beyond, order) = match page.order {
        Order::OldestFirst => ([0; 3], ">", ""),
        Order::NewestFirst => ([i64::MAX; 3], "<", "DESC"),
    };
    let [a, b, c] = after.map_or(first, |place| place.map(int));
    let tables: &[&str] = match filter.state {
        None => &["work", "done"],
        Some(StateName::Done) => &["done"],
        Some(_) => &["work"],
    };
    let parts: Vec<String> = tables
        .iter()
        .map(|table| {
            format!(
                "SELECT {} FROM {table} WHERE (seq, destination, generation) {beyond} (?1, ?2, ?3)
                 AND (?4 IS NULL OR seq = ?4) AND (?5 IS NULL OR destination = ?5)
                 AND (?6 IS NULL OR state = ?6)",
                delivery::columns!()
            )
        })
        .collect();
    let sql = format!(
        "{} ORDER BY seq {order}, destination {order}, generation {order} LIMIT ?7",
        parts.join(" UNION ALL ")
    );
    let limit = page.limit() + 1;
    let parameters = (
        a,
        b,
        c,
        seq,
        filter.destination.map(|destination| destination.0),
        filter.state.map(StateName::as_str),
        limit as i64,
    );
    gather(connection, &sql, parameters, page, "list deliveries", |row| {
        let (Seq(seq), delivery) = delivery::keyed(row)?;
        let place = [seq, u64::from(delivery.id.destination.0), u64::from(delivery.id.generation)];
        Ok((place, delivery))
    })
}

/// A page of conflicts.
pub(super) fn conflicts(
    connection: &Connection,
    known: &Known<'_>,
    filter: &ConflictFilter,
    page: &Page,
) -> Result<List<Conflict>, StoreError> {
    let after = place(page)?;
    let (first, beyond, order) = match page.order {
        Order::OldestFirst => ([0; 3], ">", ""),
        Order::NewestFirst => ([i64::MAX; 3], "<", "DESC"),
    };
    let [seq, variant, _] = after.map_or(first, |place| place.map(int));
    let event = match &filter.event {
        None => None,
        Some(id) => match seq_of(connection, id)? {
            Some(seq) => Some(int(seq.0)),
            None => return Ok(Gather::new(page).finish(page)),
        },
    };
    let open = if filter.open_only { "AND variants.state = 'open'" } else { "" };
    let sql = format!(
        "SELECT variants.seq, variants.variant, events.id, events.source, variants.digest,
            variants.body_bytes, variants.headers, variants.received_at_us, variants.state,
            variants.revision, variants.decision_by, variants.decision_note, variants.decision_at_us
         FROM variants JOIN events ON events.seq = variants.seq
         WHERE (variants.seq, variants.variant) {beyond} (?1, ?2) AND (?3 IS NULL OR variants.seq = ?3) {open}
         ORDER BY variants.seq {order}, variants.variant {order} LIMIT ?4"
    );
    let limit = page.limit() + 1;
    gather(connection, &sql, (seq, variant, event, limit as i64), page, "list conflicts", |row| {
        let source = source_name(known.registry, hookstead_core::SourceNumber(row.get(3)?));
        let conflict = Conflict {
            seq: row::seq(row, 0)?,
            variant: row.get(1)?,
            event: row::event_id(row, 2)?,
            source: source.cloned().ok_or_else(|| row::bad_word(3, "a source that was never registered"))?,
            digest: row::digest(row, 4)?,
            body_bytes: count(row.get(5)?),
            headers: row::headers(row, 6)?,
            received_at: row::time(row, 7)?,
            state: super::conflict::state(row, 8)?,
        };
        Ok(([conflict.seq.0, u64::from(conflict.variant), 0], conflict))
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

fn gather<T>(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    page: &Page,
    doing: &'static str,
    parse: impl FnMut(&Row<'_>) -> rusqlite::Result<(Place, T)>,
) -> Result<List<T>, StoreError> {
    let rows: Vec<(Place, T)> = connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.query_map(parameters, parse)?.collect())
        .map_err(reading(doing))?;
    Ok(Gather { items: rows, limit: page.limit() }.finish(page))
}

fn cursor([a, b, c]: Place) -> Cursor {
    Cursor::from_text(format!("{a}.{b}.{c}"))
}

fn place(page: &Page) -> Result<Option<Place>, StoreError> {
    let Some(cursor) = &page.after else { return Ok(None) };
    let error = || StoreError::backend("read a cursor", QueryError::Cursor);
    let numbers: Result<Vec<u64>, _> = cursor.as_str().split('.').map(str::parse).collect();
    numbers.ok().and_then(|numbers| Place::try_from(numbers).ok()).map(Some).ok_or_else(error)
}
