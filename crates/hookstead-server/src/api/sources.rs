//! `/v1/sources`: the sources that the store has seen, with what the configuration says of them, and the newest requests
//! that each refused.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use hookstead::core::Store;
use serde::Deserialize;

use super::error::ApiError;
use super::query::parameters;
use super::router::Api;
use super::view::{RefusalView, RefusalsView, SourceView, SourcesView};
use crate::config::source_url;
use crate::problem::Problem;

pub(crate) async fn list(State(api): State<Arc<Api>>) -> Result<Json<SourcesView>, ApiError> {
    let registry = api.reads.read(api.inbox.store(), |store: &dyn Store| store.registry()).await?;
    let view = |row| {
        let mut view = SourceView::from(row);
        if let Some(source) = api.inbox.source(&view.name) {
            view.provider = source.provider().map(|provider| provider.name().to_owned());
            view.url = Some(source_url(&view.name, api.public_url.as_deref(), api.intake));
            view.body_bytes_max = Some(source.body_bytes_max());
        }
        view
    };
    Ok(Json(SourcesView { sources: registry.sources.iter().map(view).collect() }))
}

/// `?after=`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RefusalsQuery {
    #[serde(default)]
    after: u64,
}

/// The newest refusals of a configured source behind a number, the oldest first: why, when, from where, and what to do.
pub(crate) async fn refusals(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
    query: Result<Query<RefusalsQuery>, QueryRejection>,
) -> Result<Json<RefusalsView>, ApiError> {
    let after = parameters(query)?.after;
    let source = api.inbox.source(&name).ok_or_else(|| ApiError::from(Problem::UnknownSource))?;
    let noted = source.refusals().after(after);
    let refusals = noted.iter().map(|noted| RefusalView::new(noted, &name)).collect();
    Ok(Json(RefusalsView { source: name, refusals }))
}
