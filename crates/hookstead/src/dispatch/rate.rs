//! How many attempts may begin in a second. Pure: it is told the time.

use std::num::NonZeroU16;
use std::time::Duration;

use hookstead_core::Timestamp;

/// The part of a second's attempts that may begin at once after a pause: a tenth.
const BURST_SHARE: u32 = 10;

/// Spreads beginnings evenly: each moves the time at which the next is free.
#[derive(Debug, Default)]
pub(super) struct Rate {
    next_free: Timestamp,
}

impl Rate {
    /// How many may begin now, at most `wanted`; if none, `Err` says from when on one may.
    pub(super) fn take(
        &mut self,
        per_s: Option<NonZeroU16>,
        wanted: usize,
        now: Timestamp,
    ) -> Result<usize, Timestamp> {
        let Some(per_s) = per_s else { return Ok(wanted) };
        let step = Duration::from_secs(1) / u32::from(per_s.get());
        let burst = step.saturating_mul((u32::from(per_s.get()) / BURST_SHARE).max(1));
        let from = self.next_free.max(now.minus(burst - step));
        if from > now {
            return Err(from);
        }
        let free = now.since(from).as_nanos() / step.as_nanos().max(1) + 1;
        let taken = wanted.min(usize::try_from(free).unwrap_or(usize::MAX));
        self.next_free = from.plus(step.saturating_mul(u32::try_from(taken).unwrap_or(u32::MAX)));
        Ok(taken)
    }

    /// Gives back what was taken and did not begin.
    pub(super) fn give_back(&mut self, per_s: Option<NonZeroU16>, count: usize) {
        if let Some(per_s) = per_s {
            let step = Duration::from_secs(1) / u32::from(per_s.get());
            self.next_free =
                self.next_free.minus(step.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_000);

    #[test]
    fn without_a_rate_everything_may_begin() {
        assert_eq!(Rate::default().take(None, 300, NOW), Ok(300));
    }

    #[test]
    fn in_no_second_more_begin_than_the_rate_and_its_burst() {
        let (per_s, mut rate, mut begun) = (NonZeroU16::new(20), Rate::default(), 0);
        let mut now = NOW;
        for _ in 0..1_000 {
            begun += rate.take(per_s, 100, now).unwrap_or(0);
            now = now.plus(Duration::from_millis(1));
        }
        assert!((20..=22).contains(&begun), "{begun}");
    }

    #[test]
    fn what_was_given_back_may_begin() {
        let (per_s, mut rate) = (NonZeroU16::new(1), Rate::default());
        assert_eq!(rate.take(per_s, 5, NOW), Ok(1));
        assert_eq!(rate.take(per_s, 5, NOW), Err(NOW.plus(Duration::from_secs(1))));
        rate.give_back(per_s, 1);
        assert_eq!(rate.take(per_s, 5, NOW), Ok(1));
    }
}
