//! A running server: both listeners, the inbox between them, and how it starts and ends.
//!
//! Start: data folder, tokens, both addresses bound, store opened and proved, addresses written to the store's
//! owner record; only then is anything accepted. Stop: the intake accepts nothing new and answers what it has,
//! then the inbox commits what is queued and lets the store go, then the admin listener ends.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use hookstead::store::{OpenOptions, OwnerRecord};
use hookstead::verify::{Provider, Secret, VerifierError};
use hookstead::{Health, Inbox, OpenError, Source, SourceOptions, Unavailable};
use http::Request;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Duration, Instant};

use crate::api::{Api, Hosts, Reads, router};
use crate::config::{Config, Mode, SourceConfig, source_url};
use crate::dev::{self, DevSecrets};
use crate::folder::{self, FolderError};
use crate::intake::{BodyBudget, HeadCheck, Intake};
use crate::limits::ADMIN_CONNECTIONS_MAX;
use crate::listen::{Connections, Listening, Stop, Times, bind, serve};
use crate::tokens::Tokens;

/// How long the admin listener's connections have to end, after everything else has.
const ADMIN_DRAIN: Duration = Duration::from_secs(1);

/// A server that accepts. Dropping it without [`Server::shutdown`] leaves its tasks to the runtime.
pub struct Server {
    facts: ServerFacts,
    inbox: Inbox,
    budget: Arc<BodyBudget>,
    intake: Task,
    admin: Task,
    drain: Duration,
    failstop_linger: Duration,
}

/// An accept loop and its switch.
struct Task {
    stop: watch::Sender<Stop>,
    handle: JoinHandle<()>,
}

/// What is true of a server for as long as it runs, for the line that says that it is ready.
#[derive(Clone, Debug)]
pub struct ServerFacts {
    /// The program's version.
    pub version: &'static str,
    /// Where the intake listens.
    pub intake: SocketAddr,
    /// Where the admin listener listens.
    pub admin: SocketAddr,
    /// Where its sources come from.
    pub mode: Mode,
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// The data folder.
    pub data: PathBuf,
    /// The store's URL.
    pub store: String,
    /// What a success rests on.
    pub durability: String,
    /// The sources' names, sorted.
    pub sources: Vec<String>,
}

/// Why a server did not start. Nothing of it is left running.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address is taken.
    #[error("{address} is taken")]
    PortInUse {
        /// Which listener wanted it.
        listener: &'static str,
        /// The address.
        address: SocketAddr,
        /// The process that has our store open, if that may be who it is.
        owner: Option<OwnerRecord>,
    },
    /// An address cannot be used for another reason.
    #[error("cannot listen on {address}")]
    Listen {
        /// Which listener wanted it.
        listener: &'static str,
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The data folder or a file in it.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A source cannot be used after all.
    #[error("source `{name}`: {error}")]
    Source {
        /// Its name.
        name: String,
        /// Why.
        error: VerifierError,
    },
    /// The store.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The address could not be written beside the store, where other commands look for it.
    #[error("cannot write down where the server listens")]
    OwnerRecord(#[source] io::Error),
    /// The thread that opened the store did not end.
    #[error("the store could not be opened: {0}")]
    Thread(String),
}

impl StartError {
    /// A stable name, for people who look it up.
    pub fn code(&self) -> &'static str {
        match self {
            Self::PortInUse { .. } => "port-in-use",
            Self::Listen { .. } => "listen",
            Self::Folder(_) | Self::OwnerRecord(_) => "data-folder",
            Self::Source { .. } => "config",
            Self::Open(OpenError::Store(hookstead::store::OpenError::Locked { .. })) => "store-in-use",
            Self::Open(_) | Self::Thread(_) => "store",
        }
    }

    /// What to do about it; empty if the message says so itself.
    pub fn fix(&self) -> String {
        match self {
            Self::PortInUse { listener, owner: Some(owner), .. } => {
                format!(
                    "stop process {}, or choose another address: hookstead serve --{listener} 127.0.0.1:PORT",
                    owner.pid
                )
            }
            Self::PortInUse { listener, .. } => {
                format!("choose another address: hookstead serve --{listener} 127.0.0.1:PORT")
            }
            Self::Listen { listener, .. } => {
                format!("choose an address of this machine: --{listener} IP:PORT")
            }
            _ => String::new(),
        }
    }
}

/// How a server ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// It was asked to, answered what it had, and let the store go.
    Stopped,
    /// It was asked to, and the store could not be closed in order. Nothing acknowledged is lost.
    Unclean(String),
    /// The store was poisoned: exit code 70.
    FailStop(String),
}

impl RunOutcome {
    /// The exit code that belongs to it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Stopped => 0,
            Self::Unclean(_) => 1,
            Self::FailStop(_) => 70,
        }
    }
}

impl Server {
    /// Starts a server. When it returns, events are accepted.
    ///
    /// # Errors
    ///
    /// [`StartError`]; the store is closed again then, and nothing listens.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        folder::prepare(&config.data)?;
        let tokens = Tokens::open(&config.data)?;
        let intake = listen("intake", config.server.intake, &config)?;
        let admin = listen("admin", config.server.admin, &config)?;
        let addresses = Addresses { intake: address_of(&intake)?, admin: address_of(&admin)? };
        let inbox = open(&config, addresses.intake).await?;
        write_owner_record(&inbox, addresses)?;
        let facts = facts(&config, &inbox, addresses);
        let budget = BodyBudget::new(config.limits.body_memory);
        let intake = start_intake(intake, &config, &inbox, &budget);
        let admin = start_admin(admin, &config, &inbox, tokens, addresses, intake.stop.subscribe());
        tracing::info!(
            intake.address = %addresses.intake, admin.address = %addresses.admin, store.url = facts.store,
            "ready"
        );
        let (drain, failstop_linger) = (config.server.drain, config.server.failstop_linger);
        Ok(Self { facts, inbox, budget, intake, admin, drain, failstop_linger })
    }

    /// What is true of it.
    pub fn facts(&self) -> &ServerFacts {
        &self.facts
    }

    /// The inbox that it serves.
    pub fn inbox(&self) -> &Inbox {
        &self.inbox
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

    /// Ends it: nothing new is accepted, everything in flight is answered (for at most `drain`), what is
    /// queued is committed, and the store is let go.
    pub async fn shutdown(self) -> RunOutcome {
        self.intake.end(self.drain).await;
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

#[derive(Clone, Copy)]
struct Addresses {
    intake: SocketAddr,
    admin: SocketAddr,
}

fn listen(listener: &'static str, address: SocketAddr, config: &Config) -> Result<TcpListener, StartError> {
    bind(address).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => {
            StartError::PortInUse { listener, address, owner: owner_of(config, address) }
        }
        _ => StartError::Listen { listener, address, source },
    })
}

/// Who has our store open, if it says that it listens at this address.
fn owner_of(config: &Config, address: SocketAddr) -> Option<OwnerRecord> {
    let owner = hookstead::store::owner_record(&config.store.url, &OpenOptions::default());
    // Whoever cannot be read here is only not named in the message.
    let owner = owner.ok().flatten()?;
    owner.addresses.iter().any(|(_, known)| known.ends_with(&address.to_string())).then_some(owner)
}

fn address_of(listener: &TcpListener) -> Result<SocketAddr, StartError> {
    listener.local_addr().map_err(|source| {
        let address = SocketAddr::from(([0, 0, 0, 0], 0));
        StartError::Listen { listener: "intake", address, source }
    })
}

/// Opens the inbox on a thread that may block.
async fn open(config: &Config, intake: SocketAddr) -> Result<Inbox, StartError> {
    let config = config.clone();
    let opened = tokio::task::spawn_blocking(move || open_blocking(&config, intake)).await;
    opened.map_err(|error| StartError::Thread(error.to_string()))?
}

fn open_blocking(config: &Config, intake: SocketAddr) -> Result<Inbox, StartError> {
    let mut builder = Inbox::builder().store(&config.store.url);
    match config.mode {
        Mode::Configured => {
            for source in &config.sources {
                builder = builder.source(made(source, config, intake)?);
            }
        }
        Mode::Dev => {
            let secrets = DevSecrets::open(&config.data)?;
            for source in &dev::sources(&secrets, &config.environment, config.limits.body) {
                // A provider nobody uses shall not show up as a source.
                builder = builder.source_at_first_use(made(source, config, intake)?);
            }
        }
    }
    Ok(builder.open()?)
}

fn made(source: &SourceConfig, config: &Config, intake: SocketAddr) -> Result<Source, StartError> {
    let url = source_url(source.name.as_str(), config.server.public_url.as_deref(), intake);
    let options = SourceOptions {
        verify: source.verify_options(Some(url)),
        body_bytes_max: Some(source.body_bytes_max),
        on_conflict: source.on_conflict,
        success_status: source.success_status,
    };
    let made = Source::new(source.name.clone(), source.provider.clone(), &source.secrets, options);
    made.map_err(|error| StartError::Source { name: source.name.to_string(), error })
}

/// Tells other commands where to reach this server.
fn write_owner_record(inbox: &Inbox, addresses: Addresses) -> Result<(), StartError> {
    let Some(lock) = &inbox.opened().lock else { return Ok(()) };
    let url = |address: SocketAddr| format!("http://{address}");
    let record =
        vec![("intake".to_owned(), url(addresses.intake)), ("admin".to_owned(), url(addresses.admin))];
    lock.set_addresses(record).map_err(StartError::OwnerRecord)
}

fn facts(config: &Config, inbox: &Inbox, addresses: Addresses) -> ServerFacts {
    let mut sources: Vec<String> = inbox.sources().map(|source| source.name().to_string()).collect();
    sources.sort_unstable();
    ServerFacts {
        version: env!("CARGO_PKG_VERSION"),
        intake: addresses.intake,
        admin: addresses.admin,
        mode: config.mode,
        config: config.file.clone(),
        data: config.data.clone(),
        store: config.store.url.clone(),
        durability: inbox.store().facts().durability.clone(),
        sources,
    }
}

fn times(config: &Config) -> Times {
    Times {
        header: config.limits.header_time,
        idle: config.limits.idle_time,
        write: config.limits.write_time,
    }
}

fn start_intake(listener: TcpListener, config: &Config, inbox: &Inbox, budget: &Arc<BodyBudget>) -> Task {
    let limits = &config.limits;
    let head_check = |source: &Source| HeadCheck::new(source, random_secret);
    let (stop, stopped) = watch::channel(Stop::default());
    let intake = Intake::new(inbox.clone(), budget.clone(), limits.body_time, stopped.clone(), head_check);
    let intake = Arc::new(intake);
    let answer = move |request, peer| {
        let intake = intake.clone();
        async move { intake.answer(request, peer).await }
    };
    let connections = Connections::new(limits.connections, Some(limits.connections_per_address));
    let listening = Listening { listener, connections, times: times(config) };
    Task { stop, handle: tokio::spawn(serve(listening, answer, stopped)) }
}

/// A secret that fits a provider and that nobody has.
fn random_secret(provider: &Provider) -> Option<Secret> {
    let made = dev::make(provider).and_then(|text| Secret::new(text).map_err(io::Error::other));
    made.inspect_err(
        |error| tracing::warn!(error = %error, "bodies over the limit are always answered with 413"),
    )
    .ok()
}

fn start_admin(
    listener: TcpListener,
    config: &Config,
    inbox: &Inbox,
    tokens: Tokens,
    addresses: Addresses,
    intake_stop: watch::Receiver<Stop>,
) -> Task {
    let api = Api {
        inbox: inbox.clone(),
        reads: Reads::new(),
        tokens,
        hosts: Hosts::new(addresses.admin, &config.server.admin_hosts),
        health: inbox.health(),
        stop: intake_stop,
        intake: addresses.intake,
        public_url: config.server.public_url.clone(),
    };
    let service = TowerToHyperService::new(router(Arc::new(api)));
    let answer = move |request: Request<Incoming>, _peer| {
        let answered = service.call(request);
        // A router cannot fail: what goes wrong in it is an answer.
        async move { answered.await.unwrap_or_else(|never| match never {}) }
    };
    let (stop, stopped) = watch::channel(Stop::default());
    let connections = Connections::new(ADMIN_CONNECTIONS_MAX, None);
    let listening = Listening { listener, connections, times: times(config) };
    Task { stop, handle: tokio::spawn(serve(listening, answer, stopped)) }
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
