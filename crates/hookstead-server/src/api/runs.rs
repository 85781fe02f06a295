//! `/v1/events/{event}/runs`: process an event under a name, and list the receipts.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use hookstead::core::RunName;
use http::{StatusCode, Uri};
use serde::Deserialize;

use super::error::ApiError;
use super::events::named;
use super::router::Api;
use super::view::RunsView;
use crate::limits::{API_BODY_BYTES_MAX, BODY_TIME};
use crate::problem::Problem;
use crate::runs;

/// What a run is asked for with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewRun {
    run: String,
}

pub(crate) async fn list(State(api): State<Arc<Api>>, uri: Uri) -> Result<Json<RunsView>, ApiError> {
    let name = named(uri.path())?;
    api.reads.read(api.inbox.store(), move |store| runs::list(store, &name)).await.map(Json)
}

/// 201 with a new receipt, 200 with the one that was there.
pub(crate) async fn create(State(api): State<Arc<Api>>, request: Request) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    let name = named(head.uri.path())?;
    let run = run_name(body).await?;
    let inbox = api.inbox.blocking();
    let receipt = api.changes.run(move || runs::replay(&inbox, &name, &run)).await?;
    let status = if receipt.new == Some(true) { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(receipt)).into_response())
}

async fn run_name(body: Body) -> Result<RunName, ApiError> {
    let read = tokio::time::timeout(BODY_TIME, to_bytes(body, API_BODY_BYTES_MAX));
    let body = read.await.map_err(|_elapsed| Problem::Timeout)?.map_err(|_cut| Problem::TooLarge)?;
    let asked: NewRun = serde_json::from_slice(&body).map_err(|error| {
        ApiError::new(Problem::Malformed, format!("the body must be {{\"run\": \"NAME\"}}: {error}"))
    })?;
    asked
        .run
        .parse()
        .map_err(|error: hookstead::core::NameError| ApiError::new(Problem::RunName, error.to_string()))
}
