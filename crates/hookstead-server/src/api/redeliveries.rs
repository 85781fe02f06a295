//! `/v1/redeliveries`: old events delivered again, one at once or many step by step. What goes on after the first
//! step is the redeliverer's.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, Request, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use hookstead::core::{
    DeliveryFilter, Event, EventFilter, Order, Page, Redeliver, Redelivery, RedeliveryId, RedeliveryPlan,
    RedeliveryState, Registry, Resolved, Seq, Store, StoreError, Subject, TypePattern,
};
use http::{StatusCode, Uri};
use serde::Deserialize;

use super::decision::{by, decide, note};
use super::delivery_view::{NewEventRedelivery, NewRedelivery, RedeliveriesView, RedeliveryView};
use super::error::ApiError;
use super::events::named;
use super::moment::moment;
use super::query::{page, parameters, refused, state};
use super::router::Api;
use super::{body, deliveries};
use crate::folder::random;
use crate::limits::{API_BODY_BYTES_MAX, REDELIVERY_STEP};
use crate::lookup::find;
use crate::problem::Problem;
use crate::tokens::Scope;

/// `?state=&cursor=&limit=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RedeliveriesQuery {
    state: Option<String>,
    cursor: Option<String>,
    limit: Option<u16>,
}

/// `POST /v1/events/{event}/redeliver`: 201 with the new delivery.
pub(crate) async fn event(
    State(api): State<Arc<Api>>,
    Extension(scope): Extension<Scope>,
    request: Request,
) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    let name = named(head.uri.path())?;
    let form = "{\"to\": \"DESTINATION\"}";
    let asked: NewEventRedelivery = body::json(body, API_BODY_BYTES_MAX, form).await?;
    let event = api.reads.read(api.inbox.store(), move |store| find(store, &name)).await?;
    of_one(&api, &scope, &event, asked).await
}

/// Delivers one event again, and answers with its newest delivery.
pub(super) async fn of_one(
    api: &Api,
    scope: &Scope,
    event: &Event,
    asked: NewEventRedelivery,
) -> Result<Response, ApiError> {
    if event.erased_at.is_some() {
        return Err(Problem::Erased.into());
    }
    let plan = RedeliveryPlan {
        id: new_id(api)?,
        events: EventFilter::default(),
        destination: destination(api, &asked.to)?,
        fresh_key: asked.fresh_key,
        by: by(scope),
        note: note(asked.note)?,
    };
    let filter = DeliveryFilter { event: Some(event.id), destination: Some(plan.destination), state: None };
    let step = Redeliver { plan, only: Some(event.seq), events_max: 1 };
    let redelivery = api.inbox.redeliver(step).await?;
    let newest = move |store: &dyn Store| {
        let list = store.list_deliveries(&filter, &Page::first(1, Order::NewestFirst))?;
        Ok::<_, StoreError>(list.items.into_iter().next())
    };
    let newest = api.reads.read(api.inbox.store(), newest).await?;
    match newest {
        Some(delivery) if redelivery.made == 1 => {
            let view = deliveries::view(&delivery, event, &asked.to);
            Ok((StatusCode::CREATED, Json(view)).into_response())
        }
        Some(delivery) => Err(deliveries::wrong_state(&delivery)),
        None => Err(Problem::Erased.into()),
    }
}

/// `POST /v1/redeliveries`: 201 with the redelivery after its first step; it goes on by itself.
pub(crate) async fn create(
    State(api): State<Arc<Api>>,
    Extension(scope): Extension<Scope>,
    request: Request,
) -> Result<Response, ApiError> {
    let form = "{\"to\": \"DESTINATION\"} with source, type, from, before, note as needed";
    let asked: NewRedelivery = body::json(request.into_body(), API_BODY_BYTES_MAX, form).await?;
    let registry = registry(&api).await?;
    let to = asked.to.clone();
    let plan = RedeliveryPlan {
        id: match &asked.id {
            Some(id) => id.parse().map_err(|_| ApiError::new(Problem::Malformed, "`id` is a UUID"))?,
            None => new_id(&api)?,
        },
        events: filter(&asked, &registry)?,
        destination: destination(&api, &asked.to)?,
        fresh_key: asked.fresh_key,
        by: by(&scope),
        note: note(asked.note)?,
    };
    let redelivery = api.inbox.redeliver(Redeliver { plan, only: None, events_max: REDELIVERY_STEP }).await?;
    api.redeliveries.notify_one();
    Ok((StatusCode::CREATED, Json(view(&redelivery, &to))).into_response())
}

pub(crate) async fn list(
    State(api): State<Arc<Api>>,
    query: Result<Query<RedeliveriesQuery>, QueryRejection>,
) -> Result<Json<RedeliveriesView>, ApiError> {
    let query = parameters(query)?;
    let page = page(query.limit, query.cursor.as_deref(), Order::NewestFirst)?;
    let words = RedeliveryState::ALL.map(RedeliveryState::as_str);
    let state = state(query.state.as_deref(), RedeliveryState::from_word, &words)?;
    let read = move |store: &dyn Store| -> Result<_, StoreError> {
        Ok((store.registry()?, store.list_redeliveries(state, &page)?))
    };
    let (registry, list) = api.reads.read(api.inbox.store(), read).await?;
    Ok(Json(RedeliveriesView {
        redeliveries: list.items.iter().map(|known| view(known, &to(&registry, known))).collect(),
        next: list.next.as_ref().filter(|_| list.more).map(ToString::to_string),
        cursor: list.next.as_ref().map(ToString::to_string),
    }))
}

pub(crate) async fn show(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
) -> Result<Json<RedeliveryView>, ApiError> {
    one(&api, parse(&id)?).await.map(Json)
}

pub(crate) async fn cancel(
    State(api): State<Arc<Api>>,
    Extension(scope): Extension<Scope>,
    uri: Uri,
    request: Request,
) -> Result<Json<RedeliveryView>, ApiError> {
    let id = parse(uri.path().split('/').nth(3).unwrap_or_default())?;
    match decide(&api, &scope, request, Subject::CancelRedelivery(id)).await? {
        Resolved::Changed | Resolved::Revised { .. } => one(&api, id).await.map(Json),
        Resolved::Unchanged => {
            let state = one(&api, id).await?.state;
            Err(ApiError::new(Problem::RedeliveryEnded, format!("the redelivery is {state}")))
        }
        Resolved::Unknown => Err(Problem::UnknownRedelivery.into()),
    }
}

async fn one(api: &Api, id: RedeliveryId) -> Result<RedeliveryView, ApiError> {
    let read = move |store: &dyn Store| -> Result<_, StoreError> {
        let redelivery = store.redelivery(&id)?;
        Ok((store.registry()?, redelivery))
    };
    let (registry, redelivery) = api.reads.read(api.inbox.store(), read).await?;
    let redelivery = redelivery.ok_or_else(|| ApiError::from(Problem::UnknownRedelivery))?;
    Ok(view(&redelivery, &to(&registry, &redelivery)))
}

fn parse(id: &str) -> Result<RedeliveryId, ApiError> {
    id.parse().map_err(|_| ApiError::new(Problem::UnknownRedelivery, "a redelivery's id is a UUID"))
}

async fn registry(api: &Api) -> Result<Registry, ApiError> {
    api.reads.read(api.inbox.store(), |store: &dyn Store| store.registry()).await
}

/// A destination that is configured: to any other nobody would deliver.
fn destination(api: &Api, name: &str) -> Result<hookstead::core::DestinationNumber, ApiError> {
    let route = api.inbox.destination(name);
    route.map(|route| route.number()).ok_or_else(|| {
        let detail = format!("no destination `{}` is configured", name.chars().take(80).collect::<String>());
        ApiError::new(Problem::UnknownDestination, detail)
    })
}

fn filter(asked: &NewRedelivery, registry: &Registry) -> Result<EventFilter, ApiError> {
    let source = match &asked.source {
        None => None,
        Some(name) => {
            let row = registry.sources.iter().find(|row| row.name.as_str() == name);
            Some(row.ok_or_else(|| ApiError::from(Problem::UnknownSource))?.number)
        }
    };
    let pattern = asked.event_type.as_deref().map(str::parse::<TypePattern>);
    Ok(EventFilter {
        source,
        event_type: pattern.transpose().map_err(refused)?,
        committed_from: asked.from.as_deref().map(|text| moment("from", text)).transpose()?,
        committed_before: asked.before.as_deref().map(|text| moment("before", text)).transpose()?,
    })
}

/// A UUIDv7, so that redeliveries are listed in the order in which they were asked for.
fn new_id(api: &Api) -> Result<RedeliveryId, ApiError> {
    let now = api.inbox.clock().now();
    let entropy = random(10).ok().and_then(|bytes| <[u8; 10]>::try_from(bytes).ok());
    let entropy =
        entropy.ok_or_else(|| ApiError::new(Problem::NotDurable, "the system gave no randomness"))?;
    let id = hookstead::core::EventId::new(now, entropy, hookstead::core::Bucket(entropy[0]));
    Ok(RedeliveryId(*id.as_bytes()))
}

fn to(registry: &Registry, redelivery: &Redelivery) -> String {
    let row = registry.destinations.iter().find(|row| row.number == redelivery.plan.destination);
    row.map_or_else(String::new, |row| row.name.to_string())
}

fn view(redelivery: &Redelivery, to: &str) -> RedeliveryView {
    let seq = |Seq(seq): Seq| Seq(seq).to_string();
    RedeliveryView {
        id: redelivery.plan.id.to_string(),
        to: to.to_owned(),
        state: redelivery.state.as_str().to_owned(),
        made: redelivery.made,
        skipped: redelivery.skipped,
        looked_at: seq(redelivery.cursor),
        until: seq(redelivery.until),
        fresh_key: redelivery.plan.fresh_key,
        by: redelivery.plan.by.clone(),
        note: redelivery.plan.note.clone(),
        made_at: redelivery.made_at.to_string(),
    }
}
