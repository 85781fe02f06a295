//! Push: one event as one HTTP request, signed afresh for each attempt.
//!
//! The request is the provider's own, its bytes and headers, with Standard Webhooks' headers and our own beside
//! them. The target is a stranger: it may hang, lie, redirect or stand where nothing must be sent, and costs one
//! attempt for at most the destination's timeout.

mod guard;
mod url;

pub use guard::{AddressRange, ForbiddenAddress, Reach, check_address};
pub use url::{PUSH_URL_BYTES_MAX, PushHost, PushUrl, PushUrlError};
