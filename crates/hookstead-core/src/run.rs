//! Runs: processing an event under a name that the caller chose, with a receipt (contract R50-R55).

use bytes::Bytes;

use crate::event::Digest;
use crate::id::EventId;
use crate::name::RunName;
use crate::time::Timestamp;

/// Durable proof of a run. The same event and run always give the same receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunReceipt {
    /// The event that was processed.
    pub event: EventId,
    /// The run's name.
    pub run: RunName,
    /// The digest of the event's body.
    pub digest: Digest,
    /// When the run was recorded first.
    pub processed_at: Timestamp,
    /// The event's id in the business that it is about, where its body names one.
    pub business_id: Option<String>,
    /// What the processor read from the body: its bytes, not re-serialised.
    pub payload: Option<Bytes>,
}

/// What recording a run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// The run is new; its receipt is durable.
    New(RunReceipt),
    /// The run was recorded before; this is its receipt, unchanged.
    Known(RunReceipt),
    /// No such event was ever accepted. Nothing was written.
    UnknownEvent,
}
