//! A refusal of the API, with words about the one case.

use axum::response::{IntoResponse, Response};
use hookstead::core::{Event, QueryError, StoreError};
use hookstead::{ReplayError, Unavailable};

use crate::lookup::LookupError;
use crate::problem::{Case, Choice, Problem};
use crate::runs::RunError;

/// A refusal.
#[derive(Debug)]
pub(crate) struct ApiError {
    problem: Problem,
    case: Case,
}

impl ApiError {
    pub(crate) fn new(problem: Problem, detail: impl Into<String>) -> Self {
        Self { problem, case: Case { detail: Some(detail.into()), ..Case::default() } }
    }
}

impl ApiError {
    /// The stable code.
    pub(crate) fn code(&self) -> &'static str {
        self.problem.code()
    }
}

impl From<Unavailable> for ApiError {
    fn from(error: Unavailable) -> Self {
        let problem = match error {
            Unavailable::Overloaded => Problem::Busy,
            Unavailable::Closing => Problem::Stopping,
            Unavailable::Damaged(_) => Problem::Damaged,
            _ => Problem::NotDurable,
        };
        tracing::error!(error = %error, problem.code = problem.code(), "a change could not be stored");
        Self::new(problem, error.to_string())
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        Self { problem, case: Case::default() }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        // A cursor that this store never gave is the asker's mistake, and only the store can tell.
        if let StoreError::Backend { source, .. } = &error
            && let Some(query) = source.downcast_ref::<QueryError>()
        {
            return Self::new(Problem::Query, query.to_string());
        }
        let problem = match &error {
            StoreError::Busy { .. } | StoreError::Full { .. } => Problem::Busy,
            StoreError::Corrupt { .. } => Problem::Damaged,
            StoreError::Poisoned { .. } | StoreError::Backend { .. } => Problem::NotDurable,
        };
        tracing::error!(error = %error, problem.code = problem.code(), "the store could not be read");
        Self::new(problem, error.to_string())
    }
}

impl From<LookupError> for ApiError {
    fn from(error: LookupError) -> Self {
        match error {
            LookupError::NotFound { searched } => {
                let searched = searched.map(|searched| searched.to_string());
                let detail = Some("there is no such event".to_owned());
                Self { problem: Problem::NotFound, case: Case { detail, searched, ..Case::default() } }
            }
            LookupError::Ambiguous(events) => {
                let detail = "the id stands under several scopes; name one of the events by its short id";
                let choices = events.iter().map(Choice::from).collect();
                Self {
                    problem: Problem::Ambiguous,
                    case: Case { detail: Some(detail.to_owned()), choices, ..Case::default() },
                }
            }
            LookupError::Store(error) => Self::from(error),
        }
    }
}

impl From<&Event> for Choice {
    fn from(event: &Event) -> Self {
        Self {
            short_id: event.seq.to_string(),
            scope: String::from_utf8_lossy(event.identity.scope.as_bytes()).into_owned(),
            received_at: event.received_at.to_string(),
        }
    }
}

impl From<RunError> for ApiError {
    fn from(error: RunError) -> Self {
        let detail = error.to_string();
        match error {
            RunError::Lookup(error) => Self::from(error),
            RunError::SourceNotConfigured(_) => Self::new(Problem::SourceNotConfigured, detail),
            RunError::Replay(error) => Self::from(error),
        }
    }
}

impl From<ReplayError> for ApiError {
    fn from(error: ReplayError) -> Self {
        let detail = error.to_string();
        match error {
            ReplayError::UnknownEvent => Self::new(Problem::NotFound, detail),
            ReplayError::Erased => Self::new(Problem::Erased, detail),
            ReplayError::Unreadable(_) => Self::new(Problem::Unreadable, detail),
            ReplayError::DamagedReceipt { .. } => {
                tracing::error!(error = %detail, "a receipt does not fit its event");
                Self::new(Problem::ReceiptDamaged, detail)
            }
            ReplayError::Store(error) => Self::from(error),
            ReplayError::Unavailable(error) => {
                tracing::error!(error = %detail, "a run could not be recorded");
                let problem = match error {
                    Unavailable::Overloaded => Problem::Busy,
                    Unavailable::Closing => Problem::Stopping,
                    Unavailable::Damaged(_) => Problem::Damaged,
                    _ => Problem::NotDurable,
                };
                Self::new(problem, detail)
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.problem.response_with(&self.case).map(axum::body::Body::from)
    }
}
