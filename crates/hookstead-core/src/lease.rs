//! Leases: the time-limited right to work one delivery, and how it ends.

use std::time::Duration;

use crate::delivery::DeadReason;
use crate::effect::Effect;
use crate::id::DeliveryId;
use crate::time::Timestamp;

/// The most deliveries that one claim may take.
pub const CLAIM_MAX: u16 = 1_000;

/// The longest lease. Longer work extends it as it goes.
pub const LEASE_MAX: Duration = Duration::from_hours(12);

/// The fencing token of a lease: a number of the delivery that grows with every claim, so that a settle by
/// an earlier holder is told from one by the present holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseToken(pub u32);

impl LeaseToken {
    /// The token of the next claim.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// The right to work one delivery until it expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The delivery.
    pub delivery: DeliveryId,
    /// What a settle must show.
    pub token: LeaseToken,
    /// Until when the right lasts.
    pub expires_at: Timestamp,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// What the consumer deduplicates by.
    pub idempotency_key: String,
}

/// How the holder of a lease says that it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The destination has the event.
    Done,
    /// The destination has the event as soon as this is committed, together with `done` or not at all.
    ///
    /// The store runs it only under a lease that is still the holder's. If it fails, all of it is undone, nothing else
    /// of the batch is, and the lease is settled as a retry at the policy's next step; an attempt that came with the
    /// settle then says why. The same settle again never runs it again. A store that runs no effects of its kind
    /// refuses the batch before anything is written.
    DoneWith(Effect),
    /// It failed and may be tried again.
    Retry {
        /// When.
        at: Timestamp,
    },
    /// It failed and no further attempt can help.
    Dead {
        /// Why, for people.
        reason: String,
    },
    /// Given back untried: the attempt is not counted.
    Release,
}

impl Verdict {
    /// What is to be committed together with `done`, if anything.
    pub fn effect(&self) -> Option<&Effect> {
        match self {
            Self::DoneWith(effect) => Some(effect),
            Self::Done | Self::Retry { .. } | Self::Dead { .. } | Self::Release => None,
        }
    }
}

/// What a lease was turned into when it was settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The delivery is done.
    Done,
    /// The delivery waits for another attempt.
    Retry {
        /// When it is due.
        due: Timestamp,
    },
    /// The delivery is dead.
    Dead(DeadReason),
    /// The delivery waits as if nobody had claimed it.
    Released,
}

/// The answer to a settle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// The lease is settled; asked again with the same token the answer is the same again.
    Settled(Settled),
    /// The lease is somebody else's by now, or nobody's. Nothing changed.
    LeaseLost,
    /// There is no such delivery.
    Unknown,
}

/// The answer to an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// The lease lasts until then.
    Extended {
        /// The new end.
        expires_at: Timestamp,
    },
    /// The lease is somebody else's by now, or nobody's. Nothing changed.
    LeaseLost,
    /// There is no such delivery.
    Unknown,
}
