//! Sweep: leases whose time is up, and bodies that retention lets go, a bounded step at a time.

use std::time::Duration;

use hookstead_core::retention::SWEEP_STEP_MAX;
use hookstead_core::{
    Delivery, Digest, RetentionRule, Seq, SourceNumber, StateName, StoreError, Sweep, Swept, Timestamp,
};
use rusqlite::{Connection, OptionalExtension};

use super::batch::Batch;
use super::delivery::{self, columns};
use super::failure::{reading, writing};
use super::ledger::{count, int};
use super::row;

/// How many events a step looks at for one rule. Old events that may not go would otherwise be read again,
/// all of them, inside each step's transaction.
pub(super) const EVENTS_LOOKED_AT_MAX: u32 = 20_000;

/// How far commit times may lie behind sequence numbers: a clock that was set back between two runs of the
/// process. What was committed later than that is newer than a rule's instant.
const CLOCK_SLACK: Duration = Duration::from_hours(24);

/// So many newer events in a row end the search of a rule, since all that follows is newer too. Fewer may come from a
/// clock that was ahead, and older ones may follow.
const NEWER_IN_A_ROW: u32 = 256;

/// An event that a rule lets go.
struct Expendable {
    seq: Seq,
    source: SourceNumber,
    digest: Digest,
    body_bytes: u64,
}

/// What a search found, and where it was cut short.
struct Found {
    events: Vec<Expendable>,
    goes_on_at: Option<Seq>,
}

impl Batch<'_> {
    pub(super) fn sweep(&mut self, sweep: &Sweep) -> Result<Swept, StoreError> {
        let budget = sweep.max.min(SWEEP_STEP_MAX);
        let mut swept = Swept { expired: self.expire_leases(budget)?, ..Swept::default() };
        let mut was_cut = false;
        for rule in &sweep.retention {
            let rest = budget - swept.expired - swept.erased;
            let found = self.expendable(rule, rest)?;
            for event in &found.events {
                self.erase(event)?;
                swept.erased += 1;
            }
            match found.goes_on_at {
                Some(seq) => self.ledger.sweep_from.insert(rule.source, seq),
                None => self.ledger.sweep_from.remove(&rule.source),
            };
            was_cut |= found.goes_on_at.is_some();
        }
        if swept.erased > 0 {
            self.write_down_erased()?;
        }
        swept.more = was_cut || swept.expired + swept.erased == budget;
        Ok(swept)
    }

    fn expire_leases(&mut self, max: u32) -> Result<u32, StoreError> {
        let mut expired = 0;
        for (seq, mut delivery) in self.expired(max)? {
            let policy = self.ledger.retry_policy(delivery.id.destination);
            if delivery.expire(&policy, self.now) {
                self.replace_delivery(seq, StateName::Leased, &delivery)?;
                expired += 1;
            }
        }
        Ok(expired)
    }

    fn expired(&self, max: u32) -> Result<Vec<(Seq, Delivery)>, StoreError> {
        let sql = concat!(
            "SELECT ",
            columns!(),
            " FROM work WHERE state = 'leased' AND due_us <= ?1
             ORDER BY due_us, seq, destination, generation LIMIT ?2"
        );
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| {
                statement.query_map((self.now.as_micros(), max), delivery::keyed)?.collect()
            })
            .map_err(reading("look for expired leases"))
    }

    fn expendable(&self, rule: &RetentionRule, max: u32) -> Result<Found, StoreError> {
        let Some(before) = rule.finished_before.max(rule.unfinished_before) else {
            return Ok(Found { events: Vec::new(), goes_on_at: None });
        };
        let from = self.ledger.sweep_from.get(&rule.source).copied().unwrap_or(self.ledger.kept_from);
        let newer = Newer { now: self.now, than: before.plus(CLOCK_SLACK), in_a_row: 0 };
        search(self.connection, rule, newer, from, max).map_err(reading("look for what may be erased"))
    }

    fn erase(&mut self, event: &Expendable) -> Result<(), StoreError> {
        self.connection
            .prepare_cached("UPDATE events SET erased_at_us = ?2, headers = NULL, body = NULL WHERE seq = ?1")
            .and_then(|mut statement| statement.execute((int(event.seq.0), self.now.as_micros())))
            .and_then(|_| {
                self.connection
                    .prepare_cached("UPDATE variants SET headers = NULL, body = NULL WHERE seq = ?1")
            })
            .and_then(|mut statement| statement.execute([int(event.seq.0)]))
            .map_err(writing("erase a body"))?;
        self.forget_body(event.source, &event.digest, event.seq)?;
        let stats = &mut self.ledger.stats;
        stats.erased += 1;
        stats.body_bytes = stats.body_bytes.saturating_sub(event.body_bytes);
        Ok(())
    }

    /// The sums of what is erased, and the event below which everything is.
    fn write_down_erased(&mut self) -> Result<(), StoreError> {
        let kept: Option<i64> = self
            .connection
            .prepare_cached(
                "SELECT seq FROM events WHERE seq >= ?1 AND erased_at_us IS NULL ORDER BY seq LIMIT 1",
            )
            .and_then(|mut statement| {
                statement.query_row([int(self.ledger.kept_from.0)], |row| row.get(0)).optional()
            })
            .map_err(reading("look for the oldest body"))?;
        self.ledger.kept_from = Seq(kept.map_or(self.ledger.newest.0 + 1, count));
        let erased_body_bytes = self.ledger.body_bytes_total - self.ledger.stats.body_bytes;
        self.connection
            .prepare_cached("UPDATE store SET erased = ?1, erased_body_bytes = ?2, kept_from = ?3")
            .and_then(|mut statement| {
                statement.execute((
                    int(self.ledger.stats.erased),
                    int(erased_body_bytes),
                    int(self.ledger.kept_from.0),
                ))
            })
            .map(drop)
            .map_err(writing("write down what is erased"))
    }
}

/// The events that are newer than a rule's instant, as a search comes to them.
struct Newer {
    now: Timestamp,
    than: Timestamp,
    in_a_row: u32,
}

impl Newer {
    /// Whether nothing older follows this one.
    fn ends_with(&mut self, committed_at: Timestamp) -> bool {
        if committed_at <= self.than {
            self.in_a_row = 0;
        } else if committed_at <= self.now {
            self.in_a_row += 1;
        }
        // What lies ahead of the clock says nothing of what follows, however much of it there is.
        self.in_a_row >= NEWER_IN_A_ROW
    }
}

/// Looks at events from `from` on, the oldest first, for what `rule` lets go.
fn search(
    connection: &Connection,
    rule: &RetentionRule,
    mut newer: Newer,
    from: Seq,
    max: u32,
) -> rusqlite::Result<Found> {
    let mut statement = connection.prepare_cached(
        "SELECT seq, committed_at_us, source, body_bytes, erased_at_us IS NOT NULL,
            EXISTS (SELECT 1 FROM done WHERE done.seq = events.seq)
                AND NOT EXISTS (SELECT 1 FROM work WHERE work.seq = events.seq),
            digest
         FROM events WHERE seq >= ?1 ORDER BY seq LIMIT ?2",
    )?;
    let mut rows = statement.query((int(from.0), EVENTS_LOOKED_AT_MAX))?;
    let mut found = Found { events: Vec::new(), goes_on_at: None };
    let mut looked_at = 0;
    while let Some(row) = rows.next()? {
        let (seq, committed_at) = (row::seq(row, 0)?, row::time(row, 1)?);
        if found.events.len() >= max as usize || newer.ends_with(committed_at) {
            return Ok(found);
        }
        looked_at += 1;
        if looked_at == EVENTS_LOOKED_AT_MAX {
            found.goes_on_at = Some(Seq(seq.0 + 1));
        }
        let (source, is_erased): (u32, bool) = (row.get(2)?, row.get(4)?);
        let limit = if row.get(5)? { rule.finished_before } else { rule.unfinished_before };
        if source == rule.source.0 && !is_erased && limit.is_some_and(|limit| committed_at < limit) {
            found.events.push(Expendable {
                seq,
                source: rule.source,
                digest: row::digest(row, 6)?,
                body_bytes: count(row.get(3)?),
            });
        }
    }
    Ok(found)
}
