//! `/v1/stats`: counts of what the store holds.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::error::ApiError;
use super::router::Api;
use super::view::StatsView;

pub(crate) async fn show(State(api): State<Arc<Api>>) -> Result<Json<StatsView>, ApiError> {
    let read = |store: &dyn hookstead::core::Store| store.stats().map(|stats| StatsView::from(&stats));
    api.reads.read(api.inbox.store(), read).await.map(Json)
}
