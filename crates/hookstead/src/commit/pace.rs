//! How fast the store commits, and so how long a write that is queued now would wait. It knows times and counts only. The
//! times are the machine's own, whatever clock the inbox goes by: a clock that is set is no slow disk.

use std::time::{Duration, Instant};

/// The commits of the last moments.
#[derive(Debug)]
pub(super) struct Pace {
    /// How long the last commit took.
    last: Duration,
    in_flight: usize,
    /// When the number of commits in flight changed last.
    changed_at: Instant,
}

impl Pace {
    /// Nothing was committed yet.
    pub(super) fn new(now: Instant) -> Self {
        Self { last: Duration::ZERO, in_flight: 0, changed_at: now }
    }

    pub(super) fn begin(&mut self, now: Instant) {
        self.in_flight += 1;
        self.changed_at = now;
    }

    /// Ends a commit that began at `begun_at`.
    pub(super) fn end(&mut self, begun_at: Instant, now: Instant) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.changed_at = now;
        self.last = now.duration_since(begun_at);
    }

    /// How long until a write is durable that has `batches` others before it: as long as the last commit took for
    /// each, or as long as the one in flight takes already. Nothing, while the store has nothing to do: then a
    /// write is what finds out how fast it is now.
    pub(super) fn expected_wait(&self, batches: usize, now: Instant) -> Duration {
        if self.in_flight == 0 && batches == 0 {
            return Duration::ZERO;
        }
        let running = if self.in_flight == 0 { Duration::ZERO } else { now.duration_since(self.changed_at) };
        let ahead = u32::try_from(batches.saturating_add(1)).unwrap_or(u32::MAX);
        self.last.max(running).saturating_mul(ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_write_waits_as_long_as_those_before_it() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        assert_eq!(pace.expected_wait(0, start), ms(0));
        pace.begin(start);
        pace.end(start, start + ms(200));
        assert_eq!(pace.expected_wait(0, start + ms(300)), ms(0), "the store is idle");
        pace.begin(start + ms(300));
        assert_eq!(pace.expected_wait(0, start + ms(301)), ms(200));
        assert_eq!(pace.expected_wait(3, start + ms(301)), ms(800));
    }

    #[test]
    fn a_commit_that_hangs_counts_before_it_has_ended() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        pace.begin(start);
        assert_eq!(pace.expected_wait(2, start + ms(2_000)), ms(6_000));
        pace.end(start, start + ms(5_000));
        assert_eq!(
            pace.expected_wait(0, start + ms(5_000)),
            ms(0),
            "slow as it was, an idle store is tried again"
        );
    }
}
