//! `POST /v1/destinations/{name}/claim`: takes leases, with everything that working them takes.
//!
//! The claim is a write in the group commit, made only when something is due; the bodies of all leases are read in
//! one go. A client that goes away while it waits takes nothing; what was claimed for it meanwhile is given back.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, Request, State};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hookstead::core::lease::{CLAIM_MAX, LEASE_MAX};
use hookstead::core::{
    Attempt, Body, BodySelector, Claim, EventSelector, Lease, Settle, Store, StoreError, Timestamp, Verdict,
};
use hookstead::{DestinationKind, Inbox, LeaseWrite, Route};
use serde::Deserialize;

use super::body;
use super::error::ApiError;
use super::lease_id::LeaseId;
use super::lease_view::{LeaseView, LeasesView};
use super::query::parameters;
use super::router::Api;
use super::view::{query, text_or_base64};
use super::waiting::{Wait, Woken, duration, wait_of};
use crate::config::format_duration;
use crate::limits::{API_BODY_BYTES_MAX, CLAIM_BODY_BYTES_MAX};
use crate::listen::Stop;
use crate::problem::Problem;

/// The shortest lease that can be asked for: less expires before its answer arrives.
const LEASE_MIN: Duration = Duration::from_secs(1);

/// `?max=&wait=&lease=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaimQuery {
    max: Option<u16>,
    wait: Option<String>,
    lease: Option<String>,
}

pub(crate) async fn claim(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
    query: Result<Query<ClaimQuery>, QueryRejection>,
    request: Request,
) -> Result<Json<LeasesView>, ApiError> {
    let query = parameters(query)?;
    // Read to its end, so that the end of the connection is seen while this waits.
    let body = body::read(request.into_body(), API_BODY_BYTES_MAX).await?;
    if !body.trim_ascii().is_empty() {
        return Err(ApiError::new(Problem::Malformed, "a claim has no body; write ?max=10&wait=20s"));
    }
    let route = pulled(&api.inbox, &name)?;
    let claim =
        Claim { destination: route.number(), max: max(&query)?, lease_for: lease_for(&query, &route)? };
    let mut wait = Wait::new(&api, wait_of(query.wait.as_deref())?);
    loop {
        if *api.stop.borrow() != Stop::Not {
            return Err(Problem::Stopping.into());
        }
        if wait.for_work(claim.destination).await? == Woken::Over {
            return Ok(Json(LeasesView { leases: Vec::new() }));
        }
        let leases = taken(&api, claim).await?;
        if !leases.is_empty() {
            return Ok(Json(LeasesView { leases }));
        }
    }
}

/// The destination, if its consumer comes for its deliveries.
fn pulled(inbox: &Inbox, name: &str) -> Result<Arc<Route>, ApiError> {
    let Some(route) = inbox.destination(name) else {
        let detail =
            format!("no destination `{name}` is configured; add [destinations.{name}] with pull = true");
        return Err(ApiError::new(Problem::UnknownDestination, detail));
    };
    match route.destination().kind() {
        DestinationKind::Pull(_) => Ok(route),
        kind => {
            let detail =
                format!("`{name}` is a {} destination; a pull destination is claimed from", kind.as_str());
            Err(ApiError::new(Problem::NotPull, detail))
        }
    }
}

fn max(query: &ClaimQuery) -> Result<u16, ApiError> {
    match query.max.unwrap_or(1) {
        max @ 1..=CLAIM_MAX => Ok(max),
        _ => Err(ApiError::new(Problem::Query, format!("`max` is 1 to {CLAIM_MAX}"))),
    }
}

fn lease_for(query: &ClaimQuery, route: &Route) -> Result<Duration, ApiError> {
    match &query.lease {
        None => Ok(route.destination().lease_for()),
        Some(text) => checked_lease("lease", text),
    }
}

/// A time that a lease may last.
pub(super) fn checked_lease(name: &str, text: &str) -> Result<Duration, ApiError> {
    let lease_for = duration(name, text)?;
    if (LEASE_MIN..=LEASE_MAX).contains(&lease_for) {
        return Ok(lease_for);
    }
    let (least, most) = (format_duration(LEASE_MIN), format_duration(LEASE_MAX));
    Err(ApiError::new(Problem::Query, format!("`{name}` is {least} to {most}")))
}

/// Claims, and reads what belongs to the leases. It goes on when this is dropped, and gives everything back then.
async fn taken(api: &Arc<Api>, claim: Claim) -> Result<Vec<LeaseView>, ApiError> {
    let (give, get) = tokio::sync::oneshot::channel();
    let api = api.clone();
    tokio::spawn(async move {
        let taken = claim_and_load(&api, claim).await;
        if let Err(Ok(Loaded { views, .. })) = give.send(taken) {
            let ids = views.iter().filter_map(|view| LeaseId::parse(&view.lease));
            give_back(&api.inbox, ids.map(|id| release(&id)).collect()).await;
        }
    });
    match get.await {
        Ok(taken) => taken.map(|loaded| loaded.views),
        Err(_) => Err(Problem::Stopping.into()),
    }
}

/// Leases with what working them takes.
#[derive(Default)]
struct Loaded {
    views: Vec<LeaseView>,
    /// Leases that are not handed out: given back, or dead since their event cannot be read.
    others: Vec<LeaseWrite>,
}

async fn claim_and_load(api: &Api, claim: Claim) -> Result<Loaded, ApiError> {
    let leases = api.inbox.claim(claim).await?;
    if leases.is_empty() {
        return Ok(Loaded::default());
    }
    let now = api.inbox.clock().now();
    let everything = leases.iter().map(|lease| release(&LeaseId::of(lease, now))).collect();
    let load = move |store: &dyn Store| load(store, &leases, now);
    match api.claims.read(api.inbox.store(), load).await {
        Ok(mut loaded) => {
            give_back(&api.inbox, std::mem::take(&mut loaded.others)).await;
            Ok(loaded)
        }
        Err(error) => {
            give_back(&api.inbox, everything).await;
            Err(error)
        }
    }
}

/// What cannot be given back at the moment expires.
async fn give_back(inbox: &Inbox, leases: Vec<LeaseWrite>) {
    if leases.is_empty() {
        return;
    }
    if let Err(error) = inbox.change_leases(leases).await {
        tracing::warn!(error = %error, "leases that nobody got could not be given back; they will expire");
    }
}

fn release(id: &LeaseId) -> LeaseWrite {
    settle(id, Verdict::Release, None)
}

fn settle(id: &LeaseId, verdict: Verdict, attempt: Option<Attempt>) -> LeaseWrite {
    LeaseWrite::Settle(Settle { delivery: id.delivery, token: id.token, verdict, attempt })
}

/// Reads events and bodies until their bodies are as much as one answer holds.
fn load(store: &dyn Store, leases: &[Lease], now: Timestamp) -> Result<Loaded, StoreError> {
    let mut loaded = Loaded::default();
    let mut bytes = 0_u64;
    for lease in leases {
        let id = LeaseId::of(lease, now);
        let Some(event) = store.event(&EventSelector::Id(lease.delivery.event))? else {
            loaded.others.push(unreadable(&id, "its event is not in the store", now));
            continue;
        };
        if !loaded.views.is_empty() && bytes + event.body_bytes > CLAIM_BODY_BYTES_MAX {
            loaded.others.push(release(&id));
            continue;
        }
        match store.body(BodySelector::Event(event.id)) {
            Ok(Some(Body::Kept(body))) => {
                bytes += event.body_bytes;
                loaded.views.push(view(lease, &id, &event, &body));
            }
            Ok(Some(Body::Erased) | None) => {
                loaded.others.push(unreadable(&id, "its body was erased", now));
            }
            Err(StoreError::Corrupt { what }) => {
                tracing::error!(event.id = %event.id, what, "a damaged event is not delivered");
                loaded.others.push(unreadable(&id, &format!("its record is damaged: {what}"), now));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(loaded)
}

/// What nobody can work is dead, and says why.
fn unreadable(id: &LeaseId, why: &str, now: Timestamp) -> LeaseWrite {
    let attempt = Attempt {
        token: id.token,
        number: id.attempt,
        started_at: now,
        took_us: 0,
        status: None,
        excerpt: bytes::Bytes::new(),
        error: Some(why.to_owned()),
        rule: Some("unreadable".to_owned()),
    };
    settle(id, Verdict::Dead { reason: why.to_owned() }, Some(attempt))
}

fn view(lease: &Lease, id: &LeaseId, event: &hookstead::core::Event, body: &[u8]) -> LeaseView {
    let (provider_id, provider_id_base64) = text_or_base64(event.identity.id.as_bytes());
    let header =
        |(name, value): (&str, &[u8])| (name.to_owned(), String::from_utf8_lossy(value).into_owned());
    let headers: Vec<_> = event.headers.fields().map(header).collect();
    let content_type = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    LeaseView {
        lease: id.text(),
        event: event.seq.to_string(),
        event_id: event.id.to_string(),
        source: event.source.to_string(),
        event_type: event.event_type.clone(),
        provider_id,
        provider_id_base64,
        attempt: lease.attempt,
        idempotency_key: lease.idempotency_key.clone(),
        lease_until: lease.expires_at.to_string(),
        content_type: content_type.map(|(_, value)| value.clone()),
        query: query(event),
        headers,
        body_base64: STANDARD.encode(body),
    }
}
