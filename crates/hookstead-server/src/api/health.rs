//! `/livez` and `/readyz`: one word for probes, the facts for whoever has a token.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use hookstead::Health;
use http::StatusCode;

use super::router::Api;
use super::view::{ReadyView, StoreView};
use crate::listen::Stop;
use crate::tokens::{Role, Scope};

/// The process answers.
pub(crate) async fn livez() -> &'static str {
    "ok\n"
}

/// Whether events can be accepted now.
pub(crate) async fn readyz(State(api): State<Arc<Api>>, scope: Option<Extension<Scope>>) -> Response {
    let reason = reason(&api);
    let mut view = ReadyView { ready: reason.is_none(), reason: None, store: None, version: None };
    if scope.is_some_and(|scope| scope.includes(Role::Read)) {
        view.reason.clone_from(&reason);
        view.store = Some(StoreView::from(api.inbox.store().facts()));
        view.version = Some(env!("CARGO_PKG_VERSION").to_owned());
    }
    let status = if view.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(view)).into_response()
}

/// Why not.
fn reason(api: &Api) -> Option<String> {
    if *api.stop.borrow() != Stop::Not {
        return Some("the server is stopping".to_owned());
    }
    match &*api.health.borrow() {
        Health::Ready => None,
        other => other.unavailable().map(|unavailable| unavailable.to_string()),
    }
}
