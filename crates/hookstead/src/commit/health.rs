//! Whether the store can be trusted to commit, as the committer last saw it.

use std::sync::Arc;

use crate::error::Unavailable;

/// What the committer knows of its store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// The last commit held, or a probe did since.
    #[default]
    Ready,
    /// The last commit failed without harm, and no probe has succeeded since. Nothing is accepted.
    Recovering(Arc<str>),
    /// Nothing will be accepted again by this process.
    Poisoned(Arc<str>),
    /// Closing: nothing new is accepted.
    Closing,
}

impl Health {
    /// Why nothing is accepted; `None` while something is.
    pub fn unavailable(&self) -> Option<Unavailable> {
        match self {
            Self::Ready => None,
            Self::Recovering(reason) => Some(Unavailable::Recovering(reason.clone())),
            Self::Poisoned(reason) => Some(Unavailable::Poisoned(reason.clone())),
            Self::Closing => Some(Unavailable::Closing),
        }
    }
}
