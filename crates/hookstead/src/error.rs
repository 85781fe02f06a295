//! Why the inbox did not do what it was asked. Duplicates and conflicts are outcomes and not here.

use std::sync::Arc;

use hookstead_core::{IdentityError, RawQueryError, StoreError};
use hookstead_verify::{IdentifyError, Rejection};

/// Why nothing can be acknowledged at the moment. Nothing was stored, or nobody knows (then a retry finds out).
/// To a sender each of these is a 503.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// More is waiting for the store than may wait, or the wait is longer than it may be.
    #[error("the queue to the store is full or too slow")]
    Overloaded,
    /// The commit takes longer than an answer may. Whether it will succeed nobody knows yet.
    #[error("the store did not commit in time")]
    Late,
    /// The store could not commit (no space, busy) and has not yet proved that it can again.
    #[error("the store is recovering: {0}")]
    Recovering(Arc<str>),
    /// The store is poisoned: this process never acknowledges anything again.
    #[error("the store is poisoned: {0}")]
    Poisoned(Arc<str>),
    /// The record that this concerns is damaged. It is neither overwritten nor trusted.
    #[error("damaged record: {0}")]
    Damaged(Arc<str>),
    /// The store failed in another way.
    #[error("the store failed: {0}")]
    Failed(Arc<str>),
    /// The inbox is closing.
    #[error("the inbox is closing")]
    Closing,
}

impl Unavailable {
    /// A stable name, for problem documents and metrics.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Overloaded => "overloaded",
            Self::Late => "store-late",
            Self::Recovering(_) => "store-recovering",
            Self::Poisoned(_) => "store-poisoned",
            Self::Damaged(_) => "record-damaged",
            Self::Failed(_) => "store-failed",
            Self::Closing => "closing",
        }
    }
}

impl From<&StoreError> for Unavailable {
    fn from(error: &StoreError) -> Self {
        let text = || Arc::from(chain(error));
        match error {
            StoreError::Busy { .. } | StoreError::Full { .. } => Self::Recovering(text()),
            StoreError::Poisoned { reason } => Self::Poisoned(reason.as_str().into()),
            StoreError::Corrupt { what } => Self::Damaged(what.as_str().into()),
            StoreError::Backend { .. } => Self::Failed(text()),
        }
    }
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Why a request was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It did not prove to come from the provider, or its form is not the provider's: see the class.
    #[error("refused: {0}")]
    Rejected(Rejection),
    /// Its query is none that can be kept; nothing else of it was looked at.
    #[error(transparent)]
    Query(RawQueryError),
    /// It is genuine, and its event has no usable id.
    #[error("no usable event id: {0}")]
    Unidentified(IdentifyError),
    /// It cannot be stored at the moment.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl Refusal {
    /// A stable name of the reason, for operators. Never for the sender.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Rejected(rejection) => rejection.reason.code(),
            Self::Query(_) => "malformed",
            Self::Unidentified(error) => error.reason().code(),
            Self::Unavailable(unavailable) => unavailable.code(),
        }
    }
}

/// Why an event was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// There is no source of this name in this inbox.
    #[error("there is no source `{0}`; name it when the inbox is opened")]
    UnknownSource(String),
    /// The event id is blank or too long.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// It cannot be stored at the moment.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Why an inbox could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store could not be opened.
    #[error(transparent)]
    Store(#[from] hookstead_store::OpenError),
    /// The store was opened and refused to register a source or destination.
    #[error("register `{name}`: {error}")]
    Register {
        /// Its name.
        name: String,
        /// Why.
        error: Unavailable,
    },
    /// Two sources have one name.
    #[error("there are two sources named `{0}`")]
    SourceTwice(String),
    /// Two destinations have one name.
    #[error("there are two destinations named `{0}`")]
    DestinationTwice(String),
    /// More destinations than [`DESTINATIONS_MAX`](crate::destination::DESTINATIONS_MAX).
    #[error("there are {0} destinations, more than 256")]
    TooManyDestinations(usize),
    /// The operating system gave no thread or no randomness.
    #[error("{doing}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
}
