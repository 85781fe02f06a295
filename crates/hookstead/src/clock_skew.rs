//! How far the signed times of a source's requests are from their arrival: what tells a wrong clock from a wrong
//! secret. A few atomic numbers a source, so that it costs a request nothing to speak of. It knows no clock.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use hookstead_verify::Reason;

/// The newest requests that are looked at: enough that one slow retry moves no median, few enough that a clock that
/// was set right shows soon.
const NEWEST_MAX: usize = 64;

/// The statistic of one source.
#[derive(Debug)]
pub(crate) struct ClockSkew {
    /// Each how long after its signing a request arrived, in microseconds; a ring.
    newest: [AtomicI64; NEWEST_MAX],
    verified: AtomicU64,
    too_old: AtomicU64,
    too_new: AtomicU64,
}

/// How far the signed times of a source's requests were from their arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkewFacts {
    /// Verified requests with a signed time.
    pub verified: u64,
    /// Of the newest 64 of them the shortest time from signing to arrival, in microseconds; negative if the sender's
    /// clock is ahead of this machine's. Delays and retries only make it longer.
    pub min_micros: Option<i64>,
    /// The same, the median.
    pub median_micros: Option<i64>,
    /// Requests that were refused because they were signed too long ago. Where a provider wants the time looked at
    /// before the signature, anybody can raise this and the next.
    pub too_old: u64,
    /// Requests that were refused because they were signed in the future.
    pub too_new: u64,
}

impl Default for ClockSkew {
    fn default() -> Self {
        let zero = AtomicU64::default;
        let newest = std::array::from_fn(|_| AtomicI64::default());
        Self { newest, verified: zero(), too_old: zero(), too_new: zero() }
    }
}

impl ClockSkew {
    /// Counts a verified request that was signed so long before it arrived.
    pub(crate) fn verified(&self, skew_micros: i64) {
        let place = self.verified.fetch_add(1, Ordering::Relaxed) % NEWEST_MAX as u64;
        let place = usize::try_from(place).unwrap_or_default();
        self.newest[place].store(skew_micros, Ordering::Relaxed);
    }

    /// Counts a refusal, if it was for the time.
    pub(crate) fn refused(&self, reason: Reason) {
        match reason {
            Reason::TooOld => drop(self.too_old.fetch_add(1, Ordering::Relaxed)),
            Reason::TooNew => drop(self.too_new.fetch_add(1, Ordering::Relaxed)),
            _ => {}
        }
    }

    /// What was counted. A request that is being counted may be missing.
    pub(crate) fn facts(&self) -> SkewFacts {
        let verified = self.verified.load(Ordering::Relaxed);
        let count = usize::try_from(verified).unwrap_or(NEWEST_MAX).min(NEWEST_MAX);
        let newest = self.newest[..count].iter().map(|skew| skew.load(Ordering::Relaxed));
        let mut newest: Vec<i64> = newest.collect();
        newest.sort_unstable();
        SkewFacts {
            verified,
            min_micros: newest.first().copied(),
            median_micros: newest.get(count / 2).copied(),
            too_old: self.too_old.load(Ordering::Relaxed),
            too_new: self.too_new.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_requests_count_and_refusals_by_their_reason() {
        let skew = ClockSkew::default();
        assert_eq!(skew.facts(), SkewFacts::default());
        skew.verified(-200);
        (0..NEWEST_MAX - 1).for_each(|_| skew.verified(5));
        let facts = skew.facts();
        assert_eq!((facts.min_micros, facts.median_micros), (Some(-200), Some(5)));
        skew.verified(7);
        assert_eq!(skew.facts().min_micros, Some(5), "the oldest one is forgotten");
        for reason in [Reason::TooOld, Reason::TooNew, Reason::TooNew, Reason::SignatureDiffers] {
            skew.refused(reason);
        }
        let facts = skew.facts();
        assert_eq!((facts.verified, facts.too_old, facts.too_new), (65, 1, 2));
    }
}
