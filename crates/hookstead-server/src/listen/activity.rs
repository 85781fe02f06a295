//! What a connection is doing at the moment, as both its socket and its requests need to know it.
//!
//! ```text
//! accepted ──> head ──(head complete)──> busy ──(answer ready)──> idle ──(first byte)──> head ──> ...
//! ```

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use tokio::time::{Duration, Instant};

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waiting for the rest of a request's head.
    Head,
    /// A request is being answered; its own deadlines count.
    Busy,
    /// Between two requests.
    Idle,
}

/// Marks a response that was made before its request's body was read: the rest has to be thrown away before
/// the connection closes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unread;

/// Shared by the socket and the requests of one connection. They run in one task, so no order between the
/// values matters beyond that of the program.
#[derive(Debug)]
pub(crate) struct Activity {
    accepted_at: Instant,
    phase: AtomicU8,
    /// Since when somebody waits in the phase, in microseconds after `accepted_at`, or [`NOBODY_WAITED`].
    since_us: AtomicU64,
    received: AtomicBool,
    unread: AtomicBool,
}

/// Instead of a time: most phases end before anybody waits in them, and cost no look at the clock.
const NOBODY_WAITED: u64 = u64::MAX;

impl Activity {
    pub(crate) fn new() -> Self {
        Self {
            accepted_at: Instant::now(),
            phase: AtomicU8::new(Phase::Head as u8),
            since_us: AtomicU64::new(0),
            received: AtomicBool::new(false),
            unread: AtomicBool::new(false),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            phase if phase == Phase::Head as u8 => Phase::Head,
            phase if phase == Phase::Busy as u8 => Phase::Busy,
            _ => Phase::Idle,
        }
    }

    /// Since when somebody waits in the phase: since this was first asked in it. The first head counts from the
    /// connection's beginning, and idleness from the answer: nobody may wait there until a timer of before rings.
    pub(crate) fn since(&self) -> Instant {
        let mut since_us = self.since_us.load(Ordering::Relaxed);
        if since_us == NOBODY_WAITED {
            since_us = self.now_us();
            self.since_us.store(since_us, Ordering::Relaxed);
        }
        self.accepted_at + Duration::from_micros(since_us)
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.accepted_at.elapsed().as_micros()).unwrap_or(NOBODY_WAITED)
    }

    pub(crate) fn enter(&self, phase: Phase) {
        let since_us = if phase == Phase::Idle { self.now_us() } else { NOBODY_WAITED };
        self.since_us.store(since_us, Ordering::Relaxed);
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// Bytes came. The first ones after a pause begin a head.
    pub(crate) fn received(&self) {
        self.received.store(true, Ordering::Relaxed);
        if self.phase() == Phase::Idle {
            self.enter(Phase::Head);
        }
    }

    /// Whether any byte ever came.
    pub(crate) fn has_received(&self) -> bool {
        self.received.load(Ordering::Relaxed)
    }

    /// The answer goes out before its request was read.
    pub(crate) fn leave_unread(&self) {
        self.unread.store(true, Ordering::Relaxed);
    }

    /// Whether closing now could cut off an answer: the peer may still be sending what nobody will read.
    pub(crate) fn may_lose_the_answer(&self) -> bool {
        let refused_head = self.phase() == Phase::Head && self.has_received();
        self.unread.load(Ordering::Relaxed) || refused_head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Until the clock has moved on by more than what `since` is rounded to.
    fn wait_past(moment: Instant) {
        while Instant::now() <= moment + Duration::from_micros(2) {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn a_head_counts_from_the_first_wait_in_it_and_idleness_from_the_answer() {
        let activity = Activity::new();
        wait_past(activity.accepted_at);
        assert_eq!(activity.since(), activity.accepted_at, "the first head counts from the beginning");
        wait_past(Instant::now());
        activity.enter(Phase::Idle);
        let answered = Instant::now();
        wait_past(answered);
        let idle_since = activity.since();
        assert!(activity.accepted_at < idle_since && idle_since <= answered, "whether anybody waited or not");
        activity.received();
        assert_eq!(activity.phase(), Phase::Head);
        let received = Instant::now();
        wait_past(received);
        let since = activity.since();
        assert!(since > received, "nobody waited before");
        wait_past(since);
        assert_eq!(activity.since(), since, "a later look moves nothing");
    }
}
