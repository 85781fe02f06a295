//! `/v1/deliveries`: what is owed to whom, how it stands, and what people decide about it.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::response::Response;
use axum::{Extension, Json};
use hookstead::core::query::PAGE_MAX;
use hookstead::core::{
    Attempt, DeadReason, Decision, Delivery, DeliveryFilter, DeliveryState, Event, EventId, EventSelector,
    Order, Page, Registry, Resolved, StateName, Store, StoreError, Subject,
};
use http::Uri;
use serde::Deserialize;

use super::decision::decide;
use super::delivery_view::{
    AttemptView, DecisionView, DeliveriesView, DeliveryView, NewDecision, NewEventRedelivery,
};
use super::error::ApiError;
use super::query::{page, parameters, state};
use super::router::Api;
use super::selector::percent_decoded;
use super::view::text_or_base64;
use super::{body, redeliveries};
use crate::limits::API_BODY_BYTES_MAX;
use crate::lookup::{EventName, find};
use crate::problem::Problem;
use crate::tokens::Scope;

/// `?event=&destination=&state=&cursor=&limit=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeliveriesQuery {
    event: Option<String>,
    destination: Option<String>,
    state: Option<String>,
    cursor: Option<String>,
    limit: Option<u16>,
}

/// A delivery's name: the event, the destination, and which generation; the newest if none is named.
struct Name {
    event: EventName,
    destination: String,
    generation: Option<u32>,
}

/// A delivery with what its view takes.
pub(super) struct Found {
    pub(super) delivery: Delivery,
    event: Event,
    destination: String,
    attempts: Vec<Attempt>,
}

pub(crate) async fn list(
    State(api): State<Arc<Api>>,
    query: Result<Query<DeliveriesQuery>, QueryRejection>,
) -> Result<Json<DeliveriesView>, ApiError> {
    let query = parameters(query)?;
    let page = page(query.limit, query.cursor.as_deref(), Order::NewestFirst)?;
    let event = query.event.as_deref().map(event_named).transpose()?;
    let words = StateName::ALL.map(StateName::as_str);
    let state = state(query.state.as_deref(), StateName::from_word, &words)?;
    let destination = query.destination;
    let read = move |store: &dyn Store| -> Result<DeliveriesView, ApiError> {
        let registry = store.registry()?;
        let destination = match &destination {
            None => None,
            Some(name) => {
                let mut rows = registry.destinations.iter();
                let row = rows.find(|row| row.name.as_str() == name);
                Some(row.ok_or_else(|| super::destinations::unknown(name))?.number)
            }
        };
        let event = event.map(|name| find(store, &name)).transpose()?.map(|event| event.id);
        let list = store.list_deliveries(&DeliveryFilter { event, destination, state }, &page)?;
        Ok(DeliveriesView {
            deliveries: views(store, &registry, &list.items)?,
            next: list.next.as_ref().filter(|_| list.more).map(ToString::to_string),
            cursor: list.next.as_ref().map(ToString::to_string),
        })
    };
    api.reads.read(api.inbox.store(), read).await.map(Json)
}

pub(crate) async fn show(State(api): State<Arc<Api>>, uri: Uri) -> Result<Json<DeliveryView>, ApiError> {
    found(&api, named(&uri)?).await.map(|found| Json(found.view()))
}

pub(crate) async fn done(
    api: State<Arc<Api>>,
    scope: Extension<Scope>,
    request: Request,
) -> Result<Json<DeliveryView>, ApiError> {
    decided(api, scope, request, Subject::MarkDeliveryDone).await
}

pub(crate) async fn hold(
    api: State<Arc<Api>>,
    scope: Extension<Scope>,
    request: Request,
) -> Result<Json<DeliveryView>, ApiError> {
    decided(api, scope, request, Subject::HoldDelivery).await
}

pub(crate) async fn release(
    api: State<Arc<Api>>,
    scope: Extension<Scope>,
    request: Request,
) -> Result<Json<DeliveryView>, ApiError> {
    decided(api, scope, request, Subject::LetDeliveryGo).await
}

/// Makes a new delivery of the same event to the same destination.
pub(crate) async fn redeliver(
    State(api): State<Arc<Api>>,
    Extension(scope): Extension<Scope>,
    request: Request,
) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    let form = "{\"note\": \"why\"}";
    let asked: NewDecision = body::json_or_default(body, API_BODY_BYTES_MAX, form).await?;
    let found = found(&api, named(&head.uri)?).await?;
    let asked = NewEventRedelivery { to: found.destination, fresh_key: false, note: asked.note };
    redeliveries::of_one(&api, &scope, &found.event, asked).await
}

async fn decided(
    State(api): State<Arc<Api>>,
    Extension(scope): Extension<Scope>,
    request: Request,
    subject: fn(hookstead::core::DeliveryId) -> Subject,
) -> Result<Json<DeliveryView>, ApiError> {
    let found_before = found(&api, named(request.uri())?).await?;
    let id = found_before.delivery.id;
    let resolved = decide(&api, &scope, request, subject(id)).await?;
    let name = Name {
        event: EventName::Id(id.event),
        destination: found_before.destination,
        generation: Some(id.generation),
    };
    let now = found(&api, name).await?;
    match resolved {
        Resolved::Changed | Resolved::Revised { .. } => Ok(Json(now.view())),
        Resolved::Unchanged => Err(wrong_state(&now.delivery)),
        Resolved::Unknown => Err(Problem::UnknownDelivery.into()),
    }
}

pub(super) fn wrong_state(delivery: &Delivery) -> ApiError {
    let detail = match delivery.state_name() {
        StateName::Leased => "the delivery is leased: somebody works it now".to_owned(),
        state => format!("the delivery is {}", state.as_str()),
    };
    ApiError::new(Problem::DeliveryState, detail)
}

/// The delivery's name in `/v1/deliveries/NAME..`.
fn named(uri: &Uri) -> Result<Name, ApiError> {
    let segment = uri.path().split('/').nth(3).unwrap_or_default();
    let text = percent_decoded(segment).and_then(|bytes| String::from_utf8(bytes).ok());
    let name = text.as_deref().and_then(|text| {
        let mut parts = text.splitn(3, ':');
        let event = EventName::parse(parts.next()?.as_bytes())?;
        let destination = parts.next()?.to_owned();
        let generation = parts.next().map(str::parse).transpose().ok()?;
        Some(Name { event, destination, generation })
    });
    name.ok_or_else(|| {
        let detail =
            "a delivery is named EVENT:DESTINATION or EVENT:DESTINATION:GENERATION, the event by its id";
        ApiError::new(Problem::UnknownDelivery, detail)
    })
}

fn event_named(text: &str) -> Result<EventName, ApiError> {
    let detail = "`event` is an id, a short id, `@`, or SOURCE:PROVIDER-ID";
    EventName::parse(text.as_bytes()).ok_or_else(|| ApiError::new(Problem::Query, detail))
}

async fn found(api: &Api, name: Name) -> Result<Found, ApiError> {
    let read = move |store: &dyn Store| -> Result<Found, ApiError> {
        let event = find(store, &name.event)?;
        let registry = store.registry()?;
        let row = registry.destinations.iter().find(|row| row.name.as_str() == name.destination);
        let row = row.ok_or_else(|| super::destinations::unknown(&name.destination))?;
        let filter = DeliveryFilter { event: Some(event.id), destination: Some(row.number), state: None };
        let Some(delivery) = of_generation(store, &filter, name.generation)? else {
            return Err(Problem::UnknownDelivery.into());
        };
        let attempts = store.attempts(&delivery.id)?;
        Ok(Found { delivery, event, destination: name.destination, attempts })
    };
    api.reads.read(api.inbox.store(), read).await
}

/// The newest delivery, or that of a generation, however many redeliveries came after it.
fn of_generation(
    store: &dyn Store,
    filter: &DeliveryFilter,
    generation: Option<u32>,
) -> Result<Option<Delivery>, StoreError> {
    let wanted =
        |delivery: &Delivery| generation.is_none_or(|generation| generation == delivery.id.generation);
    let mut page = Page::first(PAGE_MAX, Order::NewestFirst);
    loop {
        let list = store.list_deliveries(filter, &page)?;
        if let Some(delivery) = list.items.into_iter().find(wanted) {
            return Ok(Some(delivery));
        }
        match list.next {
            Some(next) if list.more => page = page.after(next),
            _ => return Ok(None),
        }
    }
}

/// The views of deliveries, each event read once.
pub(crate) fn views(
    store: &dyn Store,
    registry: &Registry,
    deliveries: &[Delivery],
) -> Result<Vec<DeliveryView>, StoreError> {
    let mut events: HashMap<EventId, Option<Event>> = HashMap::new();
    let mut views = Vec::with_capacity(deliveries.len());
    for delivery in deliveries {
        let id = delivery.id.event;
        let event = match events.get(&id) {
            Some(event) => event.clone(),
            None => events.entry(id).or_insert(store.event(&EventSelector::Id(id))?).clone(),
        };
        let row = registry.destinations.iter().find(|row| row.number == delivery.id.destination);
        if let (Some(event), Some(row)) = (event, row) {
            views.push(view(delivery, &event, row.name.as_str()));
        }
    }
    Ok(views)
}

impl Found {
    fn view(&self) -> DeliveryView {
        let mut view = view(&self.delivery, &self.event, &self.destination);
        view.log = Some(self.attempts.iter().map(attempt).collect());
        view
    }
}

pub(super) fn view(delivery: &Delivery, event: &Event, destination: &str) -> DeliveryView {
    let mut view = DeliveryView {
        id: format!("{}:{destination}:{}", event.seq, delivery.id.generation),
        event: event.seq.to_string(),
        event_id: event.id.to_string(),
        source: event.source.to_string(),
        event_type: event.event_type.clone(),
        destination: destination.to_owned(),
        generation: delivery.id.generation,
        state: delivery.state_name().as_str().to_owned(),
        due: None,
        lease_until: None,
        ended_at: None,
        reason: None,
        decision: None,
        made_at: delivery.made_at.to_string(),
        attempts: delivery.attempts,
        idempotency_key: delivery.idempotency_key(),
        redelivery: delivery.redelivery.map(|id| id.to_string()),
        log: None,
    };
    match &delivery.state {
        DeliveryState::Waiting { due } => view.due = Some(due.to_string()),
        DeliveryState::Leased { expires_at } => view.lease_until = Some(expires_at.to_string()),
        DeliveryState::Done { at, decision: by } => {
            view.ended_at = Some(at.to_string());
            view.decision = by.as_ref().map(decision);
        }
        DeliveryState::Dead { at, reason } => {
            view.ended_at = Some(at.to_string());
            view.reason = Some(dead(reason));
        }
        DeliveryState::Held { decision: by } => view.decision = Some(decision(by)),
    }
    view
}

fn dead(reason: &DeadReason) -> String {
    match reason {
        DeadReason::Refused(reason) => reason.clone(),
        DeadReason::AttemptsUsedUp => "as many attempts as the destination allows were made".to_owned(),
        DeadReason::AgeUsedUp => "it was owed for as long as the destination allows".to_owned(),
    }
}

fn decision(decision: &Decision) -> DecisionView {
    let Decision { by, note, at } = decision.clone();
    DecisionView { by, note, at: at.to_string() }
}

fn attempt(attempt: &Attempt) -> AttemptView {
    let (excerpt, excerpt_base64) = text_or_base64(&attempt.excerpt);
    AttemptView {
        number: attempt.number,
        started_at: attempt.started_at.to_string(),
        took_us: attempt.took_us,
        status: attempt.status,
        error: attempt.error.clone(),
        rule: attempt.rule.clone(),
        excerpt,
        excerpt_base64,
    }
}
