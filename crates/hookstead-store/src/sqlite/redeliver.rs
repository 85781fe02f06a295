//! Redeliver: new deliveries from old events, a bounded step at a time.

use hookstead_core::redelivery::REDELIVERY_STEP_MAX;
use hookstead_core::{
    Delivery, DeliveryId, DestinationNumber, EventFilter, EventId, Order, Redeliver, Redelivery,
    RedeliveryId, RedeliveryPlan, RedeliveryState, Seq, SourceNumber, StateName, StoreError, Timestamp,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::batch::Batch;
use super::delivery::{self, columns};
use super::failure::{reading, writing};
use super::ledger::{count, int};
use super::row;
use super::walk::{Place, Walk};

/// An event, as far as a redelivery looks at it.
struct Candidate {
    seq: Seq,
    id: EventId,
    source: SourceNumber,
    event_type: Option<String>,
    committed_at: Timestamp,
    is_erased: bool,
}

impl Candidate {
    fn is_wanted(&self, filter: &EventFilter) -> bool {
        filter.source.is_none_or(|source| source == self.source)
            && filter.event_type.as_ref().is_none_or(|kind| kind.matches(self.event_type.as_deref()))
            && filter.committed_from.is_none_or(|from| self.committed_at >= from)
            && filter.committed_before.is_none_or(|before| self.committed_at < before)
    }
}

impl Batch<'_> {
    pub(super) fn redeliver(&mut self, step: &Redeliver) -> Result<Redelivery, StoreError> {
        let known = self.find_redelivery(&step.plan.id)?;
        let is_new = known.is_none();
        let mut redelivery = known
            .unwrap_or_else(|| Redelivery::new(step.plan.clone(), step.only, self.ledger.newest, self.now));
        let is_running = redelivery.state == RedeliveryState::Running;
        if is_running {
            self.continue_redelivery(&mut redelivery, step.events_max.min(REDELIVERY_STEP_MAX))?;
        }
        if is_new || is_running {
            self.save_redelivery(&redelivery)?;
        }
        Ok(redelivery)
    }

    fn continue_redelivery(
        &mut self,
        redelivery: &mut Redelivery,
        events_max: u32,
    ) -> Result<(), StoreError> {
        for candidate in self.candidates(redelivery, events_max)? {
            redelivery.cursor = candidate.seq;
            if !candidate.is_wanted(&redelivery.plan.events) {
                continue;
            }
            if self.redeliver_one(&redelivery.plan, &candidate)? {
                redelivery.made += 1;
            } else {
                redelivery.skipped += 1;
            }
        }
        if redelivery.cursor >= redelivery.until {
            redelivery.state = RedeliveryState::Complete;
        }
        Ok(())
    }

    fn candidates(&self, redelivery: &Redelivery, events_max: u32) -> Result<Vec<Candidate>, StoreError> {
        self.connection
            .prepare_cached(
                "SELECT seq, id, source, event_type, committed_at_us, erased_at_us IS NOT NULL
                 FROM events WHERE seq > ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3",
            )
            .and_then(|mut statement| {
                let range = (int(redelivery.cursor.0), int(redelivery.until.0), events_max);
                let parse = |row: &Row<'_>| {
                    Ok(Candidate {
                        seq: row::seq(row, 0)?,
                        id: row::event_id(row, 1)?,
                        source: SourceNumber(row.get(2)?),
                        event_type: row.get(3)?,
                        committed_at: row::time(row, 4)?,
                        is_erased: row.get(5)?,
                    })
                };
                statement.query_map(range, parse)?.collect()
            })
            .map_err(reading("look for events to redeliver"))
    }

    fn redeliver_one(&mut self, plan: &RedeliveryPlan, candidate: &Candidate) -> Result<bool, StoreError> {
        let earlier = self.earlier(candidate.seq, plan.destination)?;
        let unfinished = earlier.iter().any(|delivery| {
            matches!(delivery.state_name(), StateName::Waiting | StateName::Leased | StateName::Held)
        });
        if candidate.is_erased || unfinished {
            return Ok(false);
        }
        let generation = earlier.iter().map(|delivery| delivery.id.generation).max().unwrap_or(0) + 1;
        let id = DeliveryId { event: candidate.id, destination: plan.destination, generation };
        let mut delivery = Delivery::new(id, self.now, self.now);
        delivery.key_generation = match earlier.iter().map(|delivery| delivery.key_generation).max() {
            Some(key) if plan.fresh_key => key + 1,
            Some(key) => key,
            None => 1,
        };
        delivery.redelivery = Some(plan.id);
        self.add_delivery(candidate.seq, &delivery)?;
        Ok(true)
    }

    fn earlier(&self, seq: Seq, destination: DestinationNumber) -> Result<Vec<Delivery>, StoreError> {
        let sql = concat!(
            "SELECT ",
            columns!(),
            " FROM work WHERE seq = ?1 AND destination = ?2 UNION ALL SELECT ",
            columns!(),
            " FROM done WHERE seq = ?1 AND destination = ?2"
        );
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| {
                statement.query_map((int(seq.0), destination.0), delivery::delivery)?.collect()
            })
            .map_err(reading("look for earlier deliveries"))
    }

    pub(super) fn find_redelivery(&self, id: &RedeliveryId) -> Result<Option<Redelivery>, StoreError> {
        find(self.connection, id)
    }

    pub(super) fn save_redelivery(&self, redelivery: &Redelivery) -> Result<(), StoreError> {
        let RedeliveryPlan { id, events, destination, fresh_key, by, note } = &redelivery.plan;
        self.connection
            .prepare_cached(
                "REPLACE INTO redeliveries (id, source, event_type, committed_from_us, committed_before_us,
                    destination, fresh_key, asked_by, note, made_at_us, cursor, until, made, skipped, state)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
            )
            .and_then(|mut statement| {
                statement.execute(params![
                    id.0,
                    events.source.map(|source| source.0),
                    events.event_type.as_ref().map(hookstead_core::TypePattern::as_str),
                    events.committed_from.map(Timestamp::as_micros),
                    events.committed_before.map(Timestamp::as_micros),
                    destination.0,
                    fresh_key,
                    by,
                    note,
                    redelivery.made_at.as_micros(),
                    int(redelivery.cursor.0),
                    int(redelivery.until.0),
                    int(redelivery.made),
                    int(redelivery.skipped),
                    redelivery.state.as_str(),
                ])
            })
            .map(drop)
            .map_err(writing("write a redelivery"))
    }
}

macro_rules! redelivery_columns {
    () => {
        "source, event_type, committed_from_us, committed_before_us, destination, fresh_key,
                asked_by, note, made_at_us, cursor, until, made, skipped, state"
    };
}

/// How far a redelivery is.
pub(super) fn find(connection: &Connection, id: &RedeliveryId) -> Result<Option<Redelivery>, StoreError> {
    connection
        .prepare_cached(concat!("SELECT ", redelivery_columns!(), " FROM redeliveries WHERE id = ?1"))
        .and_then(|mut statement| statement.query_row([id.0], |row| redelivery(row, *id)).optional())
        .map_err(reading("look up a redelivery"))
}

macro_rules! list_sql {
    ($beyond:literal, $order:literal) => {
        concat!(
            "SELECT ",
            redelivery_columns!(),
            ", id FROM redeliveries WHERE id ",
            $beyond,
            " ORDER BY id ",
            $order,
            " LIMIT ?2"
        )
    };
}

/// A stretch of a walk over the redeliveries, in the order of their ids; those in one state are listed, or all.
pub(super) fn stretch(
    connection: &Connection,
    wanted: Option<RedeliveryState>,
    walk: &mut Walk<Redelivery>,
) -> Result<(), StoreError> {
    const DOING: &str = "list redeliveries";
    let failed = reading(DOING);
    let sql = match walk.order() {
        Order::OldestFirst => list_sql!("> coalesce(?1, x'')", "ASC"),
        Order::NewestFirst => list_sql!("< coalesce(?1, x'FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF')", "DESC"),
    };
    let at = walk.at().map(|[first, last, _]| RedeliveryId::from_halves([first, last]).0);
    let mut statement = connection.prepare_cached(sql).map_err(&failed)?;
    let mut rows = statement.query((at, walk.rows_max())).map_err(&failed)?;
    walk.take(&mut rows, DOING, |row| redelivery_if_asked_for(row, wanted).map_err(&failed))
}

/// Only what is asked for is made a redelivery of: another one that cannot be read is in nobody's way.
fn redelivery_if_asked_for(
    row: &Row<'_>,
    wanted: Option<RedeliveryState>,
) -> rusqlite::Result<(Place, Option<Redelivery>)> {
    let id = RedeliveryId(row.get(14)?);
    let [first, last] = id.halves();
    let is_asked_for = match wanted {
        Some(wanted) => row::word(row, 13)? == wanted.as_str(),
        None => true,
    };
    let redelivery = if is_asked_for { Some(redelivery(row, id)?) } else { None };
    Ok(([first, last, 0], redelivery))
}

fn redelivery(row: &Row<'_>, id: RedeliveryId) -> rusqlite::Result<Redelivery> {
    let pattern: Option<String> = row.get(1)?;
    let event_type = pattern.map(|text| text.parse().map_err(|_| row::bad_word(1, &text))).transpose()?;
    let events = EventFilter {
        source: row.get::<_, Option<u32>>(0)?.map(SourceNumber),
        event_type,
        committed_from: row::optional_time(row, 2)?,
        committed_before: row::optional_time(row, 3)?,
    };
    let plan = RedeliveryPlan {
        id,
        events,
        destination: DestinationNumber(row.get(4)?),
        fresh_key: row.get(5)?,
        by: row.get(6)?,
        note: row.get(7)?,
    };
    Ok(Redelivery {
        plan,
        made_at: row::time(row, 8)?,
        cursor: row::seq(row, 9)?,
        until: row::seq(row, 10)?,
        made: count(row.get(11)?),
        skipped: count(row.get(12)?),
        state: state(row, 13)?,
    })
}

fn state(row: &Row<'_>, column: usize) -> rusqlite::Result<RedeliveryState> {
    let word: String = row.get(column)?;
    RedeliveryState::from_word(&word).ok_or_else(|| row::bad_word(column, &word))
}
