//! From a configured destination to the sink that serves it.

use std::sync::Arc;

use super::contract::Sink;
use crate::destination::Destination;

/// What makes the sinks of destinations, as they are configured and each time that they change.
pub trait MakeSink: Send + Sync {
    /// The sink of a destination that this program works: one that is neither pulled nor consumed.
    ///
    /// # Errors
    ///
    /// [`SinkError`]: the destination is not worked until its configuration changes; what is owed to it waits.
    fn make(&self, destination: &Destination) -> Result<Arc<dyn Sink>, SinkError>;
}

/// Why there is no sink for a destination, for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SinkError(pub String);
