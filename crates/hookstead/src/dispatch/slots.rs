//! How many attempts may run at once over all destinations, shared fairly: each destination has a few slots of its
//! own that no other can take, so that a slow one, however much it is owed, never stops a fast one.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Slots that belong to each destination.
pub const OWN_SLOTS: usize = 4;

/// Slots that all destinations of a dispatcher share beyond their own.
pub const SHARED_SLOTS: usize = 512;

/// The right to make one attempt; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Slot(#[expect(dead_code, reason = "held for its drop")] Held);

#[derive(Debug)]
enum Held {
    Own(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit),
    Shared(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit),
}

/// The slots of one destination.
#[derive(Debug)]
pub(super) struct Slots {
    own: Arc<Semaphore>,
    shared: Arc<Semaphore>,
    /// One that was waited for.
    spare: Option<OwnedSemaphorePermit>,
}

impl Slots {
    pub(super) fn new(shared: Arc<Semaphore>) -> Self {
        Self { own: Arc::new(Semaphore::new(OWN_SLOTS)), shared, spare: None }
    }

    /// As many slots as are free, at most `max`.
    pub(super) fn take(&mut self, max: usize) -> Vec<Slot> {
        let own = std::iter::from_fn(|| self.own.clone().try_acquire_owned().ok()).take(max.min(OWN_SLOTS));
        let mut slots: Vec<_> = own.map(|permit| Slot(Held::Own(permit))).collect();
        let spare = (slots.len() < max).then(|| self.spare.take()).flatten();
        slots.extend(spare.map(|permit| Slot(Held::Shared(permit))));
        let shared = std::iter::from_fn(|| self.shared.clone().try_acquire_owned().ok());
        slots.extend(shared.take(max - slots.len()).map(|permit| Slot(Held::Shared(permit))));
        slots
    }

    /// Waits until one of the shared slots is free and keeps it for the next [`Slots::take`].
    pub(super) async fn shared_free(&mut self) {
        if self.spare.is_none() {
            // The semaphore is never closed: an error cannot come.
            self.spare = self.shared.clone().acquire_owned().await.ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_that_takes_everything_leaves_the_others_their_own() {
        let shared = Arc::new(Semaphore::new(10));
        let (mut slow, mut fast) = (Slots::new(shared.clone()), Slots::new(shared));
        let taken = slow.take(1_000);
        assert_eq!(taken.len(), 10 + OWN_SLOTS);
        assert_eq!(slow.take(1).len(), 0);
        assert_eq!(fast.take(1_000).len(), OWN_SLOTS);
        drop(taken);
        assert_eq!(fast.take(1_000).len(), 10 + OWN_SLOTS);
    }
}
