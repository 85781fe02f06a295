//! What a run under a clock that was far ahead left behind: brought back at the start, a bounded step at a time, so that
//! nothing is stuck until that time comes. Whether a time is one, `hookstead-core` decides.

use hookstead_core::{Delivery, Registry, RetryPolicy, Seq, StateName, StoreError, Timestamp};
use rusqlite::{Connection, Params};

use super::delivery::{self, columns};
use super::failure::reading;

/// The most deliveries that one transaction brings back. Each may change a page of the table and of two indexes, and
/// all of them have to fit into the log.
pub(super) const STEP_MAX: u32 = 100;

/// Some deliveries whose time no present clock can have set.
pub(super) fn found(
    connection: &Connection,
    registry: &Registry,
    now: Timestamp,
) -> Result<Vec<(Seq, Delivery)>, StoreError> {
    let leased = concat!("SELECT ", columns!(), " FROM work WHERE state = 'leased' AND due_us > ?1 LIMIT ?2");
    let mut found = select(connection, leased, (Delivery::expiry_ahead_max(now).as_micros(), STEP_MAX))?;
    let waiting = concat!(
        "SELECT ",
        columns!(),
        " FROM work WHERE state = 'waiting' AND destination = ?1 AND due_us > ?2 LIMIT ?3"
    );
    let ahead_max = Delivery::due_ahead_max(now).as_micros();
    for destination in &registry.destinations {
        let rest = STEP_MAX.saturating_sub(u32::try_from(found.len()).unwrap_or(u32::MAX));
        if rest == 0 {
            break;
        }
        found.extend(select(connection, waiting, (destination.number.0, ahead_max, rest))?);
    }
    Ok(found)
}

/// Brings one back and writes it, within a transaction; from which state into which.
pub(super) fn bring_back(
    connection: &Connection,
    (seq, mut delivery): (Seq, Delivery),
    policy: &RetryPolicy,
    now: Timestamp,
) -> Result<(StateName, StateName), StoreError> {
    let before = delivery.state_name();
    if !delivery.bring_back(policy, now) {
        let what = format!("the time of delivery {} is not what its index says", delivery.id);
        return Err(StoreError::Corrupt { what });
    }
    delivery::write_over(connection, seq, &delivery)?;
    Ok((before, delivery.state_name()))
}

fn select(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
) -> Result<Vec<(Seq, Delivery)>, StoreError> {
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.query_map(parameters, delivery::keyed)?.collect())
        .map_err(reading("look for deliveries of another clock"))
}
