//! The addresses of the intake: `/in/<source>` and `/readyz`, and nothing else. Never a redirect.

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

/// Finds the route of a path. One slash at the end makes no difference, and nothing is decoded or resolved.
pub(crate) fn route(path: &str) -> Route<'_> {
    if path == "/readyz" {
        return Route::Ready;
    }
    let Some(name) = path.strip_prefix("/in/") else { return Route::None };
    let name = name.strip_suffix('/').unwrap_or(name);
    if name.is_empty() || name.contains('/') { Route::None } else { Route::Source(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_addresses_lead_anywhere() {
        assert_eq!(route("/in/stripe"), Route::Source("stripe"));
        assert_eq!(route("/in/stripe/"), Route::Source("stripe"));
        assert_eq!(route("/in/%73tripe"), Route::Source("%73tripe"));
        assert_eq!(route("/readyz"), Route::Ready);
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
            assert_eq!(route(nowhere), Route::None, "{nowhere}");
        }
    }
}
