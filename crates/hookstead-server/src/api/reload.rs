//! `POST /v1/reload`: take the configuration file over, as SIGHUP does.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::delivery_view::ReloadView;
use super::error::ApiError;
use super::router::Api;
use crate::problem::Problem;
use crate::run::ReloadError;

pub(crate) async fn reload(State(api): State<Arc<Api>>) -> Result<Json<ReloadView>, ApiError> {
    api.reloader.reload().await.map(Json).map_err(|error| {
        let detail = error.to_string();
        match error {
            ReloadError::Config(_) | ReloadError::Source { .. } | ReloadError::Refused(_) => {
                ApiError::new(Problem::Config, detail)
            }
            ReloadError::Folder(_) => ApiError::new(Problem::NotDurable, detail),
            ReloadError::Unavailable(error) => error.into(),
        }
    })
}
