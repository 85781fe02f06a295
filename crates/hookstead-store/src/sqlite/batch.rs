//! One batch inside its transaction: what the operations share, and the match that sends each write to its
//! own file.

use std::collections::HashMap;

use hookstead_core::{
    Delivery, DeliveryId, DestinationNumber, Duplicates, EffectFailure, EventId, IdentityKey, LeaseToken,
    Seq, SourceNumber, StoreError, Subject, Timestamp, Write, Written,
};
use rusqlite::{CachedStatement, Connection};

use super::delivery::DeliveryStatements;
use super::effect;
use super::guard::Guard;
use super::identities::Staged;
use super::ledger::Ledger;
use super::published::Published;

/// How often events came again: absolute numbers, so that writing one down twice does no harm.
pub(super) type DuplicateCounts = HashMap<Seq, Duplicates>;

/// A batch that is being carried out.
pub(super) struct Batch<'a> {
    pub(super) connection: &'a Connection,
    pub(super) now: Timestamp,
    pub(super) identity_key: &'a IdentityKey,
    /// The state as this batch leaves it.
    pub(super) ledger: Ledger,
    pub(super) identities: Staged<'a>,
    /// Where it stands what earlier batches counted and no commit has written yet.
    pub(super) published: &'a Published,
    /// What this batch counted.
    pub(super) duplicates: DuplicateCounts,
    pub(super) statements: Statements<'a>,
    pub(super) work: DeliveryStatements<'a>,
    /// Deliveries that came with this batch's newest events and are not written yet, in the order of the events.
    pub(super) made: Vec<(Seq, Delivery)>,
    /// The ids of this batch's newest events, which are not written yet.
    pub(super) ids: Vec<(EventId, Seq)>,
    pub(super) guard: &'a Guard,
    /// Effects that took the batch with them when it was run before: they count as failed and are not run.
    pub(super) failed_effects: &'a FailedEffects,
    /// Effects that are not to be run again if the batch is: the one that took it along, and those that used up their
    /// time. The others may have failed for the sake of the first.
    pub(super) not_again: FailedEffects,
    /// An effect has just taken the batch with it.
    pub(super) is_undone: bool,
}

/// Whose an effect is: it runs once for a lease.
pub(super) type EffectOf = (DeliveryId, LeaseToken);

/// Effects that failed, and why.
pub(super) type FailedEffects = HashMap<EffectOf, EffectFailure>;

/// The statements of an accept, each held from its first use to the end of the batch: to look one up by its text
/// costs as much as a tenth of storing an event.
#[derive(Default)]
pub(super) struct Statements<'a> {
    pub(super) store_event: Option<CachedStatement<'a>>,
    pub(super) read_holder: Option<CachedStatement<'a>>,
    pub(super) find_body: Option<CachedStatement<'a>>,
    pub(super) watch_body: Option<CachedStatement<'a>>,
}

/// The statement in `slot`, prepared at its first use.
pub(super) fn held<'s, 'a>(
    slot: &'s mut Option<CachedStatement<'a>>,
    connection: &'a Connection,
    sql: &str,
) -> rusqlite::Result<&'s mut CachedStatement<'a>> {
    match slot {
        Some(statement) => Ok(statement),
        None => connection.prepare_cached(sql).map(|statement| slot.insert(statement)),
    }
}

impl<'a> Batch<'a> {
    /// What a batch leaves behind that was carried out.
    pub(super) fn finish(self) -> (Ledger, DuplicateCounts, Staged<'a>) {
        (self.ledger, self.duplicates, self.identities)
    }
}

impl Batch<'_> {
    /// Refuses numbers that were never given out, and effects for other stores, before anything is written.
    pub(super) fn check(&self, write: &Write) -> Result<(), StoreError> {
        match write {
            Write::Accept(acceptance) => {
                self.check_source(acceptance.identity().source)?;
                self.check_destinations(&acceptance.facts().destinations)
            }
            Write::Claim(claim) => self.check_destinations(&[claim.destination]),
            Write::Redeliver(step) => self.check_destinations(&[step.plan.destination]),
            Write::Resolve(resolve) => match &resolve.subject {
                Subject::AcceptConflict { destinations, .. } => self.check_destinations(destinations),
                _ => Ok(()),
            },
            Write::Sweep(sweep) => sweep.retention.iter().try_for_each(|rule| self.check_source(rule.source)),
            Write::Settle(settle) => settle.verdict.effect().map_or(Ok(()), effect::check),
            Write::Extend(_) | Write::RecordRun(_) | Write::Register(_) => Ok(()),
        }
    }

    /// Carries out one write.
    pub(super) fn apply(&mut self, write: &Write) -> Result<Written, StoreError> {
        if !matches!(write, Write::Accept(_) | Write::Claim(_)) {
            self.write_noted()?;
        }
        Ok(match write {
            Write::Accept(acceptance) => Written::Accepted(self.accept(acceptance)?),
            Write::Claim(claim) => Written::Claimed(self.claim(claim)?),
            Write::Extend(extend) => Written::Extended(self.extend(extend)?),
            Write::Settle(settle) => Written::Settled(self.settle(settle)?),
            Write::RecordRun(run) => Written::RunRecorded(self.record_run(run)?),
            Write::Redeliver(step) => Written::Redelivered(self.redeliver(step)?),
            Write::Resolve(resolve) => Written::Resolved(self.resolve(resolve)?),
            Write::Sweep(sweep) => Written::Swept(self.sweep(sweep)?),
            Write::Register(register) => Written::Registered(self.register(register)?),
        })
    }

    /// Writes what was only noted: before anything else looks for it, and before the commit.
    pub(super) fn write_noted(&mut self) -> Result<(), StoreError> {
        self.write_made()?;
        self.write_ids()
    }

    fn check_source(&self, number: SourceNumber) -> Result<(), StoreError> {
        self.ledger.source_name(number).map(|_| ()).ok_or_else(|| unknown("source", number.0))
    }

    fn check_destinations(&self, numbers: &[DestinationNumber]) -> Result<(), StoreError> {
        numbers.iter().try_for_each(|number| {
            self.ledger.destination(*number).map(|_| ()).ok_or_else(|| unknown("destination", number.0))
        })
    }
}

fn unknown(what: &str, number: u32) -> StoreError {
    let reason = format!("{what} number {number} was never registered");
    StoreError::backend(format!("look up a {what}"), reason)
}
