//! What of HTTP's framing hyper lets pass and we do not. What hyper refuses stays refused.

use axum::extract::OriginalUri;
use http::header::{HOST, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, Version};

use crate::limits::TARGET_BYTES_MAX;
use crate::problem::Problem;

/// Checks `Host` and the length of the target.
pub(crate) fn check(head: &Parts) -> Result<(), Problem> {
    if target(head).len() > TARGET_BYTES_MAX {
        return Err(Problem::TargetTooLong);
    }
    // Two hosts mean that something in between read the request differently (RFC 9112, 3.2).
    match head.headers.get_all(HOST).iter().count() {
        1 => Ok(()),
        // HTTP/2 has its own word for it, and HTTP/1.0 none.
        0 if head.version != Version::HTTP_11 => Ok(()),
        _ => Err(Problem::Malformed),
    }
}

/// Path and query as they were sent, also where a router of the application has taken a prefix off.
pub(crate) fn target(head: &Parts) -> &str {
    let uri = head.extensions.get::<OriginalUri>().map_or(&head.uri, |OriginalUri(uri)| uri);
    uri.path_and_query().map_or("", |target| target.as_str())
}

/// Whether the body came in chunks. Its connection is closed after the answer (RFC 9112, 6.1): if anything
/// in between counted by another length, its next request would be read out of this body.
pub(crate) fn is_chunked(headers: &HeaderMap) -> bool {
    headers.contains_key(TRANSFER_ENCODING)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn check_hosts(version: Version, hosts: &[&str], expected: Result<(), Problem>) {
        let mut request = Request::builder().version(version);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        assert_eq!(check(&head), expected, "{version:?} {hosts:?}");
    }

    #[test]
    fn one_host_is_right_and_two_never_are() {
        for version in [Version::HTTP_10, Version::HTTP_11, Version::HTTP_2] {
            check_hosts(version, &["a"], Ok(()));
            check_hosts(version, &["a", "a"], Err(Problem::Malformed));
        }
        check_hosts(Version::HTTP_11, &[], Err(Problem::Malformed));
        check_hosts(Version::HTTP_10, &[], Ok(()));
        check_hosts(Version::HTTP_2, &[], Ok(()));
    }

    #[test]
    fn a_prefix_that_a_router_took_off_is_still_part_of_the_target() {
        let (mut head, ()) = Request::new(()).into_parts();
        head.uri = "/stripe?a=1".parse().unwrap();
        assert_eq!(target(&head), "/stripe?a=1");
        head.extensions.insert(OriginalUri("/hooks/stripe?a=1".parse().unwrap()));
        assert_eq!(target(&head), "/hooks/stripe?a=1");
    }
}
