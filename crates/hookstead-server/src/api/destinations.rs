//! `/v1/destinations`: the destinations that the store has seen, with what the configuration says of them.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::{Extension, Json};
use hookstead::core::{
    DeliveryFilter, DestinationRow, Order, Page, Resolved, StateName, Store, StoreError, Subject, Timestamp,
};
use hookstead::dispatch::{CircuitState, Standing, Standings};
use hookstead::{DestinationKind, Inbox, Route};

use super::decision::decide;
use super::delivery_view::{DestinationView, DestinationsView};
use super::error::ApiError;
use super::router::Api;
use super::view::TallyView;
use crate::config::format_duration;
use crate::limits::{COUNT_PAGES_MAX, PAGE_COUNT_MAX};
use crate::problem::Problem;
use crate::tokens::Scope;

pub(crate) async fn list(State(api): State<Arc<Api>>) -> Result<Json<DestinationsView>, ApiError> {
    let (inbox, standings) = (api.inbox.clone(), api.standings.clone());
    let read = move |store: &dyn Store| -> Result<_, StoreError> {
        let rows = store.registry()?.destinations;
        rows.iter()
            .map(|row| Ok(view(&inbox, &standings, row, store.next_due(row.number)?)))
            .collect::<Result<Vec<_>, _>>()
    };
    let destinations = api.reads.read(api.inbox.store(), read).await?;
    Ok(Json(DestinationsView { destinations }))
}

pub(crate) async fn show(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
) -> Result<Json<DestinationView>, ApiError> {
    one(&api, name).await.map(Json)
}

pub(crate) async fn pause(
    state: State<Arc<Api>>,
    path: Path<String>,
    scope: Extension<Scope>,
    request: Request,
) -> Result<Json<DestinationView>, ApiError> {
    set(state, path, scope, request, Subject::PauseDestination).await
}

pub(crate) async fn resume(
    state: State<Arc<Api>>,
    path: Path<String>,
    scope: Extension<Scope>,
    request: Request,
) -> Result<Json<DestinationView>, ApiError> {
    set(state, path, scope, request, Subject::ResumeDestination).await
}

/// Pauses or resumes; to do it again changes nothing and is no mistake.
async fn set(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
    Extension(scope): Extension<Scope>,
    request: Request,
    subject: fn(hookstead::core::DestinationNumber) -> Subject,
) -> Result<Json<DestinationView>, ApiError> {
    let row = row(&api, name.clone()).await?;
    match decide(&api, &scope, request, subject(row.number)).await? {
        Resolved::Unknown => Err(unknown(&name)),
        _ => one(&api, name).await.map(Json),
    }
}

async fn one(api: &Api, name: String) -> Result<DestinationView, ApiError> {
    let row = row(api, name).await?;
    let (inbox, standings) = (api.inbox.clone(), api.standings.clone());
    let read = move |store: &dyn Store| -> Result<_, StoreError> {
        let mut view = view(&inbox, &standings, &row, store.next_due(row.number)?);
        view.unfinished = Some(unfinished(store, &row)?);
        Ok(view)
    };
    api.reads.read(api.inbox.store(), read).await
}

/// The store's row of a destination, also of one that is no longer configured.
pub(super) async fn row(api: &Api, name: String) -> Result<DestinationRow, ApiError> {
    let registry = api.reads.read(api.inbox.store(), |store: &dyn Store| store.registry()).await?;
    let row = registry.destinations.into_iter().find(|row| row.name.as_str() == name);
    row.ok_or_else(|| unknown(&name))
}

pub(super) fn unknown(name: &str) -> ApiError {
    let detail =
        format!("there has never been a destination `{}`", name.chars().take(80).collect::<String>());
    ApiError::new(Problem::UnknownDestination, detail)
}

/// Counts that stop, so that asking costs the same however much waits.
fn unfinished(store: &dyn Store, row: &DestinationRow) -> Result<TallyView, StoreError> {
    let count = |state| -> Result<u64, StoreError> {
        let filter = DeliveryFilter { event: None, destination: Some(row.number), state: Some(state) };
        let mut page = Page::first(PAGE_COUNT_MAX, Order::NewestFirst);
        let mut found = 0;
        // Those in one state may lie far apart: a page without any is not the last.
        for _ in 0..COUNT_PAGES_MAX {
            let list = store.list_deliveries(&filter, &page)?;
            found += list.items.len() as u64;
            match list.next {
                Some(next) if list.more && found < u64::from(PAGE_COUNT_MAX) => page = page.after(next),
                _ => break,
            }
        }
        Ok(found.min(u64::from(PAGE_COUNT_MAX)))
    };
    Ok(TallyView {
        waiting: count(StateName::Waiting)?,
        leased: count(StateName::Leased)?,
        done: 0,
        dead: count(StateName::Dead)?,
        held: count(StateName::Held)?,
    })
}

fn view(
    inbox: &Inbox,
    standings: &Standings,
    row: &DestinationRow,
    next_due: Option<Timestamp>,
) -> DestinationView {
    let mut view = DestinationView {
        name: row.name.to_string(),
        number: row.number.0,
        kind: None,
        url: None,
        command: None,
        sources: Vec::new(),
        types: Vec::new(),
        lease: None,
        paused: row.paused,
        circuit: None,
        rests_until: None,
        in_flight: None,
        problem: None,
        next_due: next_due.map(|due| due.to_string()),
        generation: row.generation,
        max_attempts: row.retry.attempts_max,
        unfinished: None,
    };
    if let Some(route) = inbox.destination(&view.name) {
        fill(&mut view, &route);
    }
    if let Some(standing) = standings.of(&row.name) {
        stand(&mut view, standing);
    }
    view
}

fn stand(view: &mut DestinationView, standing: Standing) {
    let (circuit, until) = match standing.circuit {
        CircuitState::Closed => ("closed", None),
        CircuitState::Open { until } => ("open", Some(until.to_string())),
        CircuitState::HalfOpen => ("half-open", None),
    };
    view.circuit = Some(circuit.to_owned());
    view.rests_until = until;
    view.in_flight = Some(standing.in_flight);
    view.problem = standing.problem;
}

fn fill(view: &mut DestinationView, route: &Route) {
    let destination = route.destination();
    let filter = &destination.options().filter;
    view.kind = Some(destination.kind().as_str().to_owned());
    view.sources = filter.source_names().into_iter().map(ToString::to_string).collect();
    view.types = filter.type_patterns().iter().map(|pattern| pattern.as_str().to_owned()).collect();
    view.lease = Some(format_duration(destination.lease_for()));
    match destination.kind() {
        DestinationKind::Push(push) => view.url = Some(push.url.to_string()),
        DestinationKind::Exec(exec) => view.command = Some(exec.command.clone()),
        _ => {}
    }
}
