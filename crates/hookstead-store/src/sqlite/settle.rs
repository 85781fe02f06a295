//! Settle: the end of a lease, and the record of its attempt.

use hookstead_core::attempt::ATTEMPTS_KEPT_MAX;
use hookstead_core::{Attempt, DeliveryId, Seq, Settle, Settlement, StoreError};
use rusqlite::params;

use super::batch::Batch;
use super::failure::writing;
use super::ledger::int;

impl Batch<'_> {
    pub(super) fn settle(&mut self, settle: &Settle) -> Result<Settlement, StoreError> {
        let Some((seq, mut delivery)) = self.find_delivery(&settle.delivery)? else {
            return Ok(Settlement::Unknown);
        };
        let policy = self.ledger.retry_policy(settle.delivery.destination);
        let (state, settled) = (delivery.state_name(), delivery.last_settled.clone());
        let settlement = delivery.settle(settle.token, &settle.verdict, &policy, self.now);
        if delivery.last_settled == settled {
            return Ok(settlement);
        }
        self.replace_delivery(seq, state, &delivery)?;
        if let Some(attempt) = &settle.attempt {
            self.add_attempt(seq, &settle.delivery, attempt)?;
        }
        Ok(settlement)
    }

    fn add_attempt(&self, seq: Seq, id: &DeliveryId, attempt: &Attempt) -> Result<(), StoreError> {
        let failed = writing("record an attempt");
        let key = (int(seq.0), id.destination.0, id.generation);
        let ordinal: i64 = self
            .connection
            .prepare_cached(
                "SELECT coalesce(max(ordinal), 0) + 1 FROM attempts
                 WHERE seq = ?1 AND destination = ?2 AND generation = ?3",
            )
            .and_then(|mut statement| statement.query_row(key, |row| row.get(0)))
            .map_err(&failed)?;
        self.connection
            .prepare_cached(
                "INSERT INTO attempts (seq, destination, generation, ordinal, token, number, started_at_us,
                    took_us, status, error, rule, excerpt)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )
            .and_then(|mut statement| {
                statement.execute(params![
                    key.0,
                    key.1,
                    key.2,
                    ordinal,
                    attempt.token.0,
                    attempt.number,
                    attempt.started_at.as_micros(),
                    int(attempt.took_us),
                    attempt.status,
                    attempt.error,
                    attempt.rule,
                    attempt.excerpt.as_ref(),
                ])
            })
            .map_err(&failed)?;
        let surplus = ordinal - ATTEMPTS_KEPT_MAX as i64;
        if surplus > 0 {
            self.forget_attempts(key, surplus)?;
        }
        Ok(())
    }

    fn forget_attempts(&self, key: (i64, u32, u32), up_to: i64) -> Result<(), StoreError> {
        self.connection
            .prepare_cached(
                "DELETE FROM attempts
                 WHERE seq = ?1 AND destination = ?2 AND generation = ?3 AND ordinal <= ?4",
            )
            .and_then(|mut statement| statement.execute((key.0, key.1, key.2, up_to)))
            .map(drop)
            .map_err(writing("forget the oldest attempts"))
    }
}
