//! When a delivery is tried again: pure arithmetic over a schedule that is data.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::id::DeliveryId;
use crate::time::Timestamp;

/// The most steps a schedule may have.
pub const RETRY_STEPS_MAX: usize = 64;

/// The longest wait between two attempts, and the longest that a target may ask for.
pub const RETRY_WAIT_MAX: Duration = Duration::from_hours(24 * 7);

/// When the attempts of a delivery happen and when it is given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// The wait before each attempt, in seconds; the first is the wait before the first attempt. After the
    /// last step its wait is used again.
    pub schedule_s: Vec<u32>,
    /// After so many attempts the delivery is dead.
    pub attempts_max: u32,
    /// So long after it was made the delivery is dead, in seconds.
    pub age_max_s: u32,
    /// How much longer than the schedule a wait may become, in percent, so that what failed together does
    /// not come back together.
    pub jitter_percent: u8,
}

impl Default for RetryPolicy {
    /// The example schedule of the Standard Webhooks specification (at once, 5 s, 5 min, 30 min, 2 h, 5 h,
    /// 10 h, 14 h, 20 h, 24 h), each step up to 10 % longer, at most a week old.
    fn default() -> Self {
        const MINUTE: u32 = 60;
        const HOUR: u32 = 60 * MINUTE;
        let schedule_s = vec![
            0,
            5,
            5 * MINUTE,
            30 * MINUTE,
            2 * HOUR,
            5 * HOUR,
            10 * HOUR,
            14 * HOUR,
            20 * HOUR,
            24 * HOUR,
        ];
        Self { attempts_max: 10, age_max_s: 7 * 24 * HOUR, jitter_percent: 10, schedule_s }
    }
}

impl RetryPolicy {
    /// When the next attempt is due after `attempts` have been made (0: when the first one is). The jitter
    /// is a pure function of delivery and attempt, so that a decision can be computed again.
    pub fn next_due(&self, delivery: &DeliveryId, attempts: u32, now: Timestamp) -> Timestamp {
        let step =
            usize::try_from(attempts).unwrap_or(usize::MAX).min(self.schedule_s.len().saturating_sub(1));
        let wait_s = self.schedule_s.get(step).copied().unwrap_or(0);
        let wait = Duration::from_secs(u64::from(wait_s)).min(RETRY_WAIT_MAX);
        now.plus(wait).plus(self.jitter(wait, delivery, attempts))
    }

    /// Whether the attempts that were made are all there may be.
    pub fn attempts_used_up(&self, attempts: u32) -> bool {
        attempts >= self.attempts_max
    }

    /// Whether a delivery that was made at `made_at` is too old to be tried again.
    pub fn age_used_up(&self, made_at: Timestamp, now: Timestamp) -> bool {
        now.since(made_at) >= Duration::from_secs(u64::from(self.age_max_s))
    }

    fn jitter(&self, wait: Duration, delivery: &DeliveryId, attempts: u32) -> Duration {
        let seed = digest(&SHA256, format!("{delivery}/{attempts}").as_bytes());
        let fraction = u32::from(u16::from_be_bytes([seed.as_ref()[0], seed.as_ref()[1]]));
        let span = wait.saturating_mul(u32::from(self.jitter_percent)) / 100;
        span.saturating_mul(fraction) / u32::from(u16::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{DestinationNumber, EventId};

    const NOW: Timestamp = Timestamp::from_secs(1_000);

    fn delivery(generation: u32) -> DeliveryId {
        DeliveryId { event: EventId::from_bytes([1; 16]), destination: DestinationNumber(1), generation }
    }

    #[test]
    fn waits_follow_the_schedule_and_then_stay() {
        let policy = RetryPolicy { schedule_s: vec![0, 5, 60], jitter_percent: 0, ..RetryPolicy::default() };
        let wait = |attempts| policy.next_due(&delivery(1), attempts, NOW).since(NOW).as_secs();
        assert_eq!([wait(0), wait(1), wait(2), wait(3), wait(u32::MAX)], [0, 5, 60, 60, 60]);
    }

    #[test]
    fn jitter_only_lengthens_and_is_bounded() {
        let policy = RetryPolicy { schedule_s: vec![100], jitter_percent: 10, ..RetryPolicy::default() };
        let waits: Vec<_> =
            (1..200).map(|n| policy.next_due(&delivery(n), 1, NOW).since(NOW).as_millis()).collect();
        assert!(waits.iter().all(|wait| (100_000..=110_000).contains(wait)), "{waits:?}");
        assert!(waits.iter().any(|wait| *wait < 103_000) && waits.iter().any(|wait| *wait > 107_000));
    }

    #[test]
    fn absurd_schedules_saturate() {
        let policy =
            RetryPolicy { schedule_s: vec![u32::MAX], jitter_percent: 255, ..RetryPolicy::default() };
        assert!(policy.next_due(&delivery(1), 9, Timestamp::MAX) == Timestamp::MAX);
        let empty = RetryPolicy { schedule_s: vec![], ..policy };
        assert_eq!(empty.next_due(&delivery(1), 9, NOW), NOW);
    }
}
