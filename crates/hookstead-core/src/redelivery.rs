//! Redeliveries: new deliveries from old events, one or many, with a record of who, why and what.

use crate::id::{DestinationNumber, RedeliveryId, Seq};
use crate::query::EventFilter;
use crate::time::Timestamp;

/// The most events that one step of a redelivery looks at.
pub const REDELIVERY_STEP_MAX: u32 = 1_000;

/// What a redelivery is to do. Its id is chosen by whoever asks: asked twice, it happens once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedeliveryPlan {
    /// The redelivery.
    pub id: RedeliveryId,
    /// Which events. Those that came after the redelivery was made are never among them.
    pub events: EventFilter,
    /// To whom.
    pub destination: DestinationNumber,
    /// Whether the deliveries get an idempotency key of their own.
    pub fresh_key: bool,
    /// Who asked.
    pub by: String,
    /// Why.
    pub note: String,
}

/// How far a redelivery is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redelivery {
    /// What it is to do.
    pub plan: RedeliveryPlan,
    /// When it was asked for.
    pub made_at: Timestamp,
    /// The last event that it has looked at; events are taken in the order of their sequence numbers.
    pub cursor: Seq,
    /// The last event that it looks at: the newest that existed when it was made, or the only one that it is of.
    pub until: Seq,
    /// Deliveries made so far.
    pub made: u64,
    /// Events passed over, since they are erased or their delivery to this destination is still unfinished.
    pub skipped: u64,
    /// Where it stands.
    pub state: RedeliveryState,
}

/// Where a redelivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedeliveryState {
    /// There are events that it has not looked at.
    Running,
    /// It has looked at all.
    Complete,
    /// A person stopped it; what was made stays.
    Cancelled,
}

impl RedeliveryState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Running, Self::Complete, Self::Cancelled];

    /// The state with this [word](Self::as_str).
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// The state's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Redelivery {
    /// A redelivery as it is made, before its first step: of every event up to the store's newest, or of one.
    pub fn new(plan: RedeliveryPlan, only: Option<Seq>, newest: Seq, now: Timestamp) -> Self {
        let until = only.map_or(newest, |only| only.min(newest));
        // Never beyond the end: of an event that is not there it is complete before its first step.
        let cursor = only.map_or(Seq(0), |Seq(only)| Seq(only.saturating_sub(1)).min(until));
        Self { plan, made_at: now, cursor, until, made: 0, skipped: 0, state: RedeliveryState::Running }
    }
}
