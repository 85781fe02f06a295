//! The dispatcher: a worker for each destination that is worked here, kept in step with the configuration.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hookstead_core::{DestinationName, DestinationNumber};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::engine::{Common, Engine, Phase};
use super::standing::{Post, Standing, Standings};
use super::worker::{Job, Worker};
use crate::destination::DestinationKind;
use crate::inbox::Inbox;
use crate::routes::{Route, Routes};
use crate::sink::MakeSink;

/// Works what is owed to the destinations of an inbox by sinks.
///
/// Each delivery is tried until it is done or dead, at least once, under one idempotency key. Destinations that are
/// pulled or consumed are left to their consumers; leases of any destination that have expired are taken away.
///
/// Dropped without [`Dispatcher::stop`], it ends at once, as in a crash: what was being tried is tried again when its
/// lease has expired.
pub struct Dispatcher {
    engine: Engine,
    standings: Standings,
}

impl Dispatcher {
    /// Starts to work. It follows [`Inbox::reconfigure`] by itself. Must be called on a tokio runtime with time.
    pub fn start(inbox: Inbox, sinks: Arc<dyn MakeSink>) -> Self {
        let standings = Standings::default();
        let known = standings.clone();
        let engine = Engine::start(inbox, |common| {
            let manager =
                Manager { common, sinks, standings: known, workers: HashMap::new(), tasks: JoinSet::new() };
            manager.run()
        });
        Self { engine, standings }
    }

    /// How a destination stands; `None` if it is not worked here.
    pub fn standing(&self, name: &DestinationName) -> Option<Standing> {
        self.standings.of(name)
    }

    /// How all of its destinations stand, for whoever shows it.
    pub fn standings(&self) -> &Standings {
        &self.standings
    }

    /// Claims nothing more, lets attempts come to their ends until `deadline` has passed, and gives the leases of the
    /// others back: they do not count as attempts. When it returns, all of that is recorded, if the inbox can still
    /// record. Stop it before the inbox is closed.
    pub async fn stop(self, deadline: Duration) {
        self.engine.stop(deadline).await;
    }
}

/// The way to a worker: its job, or none any more.
type JobSender = watch::Sender<Option<Arc<Job>>>;

struct Manager {
    common: Common,
    sinks: Arc<dyn MakeSink>,
    standings: Standings,
    workers: HashMap<DestinationNumber, (DestinationName, JobSender)>,
    tasks: JoinSet<()>,
}

impl Manager {
    async fn run(mut self) {
        let mut routes = self.common.inbox.routes().changes();
        let mut phase = self.common.phase.clone();
        loop {
            let now = routes.borrow_and_update().clone();
            self.arrange(&now);
            tokio::select! {
                changed = routes.changed() => if changed.is_err() { break },
                _ = phase.wait_for(|phase| *phase != Phase::Working) => break,
            }
        }
        while self.tasks.join_next().await.is_some() {}
    }

    /// Gives each worker its job, starts those that are new, and takes the jobs of those that are not needed.
    fn arrange(&mut self, routes: &Routes) {
        while self.tasks.try_join_next().is_some() {}
        let worked: Vec<_> = routes.routes().iter().filter(|route| is_worked_here(route)).collect();
        self.workers.retain(|number, (name, jobs)| {
            let stays = worked.iter().any(|route| route.number() == *number) && !jobs.is_closed();
            if !stays {
                jobs.send_replace(None);
                self.standings.remove(name);
            }
            stays
        });
        for route in worked {
            match self.workers.get(&route.number()) {
                Some((_, jobs)) if is_job_of(jobs, route) => {}
                Some((_, jobs)) => drop(jobs.send_replace(Some(self.job(route)))),
                None => self.start(&self.job(route)),
            }
        }
    }

    fn job(&self, route: &Arc<Route>) -> Arc<Job> {
        let sink = self.sinks.make(route.destination());
        if let Err(error) = &sink {
            tracing::error!(destination = %route.name(), %error, "a destination cannot be worked");
        }
        Arc::new(Job::new(route.clone(), sink))
    }

    fn start(&mut self, job: &Arc<Job>) {
        let (jobs, given) = watch::channel(Some(job.clone()));
        let post = Arc::new(Post::new());
        self.standings.add(job.route.name().clone(), post.clone());
        self.workers.insert(job.route.number(), (job.route.name().clone(), jobs));
        self.tasks.spawn(Worker::new(self.common.clone(), job, given, post).run());
    }
}

/// Whether a worker has this very configuration: its sink, with its connections, stays.
fn is_job_of(jobs: &JobSender, route: &Arc<Route>) -> bool {
    jobs.borrow().as_ref().is_some_and(|job| Arc::ptr_eq(&job.route, route))
}

fn is_worked_here(route: &Route) -> bool {
    !matches!(route.destination().kind(), DestinationKind::Pull(_) | DestinationKind::Consumed)
}
