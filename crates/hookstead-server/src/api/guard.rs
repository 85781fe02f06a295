//! What stands before every route: the `Host` check, the token, and the headers that every answer carries.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::Method;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::error::ApiError;
use super::router::Api;
use crate::listen::Unread;
use crate::problem::Problem;
use crate::tokens::{Role, Scope};

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
    let scope = presented(request.headers()).and_then(|token| api.tokens.scope(token));
    let open = OPEN.contains(&request.uri().path());
    let has_body = !request.method().is_safe();
    let mut response = match check(&api, &request, scope.as_ref(), open) {
        Ok(()) => {
            if let Some(scope) = scope {
                request.extensions_mut().insert(scope);
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

fn check(api: &Api, request: &Request, scope: Option<&Scope>, open: bool) -> Result<(), Problem> {
    if open {
        return Ok(());
    }
    let mut hosts = request.headers().get_all(header::HOST).iter();
    match (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) {
        (Some(host), None) if api.hosts.allows(host) => {}
        (Some(_), None) => return Err(Problem::HostNotAllowed),
        _ => return Err(Problem::Malformed),
    }
    let scope = scope.ok_or(Problem::Unauthorized)?;
    if needs(request.method(), request.uri().path()).are_met_by(scope) {
        Ok(())
    } else {
        Err(Problem::Forbidden)
    }
}

/// What a request needs. What stands nowhere here is for people alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs<'a> {
    /// A person's token that reaches so far.
    Role(Role),
    /// A token that may look, or that of the destination's consumer.
    Look(&'a str),
    /// The right to work this destination's deliveries.
    Consume(&'a str),
    /// The right to work some destination's deliveries; of which one, the lease says, and its handler looks.
    Lease,
}

fn needs<'a>(method: &Method, path: &'a str) -> Needs<'a> {
    let mut segments = path.split('/').skip(1);
    let mut next = || segments.next();
    match (method.is_safe(), [next(), next(), next(), next()]) {
        (true, [Some("v1"), Some("destinations"), Some(name), None]) => Needs::Look(name),
        (false, [Some("v1"), Some("destinations"), Some(name), Some("claim")]) => Needs::Consume(name),
        (false, [Some("v1"), Some("leases"), _, _]) => Needs::Lease,
        // Whoever imports answers for what no signature of ours has proved.
        (false, [Some("v1"), Some("reload" | "import"), None, None]) => Needs::Role(Role::Admin),
        // Every role may look.
        (true, _) => Needs::Role(Role::Read),
        (false, _) => Needs::Role(Role::Operate),
    }
}

impl Needs<'_> {
    fn are_met_by(self, scope: &Scope) -> bool {
        match self {
            Self::Role(role) => scope.includes(role),
            Self::Look(name) => scope.includes(Role::Read) || scope.may_consume(name),
            Self::Consume(name) => scope.may_consume(name),
            Self::Lease => scope.includes(Role::Operate) || matches!(scope, Scope::Consume(_)),
        }
    }
}

/// The token of `Authorization: Bearer TOKEN`.
fn presented(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(scope: &str, method: &Method, path: &str) -> bool {
        needs(method, path).are_met_by(&scope.parse().unwrap())
    }

    #[test]
    fn a_consumer_works_its_own_destination_and_sees_nothing_else() {
        let app = |method: &Method, path: &str| allowed("consume:app", method, path);
        assert!(app(&Method::POST, "/v1/destinations/app/claim"));
        assert!(app(&Method::GET, "/v1/destinations/app"));
        assert!(app(&Method::POST, "/v1/leases/ls_x/done"));
        assert!(app(&Method::POST, "/v1/leases/settle"));
        for (method, path) in [
            (Method::POST, "/v1/destinations/other/claim"),
            (Method::POST, "/v1/destinations/app/pause"),
            (Method::GET, "/v1/destinations"),
            (Method::GET, "/v1/destinations/other"),
            (Method::GET, "/v1/events"),
            (Method::GET, "/v1/tail"),
            (Method::GET, "/v1/export"),
            (Method::GET, "/v1/events/@/export"),
            (Method::POST, "/v1/import"),
            (Method::POST, "/v1/deliveries/0001:app/done"),
            (Method::POST, "/v1/reload"),
            (Method::POST, "//v1/destinations/app/claim"),
            (Method::POST, "/v1/destinations/app%2fclaim"),
        ] {
            assert!(!app(&method, path), "{method} {path}");
        }
    }

    #[test]
    fn people_may_as_much_as_their_role_says() {
        let claim = "/v1/destinations/app/claim";
        assert!(!allowed("read", &Method::POST, claim) && allowed("operate", &Method::POST, claim));
        assert!(!allowed("operate", &Method::POST, "/v1/reload"));
        assert!(allowed("admin", &Method::POST, "/v1/reload"));
        assert!(!allowed("operate", &Method::POST, "/v1/import"));
        assert!(allowed("admin", &Method::POST, "/v1/import"));
        assert!(allowed("read", &Method::GET, "/v1/export"));
        assert!(allowed("read", &Method::GET, "/v1/deliveries"));
        assert!(!allowed("read", &Method::POST, "/v1/leases/settle"));
    }
}
