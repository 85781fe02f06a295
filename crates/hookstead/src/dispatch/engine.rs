//! What the workers of one dispatcher or consumer share: the way to the settler, slots, memory, and how they end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;

use super::ended::Ended;
use super::read::MEMORY_UNITS;
use super::settler::{self, SETTLE_QUEUE_MAX};
use super::slots::SHARED_SLOTS;
use super::sweeper;
use crate::inbox::Inbox;

/// How far an end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// It works.
    Working,
    /// Nothing more is claimed; what is being tried comes to its end.
    Stopping,
    /// What is still being tried is given back.
    Abandoning,
}

/// What workers share.
#[derive(Clone)]
pub(crate) struct Common {
    pub(super) inbox: Inbox,
    pub(super) ends: mpsc::Sender<Ended>,
    pub(super) slots: Arc<Semaphore>,
    pub(super) memory: Arc<Semaphore>,
    pub(super) phase: watch::Receiver<Phase>,
}

/// The tasks beside the workers, and the way to end all of them. Dropped, everything ends where it is, as in a
/// crash: leases stay and expire.
pub(crate) struct Engine {
    phase: watch::Sender<Phase>,
    workers: Abort,
    settler: Abort,
    _sweeper: Abort,
}

impl Engine {
    /// Starts the settler, the sweeper and what `work` makes of what they share: a task that ends when its workers
    /// have. Must be called on a tokio runtime with time.
    pub(crate) fn start<F>(inbox: Inbox, work: impl FnOnce(Common) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (phase, watched) = watch::channel(Phase::Working);
        let (ends, received) = mpsc::channel(SETTLE_QUEUE_MAX);
        let settler = Abort(tokio::spawn(settler::run(inbox.clone(), received)));
        let sweeper = Abort(tokio::spawn(sweeper::run(inbox.clone())));
        let common = Common {
            inbox,
            ends,
            slots: Arc::new(Semaphore::new(SHARED_SLOTS)),
            memory: Arc::new(Semaphore::new(MEMORY_UNITS as usize)),
            phase: watched,
        };
        let workers = Abort(tokio::spawn(work(common)));
        Self { phase, workers, settler, _sweeper: sweeper }
    }

    /// Claims nothing more, lets attempts come to their ends until `deadline` has passed, gives the others back
    /// untried, and returns when all of it is recorded.
    pub(crate) async fn stop(mut self, deadline: Duration) {
        self.phase.send_replace(Phase::Stopping);
        if tokio::time::timeout(deadline, &mut self.workers.0).await.is_err() {
            self.phase.send_replace(Phase::Abandoning);
            ended(&mut self.workers.0).await;
        }
        // The workers' ways to the settler are gone with them.
        ended(&mut self.settler.0).await;
    }

    /// Returns when the workers have ended by themselves: the inbox can commit nothing any more.
    pub(crate) async fn ended(&mut self) {
        ended(&mut self.workers.0).await;
    }
}

async fn ended(task: &mut JoinHandle<()>) {
    if let Err(error) = task.await {
        tracing::error!(%error, "a task of the dispatcher failed");
    }
}

/// A task that ends with its handle.
struct Abort(JoinHandle<()>);

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}
