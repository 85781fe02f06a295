//! `/v1/conflicts`: other bytes under ids that were taken.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use hookstead::core::{ConflictFilter, Store};

use super::error::ApiError;
use super::query::ListQuery;
use super::router::Api;
use super::view::ConflictsView;

pub(crate) async fn list(
    State(api): State<Arc<Api>>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<ConflictsView>, ApiError> {
    let query = ListQuery::of(query)?;
    let (page, filter) = (query.page()?, ConflictFilter { event: None, open_only: query.open });
    let list =
        move |store: &dyn Store| store.list_conflicts(&filter, &page).map(|list| ConflictsView::from(&list));
    api.reads.read(api.inbox.store(), list).await.map(Json)
}
