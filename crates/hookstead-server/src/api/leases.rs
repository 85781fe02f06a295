//! `/v1/leases`: how leases end, one by one or many in one commit.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use hookstead::core::{
    Attempt, DeadReason, DestinationNumber, Extend, Extension as Extended, RetryPolicy, Settle, Settled,
    Settlement, Store, Timestamp, Verdict,
};
use hookstead::{LeaseAnswer, LeaseWrite, Unavailable};
use http::StatusCode;

use super::body;
use super::claim::checked_lease;
use super::error::ApiError;
use super::lease_id::LeaseId;
use super::lease_view::{
    ExtendedView, LeaseOutcome, LeaseResult, SettleBatch, SettleDetails, SettleItem, SettledView,
};
use super::moment::moment;
use super::router::Api;
use super::waiting::duration;
use crate::limits::{API_BODY_BYTES_MAX, NOTE_BYTES_MAX, SETTLE_BATCH_BYTES_MAX, SETTLE_BATCH_MAX};
use crate::problem::Problem;
use crate::tokens::{Role, Scope};

/// `POST /v1/leases/{lease}/{outcome}`.
pub(crate) async fn one(
    State(api): State<Arc<Api>>,
    Path((text, outcome)): Path<(String, String)>,
    Extension(scope): Extension<Scope>,
    request: Request,
) -> Result<Response, ApiError> {
    let outcome = outcome_of(&outcome)?;
    let form = "{} or one of {\"after\": \"30s\"}, {\"at\": TIME}, {\"reason\": \"..\"}, {\"for\": \"60s\"}";
    let details: SettleDetails = body::json_or_default(request.into_body(), API_BODY_BYTES_MAX, form).await?;
    let id = LeaseId::parse(&text).ok_or_else(|| ApiError::from(Problem::UnknownLease))?;
    if !may_settle(&api, &scope, id.delivery.destination).await? {
        return Err(Problem::Forbidden.into());
    }
    let change = change(&api, &id, outcome, &details)?;
    let answers = api.inbox.change_leases(vec![change]).await?;
    let answer = answers.into_iter().next().ok_or_else(|| ApiError::from(Problem::NotDurable))??;
    match found(outcome, answer) {
        Ok(Found::Settled(_)) => Ok(StatusCode::NO_CONTENT.into_response()),
        Ok(Found::Extended(until)) => {
            Ok(Json(ExtendedView { lease: text, lease_until: until.to_string() }).into_response())
        }
        Err(refusal) => Err(refusal),
    }
}

/// `POST /v1/leases/settle`.
pub(crate) async fn many(
    State(api): State<Arc<Api>>,
    Extension(scope): Extension<Scope>,
    request: Request,
) -> Result<Json<SettledView>, ApiError> {
    let form = "{\"settle\": [{\"lease\": \"ls_..\", \"outcome\": \"done\"}]}";
    let batch: SettleBatch = body::json(request.into_body(), SETTLE_BATCH_BYTES_MAX, form).await?;
    if batch.settle.len() > SETTLE_BATCH_MAX {
        let detail = format!("a batch settles at most {SETTLE_BATCH_MAX} leases");
        return Err(ApiError::new(Problem::Malformed, detail));
    }
    let mut results = Vec::with_capacity(batch.settle.len());
    let (mut changes, mut places) = (Vec::new(), Vec::new());
    let mut allowed = Allowed::default();
    for item in &batch.settle {
        // Its form concerns the whole request: nothing is settled then.
        let change = LeaseId::parse(&item.lease).map(|id| {
            change(&api, &id, item.outcome, &item.details()).map(|change| (id.delivery.destination, change))
        });
        let refused = match change.transpose()? {
            None => Some(Problem::UnknownLease),
            Some((destination, change)) if allowed.is(&api, &scope, destination).await? => {
                places.push(results.len());
                changes.push(change);
                None
            }
            Some(_) => Some(Problem::Forbidden),
        };
        results.push(result(item, refused.map_or("settled", Problem::code)));
    }
    let answers = if changes.is_empty() { Vec::new() } else { api.inbox.change_leases(changes).await? };
    for (place, answer) in places.into_iter().zip(answers) {
        if let (Some(item), Some(result)) = (batch.settle.get(place), results.get_mut(place)) {
            fill(result, item.outcome, answer);
        }
    }
    Ok(Json(SettledView { results }))
}

fn outcome_of(word: &str) -> Result<LeaseOutcome, ApiError> {
    use LeaseOutcome as Outcome;
    let known = [
        ("done", Outcome::Done),
        ("retry", Outcome::Retry),
        ("dead", Outcome::Dead),
        ("release", Outcome::Release),
        ("extend", Outcome::Extend),
    ];
    let found = known.into_iter().find(|(name, _)| *name == word).map(|(_, outcome)| outcome);
    found.ok_or_else(|| {
        ApiError::new(
            Problem::NotFound,
            "a lease ends with done, retry, dead or release, or lasts longer with extend",
        )
    })
}

/// Whether the token may settle leases of the destination.
async fn may_settle(api: &Api, scope: &Scope, destination: DestinationNumber) -> Result<bool, ApiError> {
    let Scope::Consume(name) = scope else { return Ok(scope.includes(Role::Operate)) };
    if let Some(route) = api.inbox.destination_numbered(destination) {
        return Ok(route.name() == name);
    }
    // It is no longer configured; what was claimed before may still be settled.
    let registry = api.reads.read(api.inbox.store(), |store: &dyn Store| store.registry()).await?;
    Ok(registry.destinations.iter().any(|row| row.number == destination && row.name == *name))
}

/// What was found out about the destinations of one batch.
#[derive(Default)]
struct Allowed(Vec<(DestinationNumber, bool)>);

impl Allowed {
    async fn is(&mut self, api: &Api, scope: &Scope, wanted: DestinationNumber) -> Result<bool, ApiError> {
        if let Some((_, allowed)) = self.0.iter().find(|(known, _)| *known == wanted) {
            return Ok(*allowed);
        }
        let allowed = may_settle(api, scope, wanted).await?;
        self.0.push((wanted, allowed));
        Ok(allowed)
    }
}

fn change(
    api: &Api,
    id: &LeaseId,
    outcome: LeaseOutcome,
    details: &SettleDetails,
) -> Result<LeaseWrite, ApiError> {
    check(outcome, details)?;
    let now = api.inbox.clock().now();
    let route = api.inbox.destination_numbered(id.delivery.destination);
    let verdict = match outcome {
        LeaseOutcome::Extend => {
            let own = || route.as_ref().map(|route| route.destination().lease_for());
            let lease_for = match &details.lease_for {
                Some(text) => checked_lease("for", text)?,
                None => own().unwrap_or(hookstead::core::lease::LEASE_MAX),
            };
            return Ok(LeaseWrite::Extend(Extend { delivery: id.delivery, token: id.token, lease_for }));
        }
        LeaseOutcome::Done => Verdict::Done,
        LeaseOutcome::Release => Verdict::Release,
        LeaseOutcome::Dead => Verdict::Dead { reason: details.reason.clone().unwrap_or_default() },
        LeaseOutcome::Retry => {
            let policy = || {
                route.map_or_else(RetryPolicy::default, |route| route.destination().options().retry.clone())
            };
            let at = retry_at(details, now)?;
            Verdict::Retry { at: at.unwrap_or_else(|| policy().next_due(&id.delivery, id.attempt, now)) }
        }
    };
    let attempt = (outcome != LeaseOutcome::Release).then(|| attempt(id, outcome, details, now));
    Ok(LeaseWrite::Settle(Settle { delivery: id.delivery, token: id.token, verdict, attempt }))
}

/// Each part has a meaning for some ends only.
fn check(outcome: LeaseOutcome, details: &SettleDetails) -> Result<(), ApiError> {
    use LeaseOutcome::{Dead, Extend, Retry};
    let refuse = |what: &str| Err(ApiError::new(Problem::Malformed, what));
    if (details.at.is_some() || details.after.is_some()) && outcome != Retry {
        return refuse("`at` and `after` belong to retry");
    }
    if details.at.is_some() && details.after.is_some() {
        return refuse("`at` and `after` say the same; send one");
    }
    if details.reason.is_some() && !matches!(outcome, Dead | Retry) {
        return refuse("`reason` belongs to dead and retry");
    }
    if details.reason.as_ref().is_some_and(|reason| reason.len() > NOTE_BYTES_MAX) {
        return Err(ApiError::new(
            Problem::Malformed,
            format!("a reason has at most {NOTE_BYTES_MAX} bytes"),
        ));
    }
    if details.lease_for.is_some() && outcome != Extend {
        return refuse("`for` belongs to extend");
    }
    Ok(())
}

fn retry_at(details: &SettleDetails, now: Timestamp) -> Result<Option<Timestamp>, ApiError> {
    match (&details.at, &details.after) {
        (Some(at), _) => moment("at", at).map(Some),
        (None, Some(after)) => Ok(Some(now.plus(duration("after", after)?))),
        (None, None) => Ok(None),
    }
}

/// The record of what the consumer did between its claim and its settle.
fn attempt(id: &LeaseId, outcome: LeaseOutcome, details: &SettleDetails, now: Timestamp) -> Attempt {
    let rule = match outcome {
        LeaseOutcome::Done => "consumer: done",
        LeaseOutcome::Dead => "consumer: dead",
        _ => "consumer: retry",
    };
    Attempt {
        token: id.token,
        number: id.attempt,
        started_at: id.claimed_at.min(now),
        took_us: u64::try_from(now.since(id.claimed_at).as_micros()).unwrap_or(u64::MAX),
        status: None,
        excerpt: bytes::Bytes::new(),
        error: details.reason.clone(),
        rule: Some(rule.to_owned()),
    }
}

/// What a lease was turned into.
enum Found {
    Settled(Settled),
    Extended(Timestamp),
}

/// What the store's answer means to whoever asked for `outcome`.
fn found(outcome: LeaseOutcome, answer: LeaseAnswer) -> Result<Found, ApiError> {
    match answer {
        LeaseAnswer::Settled(Settlement::Settled(settled)) if is_asked(outcome, &settled) => {
            Ok(Found::Settled(settled))
        }
        LeaseAnswer::Settled(Settlement::Settled(settled)) => {
            let detail = format!("the lease was settled before: {}", state_after(&settled));
            Err(ApiError::new(Problem::LeaseSettled, detail))
        }
        LeaseAnswer::Extended(Extended::Extended { expires_at }) => Ok(Found::Extended(expires_at)),
        LeaseAnswer::Settled(Settlement::LeaseLost) | LeaseAnswer::Extended(Extended::LeaseLost) => {
            Err(Problem::LeaseLost.into())
        }
        LeaseAnswer::Settled(Settlement::Unknown) | LeaseAnswer::Extended(Extended::Unknown) => {
            Err(Problem::UnknownLease.into())
        }
    }
}

/// Whether a lease ended as asked. A retry may be the end, when attempts or time are used up.
fn is_asked(outcome: LeaseOutcome, settled: &Settled) -> bool {
    match (outcome, settled) {
        (LeaseOutcome::Done, Settled::Done)
        | (LeaseOutcome::Release, Settled::Released)
        | (LeaseOutcome::Retry, Settled::Retry { .. })
        | (LeaseOutcome::Dead, Settled::Dead(DeadReason::Refused(_))) => true,
        (LeaseOutcome::Retry, Settled::Dead(reason)) => !matches!(reason, DeadReason::Refused(_)),
        _ => false,
    }
}

fn state_after(settled: &Settled) -> &'static str {
    match settled {
        Settled::Done => "done",
        Settled::Retry { .. } | Settled::Released => "waiting",
        Settled::Dead(_) => "dead",
    }
}

fn result(item: &SettleItem, word: &str) -> LeaseResult {
    LeaseResult {
        lease: item.lease.clone(),
        result: word.to_owned(),
        state: None,
        due: None,
        lease_until: None,
    }
}

fn fill(result: &mut LeaseResult, outcome: LeaseOutcome, answer: Result<LeaseAnswer, Unavailable>) {
    match answer.map_err(ApiError::from).and_then(|answer| found(outcome, answer)) {
        Ok(Found::Settled(settled)) => {
            result.state = Some(state_after(&settled).to_owned());
            if let Settled::Retry { due } = settled {
                result.due = Some(due.to_string());
            }
        }
        Ok(Found::Extended(until)) => {
            "extended".clone_into(&mut result.result);
            result.lease_until = Some(until.to_string());
        }
        Err(refusal) => refusal.code().clone_into(&mut result.result),
    }
}
