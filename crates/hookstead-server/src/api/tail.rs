//! `/v1/tail`: events as they are committed, as JSON lines. It resumes from a cursor and skips nothing.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use hookstead::core::{Cursor, Event, EventFilter, List, Order, Page, Store, StoreError};
use http::header::{self, HeaderValue};
use serde::Deserialize;

use super::delivery_view::TailLine;
use super::error::ApiError;
use super::query::{parameters, refused};
use super::router::Api;
use super::view::EventView;
use super::waiting::{Wait, Woken, wait_of};
use crate::limits::PAGE_DEFAULT;
use crate::problem::Problem;

/// The cursor before the first event.
const START: &str = "start";

/// `?cursor=&wait=&limit=&source=&type=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TailQuery {
    cursor: Option<String>,
    wait: Option<String>,
    limit: Option<u16>,
    source: Option<String>,
    #[serde(rename = "type")]
    event_type: Option<String>,
}

/// The events behind the cursor, at most a page of them; if there are none, the first that come within the wait.
/// Without a cursor it begins with what comes from now on.
pub(crate) async fn tail(
    State(api): State<Arc<Api>>,
    query: Result<Query<TailQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let query = parameters(query)?;
    if query.limit == Some(0) {
        return Err(ApiError::new(Problem::Query, "`limit` is 1 or more"));
    }
    // Subscribed before the first look, so that nothing is committed unseen in between.
    let mut wait = Wait::new(&api, wait_of(query.wait.as_deref())?);
    let filter = filter(&api, &query).await?;
    let mut page = Page {
        items_max: query.limit.unwrap_or(PAGE_DEFAULT),
        after: begin(&api, query.cursor.as_deref()).await?,
        order: Order::OldestFirst,
    };
    loop {
        wait.seen();
        let list = read(&api, filter.clone(), page.clone()).await?;
        if !list.items.is_empty() {
            return answer(&list, &page);
        }
        // A page ends after so many rows, whatever they are: an empty one with more behind it is read on from.
        let woken = if list.more { wait.goes_on()? } else { wait.for_events().await? };
        if woken == Woken::Over {
            return answer(&list, &page);
        }
        page.after = list.next.or(page.after);
    }
}

async fn read(api: &Api, filter: EventFilter, page: Page) -> Result<List<Event>, ApiError> {
    api.reads.read(api.inbox.store(), move |store: &dyn Store| store.list_events(&filter, &page)).await
}

/// Where to begin.
async fn begin(api: &Api, cursor: Option<&str>) -> Result<Option<Cursor>, ApiError> {
    match cursor {
        Some(START) => Ok(None),
        Some(text) => Ok(Some(text.parse().map_err(refused)?)),
        None => {
            let newest = Page::first(1, Order::NewestFirst);
            let read = move |store: &dyn Store| store.list_events(&EventFilter::default(), &newest);
            Ok(api.reads.read(api.inbox.store(), read).await?.next)
        }
    }
}

async fn filter(api: &Api, query: &TailQuery) -> Result<EventFilter, ApiError> {
    let event_type = query.event_type.as_deref().map(str::parse).transpose().map_err(refused)?;
    let Some(name) = query.source.clone() else {
        return Ok(EventFilter { event_type, ..EventFilter::default() });
    };
    let find = move |store: &dyn Store| -> Result<_, StoreError> {
        Ok(store.registry()?.sources.into_iter().find(|row| row.name.as_str() == name))
    };
    let row = api.reads.read(api.inbox.store(), find).await?;
    let source = row.ok_or_else(|| ApiError::from(Problem::UnknownSource))?.number;
    Ok(EventFilter { source: Some(source), event_type, ..EventFilter::default() })
}

fn answer(list: &List<Event>, page: &Page) -> Result<Response, ApiError> {
    let event = |event: &Event| TailLine::Event { event: Box::new(EventView::from(event)) };
    let cursor = list.next.as_ref().or(page.after.as_ref()).map_or(START, Cursor::as_str).to_owned();
    let end = TailLine::End { cursor, more: list.more };
    let mut body = Vec::new();
    for line in list.items.iter().map(event).chain([end]) {
        serde_json::to_writer(&mut body, &line)
            .map_err(|error| ApiError::new(Problem::Damaged, error.to_string()))?;
        body.push(b'\n');
    }
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    Ok(([kind], body).into_response())
}
