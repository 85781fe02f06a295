//! Whether anything is there: one connection to a push URL, without a request.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::client::PushSink;
use super::connector;
use super::rules::PushRule;

/// How long a probe may take: a person waits for it.
pub const PROBE_TIME_MAX: Duration = Duration::from_secs(5);

/// Why nothing could be reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Unreached {
    /// The rule that a push would end with.
    pub rule: PushRule,
    /// What went wrong, for people.
    pub reason: String,
}

impl PushSink {
    /// Connects to the target as a push would (one look-up, every address checked, TLS) and sends nothing. Takes at
    /// most [`PROBE_TIME_MAX`].
    ///
    /// # Errors
    ///
    /// [`Unreached`]: a push would end the same way now. Nothing was sent.
    pub async fn probe(&self) -> Result<(), Unreached> {
        let network = Arc::clone(&self.network);
        let connecting = connector::connect(&network, &self.options.url, self.tls.as_ref());
        match timeout(PROBE_TIME_MAX, connecting).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(failure)) => Err(Unreached { rule: failure.rule, reason: failure.error }),
            Err(_) => {
                let reason = format!("no connection within {PROBE_TIME_MAX:?}");
                Err(Unreached { rule: PushRule::Timeout, reason })
            }
        }
    }
}
