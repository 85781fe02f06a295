//! A running server: both listeners, the inbox between them, and how it starts and ends. The intake has a runtime a
//! core, see `loops`, and the deliveries have one, see `deliveries`; everything else runs in the runtime that the server
//! was started in.
//!
//! Start: data folder, tokens, both addresses bound, store opened and proved, addresses written to the store's
//! owner record; only then is anything accepted. Stop: the intake accepts nothing new and answers what it has, and
//! claims that wait are told so; then redeliveries pause, attempts come to their ends, and leases that are left are given
//! back; then the inbox commits what is queued and lets the store go, then the admin listener ends.

use std::io;
use std::sync::Arc;

use hookstead::keys::KeyCache;
use hookstead::sink::BuiltInSinks;
use hookstead::sink::push::{Fetcher, SystemNetwork};
use hookstead::verify::KeySource;
use hookstead::{Dispatcher, Health, Inbox, Unavailable};
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Duration, Instant};

use super::deliveries::DeliveryThreads;
use super::loops::Loops;
use super::outcome::{RunOutcome, ServerFacts, StartError};
use super::parts;
use super::redeliverer::Redeliverer;
use super::reload::Reloader;
use crate::api::Waiting;
use crate::config::{Config, Mode};
use crate::intake::{BodyBudget, Handshakes};
use crate::listen::Stop;
use crate::tokens::Tokens;
use crate::{descriptors, folder};

/// How long attempts in flight have to end, however long the intake took.
const LAST_ATTEMPTS_TIME: Duration = Duration::from_secs(1);

/// How long the admin listener's connections have to end, after everything else has.
const ADMIN_DRAIN: Duration = Duration::from_secs(1);

/// A server that accepts. Dropping it without [`Server::shutdown`] leaves its tasks to the runtime.
pub struct Server {
    facts: ServerFacts,
    inbox: Inbox,
    budget: Arc<BodyBudget>,
    intake: Loops,
    admin: Task,
    dispatcher: Dispatcher,
    deliveries: DeliveryThreads,
    redeliverer: Redeliverer,
    hangups: Option<JoinHandle<()>>,
    /// Fetches the keys that providers publish.
    fetches: JoinHandle<()>,
    waiting: Arc<Waiting>,
    drain: Duration,
    failstop_linger: Duration,
}

/// An accept loop and its switch.
pub(super) struct Task {
    pub(super) stop: watch::Sender<Stop>,
    pub(super) handle: JoinHandle<()>,
}

impl Server {
    /// Starts a server. When it returns, events are accepted.
    ///
    /// # Errors
    ///
    /// [`StartError`]; the store is closed again then, and nothing listens.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        // Before anything is written: a store that is too long for the limit is an error with a reason then.
        outlive_file_size_limit().map_err(StartError::Signals)?;
        folder::prepare(&config.data)?;
        descriptors::provide(&config.limits);
        let tokens = Tokens::open(&config.data)?;
        let intake = parts::listen("intake", config.server.intake, &config)?;
        let admin = parts::listen("admin", config.server.admin, &config)?;
        let addresses = parts::addresses(&intake, &admin)?;
        let (keys, fetches) = KeyCache::new();
        let keys: Arc<dyn KeySource> = keys;
        let inbox = parts::open(&config, addresses.intake, &keys).await?;
        parts::write_owner_record(&inbox, addresses)?;
        let facts = parts::facts(&config, &inbox, addresses);
        let budget = BodyBudget::new(config.limits.body_memory);
        let fetcher = Fetcher::new(Arc::new(SystemNetwork::new()), None);
        let handshakes = Handshakes::new(inbox.clone(), config.data.clone(), fetcher.clone());
        let intake = parts::start_intake(intake, &config, &inbox, &budget, addresses, handshakes).await?;
        let fetches = tokio::spawn(fetches.run(fetcher));
        let redeliveries = Arc::new(Notify::new());
        let reloader = Reloader::new(inbox.clone(), addresses.intake, keys, config.clone());
        let waiting = Arc::new(Waiting::new());
        let deliveries = parts::start_deliveries()?;
        let dispatcher = deliveries.enter(|| Dispatcher::start(inbox.clone(), Arc::new(BuiltInSinks::new())));
        let shared = parts::Shared {
            standings: dispatcher.standings().clone(),
            waiting: waiting.clone(),
            intake_stop: intake.stop.subscribe(),
            redeliveries: redeliveries.clone(),
            reloader: reloader.clone(),
        };
        let admin = parts::start_admin(admin, &config, &inbox, tokens, addresses, shared);
        let redeliverer = Redeliverer::start(inbox.clone(), redeliveries);
        tracing::info!(
            intake.address = %addresses.intake, admin.address = %addresses.admin, store.url = facts.store,
            "ready"
        );
        let (drain, failstop_linger) = (config.server.drain, config.server.failstop_linger);
        let hangups = hangups(&config, reloader).map_err(StartError::Signals)?;
        Ok(Self {
            facts,
            inbox,
            budget,
            intake,
            admin,
            dispatcher,
            deliveries,
            redeliverer,
            hangups,
            fetches,
            waiting,
            drain,
            failstop_linger,
        })
    }

    /// What is true of it.
    pub fn facts(&self) -> &ServerFacts {
        &self.facts
    }

    /// The inbox that it serves.
    pub fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// How many claims and tails wait for something to come.
    pub fn waiting(&self) -> usize {
        self.waiting.count()
    }

    /// Memory that bodies in flight take at the moment, in bytes. It is 0 when nothing is in flight.
    pub fn body_memory_in_use(&self) -> u64 {
        self.budget.in_use()
    }

    /// Runs until `stop` is ready, or until the store is poisoned: then it goes on refusing (and reading) for
    /// `failstop_linger`, so that somebody can see why, and ends.
    pub async fn run(self, stop: impl Future<Output = ()>) -> RunOutcome {
        let poisoned = poisoned(self.inbox.health());
        tokio::pin!(stop);
        tokio::select! {
            () = &mut stop => self.shutdown().await,
            reason = poisoned => {
                tracing::error!(
                    reason = %reason, failstop.linger_ms = u64::try_from(self.failstop_linger.as_millis()).unwrap_or(u64::MAX),
                    "the store is poisoned: nothing is accepted any more, and the server will end"
                );
                let linger = tokio::time::sleep(self.failstop_linger);
                tokio::select! {
                    () = linger => {}
                    () = &mut stop => {}
                }
                self.shutdown().await;
                RunOutcome::FailStop(reason.to_string())
            }
        }
    }

    /// Ends it: nothing new is accepted, everything in flight is answered (for at most `drain`, and a last turn of
    /// a quarter of a second), what is queued is committed, and the store is let go.
    pub async fn shutdown(self) -> RunOutcome {
        let begin = Instant::now();
        self.intake.end(self.drain).await;
        if let Some(hangups) = &self.hangups {
            hangups.abort();
        }
        self.fetches.abort();
        self.redeliverer.end().await;
        let rest = self.drain.saturating_sub(begin.elapsed());
        self.dispatcher.stop(rest.max(LAST_ATTEMPTS_TIME.min(self.drain))).await;
        self.deliveries.end().await;
        let inbox = self.inbox.clone();
        let closed = tokio::task::spawn_blocking(move || inbox.close()).await;
        self.admin.end(ADMIN_DRAIN).await;
        match closed {
            Ok(Ok(())) => RunOutcome::Stopped,
            Ok(Err(Unavailable::Poisoned(reason))) => RunOutcome::FailStop(reason.to_string()),
            Ok(Err(error)) => RunOutcome::Unclean(error.to_string()),
            Err(error) => RunOutcome::Unclean(error.to_string()),
        }
    }
}

impl Task {
    async fn end(self, time: Duration) {
        self.stop.send_replace(Stop::Until(Instant::now() + time));
        if let Err(error) = self.handle.await {
            tracing::error!(error = %error, "an accept loop did not end in order");
        }
    }
}

/// Takes the configuration over again at each SIGHUP. A server without a configuration file ends with its terminal,
/// as every program does that was told nothing else.
fn hangups(config: &Config, reloader: Arc<Reloader>) -> io::Result<Option<JoinHandle<()>>> {
    if config.mode == Mode::Dev {
        return Ok(None);
    }
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(Some(tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            reloader.reload_logged().await;
        }
    })))
}

/// A write beyond the limit of a file's size (`ulimit -f`) fails as on a full disk, and does not kill the process. The
/// handler stays for as long as the process lives.
fn outlive_file_size_limit() -> io::Result<()> {
    signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop)
}

/// Ready with the reason once the store is poisoned. A store that recovers or closes is not.
async fn poisoned(mut health: watch::Receiver<Health>) -> Arc<str> {
    let found = health.wait_for(|health| matches!(health, Health::Poisoned(_))).await;
    match found.map(|health| health.clone()) {
        Ok(Health::Poisoned(reason)) => reason,
        _ => std::future::pending().await,
    }
}

/// Ready when the process is asked to end: SIGTERM, or SIGINT from a keyboard.
///
/// # Errors
///
/// The handlers could not be installed.
pub fn termination() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_poisoned_store_ends_the_server() {
        let (health, seen) = watch::channel(Health::Ready);
        let waiting = tokio::spawn(poisoned(seen));
        for harmless in [Health::Recovering("no space".into()), Health::Ready] {
            health.send_replace(harmless);
            tokio::task::yield_now().await;
            assert!(!waiting.is_finished());
        }
        health.send_replace(Health::Poisoned("fsync failed".into()));
        assert_eq!(&*waiting.await.unwrap(), "fsync failed");
    }
}
