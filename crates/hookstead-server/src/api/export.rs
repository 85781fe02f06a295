//! `/v1/export` and `/v1/events/{event}/export`: events with their bodies, as JSON lines.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use hookstead::core::{EventFilter, Store, StoreError};
use http::Uri;
use http::header::{self, HeaderValue};
use serde::Deserialize;

use super::error::ApiError;
use super::events::named;
use super::moment::moment;
use super::query::{parameters, refused};
use super::router::Api;
use crate::lookup::{LookupError, find};
use crate::problem::Problem;
use crate::transfer::{ExportPage, ExportRequest, event_line, export_page};

/// `?after=&until=&source=&type=&from=&before=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExportQuery {
    after: Option<String>,
    until: Option<u64>,
    source: Option<String>,
    #[serde(rename = "type")]
    event_type: Option<String>,
    from: Option<String>,
    before: Option<String>,
}

/// A page of events, the oldest first; the last line is no event and says how the export goes on.
pub(crate) async fn page(
    State(api): State<Arc<Api>>,
    query: Result<Query<ExportQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let query = parameters(query)?;
    let mut request = ExportRequest {
        filter: filter(&query)?,
        after: query.after.as_deref().map(str::parse).transpose().map_err(refused)?,
        until: query.until,
    };
    let source = query.source;
    let read = move |store: &dyn Store| -> Result<Option<ExportPage>, StoreError> {
        if let Some(name) = source {
            let registry = store.registry()?;
            let Some(row) = registry.sources.iter().find(|row| row.name.as_str() == name) else {
                return Ok(None);
            };
            request.filter.source = Some(row.number);
        }
        export_page(store, &request).map(Some)
    };
    let page = api.reads.read(api.inbox.store(), read).await?;
    let ExportPage { mut lines, end } =
        page.ok_or_else(|| ApiError::new(Problem::UnknownSource, "the store has no event of this source"))?;
    serde_json::to_writer(&mut lines, &end)
        .map_err(|error| ApiError::new(Problem::Damaged, error.to_string()))?;
    lines.push(b'\n');
    Ok(json_lines(lines))
}

/// One event.
pub(crate) async fn event(State(api): State<Arc<Api>>, uri: Uri) -> Result<Response, ApiError> {
    let name = named(uri.path())?;
    let read = move |store: &dyn Store| -> Result<_, LookupError> {
        let event = find(store, &name)?;
        Ok(event_line(store, &event)?)
    };
    let line = api.reads.read(api.inbox.store(), read).await?;
    let mut out = Vec::new();
    line.write_to(&mut out).map_err(|error| ApiError::new(Problem::Damaged, error.to_string()))?;
    Ok(json_lines(out))
}

fn filter(query: &ExportQuery) -> Result<EventFilter, ApiError> {
    let instant = |name, text: &Option<String>| text.as_deref().map(|text| moment(name, text)).transpose();
    Ok(EventFilter {
        source: None,
        event_type: query.event_type.as_deref().map(str::parse).transpose().map_err(refused)?,
        committed_from: instant("from", &query.from)?,
        committed_before: instant("before", &query.before)?,
    })
}

fn json_lines(lines: Vec<u8>) -> Response {
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    ([kind], lines).into_response()
}
