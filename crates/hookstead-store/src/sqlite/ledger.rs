//! What the writer knows without asking the database: the registry, the newest sequence number, the counts.
//! A batch works on a copy, which takes the place of the first when the batch is committed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use hookstead_core::{
    DeliveryTally, DestinationNumber, DestinationRow, Registry, RetryPolicy, Seq, SourceName, SourceNumber,
    StateName, Stats, StoreError,
};
use rusqlite::{Connection, OptionalExtension};

use super::failure::reading;
use super::register;

#[derive(Clone, Debug)]
pub(super) struct Ledger {
    pub(super) registry: Arc<Registry>,
    /// The newest event.
    pub(super) newest: Seq,
    /// Bytes of all bodies that were ever stored.
    pub(super) body_bytes_total: u64,
    /// Deliveries that were made with their events.
    pub(super) deliveries_total: u64,
    pub(super) stats: Stats,
    /// Every event below is erased.
    pub(super) kept_from: Seq,
    /// Where the search of a source's events for what may be erased goes on, if its last step was cut short.
    pub(super) sweep_from: BTreeMap<SourceNumber, Seq>,
}

impl Ledger {
    /// Reads what the database holds. Cheap, however many events there are: sums stand in the newest one.
    pub(super) fn load(connection: &Connection) -> Result<Self, StoreError> {
        let failed = reading("read the counts");
        let newest = connection
            .query_row(
                "SELECT seq, body_bytes_total, deliveries_total FROM events ORDER BY seq DESC LIMIT 1",
                [],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .optional()
            .map_err(&failed)?;
        let (seq, body_bytes_total, deliveries_total): (i64, i64, i64) = newest.unwrap_or_default();
        let (erased, erased_bytes, kept_from): (i64, i64, i64) = connection
            .query_row("SELECT erased, erased_body_bytes, kept_from FROM store", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .map_err(&failed)?;
        let deliveries = tally(connection, count(deliveries_total))?;
        let conflicts_open: i64 = connection
            .query_row("SELECT count(*) FROM variants WHERE state = 'open'", [], |row| row.get(0))
            .map_err(&failed)?;
        let stats = Stats {
            events: count(seq),
            erased: count(erased),
            body_bytes: count(body_bytes_total - erased_bytes),
            deliveries,
            conflicts_open: count(conflicts_open),
        };
        Ok(Self {
            registry: Arc::new(register::load(connection)?),
            newest: Seq(count(seq)),
            body_bytes_total: count(body_bytes_total),
            deliveries_total: count(deliveries_total),
            stats,
            kept_from: Seq(count(kept_from)),
            sweep_from: BTreeMap::new(),
        })
    }

    /// The name of a source.
    pub(super) fn source_name(&self, number: SourceNumber) -> Option<&SourceName> {
        source_name(&self.registry, number)
    }

    /// A destination's row.
    pub(super) fn destination(&self, number: DestinationNumber) -> Option<&DestinationRow> {
        destination(&self.registry, number)
    }

    /// When a destination's deliveries are tried again.
    pub(super) fn retry_policy(&self, number: DestinationNumber) -> RetryPolicy {
        retry_policy(&self.registry, number).into_owned()
    }

    /// Counts a delivery out of one state and into another; `None`: it was not there before.
    pub(super) fn count_move(&mut self, from: Option<StateName>, to: StateName) {
        let tally = &mut self.stats.deliveries;
        if let Some(from) = from {
            let place = place(tally, from);
            *place = place.saturating_sub(1);
        }
        *place(tally, to) += 1;
    }
}

/// A destination's row. Numbers are given out from 1 without gaps.
fn destination(registry: &Registry, number: DestinationNumber) -> Option<&DestinationRow> {
    let index = usize::try_from(number.0.checked_sub(1)?).ok()?;
    registry.destinations.get(index).filter(|row| row.number == number)
}

/// The same without a copy, from a registry that is held: a ledger that counts cannot be borrowed meanwhile.
pub(super) fn retry_policy(registry: &Registry, number: DestinationNumber) -> Cow<'_, RetryPolicy> {
    destination(registry, number).map_or_else(Cow::default, |row| Cow::Borrowed(&row.retry))
}

/// The name of a source. Numbers are given out from 1 without gaps.
pub(super) fn source_name(registry: &Registry, number: SourceNumber) -> Option<&SourceName> {
    let index = usize::try_from(number.0.checked_sub(1)?).ok()?;
    registry.sources.get(index).filter(|row| row.number == number).map(|row| &row.name)
}

/// Deliveries by state. Those that are done are not counted but computed: all that were made, less the rest.
fn tally(connection: &Connection, made_with_events: u64) -> Result<DeliveryTally, StoreError> {
    let failed = reading("count the deliveries");
    let mut tally = DeliveryTally::default();
    for state in [StateName::Waiting, StateName::Leased, StateName::Dead, StateName::Held] {
        let rows: i64 = connection
            .query_row("SELECT count(*) FROM work WHERE state = ?1", [state.as_str()], |row| row.get(0))
            .map_err(&failed)?;
        *place(&mut tally, state) = count(rows);
    }
    let redelivered: i64 = connection
        .query_row("SELECT coalesce(sum(made), 0) FROM redeliveries", [], |row| row.get(0))
        .map_err(&failed)?;
    let unfinished = tally.waiting + tally.leased + tally.dead + tally.held;
    tally.done = (made_with_events + count(redelivered)).saturating_sub(unfinished);
    Ok(tally)
}

fn place(tally: &mut DeliveryTally, state: StateName) -> &mut u64 {
    match state {
        StateName::Waiting => &mut tally.waiting,
        StateName::Leased => &mut tally.leased,
        StateName::Done => &mut tally.done,
        StateName::Dead => &mut tally.dead,
        StateName::Held => &mut tally.held,
    }
}

/// A count as the database has it; a negative one would be damage, and counts as none.
pub(super) fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// A number as the database can hold it; larger ones are in no row.
pub(super) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
