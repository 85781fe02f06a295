//! Why a store could not do what it was asked.

/// A failure of a store. Expected outcomes (a duplicate, a lost lease) are values and never here.
///
/// After any of these nothing of the failed call is acknowledged; whether it is on the disk is unknown only
/// for [`StoreError::Poisoned`].
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Somebody else holds what was needed, for longer than the store waits. Nothing was written.
    #[error("the store is busy: {what}")]
    Busy {
        /// What was waited for.
        what: String,
    },
    /// No space, or no file handles; the rollback was clean. Nothing was written.
    #[error("the store has no room: {what}")]
    Full {
        /// What ran out.
        what: String,
    },
    /// A write or sync failed in a way after which the disk cannot be trusted to hold what it showed before.
    /// The store stays poisoned: every later write gets this answer, also from other callers. Reads go on.
    #[error("the store is poisoned: {reason}")]
    Poisoned {
        /// What happened first.
        reason: String,
    },
    /// A record is damaged or its parts contradict each other. It is never overwritten and never served.
    #[error("damaged record: {what}")]
    Corrupt {
        /// Which record, and what is wrong with it.
        what: String,
    },
    /// Anything else.
    #[error("{doing}")]
    Backend {
        /// What the store was doing.
        doing: String,
        /// Why it failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl StoreError {
    /// A backend's own failure, with what it was doing.
    pub fn backend(
        doing: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Backend { doing: doing.into(), source: source.into() }
    }

    /// Whether one write of a batch may be to blame, so that running the batch again one by one can save its
    /// neighbours. After the other failures every waiter of the batch gets the error.
    pub fn may_be_one_write(&self) -> bool {
        matches!(self, Self::Corrupt { .. } | Self::Backend { .. })
    }
}
