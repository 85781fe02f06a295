//! From a configured destination to the sink that serves it.

use std::sync::Arc;

use super::contract::Sink;
use super::exec::ExecSink;
#[cfg(feature = "push")]
use super::push::{Network, PushSink, SystemNetwork};
use crate::destination::{Destination, DestinationKind};

/// What makes the sinks of destinations, as they are configured and each time that they change.
pub trait MakeSink: Send + Sync {
    /// The sink of a destination that this program works: one that is neither pulled nor consumed.
    ///
    /// # Errors
    ///
    /// [`SinkError`]: the destination is not worked until its configuration changes; what is owed to it
    /// waits.
    fn make(&self, destination: &Destination) -> Result<Arc<dyn Sink>, SinkError>;
}

/// Why there is no sink for a destination, for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SinkError(pub String);

/// Makes the sinks that are built in: push and exec.
pub struct BuiltInSinks {
    #[cfg(feature = "push")]
    network: Arc<dyn Network>,
}

impl BuiltInSinks {
    /// The sinks, on the machine's own network.
    pub fn new() -> Self {
        Self {
            #[cfg(feature = "push")]
            network: Arc::new(SystemNetwork::new()),
        }
    }

    /// The sinks, on another network.
    #[cfg(feature = "push")]
    pub fn on(network: Arc<dyn Network>) -> Self {
        Self { network }
    }
}

impl Default for BuiltInSinks {
    fn default() -> Self {
        Self::new()
    }
}

impl MakeSink for BuiltInSinks {
    fn make(&self, destination: &Destination) -> Result<Arc<dyn Sink>, SinkError> {
        match destination.kind() {
            #[cfg(feature = "push")]
            DestinationKind::Push(options) => {
                let sink = PushSink::new(options.clone(), Arc::clone(&self.network));
                Ok(Arc::new(sink.map_err(|error| SinkError(error.to_string()))?))
            }
            DestinationKind::Exec(options) => {
                let sink = ExecSink::new(options.clone());
                Ok(Arc::new(sink.map_err(|error| SinkError(error.to_string()))?))
            }
            kind @ (DestinationKind::Pull(_) | DestinationKind::Consumed) => Err(SinkError(format!(
                "a {} destination is worked by its consumer, not by a sink",
                kind.as_str()
            ))),
        }
    }
}
