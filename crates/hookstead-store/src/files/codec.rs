//! How a [`Row`] is written in the log: one JSON object with a `kind`. Instants are microseconds since 1970,
//! bytes are base64, digests hex. A field that a later version adds must have a default. It knows no files.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use hookstead_core::{
    Attempt, ComparisonDigest, ConflictState, DeadReason, Decision, Delivery, DeliveryId, DeliveryState,
    DeliveryTally, DestinationNumber, DestinationRow, Digest, Duplicates, Event, EventFilter, Identity,
    LeaseToken, ProviderEventId, RawHeaders, Redelivery, RedeliveryId, RedeliveryPlan, RedeliveryState,
    RetryPolicy, Scope, Seq, Settled, SourceNumber, SourceRow, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::row::{EventRow, Row, RunRow, VariantRow};

/// Why a row cannot be read.
pub(super) type Bad = String;

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum RowJson {
    Source {
        number: u32,
        name: String,
        generation: u32,
        fingerprint: String,
    },
    Destination {
        number: u32,
        name: String,
        generation: u32,
        fingerprint: String,
        retry: RetryPolicy,
        paused: bool,
    },
    Event(Box<EventJson>),
    Variant {
        seq: u64,
        #[serde(flatten)]
        variant: VariantJson,
    },
    VariantState {
        seq: u64,
        number: u16,
        state: ConflictJson,
    },
    Erased {
        seq: u64,
        at: i64,
    },
    Duplicates {
        seq: u64,
        count: u64,
        last_at: Option<i64>,
    },
    Delivery(Box<DeliveryJson>),
    Attempt(Box<AttemptJson>),
    Run {
        seq: u64,
        run: String,
        digest: String,
        processed_at: i64,
        business_id: Option<String>,
        payload: Option<String>,
    },
    Redelivery(Box<RedeliveryJson>),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EventJson {
    seq: u64,
    id: String,
    source: String,
    source_number: u32,
    scope: String,
    provider_id: String,
    event_type: Option<String>,
    account: Option<String>,
    received_from: Option<String>,
    verified_by: Option<String>,
    received_at: i64,
    committed_at: i64,
    digest: String,
    body_bytes: u64,
    erased_at: Option<i64>,
    headers: String,
    revises: Option<String>,
    duplicates: u64,
    duplicate_last_at: Option<i64>,
    comparison: Option<(u32, String)>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    body_watched: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    same_body_as: Option<String>,
    variants: Vec<VariantJson>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct VariantJson {
    digest: String,
    body_bytes: u64,
    erased: bool,
    headers: String,
    received_at: i64,
    state: ConflictJson,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ConflictJson {
    Open,
    Accepted { revision: String, decision: DecisionJson },
    Dismissed(DecisionJson),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct DecisionJson {
    by: String,
    note: String,
    at: i64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct DeliveryJson {
    seq: u64,
    id: String,
    state: StateJson,
    made_at: i64,
    attempts: u32,
    token: u32,
    last_settled: Option<(u32, SettledJson)>,
    key_generation: u32,
    redelivery: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StateJson {
    Waiting { due: i64 },
    Leased { expires_at: i64 },
    Done { at: i64, decision: Option<DecisionJson> },
    Dead { at: i64, reason: DeadJson },
    Held { decision: DecisionJson },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DeadJson {
    Refused(String),
    AttemptsUsedUp,
    AgeUsedUp,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SettledJson {
    Done,
    Retry { due: i64 },
    Dead(DeadJson),
    Released,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct AttemptJson {
    seq: u64,
    destination: u32,
    generation: u32,
    token: u32,
    number: u32,
    started_at: i64,
    took_us: u64,
    status: Option<u16>,
    excerpt: String,
    error: Option<String>,
    rule: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RedeliveryJson {
    id: String,
    source: Option<u32>,
    event_type: Option<String>,
    committed_from: Option<i64>,
    committed_before: Option<i64>,
    destination: u32,
    fresh_key: bool,
    by: String,
    note: String,
    made_at: i64,
    cursor: u64,
    until: u64,
    made: u64,
    skipped: u64,
    state: RedeliveryStateJson,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RedeliveryStateJson {
    Running,
    Complete,
    Cancelled,
}

// To JSON.

impl From<&Row> for RowJson {
    fn from(row: &Row) -> Self {
        match row {
            Row::Source(row) => Self::Source {
                number: row.number.0,
                name: row.name.to_string(),
                generation: row.generation,
                fingerprint: row.identity_fingerprint.clone(),
            },
            Row::Destination(row) => Self::Destination {
                number: row.number.0,
                name: row.name.to_string(),
                generation: row.generation,
                fingerprint: row.fingerprint.clone(),
                retry: row.retry.clone(),
                paused: row.paused,
            },
            Row::Event(row) => Self::Event(Box::new(event_json(row))),
            Row::Variant(seq, variant) => Self::Variant { seq: seq.0, variant: variant_json(variant) },
            Row::VariantState(seq, number, state) => {
                Self::VariantState { seq: seq.0, number: *number, state: conflict_json(state) }
            }
            Row::Erased(seq, at) => Self::Erased { seq: seq.0, at: at.as_micros() },
            Row::Duplicates(seq, Duplicates { count, last_at }) => {
                Self::Duplicates { seq: seq.0, count: *count, last_at: last_at.map(Timestamp::as_micros) }
            }
            Row::Delivery(seq, delivery) => Self::Delivery(Box::new(delivery_json(*seq, delivery))),
            Row::Attempt((seq, destination, generation), attempt) => {
                Self::Attempt(Box::new(attempt_json(*seq, *destination, *generation, attempt)))
            }
            Row::Run(seq, run, row) => Self::Run {
                seq: seq.0,
                run: run.to_string(),
                digest: row.digest.to_string(),
                processed_at: row.processed_at.as_micros(),
                business_id: row.business_id.clone(),
                payload: row.payload.map(|digest| digest.to_string()),
            },
            Row::Redelivery(row) => Self::Redelivery(Box::new(redelivery_json(row))),
        }
    }
}

fn event_json(row: &EventRow) -> EventJson {
    let event = &row.event;
    EventJson {
        seq: event.seq.0,
        id: event.id.to_string(),
        source: event.source.to_string(),
        source_number: event.identity.source.0,
        scope: BASE64_STANDARD.encode(event.identity.scope.as_bytes()),
        provider_id: BASE64_STANDARD.encode(event.identity.id.as_bytes()),
        event_type: event.event_type.clone(),
        account: event.account.clone(),
        received_from: event.received_from.clone(),
        verified_by: event.verified_by.clone(),
        received_at: event.received_at.as_micros(),
        committed_at: event.committed_at.as_micros(),
        digest: event.digest.to_string(),
        body_bytes: event.body_bytes,
        erased_at: event.erased_at.map(Timestamp::as_micros),
        headers: BASE64_STANDARD.encode(event.headers.as_block()),
        revises: event.revises.map(|id| id.to_string()),
        duplicates: event.duplicates.count,
        duplicate_last_at: event.duplicates.last_at.map(Timestamp::as_micros),
        comparison: row.comparison.map(|rule| (rule.rule_version, rule.digest.to_string())),
        body_watched: row.body_watched,
        same_body_as: event.same_body_as.map(|id| id.to_string()),
        variants: row.variants.iter().map(variant_json).collect(),
    }
}

fn variant_json(variant: &VariantRow) -> VariantJson {
    VariantJson {
        digest: variant.digest.to_string(),
        body_bytes: variant.body_bytes,
        erased: variant.erased,
        headers: BASE64_STANDARD.encode(variant.headers.as_block()),
        received_at: variant.received_at.as_micros(),
        state: conflict_json(&variant.state),
    }
}

fn conflict_json(state: &ConflictState) -> ConflictJson {
    match state {
        ConflictState::Open => ConflictJson::Open,
        ConflictState::Accepted { revision, decision } => {
            ConflictJson::Accepted { revision: revision.to_string(), decision: decision_json(decision) }
        }
        ConflictState::Dismissed(decision) => ConflictJson::Dismissed(decision_json(decision)),
    }
}

fn decision_json(decision: &Decision) -> DecisionJson {
    DecisionJson { by: decision.by.clone(), note: decision.note.clone(), at: decision.at.as_micros() }
}

fn delivery_json(seq: Seq, delivery: &Delivery) -> DeliveryJson {
    DeliveryJson {
        seq: seq.0,
        id: delivery.id.to_string(),
        state: match &delivery.state {
            DeliveryState::Waiting { due } => StateJson::Waiting { due: due.as_micros() },
            DeliveryState::Leased { expires_at } => StateJson::Leased { expires_at: expires_at.as_micros() },
            DeliveryState::Done { at, decision } => {
                StateJson::Done { at: at.as_micros(), decision: decision.as_ref().map(decision_json) }
            }
            DeliveryState::Dead { at, reason } => {
                StateJson::Dead { at: at.as_micros(), reason: dead_json(reason) }
            }
            DeliveryState::Held { decision } => StateJson::Held { decision: decision_json(decision) },
        },
        made_at: delivery.made_at.as_micros(),
        attempts: delivery.attempts,
        token: delivery.token.0,
        last_settled: delivery.last_settled.as_ref().map(|(token, settled)| (token.0, settled_json(settled))),
        key_generation: delivery.key_generation,
        redelivery: delivery.redelivery.map(|id| hex::encode(id.0)),
    }
}

fn dead_json(reason: &DeadReason) -> DeadJson {
    match reason {
        DeadReason::Refused(why) => DeadJson::Refused(why.clone()),
        DeadReason::AttemptsUsedUp => DeadJson::AttemptsUsedUp,
        DeadReason::AgeUsedUp => DeadJson::AgeUsedUp,
    }
}

fn settled_json(settled: &Settled) -> SettledJson {
    match settled {
        Settled::Done => SettledJson::Done,
        Settled::Retry { due } => SettledJson::Retry { due: due.as_micros() },
        Settled::Dead(reason) => SettledJson::Dead(dead_json(reason)),
        Settled::Released => SettledJson::Released,
    }
}

fn attempt_json(seq: Seq, destination: DestinationNumber, generation: u32, attempt: &Attempt) -> AttemptJson {
    AttemptJson {
        seq: seq.0,
        destination: destination.0,
        generation,
        token: attempt.token.0,
        number: attempt.number,
        started_at: attempt.started_at.as_micros(),
        took_us: attempt.took_us,
        status: attempt.status,
        excerpt: BASE64_STANDARD.encode(&attempt.excerpt),
        error: attempt.error.clone(),
        rule: attempt.rule.clone(),
    }
}

fn redelivery_json(row: &Redelivery) -> RedeliveryJson {
    let filter = &row.plan.events;
    RedeliveryJson {
        id: hex::encode(row.plan.id.0),
        source: filter.source.map(|number| number.0),
        event_type: filter.event_type.as_ref().map(|pattern| pattern.as_str().to_owned()),
        committed_from: filter.committed_from.map(Timestamp::as_micros),
        committed_before: filter.committed_before.map(Timestamp::as_micros),
        destination: row.plan.destination.0,
        fresh_key: row.plan.fresh_key,
        by: row.plan.by.clone(),
        note: row.plan.note.clone(),
        made_at: row.made_at.as_micros(),
        cursor: row.cursor.0,
        until: row.until.0,
        made: row.made,
        skipped: row.skipped,
        state: match row.state {
            RedeliveryState::Running => RedeliveryStateJson::Running,
            RedeliveryState::Complete => RedeliveryStateJson::Complete,
            RedeliveryState::Cancelled => RedeliveryStateJson::Cancelled,
        },
    }
}

// From JSON.

impl TryFrom<RowJson> for Row {
    type Error = Bad;

    fn try_from(json: RowJson) -> Result<Self, Bad> {
        Ok(match json {
            RowJson::Source { number, name, generation, fingerprint } => Self::Source(SourceRow {
                number: SourceNumber(number),
                name: parsed(&name)?,
                generation,
                identity_fingerprint: fingerprint,
            }),
            RowJson::Destination { number, name, generation, fingerprint, retry, paused } => {
                Self::Destination(DestinationRow {
                    number: DestinationNumber(number),
                    name: parsed(&name)?,
                    generation,
                    fingerprint,
                    retry,
                    paused,
                })
            }
            RowJson::Event(event) => Self::Event(Arc::new(event_row(*event)?)),
            RowJson::Variant { seq, variant } => Self::Variant(Seq(seq), variant_row(variant)?),
            RowJson::VariantState { seq, number, state } => {
                Self::VariantState(Seq(seq), number, conflict_state(state)?)
            }
            RowJson::Erased { seq, at } => Self::Erased(Seq(seq), Timestamp::from_micros(at)),
            RowJson::Duplicates { seq, count, last_at } => {
                Self::Duplicates(Seq(seq), Duplicates { count, last_at: last_at.map(Timestamp::from_micros) })
            }
            RowJson::Delivery(delivery) => Self::Delivery(Seq(delivery.seq), delivery_row(*delivery)?),
            RowJson::Attempt(json) => {
                let key = (Seq(json.seq), DestinationNumber(json.destination), json.generation);
                Self::Attempt(key, attempt_row(*json)?)
            }
            RowJson::Run { seq, run, digest, processed_at, business_id, payload } => {
                let row = RunRow {
                    digest: digest_of(&digest)?,
                    processed_at: Timestamp::from_micros(processed_at),
                    business_id,
                    payload: payload.as_deref().map(digest_of).transpose()?,
                };
                Self::Run(Seq(seq), parsed(&run)?, row)
            }
            RowJson::Redelivery(json) => Self::Redelivery(redelivery_row(*json)?),
        })
    }
}

fn event_row(json: EventJson) -> Result<EventRow, Bad> {
    let comparison = match json.comparison {
        Some((rule_version, digest)) => Some(ComparisonDigest { rule_version, digest: digest_of(&digest)? }),
        None => None,
    };
    let identity = Identity {
        source: SourceNumber(json.source_number),
        scope: Scope::new(bytes_of(&json.scope)?).map_err(text)?,
        id: ProviderEventId::new(bytes_of(&json.provider_id)?).map_err(text)?,
    };
    let event = Event {
        id: parsed(&json.id)?,
        seq: Seq(json.seq),
        source: parsed(&json.source)?,
        identity,
        event_type: json.event_type,
        account: json.account,
        received_from: json.received_from,
        verified_by: json.verified_by,
        received_at: Timestamp::from_micros(json.received_at),
        committed_at: Timestamp::from_micros(json.committed_at),
        digest: digest_of(&json.digest)?,
        body_bytes: json.body_bytes,
        erased_at: json.erased_at.map(Timestamp::from_micros),
        headers: headers_of(&json.headers)?,
        revises: json.revises.as_deref().map(parsed).transpose()?,
        same_body_as: json.same_body_as.as_deref().map(parsed).transpose()?,
        duplicates: Duplicates {
            count: json.duplicates,
            last_at: json.duplicate_last_at.map(Timestamp::from_micros),
        },
        conflicts: 0,
        deliveries: DeliveryTally::default(),
    };
    let variants = json.variants.into_iter().map(variant_row).collect::<Result<_, _>>()?;
    Ok(EventRow { event, comparison, body_watched: json.body_watched, variants })
}

fn variant_row(json: VariantJson) -> Result<VariantRow, Bad> {
    Ok(VariantRow {
        digest: digest_of(&json.digest)?,
        body_bytes: json.body_bytes,
        erased: json.erased,
        headers: headers_of(&json.headers)?,
        received_at: Timestamp::from_micros(json.received_at),
        state: conflict_state(json.state)?,
    })
}

fn conflict_state(json: ConflictJson) -> Result<ConflictState, Bad> {
    Ok(match json {
        ConflictJson::Open => ConflictState::Open,
        ConflictJson::Accepted { revision, decision: by } => {
            ConflictState::Accepted { revision: parsed(&revision)?, decision: decision(by) }
        }
        ConflictJson::Dismissed(by) => ConflictState::Dismissed(decision(by)),
    })
}

fn decision(json: DecisionJson) -> Decision {
    Decision { by: json.by, note: json.note, at: Timestamp::from_micros(json.at) }
}

fn delivery_row(json: DeliveryJson) -> Result<Delivery, Bad> {
    let at = Timestamp::from_micros;
    Ok(Delivery {
        id: parsed::<DeliveryId>(&json.id)?,
        state: match json.state {
            StateJson::Waiting { due } => DeliveryState::Waiting { due: at(due) },
            StateJson::Leased { expires_at } => DeliveryState::Leased { expires_at: at(expires_at) },
            StateJson::Done { at: since, decision: by } => {
                DeliveryState::Done { at: at(since), decision: by.map(decision) }
            }
            StateJson::Dead { at: since, reason } => {
                DeliveryState::Dead { at: at(since), reason: dead_reason(reason) }
            }
            StateJson::Held { decision: by } => DeliveryState::Held { decision: decision(by) },
        },
        made_at: at(json.made_at),
        attempts: json.attempts,
        token: LeaseToken(json.token),
        last_settled: json.last_settled.map(|(token, of)| (LeaseToken(token), settled(of))),
        key_generation: json.key_generation,
        redelivery: json.redelivery.as_deref().map(redelivery_id).transpose()?,
    })
}

fn dead_reason(json: DeadJson) -> DeadReason {
    match json {
        DeadJson::Refused(why) => DeadReason::Refused(why),
        DeadJson::AttemptsUsedUp => DeadReason::AttemptsUsedUp,
        DeadJson::AgeUsedUp => DeadReason::AgeUsedUp,
    }
}

fn settled(json: SettledJson) -> Settled {
    match json {
        SettledJson::Done => Settled::Done,
        SettledJson::Retry { due } => Settled::Retry { due: Timestamp::from_micros(due) },
        SettledJson::Dead(reason) => Settled::Dead(dead_reason(reason)),
        SettledJson::Released => Settled::Released,
    }
}

fn attempt_row(json: AttemptJson) -> Result<Attempt, Bad> {
    Ok(Attempt {
        token: LeaseToken(json.token),
        number: json.number,
        started_at: Timestamp::from_micros(json.started_at),
        took_us: json.took_us,
        status: json.status,
        excerpt: bytes_of(&json.excerpt)?.into(),
        error: json.error,
        rule: json.rule,
    })
}

fn redelivery_row(json: RedeliveryJson) -> Result<Redelivery, Bad> {
    let events = EventFilter {
        source: json.source.map(SourceNumber),
        event_type: json.event_type.as_deref().map(parsed).transpose()?,
        committed_from: json.committed_from.map(Timestamp::from_micros),
        committed_before: json.committed_before.map(Timestamp::from_micros),
    };
    let plan = RedeliveryPlan {
        id: redelivery_id(&json.id)?,
        events,
        destination: DestinationNumber(json.destination),
        fresh_key: json.fresh_key,
        by: json.by,
        note: json.note,
    };
    Ok(Redelivery {
        plan,
        made_at: Timestamp::from_micros(json.made_at),
        cursor: Seq(json.cursor),
        until: Seq(json.until),
        made: json.made,
        skipped: json.skipped,
        state: match json.state {
            RedeliveryStateJson::Running => RedeliveryState::Running,
            RedeliveryStateJson::Complete => RedeliveryState::Complete,
            RedeliveryStateJson::Cancelled => RedeliveryState::Cancelled,
        },
    })
}

fn redelivery_id(hex_text: &str) -> Result<RedeliveryId, Bad> {
    let mut id = [0; 16];
    hex::decode_to_slice(hex_text, &mut id).map_err(text)?;
    Ok(RedeliveryId(id))
}

fn digest_of(hex_text: &str) -> Result<Digest, Bad> {
    let mut digest = [0; 32];
    hex::decode_to_slice(hex_text, &mut digest).map_err(text)?;
    Ok(Digest::from_bytes(digest))
}

fn bytes_of(base64_text: &str) -> Result<Vec<u8>, Bad> {
    BASE64_STANDARD.decode(base64_text).map_err(text)
}

fn headers_of(base64_text: &str) -> Result<RawHeaders, Bad> {
    Ok(RawHeaders::from_block(Bytes::from(bytes_of(base64_text)?)))
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(value: &str) -> Result<T, Bad> {
    value.parse().map_err(text)
}

fn text(error: impl std::fmt::Display) -> Bad {
    error.to_string()
}
