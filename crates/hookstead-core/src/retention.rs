//! Retention: which bodies may go, and when. Identities never do.

use crate::id::SourceNumber;
use crate::time::Timestamp;

/// The most events and leases that one step of a sweep touches.
pub const SWEEP_STEP_MAX: u32 = 1_000;

/// A retention rule for one source, as instants: a sweep is told what is old enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionRule {
    /// The source.
    pub source: SourceNumber,
    /// Finished events that were committed before this lose their body; `None` keeps them.
    pub finished_before: Option<Timestamp>,
    /// Unfinished events too, if the operator said so in words; `None` keeps them.
    pub unfinished_before: Option<Timestamp>,
}

/// What a step of a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Leases taken away because their time was up.
    pub expired: u32,
    /// Events whose body and headers were erased; their tombstones stay.
    pub erased: u32,
    /// Whether there is more to do now.
    pub more: bool,
}
