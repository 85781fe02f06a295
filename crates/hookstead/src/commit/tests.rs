//! The committer over a store that does as it is told.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use hookstead_core::{
    Attempt, Body, BodySelector, ChangeMark, CheckProgress, CheckReport, Conflict, ConflictFilter, Delivery,
    DeliveryFilter, DeliveryId, DestinationNumber, Event, EventFilter, EventId, EventSelector, Fetched, List,
    ManualClock, MemoryStore, Page, Redelivery, RedeliveryId, RedeliveryState, Registry, RunReceipt, Stats,
    Store, StoreError, StoreFacts, Sweep, Timestamp, Write, Written,
};

use super::queue::LaneName;
use super::{CommitLimits, Committer, Health, Pending};
use crate::error::Unavailable;

/// What the store does with a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Commit,
    Fail(Failure),
    Panic,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Failure {
    Busy,
    Full,
    Poisoned,
    Backend,
}

impl Failure {
    fn error(self) -> StoreError {
        match self {
            Self::Busy => StoreError::Busy { what: "the lock".into() },
            Self::Full => StoreError::Full { what: "the disk".into() },
            Self::Poisoned => StoreError::Poisoned { reason: "fsync failed".into() },
            Self::Backend => StoreError::backend("write", "no such table"),
        }
    }
}

/// The write that this store cannot do, whatever the script says.
const UNDOABLE: u32 = 666;

struct Scripted {
    memory: MemoryStore,
    probes: Mutex<VecDeque<Failure>>,
    /// Says how many writes a batch has, when `apply` begins.
    began: Mutex<Sender<usize>>,
    /// What `apply` then does.
    steps: Mutex<Receiver<Step>>,
}

struct Bench {
    committer: Arc<Committer>,
    store: Arc<Scripted>,
    began: Receiver<usize>,
    steps: Sender<Step>,
}

fn bench(limits: CommitLimits) -> Bench {
    let (began_sender, began) = channel();
    let (steps, steps_receiver) = channel();
    let store = Arc::new(Scripted {
        memory: MemoryStore::new([0; 32]),
        probes: Mutex::default(),
        began: Mutex::new(began_sender),
        steps: Mutex::new(steps_receiver),
    });
    let clock = Arc::new(ManualClock::new(Timestamp::from_secs(1)));
    let committer = Committer::start(store.clone(), clock, limits, Arc::default()).unwrap();
    Bench { committer: Arc::new(committer), store, began, steps }
}

fn sweep(max: u32) -> Write {
    Write::Sweep(Sweep { retention: Vec::new(), max })
}

impl Bench {
    fn submit(&self, max: u32) -> Pending {
        self.try_submit(max).unwrap()
    }

    fn try_submit(&self, max: u32) -> Result<Pending, Unavailable> {
        self.committer.submit(LaneName::Accepts, sweep(max))
    }

    /// A batch of one that is inside the store, so that whatever is submitted now shares the next batch.
    fn hold_one(&self) -> Pending {
        let pending = self.submit(0);
        assert_eq!(self.began.recv().unwrap(), 1);
        pending
    }

    /// In the lane that never refuses because of a wait.
    fn submit_rest(&self, max: u32) -> Pending {
        self.committer.submit(LaneName::Rest, sweep(max)).unwrap()
    }

    /// Has an event submitted the moment that `pending` is answered, by the committer's own thread; what came of it.
    fn submit_when_answered(&self, pending: &mut Pending) -> Receiver<Result<Pending, Unavailable>> {
        let (tried, trial) = channel();
        let waker = Waker::from(Arc::new(SubmitNext { committer: self.committer.clone(), tried }));
        assert!(Pin::new(pending).poll(&mut Context::from_waker(&waker)).is_pending());
        trial
    }

    fn step(&self, step: Step) {
        self.steps.send(step).unwrap();
    }

    fn health_becomes(&self, wanted: impl Fn(&Health) -> bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut health = self.committer.health();
        runtime.block_on(health.wait_for(wanted)).unwrap();
    }
}

struct SubmitNext {
    committer: Arc<Committer>,
    tried: Sender<Result<Pending, Unavailable>>,
}

impl Wake for SubmitNext {
    fn wake(self: Arc<Self>) {
        self.tried.send(self.committer.submit(LaneName::Accepts, sweep(0))).unwrap();
    }
}

#[test]
fn what_queues_during_a_commit_shares_the_next_one() {
    let bench = bench(CommitLimits::default());
    let first = bench.hold_one();
    let others: Vec<_> = (1..=10).map(|max| bench.submit(max)).collect();
    bench.step(Step::Commit);
    assert!(first.wait().is_ok());
    assert_eq!(bench.began.recv().unwrap(), 10);
    bench.step(Step::Commit);
    assert!(others.into_iter().all(|pending| pending.wait().is_ok()));
}

#[test]
fn one_undoable_write_fails_alone() {
    let bench = bench(CommitLimits::default());
    let first = bench.hold_one();
    let others: Vec<_> = [1, UNDOABLE, 3].map(|max| bench.submit(max)).into();
    (0..5).for_each(|_| bench.step(Step::Commit));
    assert!(first.wait().is_ok());
    let answers: Vec<_> = others.into_iter().map(|pending| pending.wait().is_ok()).collect();
    assert_eq!(answers, [true, false, true]);
    assert_eq!(bench.began.try_iter().collect::<Vec<_>>(), [3, 1, 1, 1]);
}

#[test]
fn an_io_failure_fails_every_waiter_and_nothing_is_ever_accepted_again() {
    let bench = bench(CommitLimits::default());
    let first = bench.hold_one();
    let queued = bench.submit(1);
    bench.step(Step::Fail(Failure::Poisoned));
    let poisoned = Unavailable::Poisoned("fsync failed".into());
    assert_eq!(first.wait().unwrap_err(), poisoned);
    assert_eq!(queued.wait().unwrap_err(), poisoned);
    assert_eq!(bench.try_submit(2).err(), Some(poisoned));
    assert!(bench.began.try_recv().is_err(), "the store was asked again");
}

#[test]
fn a_store_without_room_is_probed_until_it_can_commit() {
    for failure in [Failure::Full, Failure::Busy, Failure::Backend] {
        let bench = bench(CommitLimits::default());
        bench.store.probes.lock().unwrap().extend([Failure::Full, Failure::Busy]);
        let first = bench.hold_one();
        bench.step(Step::Fail(failure));
        assert!(first.wait().is_err());
        bench.health_becomes(|health| *health == Health::Ready);
        assert!(bench.store.probes.lock().unwrap().is_empty(), "ready before a probe held");
        let again = bench.submit(1);
        bench.step(Step::Commit);
        assert!(again.wait().is_ok());
    }
}

#[test]
fn a_probe_that_poisons_ends_it() {
    let bench = bench(CommitLimits::default());
    bench.store.probes.lock().unwrap().push_back(Failure::Poisoned);
    let first = bench.hold_one();
    bench.step(Step::Fail(Failure::Full));
    assert!(first.wait().is_err());
    bench.health_becomes(|health| matches!(health, Health::Poisoned(_)));
    assert!(matches!(bench.try_submit(1), Err(Unavailable::Poisoned(_))));
}

#[test]
fn a_write_whose_waiter_left_is_committed_all_the_same() {
    let bench = bench(CommitLimits::default());
    let first = bench.hold_one();
    drop(first);
    drop(bench.submit(1));
    bench.step(Step::Commit);
    assert_eq!(bench.began.recv().unwrap(), 1);
    bench.step(Step::Commit);
    bench.committer.close();
}

#[test]
fn closing_answers_what_is_queued_and_takes_nothing_new() {
    let bench = bench(CommitLimits::default());
    let first = bench.hold_one();
    let queued = bench.submit(1);
    bench.step(Step::Commit);
    bench.step(Step::Commit);
    bench.committer.close();
    assert!(first.wait().is_ok() && queued.wait().is_ok());
    assert_eq!(bench.try_submit(2).err(), Some(Unavailable::Closing));
}

#[test]
fn a_full_queue_refuses_at_once() {
    let limits = CommitLimits { queue_entries_max: 2, ..CommitLimits::default() };
    let bench = bench(limits);
    let held = bench.hold_one();
    let waiting = [bench.submit(1), bench.submit(2)];
    assert_eq!(bench.try_submit(3).err(), Some(Unavailable::Overloaded));
    bench.step(Step::Commit);
    bench.step(Step::Commit);
    assert!(held.wait().is_ok());
    assert!(waiting.into_iter().all(|pending| pending.wait().is_ok()));
}

/// Whoever is answered after a slow commit sends the next write at once: every commit is too slow for a wait of zero.
#[test]
fn an_answer_is_given_when_the_store_is_idle_again_however_slow_its_commit_was() {
    use Step::{Commit, Fail};
    for (step, alone, stored) in [
        (Commit, &[][..], true),
        (Fail(Failure::Full), &[], false),
        (Fail(Failure::Backend), &[Commit, Commit], true),
        (Fail(Failure::Backend), &[Commit, Fail(Failure::Full)], false),
    ] {
        let bench = bench(CommitLimits { wait_max: Duration::ZERO, ..CommitLimits::default() });
        let held = bench.hold_one();
        assert_eq!(bench.try_submit(9).err(), Some(Unavailable::Overloaded), "it is not idle yet");
        let mut batch: Vec<_> = (1..=2).map(|max| bench.submit_rest(max)).collect();
        let next = bench.submit_when_answered(&mut batch[1]);
        bench.step(Commit);
        assert!(held.wait().is_ok());
        bench.step(step);
        alone.iter().for_each(|step| bench.step(*step));
        bench.step(Commit);
        assert!(next.recv().unwrap().unwrap().wait().is_ok());
        assert_eq!(batch.remove(1).wait().is_ok(), stored);
    }
}

#[test]
fn a_store_that_panics_is_never_trusted_again() {
    let bench = bench(CommitLimits::default());
    let first = bench.hold_one();
    let queued = bench.submit(1);
    bench.step(Step::Panic);
    assert!(matches!(first.wait(), Err(Unavailable::Poisoned(_))));
    assert!(matches!(queued.wait(), Err(Unavailable::Poisoned(_))));
    assert!(matches!(bench.try_submit(2), Err(Unavailable::Poisoned(_))));
}

impl Store for Scripted {
    fn facts(&self) -> &StoreFacts {
        self.memory.facts()
    }

    fn apply(&self, writes: &[Write], now: Timestamp) -> Result<Vec<Written>, StoreError> {
        self.began.lock().unwrap().send(writes.len()).unwrap();
        let step = self.steps.lock().unwrap().recv().unwrap();
        let undoable = writes.iter().any(|write| matches!(write, Write::Sweep(Sweep { max: UNDOABLE, .. })));
        match step {
            Step::Commit if undoable => Err(Failure::Backend.error()),
            Step::Commit => self.memory.apply(writes, now),
            Step::Fail(failure) => Err(failure.error()),
            Step::Panic => panic!("as the script says"),
        }
    }

    fn probe(&self, _now: Timestamp) -> Result<(), StoreError> {
        match self.probes.lock().unwrap().pop_front() {
            Some(failure) => Err(failure.error()),
            None => Ok(()),
        }
    }

    fn close(&self, now: Timestamp) -> Result<(), StoreError> {
        self.memory.close(now)
    }

    fn event(&self, selector: &EventSelector) -> Result<Option<Event>, StoreError> {
        self.memory.event(selector)
    }

    fn body(&self, selector: BodySelector) -> Result<Option<Body>, StoreError> {
        self.memory.body(selector)
    }

    fn fetch(
        &self,
        events: &[EventId],
        fits: &mut dyn FnMut(usize, u64) -> bool,
    ) -> Result<Vec<Fetched>, StoreError> {
        self.memory.fetch(events, fits)
    }

    fn list_events(&self, filter: &EventFilter, page: &Page) -> Result<List<Event>, StoreError> {
        self.memory.list_events(filter, page)
    }

    fn list_deliveries(&self, filter: &DeliveryFilter, page: &Page) -> Result<List<Delivery>, StoreError> {
        self.memory.list_deliveries(filter, page)
    }

    fn attempts(&self, delivery: &DeliveryId) -> Result<Vec<Attempt>, StoreError> {
        self.memory.attempts(delivery)
    }

    fn list_conflicts(&self, filter: &ConflictFilter, page: &Page) -> Result<List<Conflict>, StoreError> {
        self.memory.list_conflicts(filter, page)
    }

    fn runs(&self, event: &EventId) -> Result<Vec<RunReceipt>, StoreError> {
        self.memory.runs(event)
    }

    fn redelivery(&self, id: &RedeliveryId) -> Result<Option<Redelivery>, StoreError> {
        self.memory.redelivery(id)
    }

    fn list_redeliveries(
        &self,
        state: Option<RedeliveryState>,
        page: &Page,
    ) -> Result<List<Redelivery>, StoreError> {
        self.memory.list_redeliveries(state, page)
    }

    fn registry(&self) -> Result<Registry, StoreError> {
        self.memory.registry()
    }

    fn next_due(&self, destination: DestinationNumber) -> Result<Option<Timestamp>, StoreError> {
        self.memory.next_due(destination)
    }

    fn next_expiry(&self) -> Result<Option<Timestamp>, StoreError> {
        self.memory.next_expiry()
    }

    fn stats(&self) -> Result<Stats, StoreError> {
        self.memory.stats()
    }

    fn check(&self, progress: &mut dyn FnMut(CheckProgress)) -> Result<CheckReport, StoreError> {
        self.memory.check(progress)
    }

    fn changed(&self) -> Result<ChangeMark, StoreError> {
        self.memory.changed()
    }
}
