//! What of HTTP's framing hyper lets pass and we do not. What hyper refuses stays refused.

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
        0 if head.version < Version::HTTP_11 => Ok(()),
        _ => Err(Problem::Malformed),
    }
}

/// Path and query as they were sent.
pub(crate) fn target(head: &Parts) -> &str {
    head.uri.path_and_query().map_or("", |target| target.as_str())
}

/// Whether the body came in chunks. Its connection is closed after the answer (RFC 9112, 6.1): if anything
/// in between counted by another length, its next request would be read out of this body.
pub(crate) fn is_chunked(headers: &HeaderMap) -> bool {
    headers.contains_key(TRANSFER_ENCODING)
}
