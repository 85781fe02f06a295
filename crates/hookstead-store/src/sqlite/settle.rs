//! Settle: the end of a lease, and the record of its attempt.

use std::sync::Arc;

use hookstead_core::attempt::ATTEMPTS_KEPT_MAX;
use hookstead_core::{Attempt, EffectFailure, LeaseToken, Settle, Settlement, StoreError};
use rusqlite::params;

use super::batch::{Batch, held};
use super::effect::{self, Ran};
use super::failure::writing;
use super::guard::TIMEOUT;
use super::ledger::{self, int};

/// The token of a delivery's first lease.
const FIRST_LEASE: LeaseToken = LeaseToken(0).next();

const ADD_ATTEMPT: &str =
    "INSERT INTO attempts (seq, destination, generation, ordinal, token, number, started_at_us,
        took_us, status, error, rule, excerpt)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";

/// Sequence number, destination, generation.
type WorkKey = (i64, u32, u32);

impl Batch<'_> {
    pub(super) fn settle(&mut self, settle: &Settle) -> Result<Settlement, StoreError> {
        let Some((seq, mut delivery)) = self.find_delivery(&settle.delivery)? else {
            return Ok(Settlement::Unknown);
        };
        let registry = Arc::clone(&self.ledger.registry);
        let policy = ledger::retry_policy(&registry, settle.delivery.destination);
        let before = delivery.clone();
        let mut settlement = delivery.settle(settle.token, &settle.verdict, &policy, self.now);
        if delivery.last_settled == before.last_settled {
            return Ok(settlement);
        }
        let state = before.state_name();
        let failure = self.run_effect(settle)?;
        if failure.is_some() {
            delivery = before;
            settlement = delivery.settle_undone(settle.token, &policy, self.now);
        }
        self.replace_delivery(seq, state, &delivery)?;
        if let Some(attempt) = &settle.attempt {
            // Attempts are recorded by settles alone, and before the first lease's there was none.
            let is_first = settle.token == FIRST_LEASE;
            let key = (int(seq.0), settle.delivery.destination.0, settle.delivery.generation);
            let ordinal = if is_first { 1 } else { self.next_ordinal(key)? };
            match failure {
                None => self.add_attempt(key, ordinal, attempt)?,
                Some(failure) => self.add_attempt(key, ordinal, &failure.recorded_in(attempt))?,
            }
        }
        Ok(settlement)
    }

    /// Runs what is to be committed with the settle of a lease that is the holder's; why it failed, if it did.
    fn run_effect(&mut self, settle: &Settle) -> Result<Option<EffectFailure>, StoreError> {
        let Some(effect) = settle.verdict.effect() else { return Ok(None) };
        let of = (settle.delivery, settle.token);
        if let Some(failure) = self.failed_effects.get(&of) {
            return Ok(Some(failure.clone()));
        }
        match effect::run(self.connection, self.guard, effect)? {
            Ran::Kept => Ok(None),
            Ran::Undone(failure) => {
                if failure.rule == TIMEOUT {
                    self.not_again.insert(of, failure.clone());
                }
                Ok(Some(failure))
            }
            Ran::BatchUndone(failure) => {
                let error = StoreError::backend("run an effect", failure.error.clone());
                self.not_again.insert(of, failure);
                self.is_undone = true;
                Err(error)
            }
        }
    }

    fn next_ordinal(&self, key: WorkKey) -> Result<i64, StoreError> {
        self.connection
            .prepare_cached(
                "SELECT coalesce(max(ordinal), 0) + 1 FROM attempts
                 WHERE seq = ?1 AND destination = ?2 AND generation = ?3",
            )
            .and_then(|mut statement| statement.query_row(key, |row| row.get(0)))
            .map_err(writing("record an attempt"))
    }

    fn add_attempt(&mut self, key: WorkKey, ordinal: i64, attempt: &Attempt) -> Result<(), StoreError> {
        held(&mut self.work.add_attempt, self.connection, ADD_ATTEMPT)
            .and_then(|statement| {
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
            .map_err(writing("record an attempt"))?;
        let surplus = ordinal - ATTEMPTS_KEPT_MAX as i64;
        if surplus > 0 {
            self.forget_attempts(key, surplus)?;
        }
        Ok(())
    }

    fn forget_attempts(&self, key: WorkKey, up_to: i64) -> Result<(), StoreError> {
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
