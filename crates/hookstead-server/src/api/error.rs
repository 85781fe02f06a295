//! A refusal of the API, with words about the one case.

use axum::response::{IntoResponse, Response};
use hookstead::core::StoreError;

use crate::problem::Problem;

/// A refusal.
#[derive(Debug)]
pub(crate) struct ApiError {
    problem: Problem,
    detail: Option<String>,
}

impl ApiError {
    pub(crate) fn new(problem: Problem, detail: impl Into<String>) -> Self {
        Self { problem, detail: Some(detail.into()) }
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        Self { problem, detail: None }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let problem = match &error {
            StoreError::Busy { .. } | StoreError::Full { .. } => Problem::Busy,
            StoreError::Corrupt { .. } => Problem::Damaged,
            StoreError::Poisoned { .. } | StoreError::Backend { .. } => Problem::NotDurable,
        };
        tracing::error!(error = %error, problem.code = problem.code(), "the store could not be read");
        Self::new(problem, error.to_string())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.problem.response_with(self.detail.as_deref()).map(axum::body::Body::from)
    }
}
