//! What people decide, as one write with a record of who and why.

use axum::extract::Request;
use hookstead::core::{Decision, Resolve, Resolved, Subject};

use super::body;
use super::delivery_view::NewDecision;
use super::error::ApiError;
use super::router::Api;
use crate::limits::{API_BODY_BYTES_MAX, NOTE_BYTES_MAX};
use crate::problem::Problem;
use crate::tokens::Scope;

/// Carries out a decision; its note stands in the body.
pub(super) async fn decide(
    api: &Api,
    scope: &Scope,
    request: Request,
    subject: Subject,
) -> Result<Resolved, ApiError> {
    let form = "{\"note\": \"why\"}";
    let asked: NewDecision = body::json_or_default(request.into_body(), API_BODY_BYTES_MAX, form).await?;
    let note = note(asked.note)?;
    let decision = Decision { by: by(scope), note, at: api.inbox.clock().now() };
    Ok(api.inbox.resolve(Resolve { subject, decision }).await?)
}

/// Who asked, as far as a token tells.
pub(super) fn by(scope: &Scope) -> String {
    format!("api, {scope}")
}

/// A note of a length that is kept.
pub(super) fn note(note: Option<String>) -> Result<String, ApiError> {
    let note = note.unwrap_or_default();
    if note.len() > NOTE_BYTES_MAX {
        return Err(ApiError::new(Problem::Malformed, format!("a note has at most {NOTE_BYTES_MAX} bytes")));
    }
    Ok(note)
}
