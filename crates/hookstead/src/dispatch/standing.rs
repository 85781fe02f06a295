//! How destinations stand at the moment, for people: what their workers do, and whether their targets are there.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hookstead_core::DestinationName;

use super::circuit::{Circuit, CircuitState};

/// How a destination stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whether its target is there.
    pub circuit: CircuitState,
    /// Attempts that are being made.
    pub in_flight: usize,
    /// Why it is not worked at all, if it is not.
    pub problem: Option<String>,
}

/// How the destinations of a dispatcher stand. Cloning it is cheap.
#[derive(Clone, Debug, Default)]
pub struct Standings(Arc<Mutex<BTreeMap<DestinationName, Arc<Post>>>>);

impl Standings {
    /// How a destination stands; `None` if no worker here works it.
    pub fn of(&self, name: &DestinationName) -> Option<Standing> {
        self.posts().get(name).map(|post| post.standing())
    }

    /// How all stand, by name.
    pub fn all(&self) -> Vec<(DestinationName, Standing)> {
        self.posts().iter().map(|(name, post)| (name.clone(), post.standing())).collect()
    }

    pub(super) fn add(&self, name: DestinationName, post: Arc<Post>) {
        self.posts().insert(name, post);
    }

    pub(super) fn remove(&self, name: &DestinationName) {
        self.posts().remove(name);
    }

    /// A map is right at every step, so a panic elsewhere does not spoil it.
    fn posts(&self) -> MutexGuard<'_, BTreeMap<DestinationName, Arc<Post>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a worker and its attempts know in common.
#[derive(Debug)]
pub(super) struct Post {
    circuit: Mutex<Circuit>,
    in_flight: AtomicUsize,
    problem: Mutex<Option<String>>,
}

impl Post {
    pub(super) fn new() -> Self {
        Self {
            circuit: Mutex::new(Circuit::new()),
            in_flight: AtomicUsize::new(0),
            problem: Mutex::default(),
        }
    }

    /// A circuit changes whole, so a panic elsewhere does not spoil it.
    pub(super) fn circuit(&self) -> MutexGuard<'_, Circuit> {
        self.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_problem(&self, problem: Option<String>) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    /// Counts an attempt for as long as the guard lives.
    pub(super) fn begin(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(self.clone())
    }

    fn standing(&self) -> Standing {
        Standing {
            circuit: self.circuit().state(),
            in_flight: self.in_flight.load(Ordering::Relaxed),
            problem: self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

/// An attempt that is counted.
#[derive(Debug)]
pub(super) struct InFlight(Arc<Post>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
