//! Push: one event as one HTTP request, signed afresh for each attempt.
//!
//! The request is the provider's own, its bytes and headers, with Standard Webhooks' headers and our own
//! beside them. The target is a stranger: it may hang, lie, redirect or stand where nothing must be sent, and
//! costs one attempt for at most the destination's timeout.

mod answer;
mod client;
mod connection;
mod connector;
mod fetch;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod guard;
mod headers;
mod network;
mod options;
mod probe;
mod rules;
mod signature;
mod tls;
mod url;

pub use answer::{ANSWER_BYTES_MAX, ANSWER_TIME_MAX};
pub use client::PushSink;
pub use connection::{
    ANSWER_FIELDS_MAX, ANSWER_HEAD_BYTES_MAX, CONNECTION_AGE_MAX, IDLE_CONNECTIONS_MAX, IDLE_TIME_MAX,
};
pub use connector::{DIAL_STAGGER, DIALED_MAX};
pub use fetch::{FETCH_TIME_MAX, FetchError, Fetcher};
pub use guard::{AddressRange, ForbiddenAddress, Reach, check_address};
pub use network::{Dialing, Network, RESOLVING_MAX, Resolving, SystemNetwork};
pub use options::{OnGone, PUSH_TIMEOUT_DEFAULT, PUSH_TIMEOUT_MAX, PushOptions, PushSetupError};
pub use probe::{PROBE_TIME_MAX, Unreached};
pub use rules::PushRule;
pub use signature::{SIGNING_SECRETS_MAX, SigningSecret, SigningSecretError};
pub use tls::CA_FILE_BYTES_MAX;
pub use url::{PUSH_URL_BYTES_MAX, PushHost, PushUrl, PushUrlError};
