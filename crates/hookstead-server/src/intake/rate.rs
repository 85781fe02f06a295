//! How many requests of one source are taken in a time: a bucket of tokens that fills evenly.
//!
//! The bucket is one number, the moment at which it will be full again (the generic cell rate algorithm): no lock, no
//! timer, and the same for every thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::config::RateLimit;

/// The bucket of one source.
#[derive(Debug)]
pub(crate) struct Rate {
    began_at: Instant,
    /// The time in which one token comes back.
    step_ns: u64,
    /// The time in which an empty bucket is full.
    period_ns: u64,
    /// When the bucket is full again, after `began_at`.
    full_at_ns: AtomicU64,
}

impl Rate {
    /// A full bucket.
    pub(crate) fn new(limit: RateLimit, now: Instant) -> Self {
        let requests = u64::from(limit.requests.max(1));
        let step_ns = (nanos(limit.per) / requests).max(1);
        // Of whole steps, so that the bucket holds exactly the number that was asked for.
        let period_ns = step_ns.saturating_mul(requests);
        Self { began_at: now, step_ns, period_ns, full_at_ns: AtomicU64::new(0) }
    }

    /// After which time there is a token, if there is none now. Takes nothing.
    pub(crate) fn wait(&self, now: Instant) -> Option<Duration> {
        self.taken(self.full_at_ns.load(Ordering::Relaxed), self.elapsed_ns(now)).err()
    }

    /// Takes a token, or says after which time there is one.
    pub(crate) fn take(&self, now: Instant) -> Result<(), Duration> {
        let now_ns = self.elapsed_ns(now);
        let take = |full_at_ns| self.taken(full_at_ns, now_ns).ok();
        // The number guards no other memory, so no order is needed.
        let taken = self.full_at_ns.try_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.map(|_| ()).map_err(|full_at_ns| self.taken(full_at_ns, now_ns).err().unwrap_or_default())
    }

    /// Gives a token back: what it was taken for does not count.
    pub(crate) fn give_back(&self) {
        let less = |full_at_ns: u64| full_at_ns.saturating_sub(self.step_ns);
        self.full_at_ns.update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// When the bucket is full again with one token less.
    fn taken(&self, full_at_ns: u64, now_ns: u64) -> Result<u64, Duration> {
        let full_at_ns = full_at_ns.max(now_ns).saturating_add(self.step_ns);
        match full_at_ns.saturating_sub(now_ns).checked_sub(self.period_ns) {
            Some(missing_ns @ 1..) => Err(Duration::from_nanos(missing_ns)),
            _ => Ok(full_at_ns),
        }
    }

    fn elapsed_ns(&self, now: Instant) -> u64 {
        nanos(now.saturating_duration_since(self.began_at))
    }
}

/// A time as `Retry-After` tells it: in whole seconds, never too short.
pub(crate) fn retry_after_s(wait: Duration) -> u32 {
    u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u32::MAX).max(1)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_bucket_empties_at_once_and_fills_evenly() {
        let begin = Instant::now();
        let rate = Rate::new(RateLimit { requests: 10, per: SECOND }, begin);
        let taken = |at: Duration| (0..100).filter(|_| rate.take(begin + at).is_ok()).count();
        assert_eq!(taken(Duration::ZERO), 10);
        assert_eq!(rate.take(begin), Err(Duration::from_millis(100)));
        assert_eq!(rate.wait(begin), Some(Duration::from_millis(100)));
        assert_eq!(taken(Duration::from_millis(99)), 0);
        assert_eq!(taken(Duration::from_millis(100)), 1);
        assert_eq!(taken(Duration::from_millis(500)), 4);
        assert_eq!(taken(Duration::from_secs(3600)), 10, "it never holds more");
    }

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let begin = Instant::now();
        let rate = Rate::new(RateLimit { requests: 1, per: 60 * SECOND }, begin);
        assert_eq!(rate.take(begin), Ok(()));
        assert_eq!(rate.take(begin + 20 * SECOND), Err(40 * SECOND));
        rate.give_back();
        assert_eq!(rate.wait(begin + 20 * SECOND), None);
        assert_eq!(rate.take(begin + 20 * SECOND), Ok(()));
    }

    #[test]
    fn the_sender_is_told_whole_seconds() {
        assert_eq!(retry_after_s(Duration::from_millis(1)), 1);
        assert_eq!(retry_after_s(SECOND), 1);
        assert_eq!(retry_after_s(Duration::from_millis(1001)), 2);
    }
}
