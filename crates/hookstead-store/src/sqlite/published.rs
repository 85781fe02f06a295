//! What the writer shares with readers without a commit: the registry, the counts, and how often events
//! came again since those numbers were last written down.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hookstead_core::{Duplicates, Registry, Seq, Stats};

use super::batch::DuplicateCounts;

/// So many events whose count is not written down make the next batch commit, whatever it holds: memory is
/// bounded even while nothing but duplicates arrives. About 4 MiB.
pub(super) const COUNTED_MAX: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Published {
    state: Mutex<(Arc<Registry>, Stats)>,
    counted: Mutex<DuplicateCounts>,
}

impl Published {
    pub(super) fn new(registry: Arc<Registry>, stats: Stats) -> Self {
        Self { state: Mutex::new((registry, stats)), counted: Mutex::default() }
    }

    pub(super) fn registry(&self) -> Arc<Registry> {
        Arc::clone(&lock(&self.state).0)
    }

    pub(super) fn stats(&self) -> Stats {
        lock(&self.state).1
    }

    pub(super) fn publish(&self, registry: Arc<Registry>, stats: Stats) {
        *lock(&self.state) = (registry, stats);
    }

    /// How often an event came again, if the database does not know all of it yet.
    pub(super) fn counted(&self, seq: Seq) -> Option<Duplicates> {
        self.all_counted().get(&seq).copied()
    }

    /// Everything that is not written down. Only the writer changes it.
    pub(super) fn all_counted(&self) -> MutexGuard<'_, DuplicateCounts> {
        lock(&self.counted)
    }
}

/// The values behind these locks are replaced whole, so a panic elsewhere does not spoil them.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
