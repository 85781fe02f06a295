//! The same body of a source under another identity: found, marked or refused, and forgotten when it is erased.
//!
//! It costs an event one entry in an index that is ordered by digests, so a page of its own for nearly each event
//! of a large store; an event that ignores reuse pays nothing. It decides nothing about an identity that is taken.

use hookstead_core::bodies::REUSED_BODIES_READ_MAX;
use hookstead_core::{
    AcceptReceipt, Acceptance, Body, BodyReuse, CheckProblem, CheckReport, Digest, EventId, IdentityHash,
    Outcome, Seq, SourceNumber, StoreError,
};
use rusqlite::{Connection, OptionalExtension, Row};

use super::batch::{Batch, held};
use super::event;
use super::failure::{reading, writing};
use super::ledger::{count, int};
use super::row;

/// How much of a digest the index has; the check of the store writes it out in SQL.
const PREFIX_BYTES: usize = 16;

fn prefix(digest: &Digest) -> &[u8] {
    &digest.as_bytes()[..PREFIX_BYTES]
}

impl Batch<'_> {
    /// Stores an event whose identity is new and gets `hash`, unless its body came before and is refused for that.
    pub(super) fn store_unless_reused(
        &mut self,
        hash: IdentityHash,
        acceptance: &Acceptance,
    ) -> Result<AcceptReceipt, StoreError> {
        let rule = acceptance.facts().body_reuse;
        if rule == BodyReuse::Ignore {
            return self.store_first(hash, acceptance);
        }
        let source = acceptance.identity().source;
        let came_before = self.with_body(source, acceptance.digest())?;
        if let (BodyReuse::Refuse, Some(sound)) = (rule, self.sound_one(&came_before)?) {
            return Ok(sound);
        }
        let earlier = came_before.first();
        let stored = self.store_first(hash, acceptance)?;
        self.watch_body(source, acceptance.digest(), stored.seq)?;
        if let Some(earlier) = earlier {
            self.mark_reused(stored.seq, &earlier.event)?;
        }
        Ok(AcceptReceipt { same_body_as: earlier.map(|earlier| earlier.event), ..stored })
    }

    /// An erased body is no longer looked out for.
    pub(super) fn forget_body(
        &self,
        source: SourceNumber,
        digest: &Digest,
        seq: Seq,
    ) -> Result<(), StoreError> {
        self.connection
            .prepare_cached(
                "DELETE FROM watched_bodies WHERE source = ?1 AND digest_prefix = ?2 AND seq = ?3",
            )
            .and_then(|mut statement| statement.execute((source.0, prefix(digest), int(seq.0))))
            .map(drop)
            .map_err(writing("forget a body"))
    }

    /// The receipts of the oldest events of the source with this body.
    fn with_body(&mut self, source: SourceNumber, digest: Digest) -> Result<Vec<AcceptReceipt>, StoreError> {
        let sql = "SELECT events.seq, events.id, events.committed_at_us
                   FROM watched_bodies JOIN events ON events.seq = watched_bodies.seq
                   WHERE watched_bodies.source = ?1 AND digest_prefix = ?2 AND events.digest = ?3
                   ORDER BY watched_bodies.seq LIMIT ?4";
        let receipt = |row: &Row<'_>| {
            Ok(AcceptReceipt {
                outcome: Outcome::BodyReused,
                event: row::event_id(row, 1)?,
                seq: row::seq(row, 0)?,
                digest,
                committed_at: row::time(row, 2)?,
                same_body_as: None,
            })
        };
        held(&mut self.statements.find_body, self.connection, sql)
            .and_then(|statement| {
                let key = (source.0, prefix(&digest), digest.as_bytes(), REUSED_BODIES_READ_MAX);
                statement.query_map(key, receipt)?.collect()
            })
            .map_err(reading("look for a body"))
    }

    /// The oldest of them that has its body unharmed. Where none has, what comes again may be all that is left of these
    /// bytes: to refuse it, so that its sender gives up, would lose them.
    fn sound_one(&self, came_before: &[AcceptReceipt]) -> Result<Option<AcceptReceipt>, StoreError> {
        for receipt in came_before {
            match event::body_of(self.connection, receipt.seq) {
                Ok(Some(Body::Kept(_))) => return Ok(Some(*receipt)),
                Ok(_) | Err(StoreError::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn watch_body(&mut self, source: SourceNumber, digest: Digest, seq: Seq) -> Result<(), StoreError> {
        let sql = "INSERT INTO watched_bodies (source, digest_prefix, seq) VALUES (?1, ?2, ?3)";
        held(&mut self.statements.watch_body, self.connection, sql)
            .and_then(|statement| statement.execute((source.0, prefix(&digest), int(seq.0))))
            .map(drop)
            .map_err(writing("remember a body"))
    }

    fn mark_reused(&self, seq: Seq, first: &EventId) -> Result<(), StoreError> {
        self.connection
            .prepare_cached("INSERT INTO reused_bodies (seq, same_body_as) VALUES (?1, ?2)")
            .and_then(|mut statement| statement.execute((int(seq.0), first.as_bytes())))
            .map(drop)
            .map_err(writing("mark an event"))
    }
}

/// The place of an entry in the index: source, digest, event.
pub(super) type Place = (u32, Vec<u8>, i64);

/// Compares up to `max` entries behind `after` with their events. Where it came to; `None` at the end.
pub(super) fn check_index(
    connection: &Connection,
    after: &Place,
    max: u32,
    report: &mut CheckReport,
) -> Result<Option<Place>, StoreError> {
    let failed = reading("compare the index of bodies");
    let mut statement = connection
        .prepare_cached(
            "SELECT watched_bodies.source, digest_prefix, watched_bodies.seq,
                coalesce(events.source = watched_bodies.source AND events.erased_at_us IS NULL
                    AND substr(events.digest, 1, 16) = digest_prefix, FALSE)
             FROM watched_bodies LEFT JOIN events ON events.seq = watched_bodies.seq
             WHERE (watched_bodies.source, digest_prefix, watched_bodies.seq) > (?1, ?2, ?3)
             ORDER BY watched_bodies.source, digest_prefix, watched_bodies.seq LIMIT ?4",
        )
        .map_err(&failed)?;
    let entries = statement
        .query_map((after.0, &after.1, after.2, max), |row| {
            Ok(((row.get(0)?, row.get(1)?, row.get(2)?), row.get(3)?))
        })
        .map_err(&failed)?;
    let mut last = None;
    for entry in entries {
        let (place, is_right): (Place, bool) = entry.map_err(&failed)?;
        if !is_right {
            let seq = Seq(count(place.2));
            let what = format!("the index of bodies has an entry for event {seq} that is not its own");
            report.add_problem(CheckProblem { event: None, what });
        }
        last = Some(place);
    }
    Ok(last)
}

/// The event that a mark names had the same body of the same source, and before.
pub(super) fn check_mark(connection: &Connection, seq: Seq) -> Result<(), StoreError> {
    let sql = "SELECT first.seq FROM reused_bodies
               JOIN events AS again ON again.seq = reused_bodies.seq
               LEFT JOIN event_ids ON event_ids.id = same_body_as
               LEFT JOIN events AS first ON first.seq = event_ids.seq AND first.seq < again.seq
                   AND first.source = again.source AND first.digest = again.digest
               WHERE reused_bodies.seq = ?1";
    let named: Option<Option<i64>> = connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.query_row([int(seq.0)], |row| row.get(0)).optional())
        .map_err(reading("read the mark of a body"))?;
    match named {
        Some(None) => {
            Err(row::corrupt(format!("event {seq} is marked with the body of an event that never had it")))
        }
        None | Some(Some(_)) => Ok(()),
    }
}
