//! `/v1/events`: the list, one event, its receipt, and its body.

use std::sync::Arc;

use axum::Json;
use axum::body::Body as HttpBody;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use hookstead::core::{Body, BodySelector, Event, EventFilter, Store, StoreError};
use http::Uri;
use http::header::{self, HeaderValue};

use super::error::ApiError;
use super::query::{ListQuery, refused};
use super::router::Api;
use super::selector::event_name;
use super::view::{EventView, EventsView, ReceiptView};
use crate::intake::answer::answers;
use crate::lookup::{EventName, LookupError, find};
use crate::owed::owed;
use crate::problem::Problem;

pub(crate) async fn list(
    State(api): State<Arc<Api>>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<EventsView>, ApiError> {
    let query = ListQuery::of(query)?;
    let page = query.page()?;
    let event_type = query.event_type.as_deref().map(str::parse).transpose().map_err(refused)?;
    let source = query.source;
    let list = move |store: &dyn Store| {
        let mut filter = EventFilter { event_type, ..EventFilter::default() };
        if let Some(name) = source {
            let registry = store.registry()?;
            let Some(row) = registry.sources.iter().find(|row| row.name.as_str() == name) else {
                return Ok::<_, StoreError>(None);
            };
            filter.source = Some(row.number);
        }
        store.list_events(&filter, &page).map(|list| Some(EventsView::from(&list)))
    };
    let found = api.reads.read(api.inbox.store(), list).await?;
    found
        .map(Json)
        .ok_or_else(|| ApiError::new(Problem::UnknownSource, "the store has no event of this source"))
}

pub(crate) async fn show(State(api): State<Arc<Api>>, uri: Uri) -> Result<Json<EventView>, ApiError> {
    let name = named(uri.path())?;
    let read = move |store: &dyn Store| -> Result<_, LookupError> {
        let event = find(store, &name)?;
        let owed = owed(store, &event)?;
        Ok((event, owed))
    };
    let (event, owed) = api.reads.read(api.inbox.store(), read).await?;
    let answers = api.inbox.source(event.source.as_str()).map(|source| answers(&source));
    Ok(Json(EventView { owed: Some(owed), ..EventView::detailed(&event, answers) }))
}

pub(crate) async fn receipt(State(api): State<Arc<Api>>, uri: Uri) -> Result<Json<ReceiptView>, ApiError> {
    let name = named(uri.path())?;
    let event = api.reads.read(api.inbox.store(), move |store| find(store, &name)).await?;
    Ok(Json(ReceiptView::of(&event, api.inbox.store().facts())))
}

pub(crate) async fn body(State(api): State<Arc<Api>>, uri: Uri) -> Result<Response, ApiError> {
    let name = named(uri.path())?;
    let read = move |store: &dyn Store| {
        let event = find(store, &name)?;
        let body = store.body(BodySelector::Event(event.id))?;
        body.map(|body| (event, body)).ok_or(LookupError::NotFound { searched: None })
    };
    match api.reads.read(api.inbox.store(), read).await? {
        (event, Body::Kept(bytes)) => Ok(download(&event, HttpBody::from(bytes))),
        (_, Body::Erased) => Err(Problem::Erased.into()),
    }
}

/// The bytes as they came, as a file to keep: nothing that a browser would show or run.
fn download(event: &Event, body: HttpBody) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    // A short id is base32, so it is a header value and a file name.
    let name = format!("attachment; filename=\"{}.bin\"", event.seq);
    if let Ok(disposition) = HeaderValue::from_str(&name) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    response
}

/// The event's name in `/v1/events/NAME..`, as it was sent.
pub(super) fn named(path: &str) -> Result<EventName, ApiError> {
    event_name(path.split('/').nth(3).unwrap_or_default())
}
