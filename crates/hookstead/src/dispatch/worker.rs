//! The worker of one destination: claims as many deliveries as it has slots, gives each a task, and waits for whatever
//! can make more of it: a commit that made work, a due time, a free slot, another configuration.

use std::sync::Arc;
use std::time::Duration;

use hookstead_core::{Claim, Lease, Timestamp};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::attempt::Attempting;
use super::circuit::Allowance;
use super::engine::{Common, Phase};
use super::rate::Rate;
use super::read::read_all;
use super::settler::is_available_again;
use super::slots::{Slot, Slots};
use super::standing::Post;
use crate::error::Unavailable;
use crate::routes::Route;
use crate::sink::{Sink, SinkError};

/// How long a worker that knows of nothing to do waits before it looks all the same.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);

/// How long a worker waits at most that was told of something due and then found nothing, or less than it might have.
const AGAIN_WAIT: Duration = Duration::from_millis(20);

/// How long a worker waits for a store that is recovering before it looks again.
const RECOVERY_WAIT: Duration = Duration::from_secs(60);

/// What a worker works.
pub(crate) struct Job {
    pub(super) route: Arc<Route>,
    pub(super) sink: Result<Arc<dyn Sink>, SinkError>,
}

impl Job {
    pub(crate) fn new(route: Arc<Route>, sink: Result<Arc<dyn Sink>, SinkError>) -> Self {
        Self { route, sink }
    }
}

/// The worker of one destination.
pub(super) struct Worker {
    common: Common,
    jobs: watch::Receiver<Option<Arc<Job>>>,
    post: Arc<Post>,
    slots: Slots,
    rate: Rate,
    attempts: JoinSet<()>,
    work: watch::Receiver<()>,
}

/// Works one destination until all stops.
pub(crate) async fn work_one(common: Common, job: Job) {
    let job = Arc::new(job);
    // The sender is kept: without it the worker would end.
    let (_jobs, given) = watch::channel(Some(job.clone()));
    Worker::new(common, &job, given, Arc::new(Post::new())).run().await;
}

/// What a worker waits for, beside a new job and the end. Nothing named: only those.
#[derive(Default)]
struct Wait {
    /// Word of work.
    work: bool,
    /// The end of an attempt.
    attempt: bool,
    /// A shared slot.
    slot: bool,
    /// A time.
    until: Option<Timestamp>,
}

enum Next {
    Again,
    Wait(Wait),
    End,
}

impl Worker {
    /// A worker of the job; it ends when the job is taken from it, or all stops.
    pub(super) fn new(
        common: Common,
        job: &Arc<Job>,
        jobs: watch::Receiver<Option<Arc<Job>>>,
        post: Arc<Post>,
    ) -> Self {
        let work = common.inbox.signals().work(job.route.number());
        let slots = Slots::new(common.slots.clone());
        Self { common, jobs, post, slots, rate: Rate::default(), attempts: JoinSet::new(), work }
    }

    /// Works until the end; returns when the last attempt has come to its own.
    pub(super) async fn run(mut self) {
        loop {
            match self.step().await {
                Next::Again => {}
                Next::Wait(wait) => self.wait(wait).await,
                Next::End => break,
            }
        }
        while self.attempts.join_next().await.is_some() {}
    }

    async fn step(&mut self) -> Next {
        while self.attempts.try_join_next().is_some() {}
        if *self.common.phase.borrow_and_update() != Phase::Working {
            return Next::End;
        }
        let Some(job) = self.jobs.borrow_and_update().clone() else { return Next::End };
        self.post.set_problem(job.sink.as_ref().err().map(ToString::to_string));
        let Ok(sink) = job.sink.clone() else { return Next::Wait(Wait::default()) };
        // Subscribe before looking: what is committed from here on is noticed.
        self.work.mark_unchanged();
        let slots = match self.allowed(&job) {
            Ok(slots) => slots,
            Err(wait) => return Next::Wait(wait),
        };
        self.claim(&job, sink, slots).await
    }

    /// The slots that may be filled now, at least one; or what to wait for.
    fn allowed(&mut self, job: &Job) -> Result<Vec<Slot>, Wait> {
        let now = self.common.inbox.clock().now();
        let concurrency = usize::from(job.route.destination().concurrency());
        let free = concurrency.saturating_sub(self.attempts.len());
        let max = match self.post.circuit().allowance(now) {
            Allowance::All => free,
            Allowance::Probe => free.min(1),
            Allowance::WaitForProbe => return Err(Wait { attempt: true, ..Wait::default() }),
            Allowance::WaitUntil(until) => {
                return Err(Wait { attempt: true, until: Some(until), ..Wait::default() });
            }
        };
        if max == 0 {
            return Err(Wait { attempt: true, ..Wait::default() });
        }
        let mut slots = self.slots.take(max);
        if slots.is_empty() {
            return Err(Wait { attempt: true, slot: true, ..Wait::default() });
        }
        let per_s = job.route.destination().options().rate_per_s;
        match self.rate.take(per_s, slots.len(), now) {
            Ok(count) => slots.truncate(count),
            Err(until) => return Err(Wait { until: Some(until), ..Wait::default() }),
        }
        Ok(slots)
    }

    async fn claim(&mut self, job: &Arc<Job>, sink: Arc<dyn Sink>, slots: Vec<Slot>) -> Next {
        let claim = Claim {
            destination: job.route.number(),
            max: u16::try_from(slots.len()).unwrap_or(u16::MAX),
            lease_for: job.route.destination().lease_for(),
        };
        let per_s = job.route.destination().options().rate_per_s;
        let looked_at = self.common.inbox.clock().now();
        let leases = match self.common.inbox.claim(claim).await {
            Ok(leases) => leases,
            Err(unavailable) => {
                self.rate.give_back(per_s, slots.len());
                return self.unavailable(unavailable).await;
            }
        };
        let (claimed, asked) = (leases.len(), slots.len());
        self.rate.give_back(per_s, asked.saturating_sub(claimed));
        self.begin(job, &sink, leases, slots).await;
        if claimed == asked || self.work.has_changed().unwrap_or(false) {
            return Next::Again;
        }
        if claimed > 0 {
            // Where there was work there will soon be more, which is heard of. What is left and becomes due is looked
            // for when there was none: that takes a read.
            let until = Some(looked_at.plus(AGAIN_WAIT));
            return Next::Wait(Wait { work: true, until, ..Wait::default() });
        }
        self.idle(job, looked_at).await
    }

    async fn begin(&mut self, job: &Arc<Job>, sink: &Arc<dyn Sink>, leases: Vec<Lease>, slots: Vec<Slot>) {
        if let Some(first) = leases.first() {
            self.post.circuit().probing(first.delivery);
            let read = read_all(&self.common.inbox, &self.common.memory, leases).await;
            for (leased, slot) in read.into_iter().zip(slots) {
                let attempting = Attempting {
                    common: self.common.clone(),
                    job: job.clone(),
                    sink: sink.clone(),
                    post: self.post.clone(),
                };
                self.attempts.spawn(attempting.run(leased, slot));
            }
        }
    }

    /// At that time there was less than there might have been: when there is more.
    async fn idle(&self, job: &Job, looked_at: Timestamp) -> Next {
        let due = match self.next_due(job).await {
            Ok(due) => due,
            Err(error) => {
                tracing::error!(destination = %job.route.name(), error, "the next due time cannot be read");
                None
            }
        };
        match due {
            // It ought to have been claimed: whatever the reason, the worker does not spin on it.
            Some(due) if due <= looked_at => {
                let until = Some(looked_at.plus(AGAIN_WAIT));
                Next::Wait(Wait { work: true, until, ..Wait::default() })
            }
            Some(due) => Next::Wait(Wait { work: true, until: Some(due), ..Wait::default() }),
            None => Next::Wait(Wait { work: true, ..Wait::default() }),
        }
    }

    async fn next_due(&self, job: &Job) -> Result<Option<Timestamp>, String> {
        let (inbox, number) = (self.common.inbox.clone(), job.route.number());
        match tokio::task::spawn_blocking(move || inbox.store().next_due(number)).await {
            Ok(due) => due.map_err(|error| error.to_string()),
            Err(_) => Err("reading panicked".to_owned()),
        }
    }

    async fn unavailable(&mut self, unavailable: Unavailable) -> Next {
        tracing::debug!(error = %unavailable, "nothing can be claimed at the moment");
        let until = self.common.inbox.clock().now().plus(RECOVERY_WAIT);
        let mut phase = self.common.phase.clone();
        let again = tokio::select! {
            again = is_available_again(&self.common.inbox, &unavailable, until) => again,
            _ = phase.changed() => true,
        };
        if again || matches!(unavailable, Unavailable::Recovering(_)) { Next::Again } else { Next::End }
    }

    async fn wait(&mut self, wait: Wait) {
        let now = self.common.inbox.clock().now();
        let time = wait.until.map_or(LOOK_INTERVAL, |until| until.since(now).min(LOOK_INTERVAL));
        // Whatever it is that ended, the next step looks again. A sender that is gone ends the worker there.
        tokio::select! {
            _ = self.jobs.changed() => {}
            _ = self.common.phase.changed() => {}
            _ = self.work.changed(), if wait.work => {}
            Some(_) = self.attempts.join_next(), if wait.attempt => {}
            () = self.slots.shared_free(), if wait.slot => {}
            () = tokio::time::sleep(time) => {}
        }
    }
}
