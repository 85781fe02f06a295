//! How fast the store commits, and so how long a write that is queued now would wait. It knows times and counts only.

use std::time::Duration;

use hookstead_core::Timestamp;

/// The commits of the last moments.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// How long the last commit took.
    last: Duration,
    in_flight: usize,
    /// When the number of commits in flight changed last.
    changed_at: Timestamp,
}

impl Pace {
    pub(super) fn begin(&mut self, now: Timestamp) {
        self.in_flight += 1;
        self.changed_at = now;
    }

    /// Ends a commit that began at `begun_at`.
    pub(super) fn end(&mut self, begun_at: Timestamp, now: Timestamp) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.changed_at = now;
        self.last = now.since(begun_at);
    }

    /// How long until a write is durable that has `batches` others before it: as long as the last commit took for
    /// each, or as long as the one in flight takes already. Nothing, while the store has nothing to do: then a
    /// write is what finds out how fast it is now.
    pub(super) fn expected_wait(&self, batches: usize, now: Timestamp) -> Duration {
        if self.in_flight == 0 && batches == 0 {
            return Duration::ZERO;
        }
        let running = if self.in_flight == 0 { Duration::ZERO } else { now.since(self.changed_at) };
        let ahead = u32::try_from(batches.saturating_add(1)).unwrap_or(u32::MAX);
        self.last.max(running).saturating_mul(ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: i64) -> Timestamp {
        Timestamp::from_micros(millis * 1_000)
    }

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_write_waits_as_long_as_those_before_it() {
        let mut pace = Pace::default();
        assert_eq!(pace.expected_wait(0, at(0)), ms(0));
        pace.begin(at(0));
        pace.end(at(0), at(200));
        assert_eq!(pace.expected_wait(0, at(300)), ms(0), "the store is idle");
        pace.begin(at(300));
        assert_eq!(pace.expected_wait(0, at(301)), ms(200));
        assert_eq!(pace.expected_wait(3, at(301)), ms(800));
    }

    #[test]
    fn a_commit_that_hangs_counts_before_it_has_ended() {
        let mut pace = Pace::default();
        pace.begin(at(0));
        assert_eq!(pace.expected_wait(2, at(2_000)), ms(6_000));
        pace.end(at(0), at(5_000));
        assert_eq!(pace.expected_wait(0, at(5_000)), ms(0), "slow as it was, an idle store is tried again");
    }
}
