//! What stands before every route: the `Host` check, the token, and the headers that every answer carries.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::error::ApiError;
use super::router::Api;
use crate::listen::Unread;
use crate::problem::Problem;
use crate::tokens::Role;

/// Routes for probes, which have no token and may use any name of the machine. They say one word.
const OPEN: [&str; 2] = ["/livez", "/readyz"];

/// For every answer: never cached, never guessed at, never shown in a frame, never run.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
];

/// Lets a request through, or not.
pub(crate) async fn guard(State(api): State<Arc<Api>>, mut request: Request, next: Next) -> Response {
    let role = presented(request.headers()).and_then(|token| api.tokens.role(token));
    let open = OPEN.contains(&request.uri().path());
    let has_body = !request.method().is_safe();
    let mut response = match check(&api, &request, role, open) {
        Ok(()) => {
            if let Some(role) = role {
                request.extensions_mut().insert(role);
            }
            next.run(request).await
        }
        Err(problem) => ApiError::from(problem).into_response(),
    };
    if has_body && !response.status().is_success() {
        // It may still be on its way: closing at once would cut the answer off.
        response.extensions_mut().insert(Unread);
    }
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn check(api: &Api, request: &Request, role: Option<Role>, open: bool) -> Result<(), Problem> {
    if open {
        return Ok(());
    }
    let mut hosts = request.headers().get_all(header::HOST).iter();
    match (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) {
        (Some(host), None) if api.hosts.allows(host) => {}
        (Some(_), None) => return Err(Problem::HostNotAllowed),
        _ => return Err(Problem::Malformed),
    }
    // Every role may read.
    let wanted = if request.method().is_safe() { Role::Read } else { Role::Operate };
    match role {
        None => Err(Problem::Unauthorized),
        Some(role) if role < wanted => Err(Problem::Forbidden),
        Some(_) => Ok(()),
    }
}

/// The token of `Authorization: Bearer TOKEN`.
fn presented(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
