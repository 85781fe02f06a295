//! The addresses of the intake, and nothing else: `/in/<source>` and `/readyz` on a listener of its own, `/<source>`
//! within an application's router. Never a redirect.

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    /// To a source of this name, if there is one.
    Source(&'a str),
    /// Whether the server is ready.
    Ready,
    /// Nowhere.
    None,
}

/// Where an intake stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mount {
    /// On a listener of its own.
    Listener,
    /// Below a path of an application, which has been taken off.
    Router,
}

/// Finds the route of a path. One slash at the end makes no difference, and nothing is decoded or resolved.
pub(crate) fn route(path: &str, mount: Mount) -> Route<'_> {
    let below = match mount {
        Mount::Listener if path == "/readyz" => return Route::Ready,
        Mount::Listener => "/in/",
        Mount::Router => "/",
    };
    let Some(name) = path.strip_prefix(below) else { return Route::None };
    let name = name.strip_suffix('/').unwrap_or(name);
    if name.is_empty() || name.contains('/') { Route::None } else { Route::Source(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_addresses_lead_anywhere() {
        assert_eq!(route("/in/stripe", Mount::Listener), Route::Source("stripe"));
        assert_eq!(route("/in/stripe/", Mount::Listener), Route::Source("stripe"));
        assert_eq!(route("/in/%73tripe", Mount::Listener), Route::Source("%73tripe"));
        assert_eq!(route("/readyz", Mount::Listener), Route::Ready);
        for nowhere in [
            "",
            "/",
            "/in",
            "/in/",
            "/in//",
            "/in/a//",
            "/in/a/b",
            "/IN/a",
            "//in/a",
            "/readyz/",
            "/v1/events",
            "*",
        ] {
            assert_eq!(route(nowhere, Mount::Listener), Route::None, "{nowhere}");
        }
    }
    #[test]
    fn below_a_router_a_source_is_all_there_is() {
        assert_eq!(route("/stripe", Mount::Router), Route::Source("stripe"));
        assert_eq!(route("/stripe/", Mount::Router), Route::Source("stripe"));
        assert_eq!(route("/readyz", Mount::Router), Route::Source("readyz"));
        for nowhere in ["", "/", "//", "/in/a", "stripe"] {
            assert_eq!(route(nowhere, Mount::Router), Route::None, "{nowhere}");
        }
    }
}
