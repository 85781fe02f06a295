//! Sinks: how one attempt of a delivery is made, and what its target said.
//!
//! A sink gets one event and says what became of it. It knows nothing of leases, stores and schedules:
//! whether and when there is another attempt is the dispatcher's matter. One file or folder a kind of sink.

mod contract;
pub mod exec;
mod make;
#[cfg(feature = "push")]
pub mod push;

pub use contract::{Delivering, Outgoing, Sink, TargetHealth, Tried, TriedVerdict};
pub use make::{BuiltInSinks, MakeSink, SinkError};
