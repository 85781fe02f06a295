//! What a person makes of a conflict: the rows of `variants` after accept wrote them.

use hookstead_core::{
    ConflictState, Decision, DestinationNumber, Digest, EventId, Identity, RawHeaders, Resolved, Seq,
    StoreError, Timestamp,
};
use rusqlite::{OptionalExtension, Row};

use super::accept::NewEvent;
use super::batch::Batch;
use super::failure::{reading, writing};
use super::ledger::int;
use super::row;

/// The first event of an identity, as far as a revision takes it over.
struct First {
    identity: Identity,
    event_type: Option<String>,
    account: Option<String>,
    received_from: Option<String>,
    verified_by: Option<String>,
}

/// Other bytes that were kept.
struct Variant {
    state: ConflictState,
    digest: Digest,
    received_at: Timestamp,
    headers: RawHeaders,
    body: Option<Vec<u8>>,
}

impl Batch<'_> {
    pub(super) fn accept_conflict(
        &mut self,
        event: &EventId,
        variant: u16,
        revision: EventId,
        destinations: &[DestinationNumber],
        decision: &Decision,
    ) -> Result<Resolved, StoreError> {
        let Some(seq) = self.seq_of(event)? else { return Ok(Resolved::Unknown) };
        let Some(found) = self.variant(seq, variant)? else { return Ok(Resolved::Unknown) };
        let (ConflictState::Open, Some(body)) = (&found.state, &found.body) else {
            return Ok(Resolved::Unchanged);
        };
        if Digest::of(body) != found.digest {
            let what = format!("the body of variant {variant} of event {seq} differs from its digest");
            return Err(row::corrupt(what));
        }
        let first = self.first(seq)?;
        self.decide(seq, variant, "accepted", Some(revision), decision)?;
        let made = self.store_event(&NewEvent {
            id: revision,
            identity: &first.identity,
            event_type: first.event_type.as_deref(),
            account: first.account.as_deref(),
            received_from: first.received_from.as_deref(),
            verified_by: first.verified_by.as_deref(),
            received_at: found.received_at,
            digest: found.digest,
            comparison: None,
            revises: Some(*event),
            headers: &found.headers,
            body,
            destinations,
        })?;
        Ok(Resolved::Revised { event: revision, seq: made })
    }

    pub(super) fn dismiss_conflict(
        &mut self,
        event: &EventId,
        variant: u16,
        decision: &Decision,
    ) -> Result<Resolved, StoreError> {
        let Some(seq) = self.seq_of(event)? else { return Ok(Resolved::Unknown) };
        let Some(found) = self.variant(seq, variant)? else { return Ok(Resolved::Unknown) };
        if found.state != ConflictState::Open {
            return Ok(Resolved::Unchanged);
        }
        self.decide(seq, variant, "dismissed", None, decision)?;
        Ok(Resolved::Changed)
    }

    fn decide(
        &mut self,
        seq: Seq,
        variant: u16,
        state: &str,
        revision: Option<EventId>,
        decision: &Decision,
    ) -> Result<(), StoreError> {
        self.connection
            .prepare_cached(
                "UPDATE variants SET state = ?3, revision = ?4, decision_by = ?5, decision_note = ?6,
                    decision_at_us = ?7
                 WHERE seq = ?1 AND variant = ?2",
            )
            .and_then(|mut statement| {
                statement.execute((
                    int(seq.0),
                    variant,
                    state,
                    revision.as_ref().map(EventId::as_bytes),
                    &decision.by,
                    &decision.note,
                    decision.at.as_micros(),
                ))
            })
            .map_err(writing("decide a conflict"))?;
        self.ledger.stats.conflicts_open = self.ledger.stats.conflicts_open.saturating_sub(1);
        Ok(())
    }

    fn variant(&self, seq: Seq, variant: u16) -> Result<Option<Variant>, StoreError> {
        self.connection
            .prepare_cached(
                "SELECT state, revision, decision_by, decision_note, decision_at_us, digest, received_at_us,
                    headers, body
                 FROM variants WHERE seq = ?1 AND variant = ?2",
            )
            .and_then(|mut statement| {
                let parse = |row: &Row<'_>| {
                    Ok(Variant {
                        state: state(row, 0)?,
                        digest: row::digest(row, 5)?,
                        received_at: row::time(row, 6)?,
                        headers: row::headers(row, 7)?,
                        body: row.get(8)?,
                    })
                };
                statement.query_row((int(seq.0), variant), parse).optional()
            })
            .map_err(reading("read a conflict"))
    }

    fn first(&self, seq: Seq) -> Result<First, StoreError> {
        self.connection
            .prepare_cached(
                "SELECT source, scope, provider_event_id, event_type, account, received_from, verified_by
                 FROM events WHERE seq = ?1",
            )
            .and_then(|mut statement| {
                statement.query_row([int(seq.0)], |row| {
                    Ok(First {
                        identity: row::identity(row, 0)?,
                        event_type: row.get(3)?,
                        account: row.get(4)?,
                        received_from: row.get(5)?,
                        verified_by: row.get(6)?,
                    })
                })
            })
            .map_err(reading("read the first event of an identity"))
    }
}

/// What a person made of a conflict, in five columns from `column` on: state, revision and the decision.
pub(super) fn state(row: &Row<'_>, column: usize) -> rusqlite::Result<ConflictState> {
    let word: String = row.get(column)?;
    let decision = row::decision(row, column + 2)?;
    match (word.as_str(), decision) {
        ("open", None) => Ok(ConflictState::Open),
        ("dismissed", Some(decision)) => Ok(ConflictState::Dismissed(decision)),
        ("accepted", Some(decision)) => {
            Ok(ConflictState::Accepted { revision: row::event_id(row, column + 1)?, decision })
        }
        (other, _) => Err(row::bad_word(column, other)),
    }
}
