//! One budget of memory for all bodies in flight. It is taken as bytes arrive, never by what a sender
//! announces, so that nobody can reserve what he does not send; and it is given back when the answer is made.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::limits::{BODY_FIRST_STEP_BYTES, BODY_STEP_BYTES};

/// The memory for bodies.
#[derive(Debug)]
pub(crate) struct BodyBudget {
    bytes_max: u64,
    in_use: AtomicU64,
}

/// Memory that is taken from the budget; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<BodyBudget>,
    bytes: u64,
}

impl BodyBudget {
    pub(crate) fn new(bytes_max: u64) -> Arc<Self> {
        Arc::new(Self { bytes_max, in_use: AtomicU64::new(0) })
    }

    /// A reservation of nothing, to grow.
    pub(crate) fn reservation(self: &Arc<Self>) -> Reservation {
        Reservation { budget: self.clone(), bytes: 0 }
    }

    /// How much is taken at the moment.
    pub(crate) fn in_use(&self) -> u64 {
        self.in_use.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: u64) -> bool {
        let fits = |in_use: u64| in_use.checked_add(bytes).filter(|sum| *sum <= self.bytes_max);
        // The budget is a count and guards no other memory, so no order is needed.
        self.in_use.try_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }
}

impl Reservation {
    /// Makes room for a body of `needed` bytes so far, of which there will be at most `most`. Returns the
    /// room, or `None` if the budget has none.
    pub(crate) fn grow(&mut self, needed: usize, most: usize) -> Option<usize> {
        let room = usize::try_from(self.bytes).unwrap_or(usize::MAX);
        if needed <= room {
            return Some(room);
        }
        let step = if needed <= BODY_STEP_BYTES { BODY_FIRST_STEP_BYTES } else { BODY_STEP_BYTES };
        let wanted = needed.next_multiple_of(step).min(most.max(needed));
        let more = (wanted - room) as u64;
        self.budget.take(more).then(|| {
            self.bytes += more;
            wanted
        })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.in_use.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_grows_in_steps_and_comes_back() {
        let budget = BodyBudget::new(1024 * 1024);
        let mut reservation = budget.reservation();
        assert_eq!(reservation.grow(1, 1_000_000), Some(4096));
        assert_eq!(reservation.grow(4096, 1_000_000), Some(4096));
        assert_eq!(reservation.grow(4097, 1_000_000), Some(8192));
        assert_eq!(reservation.grow(65_537, 1_000_000), Some(131_072));
        assert_eq!(budget.in_use(), 131_072);
        drop(reservation);
        assert_eq!(budget.in_use(), 0);
    }

    #[test]
    fn no_more_is_taken_than_the_body_can_have() {
        let budget = BodyBudget::new(1024 * 1024);
        let mut reservation = budget.reservation();
        assert_eq!(reservation.grow(10, 100), Some(100));
        assert_eq!(budget.in_use(), 100);
    }

    #[test]
    fn a_growth_that_does_not_fit_takes_nothing() {
        let budget = BodyBudget::new(10_000);
        let (mut first, mut second) = (budget.reservation(), budget.reservation());
        assert_eq!(first.grow(8192, 100_000), Some(8192));
        assert_eq!(second.grow(1, 100_000), None);
        assert_eq!(budget.in_use(), 8192);
        assert_eq!(second.grow(1, 1000), Some(1000));
        drop(first);
        assert_eq!(second.grow(1001, 100_000), Some(4096));
        assert_eq!(budget.in_use(), 4096);
    }
}
