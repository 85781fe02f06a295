//! The check of a copy of a database of an older schema: SQLite's own, and every event with its digest, its variants and
//! what points at it, of which each schema has had the same. It knows nothing that came with a later one. Nobody writes
//! to a copy, so that it is read in one go.

use hookstead_core::{CheckProgress, CheckReport, Seq, StoreError};
use rusqlite::Connection;

use super::check::{attempt, deliveries, engine, index_of_ids, look_at, variants};
use super::failure::reading;
use super::ledger::count;

/// How many events are looked at between two reports of progress.
const EVENTS_PER_STEP: u64 = 500;

/// Reads everything that a database of whatever schema has of its events.
pub(super) fn run(
    connection: &Connection,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<CheckReport, StoreError> {
    let mut report = CheckReport::default();
    attempt(&mut report, |report| engine(connection, report));
    let newest = "SELECT coalesce(max(seq), 0) FROM events";
    let total = connection.query_row(newest, [], |row| row.get(0)).map_err(reading("count the events"))?;
    let total = count(total);
    for seq in 1..=total {
        event(connection, Seq(seq), &mut report);
        if seq % EVENTS_PER_STEP == 0 || seq == total {
            progress(CheckProgress { done: seq, total });
        }
    }
    Ok(report)
}

fn event(connection: &Connection, seq: Seq, report: &mut CheckReport) {
    look_at(connection, seq, report, |found, bodies| {
        vec![
            index_of_ids(connection, seq, &found.id),
            deliveries(connection, seq, &found.id),
            variants(connection, seq, bodies),
        ]
    });
}
