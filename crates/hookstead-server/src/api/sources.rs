//! `/v1/sources`: the sources that the store has seen, with what the configuration says of them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use hookstead::core::Store;

use super::error::ApiError;
use super::router::Api;
use super::view::{SourceView, SourcesView};
use crate::config::source_url;

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
