//! Accept: stored, duplicate or conflict.

use hookstead_core::event::VARIANTS_MAX;
use hookstead_core::identity::IDENTITY_PROBES_MAX;
use hookstead_core::{
    AcceptReceipt, Acceptance, ComparisonDigest, ConflictState, Delivery, DeliveryId, DestinationNumber,
    Digest, Duplicates, EventId, Identity, IdentityHash, Outcome, RawHeaders, Seq, StoreError, StoredBytes,
    Timestamp,
};
use rusqlite::{OptionalExtension, Row, params};

use super::batch::{Batch, held};
use super::failure::{reading, writing};
use super::ledger::{count, int};
use super::row;
use super::rows::{self, Inserts, inserts};

/// What is being done, for errors.
const STORE: &str = "store an event";

const EVENT_IDS: Inserts = inserts!("event_ids (id, seq)");

/// An event that is about to be stored, whatever it comes from.
pub(super) struct NewEvent<'a> {
    pub(super) id: EventId,
    pub(super) identity: &'a Identity,
    pub(super) event_type: Option<&'a str>,
    pub(super) account: Option<&'a str>,
    pub(super) received_from: Option<&'a str>,
    pub(super) verified_by: Option<&'a str>,
    pub(super) received_at: Timestamp,
    pub(super) digest: Digest,
    pub(super) comparison: Option<ComparisonDigest>,
    pub(super) revises: Option<EventId>,
    pub(super) headers: &'a RawHeaders,
    pub(super) body: &'a [u8],
    pub(super) destinations: &'a [DestinationNumber],
}

/// The event that holds an identity, and how it compares with what came.
struct Holder {
    seq: Seq,
    id: EventId,
    digest: Digest,
    committed_at: Timestamp,
    comparison: Comparison,
}

enum Comparison {
    /// Another identity with the same hash.
    OtherIdentity,
    SameBytes,
    OtherBytes,
}

impl Holder {
    fn receipt(&self, outcome: Outcome) -> AcceptReceipt {
        let Self { seq, id, digest, committed_at, .. } = *self;
        AcceptReceipt { outcome, event: id, seq, digest, committed_at, same_body_as: None }
    }
}

impl Batch<'_> {
    pub(super) fn accept(&mut self, acceptance: &Acceptance) -> Result<AcceptReceipt, StoreError> {
        for probe in 0..IDENTITY_PROBES_MAX {
            let hash = match probe {
                0 => acceptance.identity_hash(),
                _ => self.identity_key.hash(acceptance.identity(), probe),
            };
            let Some(seq) = self.identities.holder(hash)? else {
                return self.store_unless_reused(hash, acceptance);
            };
            let holder = self.compare_with(seq, acceptance)?;
            match holder.comparison {
                Comparison::OtherIdentity => {}
                Comparison::SameBytes => return self.duplicate(&holder),
                Comparison::OtherBytes => return self.conflict(&holder, acceptance),
            }
        }
        let reason = format!("{IDENTITY_PROBES_MAX} hashes of one identity belong to other identities");
        Err(StoreError::backend("find a place for an identity", reason))
    }

    pub(super) fn store_first(
        &mut self,
        hash: IdentityHash,
        acceptance: &Acceptance,
    ) -> Result<AcceptReceipt, StoreError> {
        let facts = acceptance.facts();
        let seq = self.store_event(&NewEvent {
            id: acceptance.id(),
            identity: acceptance.identity(),
            event_type: facts.event_type.as_deref(),
            account: facts.account.as_deref(),
            received_from: facts.received_from.as_deref(),
            verified_by: facts.verified_by.as_deref(),
            received_at: facts.received_at,
            digest: acceptance.digest(),
            comparison: facts.comparison,
            revises: None,
            headers: &facts.headers,
            body: acceptance.body(),
            destinations: &facts.destinations,
        })?;
        self.identities.take(hash, seq);
        Ok(AcceptReceipt {
            outcome: Outcome::Stored,
            event: acceptance.id(),
            seq,
            digest: acceptance.digest(),
            committed_at: self.now,
            same_body_as: None,
        })
    }

    /// Appends an event and the deliveries that it owes.
    pub(super) fn store_event(&mut self, event: &NewEvent<'_>) -> Result<Seq, StoreError> {
        let seq = Seq(self.ledger.newest.0 + 1);
        let destinations = distinct(event.destinations);
        let body_bytes = event.body.len() as u64;
        let body_bytes_total = self.ledger.body_bytes_total + body_bytes;
        let deliveries_total = self.ledger.deliveries_total + destinations.len() as u64;
        // Without a number of its own it goes behind the newest event, without a search for its place.
        let stored_as = held(
            &mut self.statements.store_event,
            self.connection,
            "INSERT INTO events (id, source, scope, provider_event_id, event_type, account,
                    received_from, verified_by, received_at_us, committed_at_us, digest, body_bytes,
                    comparison_rule, comparison_digest, revises, body_bytes_total, deliveries_total,
                    erased_at_us, headers, body)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                    NULL, ?18, ?19)",
        )
        .and_then(|statement| {
            statement.insert(params![
                event.id.as_bytes(),
                event.identity.source.0,
                event.identity.scope.as_bytes(),
                event.identity.id.as_bytes(),
                event.event_type,
                event.account,
                event.received_from,
                event.verified_by,
                event.received_at.as_micros(),
                self.now.as_micros(),
                event.digest.as_bytes(),
                int(body_bytes),
                event.comparison.map(|comparison| comparison.rule_version),
                event.comparison.as_ref().map(|comparison| comparison.digest.as_bytes()),
                event.revises.as_ref().map(EventId::as_bytes),
                int(body_bytes_total),
                int(deliveries_total),
                event.headers.as_block().as_ref(),
                event.body,
            ])
        })
        .map_err(writing(STORE))?;
        check_number(seq, stored_as)?;
        self.ids.push((event.id, seq));
        for destination in destinations {
            let id = DeliveryId { event: event.id, destination, generation: 1 };
            self.make_delivery(seq, Delivery::new(id, self.now, self.now));
        }
        self.ledger.newest = seq;
        self.ledger.body_bytes_total = body_bytes_total;
        self.ledger.deliveries_total = deliveries_total;
        self.ledger.stats.events += 1;
        self.ledger.stats.body_bytes += body_bytes;
        Ok(seq)
    }

    /// Writes the ids of the events that were stored: before anything looks for an event by its id, and before the
    /// commit. In their order, since they are new ones and so nearly always belong behind all others.
    pub(super) fn write_ids(&mut self) -> Result<(), StoreError> {
        let mut ids = std::mem::take(&mut self.ids);
        ids.sort_unstable();
        rows::insert(self.connection, &EVENT_IDS, &ids, EventId::as_bytes)
            .map_err(|failed| writing(STORE)(failed.error))
    }

    /// The event that a hash belongs to, compared with what came.
    fn compare_with(&mut self, seq: Seq, acceptance: &Acceptance) -> Result<Holder, StoreError> {
        let compared = held(
            &mut self.statements.read_holder,
            self.connection,
            "SELECT id, digest, committed_at_us, source, scope, provider_event_id, body_bytes,
                    comparison_rule, comparison_digest, erased_at_us, body
                 FROM events WHERE seq = ?1",
        )
        .and_then(|statement| {
            statement.query_row([int(seq.0)], |row| compare(row, seq, acceptance)).optional()
        })
        .map_err(reading("find the event of an identity"))?;
        compared.ok_or_else(|| row::corrupt(format!("event {seq} is in an index and not in the table")))?
    }

    fn duplicate(&mut self, holder: &Holder) -> Result<AcceptReceipt, StoreError> {
        let counted = self.duplicates.get(&holder.seq).copied();
        let before = match counted.or_else(|| self.published.counted(holder.seq)) {
            Some(counted) => counted,
            None => self.counted_on_disk(holder.seq)?,
        };
        let counts = Duplicates { count: before.count.saturating_add(1), last_at: Some(self.now) };
        self.duplicates.insert(holder.seq, counts);
        Ok(holder.receipt(Outcome::Duplicate))
    }

    fn counted_on_disk(&self, seq: Seq) -> Result<Duplicates, StoreError> {
        self.connection
            .prepare_cached("SELECT count, last_at_us FROM duplicates WHERE seq = ?1")
            .and_then(|mut statement| {
                statement
                    .query_row([int(seq.0)], |row| {
                        Ok(Duplicates { count: count(row.get(0)?), last_at: row::optional_time(row, 1)? })
                    })
                    .optional()
            })
            .map(Option::unwrap_or_default)
            .map_err(reading("read how often an event came again"))
    }

    fn conflict(&mut self, holder: &Holder, acceptance: &Acceptance) -> Result<AcceptReceipt, StoreError> {
        let Some((variant, state)) = self.find_variant(holder.seq, acceptance)? else {
            let variant = self.keep_variant(holder.seq, acceptance)?;
            return Ok(holder.receipt(Outcome::Conflict { variant }));
        };
        match state {
            ConflictState::Accepted { revision, .. } => {
                let revision = self.revision(&revision)?;
                self.duplicate(&revision)
            }
            ConflictState::Open | ConflictState::Dismissed(_) => {
                Ok(holder.receipt(Outcome::Conflict { variant: Some(variant) }))
            }
        }
    }

    fn find_variant(
        &self,
        seq: Seq,
        acceptance: &Acceptance,
    ) -> Result<Option<(u16, ConflictState)>, StoreError> {
        let key = (int(seq.0), *acceptance.digest().as_bytes(), int(acceptance.body().len() as u64));
        self.connection
            .prepare_cached(
                "SELECT variant, state, revision, decision_by, decision_note, decision_at_us
                 FROM variants WHERE seq = ?1 AND digest = ?2 AND body_bytes = ?3",
            )
            .and_then(|mut statement| {
                statement.query_row(key, |row| Ok((row.get(0)?, super::conflict::state(row, 1)?))).optional()
            })
            .map_err(reading("look for a conflict"))
    }

    /// Keeps other bytes as evidence; `None` if there are enough of them already.
    fn keep_variant(&mut self, seq: Seq, acceptance: &Acceptance) -> Result<Option<u16>, StoreError> {
        let kept: u16 = self
            .connection
            .prepare_cached("SELECT count(*) FROM variants WHERE seq = ?1")
            .and_then(|mut statement| statement.query_row([int(seq.0)], |row| row.get(0)))
            .map_err(reading("count the conflicts of an event"))?;
        if kept >= VARIANTS_MAX {
            return Ok(None);
        }
        let variant = kept + 1;
        self.connection
            .prepare_cached(
                "INSERT INTO variants (seq, variant, digest, body_bytes, received_at_us, state, headers, body)
                 VALUES (?1, ?2, ?3, ?4, ?5, 'open', ?6, ?7)",
            )
            .and_then(|mut statement| {
                statement.execute(params![
                    int(seq.0),
                    variant,
                    acceptance.digest().as_bytes(),
                    int(acceptance.body().len() as u64),
                    acceptance.facts().received_at.as_micros(),
                    acceptance.facts().headers.as_block().as_ref(),
                    acceptance.body().as_ref(),
                ])
            })
            .map_err(writing("keep a conflict"))?;
        self.ledger.stats.conflicts_open += 1;
        Ok(Some(variant))
    }

    /// The event that was made of a conflict, after its body was checked as the first event's was.
    fn revision(&mut self, id: &EventId) -> Result<Holder, StoreError> {
        let lost = || row::corrupt(format!("event {id} was made of a conflict and is not in the table"));
        let seq = self.seq_of(id)?.ok_or_else(lost)?;
        let checked = self
            .connection
            .prepare_cached(
                "SELECT id, digest, committed_at_us, body_bytes, erased_at_us, body
                 FROM events WHERE seq = ?1",
            )
            .and_then(|mut statement| {
                statement
                    .query_row([int(seq.0)], |row| {
                        let (digest, body_bytes) = (row::digest(row, 1)?, count(row.get(3)?));
                        let (erased, body) =
                            (row::optional_time(row, 4)?, row.get_ref(5)?.as_blob_or_null()?);
                        let comparison = Comparison::SameBytes;
                        let committed_at = row::time(row, 2)?;
                        let holder =
                            Holder { seq, id: row::event_id(row, 0)?, digest, committed_at, comparison };
                        Ok(check_body(seq, &digest, body_bytes, erased.is_some(), body).map(|()| holder))
                    })
                    .optional()
            })
            .map_err(reading("read the event that was made of a conflict"))?;
        checked.ok_or_else(lost)?
    }
}

/// Compares a stored event with what came, its body's digest first. The outer error is the database's, the
/// inner one says that the record is damaged.
fn compare(row: &Row<'_>, seq: Seq, acceptance: &Acceptance) -> rusqlite::Result<Result<Holder, StoreError>> {
    let (id, digest, committed_at) = (row::event_id(row, 0)?, row::digest(row, 1)?, row::time(row, 2)?);
    let identity = row::identity(row, 3)?;
    let holder = |comparison| Holder { seq, id, digest, committed_at, comparison };
    if identity != *acceptance.identity() {
        return Ok(Ok(holder(Comparison::OtherIdentity)));
    }
    let body_bytes = count(row.get(6)?);
    let comparison_digest = match row.get(7)? {
        Some(rule_version) => Some(ComparisonDigest { rule_version, digest: row::digest(row, 8)? }),
        None => None,
    };
    let body = row.get_ref(10)?.as_blob_or_null()?;
    if let Err(damaged) = check_body(seq, &digest, body_bytes, row::optional_time(row, 9)?.is_some(), body) {
        return Ok(Err(damaged));
    }
    let stored = StoredBytes { digest, body_bytes, body, comparison: comparison_digest };
    let same = stored.same_as(acceptance);
    Ok(Ok(holder(if same { Comparison::SameBytes } else { Comparison::OtherBytes })))
}

/// A body against the length and digest that are kept apart from it.
pub(super) fn check_body(
    seq: Seq,
    digest: &Digest,
    body_bytes: u64,
    is_erased: bool,
    body: Option<&[u8]>,
) -> Result<(), StoreError> {
    match body {
        None if is_erased => Ok(()),
        None => Err(row::corrupt(format!("the body of event {seq} is gone and was never erased"))),
        Some(body) if body.len() as u64 != body_bytes => Err(row::corrupt(format!(
            "the body of event {seq} has {} bytes and had {body_bytes}",
            body.len()
        ))),
        Some(body) if Digest::of(body) != *digest => {
            Err(row::corrupt(format!("the body of event {seq} differs from its digest")))
        }
        Some(_) => Ok(()),
    }
}

/// That an event got its place: nobody but this writer changes the end of the table. If somebody did, an event that was
/// acknowledged is gone, or there is one that nobody sent: no other is taken then.
fn check_number(seq: Seq, stored_as: i64) -> Result<(), StoreError> {
    if stored_as == int(seq.0) {
        return Ok(());
    }
    let reason = format!(
        "the event to become number {} became number {stored_as}: the newest event in the table is not the newest that was stored",
        seq.0
    );
    Err(StoreError::Poisoned { reason })
}

/// Each destination once, in the order of their first mention.
fn distinct(destinations: &[DestinationNumber]) -> Vec<DestinationNumber> {
    let mut seen = Vec::with_capacity(destinations.len());
    for destination in destinations {
        if !seen.contains(destination) {
            seen.push(*destination);
        }
    }
    seen
}
