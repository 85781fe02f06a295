//! The committer's threads: as many as the store allows batches in flight.

use std::cell::Cell;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hookstead_core::{Clock, Store, StoreError, Timestamp, Write, Written};
use tokio::sync::watch;

use super::health::Health;
use super::news::{News, tell};
use super::pending::{Pending, Promise, pending};
use super::queue::{CommitLimits, Entry, LaneName, Queue};
use super::wake::Wakes;
use crate::error::Unavailable;
use crate::signals::Signals;

/// How long the committer waits between two probes of a store that could not commit.
const PROBE_INTERVAL: Duration = Duration::from_millis(250);

thread_local! {
    /// The committer whose store is carrying out a batch on this thread, by its address; 0: none. Effects run there.
    static APPLYING: Cell<usize> = const { Cell::new(0) };
}

/// The queue in front of a store and the threads that empty it.
pub(crate) struct Committer {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    work: Condvar,
    health: watch::Sender<Health>,
    news: watch::Sender<News>,
    signals: Arc<Signals>,
}

struct State {
    queue: Queue,
    health: Health,
    closing: bool,
    /// Threads that wait for work. Only then is anybody woken: a wake is a system call, also in vain.
    idle: usize,
}

/// Commits what must be there before anything is accepted, on the calling thread.
pub(crate) fn commit_first(
    store: &dyn Store,
    writes: &[Write],
    now: Timestamp,
) -> Result<Vec<Written>, StoreError> {
    store.apply(writes, now)
}

impl Committer {
    /// Starts the threads. After each commit `signals` is told what it made.
    pub(crate) fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        limits: CommitLimits,
        signals: Arc<Signals>,
    ) -> io::Result<Self> {
        let count = store.facts().batches_in_flight.get();
        let state = State { queue: Queue::new(limits), health: Health::Ready, closing: false, idle: 0 };
        let shared = Arc::new(Shared {
            store,
            clock,
            state: Mutex::new(state),
            work: Condvar::new(),
            health: watch::Sender::new(Health::Ready),
            news: watch::Sender::new(News::default()),
            signals,
        });
        let committer = Self { shared, threads: Mutex::default() };
        for number in 0..count {
            let shared = committer.shared.clone();
            let thread = std::thread::Builder::new()
                .name(format!("hookstead-commit-{number}"))
                .spawn(move || shared.run())?;
            committer.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        }
        Ok(committer)
    }

    /// Queues a write. It will be committed also if nobody waits for it any more.
    pub(crate) fn submit(&self, lane: LaneName, write: Write) -> Result<Pending, Unavailable> {
        self.shared.check_not_applying()?;
        let (answer, pending) = pending();
        let entry = Entry { write, answer };
        let now = Instant::now();
        let idle = {
            let mut state = self.shared.state();
            if let Some(unavailable) = state.unavailable() {
                return Err(unavailable);
            }
            state.queue.push(lane, entry, now).map_err(|_| Unavailable::Overloaded)?;
            state.idle
        };
        if idle > 0 {
            self.shared.work.notify_one();
        }
        Ok(pending)
    }

    /// Queues writes behind one another without a gap, or none of them: they share a commit as far as they fit
    /// into one. Answers come in the same order.
    pub(crate) fn submit_all(&self, lane: LaneName, writes: Vec<Write>) -> Result<Vec<Pending>, Unavailable> {
        self.shared.check_not_applying()?;
        let mut pendings = Vec::with_capacity(writes.len());
        let now = Instant::now();
        let idle = {
            let mut state = self.shared.state();
            if let Some(unavailable) = state.unavailable() {
                return Err(unavailable);
            }
            if !state.queue.has_room(lane, writes.len()) {
                return Err(Unavailable::Overloaded);
            }
            for write in writes {
                let (answer, pending) = pending();
                state.queue.push(lane, Entry { write, answer }, now).map_err(|_| Unavailable::Overloaded)?;
                pendings.push(pending);
            }
            state.idle
        };
        if idle > 0 {
            self.shared.work.notify_one();
        }
        Ok(pendings)
    }

    /// The health of the store, and word of its changes.
    pub(crate) fn health(&self) -> watch::Receiver<Health> {
        self.shared.health.subscribe()
    }

    /// Word of commits.
    pub(crate) fn news(&self) -> watch::Receiver<News> {
        self.shared.news.subscribe()
    }

    /// Takes nothing new, commits and answers what is queued, ends the threads. Blocks until that is done.
    pub(crate) fn close(&self) {
        {
            let mut state = self.shared.state();
            state.closing = true;
            if state.health == Health::Ready {
                self.shared.health.send_replace(Health::Closing);
            }
        }
        self.shared.work.notify_all();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let here = std::thread::current().id();
        // An effect may hold the last handle of its inbox: then it is this thread that closes it.
        for thread in threads.into_iter().filter(|thread| thread.thread().id() != here) {
            if thread.join().is_err() {
                tracing::error!("the committer panicked");
            }
        }
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.close();
    }
}

impl State {
    fn unavailable(&self) -> Option<Unavailable> {
        if self.closing && self.health == Health::Ready {
            return Some(Unavailable::Closing);
        }
        self.health.unavailable()
    }
}

/// What a committer thread does next.
enum Task {
    /// This batch, taken at this time.
    Commit(Vec<Entry>, Instant),
    Probe,
    End,
}

impl Shared {
    /// The state is a queue and a flag, right at every step, so a panic elsewhere does not spoil it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let _on_panic = PoisonOnPanic(self);
        loop {
            match self.next_task() {
                Task::Commit(batch, taken_at) => self.commit(batch, taken_at),
                Task::Probe => self.probe(),
                Task::End => return,
            }
        }
    }

    fn next_task(&self) -> Task {
        let mut state = self.state();
        loop {
            if !state.queue.is_empty() {
                let now = Instant::now();
                return Task::Commit(state.queue.take_batch(now), now);
            }
            if state.closing {
                return Task::End;
            }
            state.idle += 1;
            if !matches!(state.health, Health::Recovering(_)) {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
                continue;
            }
            let waited = self.work.wait_timeout(state, PROBE_INTERVAL);
            let (after, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = after;
            state.idle -= 1;
            if timeout.timed_out() {
                return Task::Probe;
            }
        }
    }

    /// The batch ends before its answers go out: whoever is answered may send the next write at once, and it shall not
    /// be refused for the sake of a commit that is over. Writes that are run one by one are answered one by one, while the
    /// store is still at work on the others; there the batch ends before the last answer.
    fn commit(&self, batch: Vec<Entry>, taken_at: Instant) {
        let (writes, answers): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|entry| (entry.write, entry.answer)).unzip();
        let mut wakes = Wakes::default();
        match self.apply(&writes) {
            Ok(written) => {
                self.batch_ended(taken_at);
                for (answer, written) in answers.into_iter().zip(written) {
                    answer.give(Ok(written), &mut wakes);
                }
            }
            Err(error) if error.may_be_one_write() && writes.len() > 1 => {
                tracing::warn!(batch.writes = writes.len(), %error, "a batch failed and is run again one by one");
                self.commit_one_by_one(&writes, answers, taken_at);
            }
            Err(error) => {
                self.batch_ended(taken_at);
                let unavailable = self.failed(&error);
                answers.into_iter().for_each(|answer| answer.give(Err(unavailable.clone()), &mut wakes));
            }
        }
    }

    fn batch_ended(&self, taken_at: Instant) {
        self.state().queue.batch_ended(taken_at, Instant::now());
    }

    /// Commits the writes of a batch that failed each on its own, and answers each at once: the last may be far away.
    fn commit_one_by_one(&self, writes: &[Write], answers: Vec<Promise>, taken_at: Instant) {
        let mut wakes = Wakes::default();
        for (count, (write, answer)) in (1..).zip(writes.iter().zip(answers)) {
            let written = self.commit_one(write);
            if count == writes.len() {
                self.batch_ended(taken_at);
            }
            answer.give(written, &mut wakes);
            wakes.send();
        }
    }

    /// One write of a batch that failed, on its own. Once the store is no longer ready nothing more is tried.
    fn commit_one(&self, write: &Write) -> Result<Written, Unavailable> {
        if let Some(unavailable) = self.state().health.unavailable() {
            return Err(unavailable);
        }
        let written = self.apply(std::slice::from_ref(write)).map_err(|error| self.failed(&error))?;
        written.into_iter().next().ok_or_else(|| Unavailable::Failed("no answer from the store".into()))
    }

    fn apply(&self, writes: &[Write]) -> Result<Vec<Written>, StoreError> {
        let outer = APPLYING.replace(self.address());
        let written = self.store.apply(writes, self.clock.now());
        APPLYING.set(outer);
        let written = written?;
        if written.len() == writes.len() {
            tell(&self.news, writes, &written);
            self.signals.committed(writes, &written);
            return Ok(written);
        }
        let reason = format!("{} answers to {} writes", written.len(), writes.len());
        Err(StoreError::backend("commit a batch", reason))
    }

    /// Refuses what an effect asks of the inbox that runs it: it would wait for itself.
    fn check_not_applying(&self) -> Result<(), Unavailable> {
        if APPLYING.get() != self.address() {
            return Ok(());
        }
        Err(Unavailable::Failed("an effect cannot write through the inbox whose commit it is part of".into()))
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Notes a failure: damage concerns one record alone; after every other failure the store must prove
    /// itself by a probe before anything is accepted again.
    fn failed(&self, error: &StoreError) -> Unavailable {
        let unavailable = Unavailable::from(error);
        tracing::error!(error.code = unavailable.code(), error = %unavailable, "a commit failed");
        match error {
            StoreError::Corrupt { .. } => {}
            StoreError::Poisoned { reason } => self.set_health(Health::Poisoned(reason.as_str().into())),
            StoreError::Busy { .. } | StoreError::Full { .. } | StoreError::Backend { .. } => {
                self.set_health(Health::Recovering(unavailable.to_string().into()));
                self.probe();
            }
        }
        unavailable
    }

    fn probe(&self) {
        match self.store.probe(self.clock.now()) {
            Ok(()) => self.set_health(Health::Ready),
            Err(StoreError::Poisoned { reason }) => self.set_health(Health::Poisoned(reason.into())),
            Err(error) => {
                tracing::warn!(%error, "the store cannot commit yet");
                self.set_health(Health::Recovering(Unavailable::from(&error).to_string().into()));
            }
        }
    }

    /// Sets the health (never back from poisoned), tells everybody, and refuses what is queued if nothing
    /// can be committed.
    fn set_health(&self, health: Health) {
        let refused = {
            let mut state = self.state();
            if matches!(state.health, Health::Poisoned(_)) {
                return;
            }
            state.health = health.clone();
            if health == Health::Ready { Vec::new() } else { state.queue.drain() }
        };
        if let Some(unavailable) = health.unavailable() {
            let mut wakes = Wakes::default();
            refused.into_iter().for_each(|entry| entry.answer.give(Err(unavailable.clone()), &mut wakes));
        }
        self.health.send_if_modified(|known| {
            let changed = *known != health;
            *known = health;
            changed
        });
    }
}

/// A store that panics has broken its contract: nothing it says later can be trusted.
struct PoisonOnPanic<'a>(&'a Shared);

impl Drop for PoisonOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.set_health(Health::Poisoned(Arc::from("the store panicked")));
        }
    }
}
