//! The parts that a server is put together from, one function each; in which order, `server` knows.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use hookstead::dispatch::Standings;
use hookstead::store::{OpenOptions, OwnerRecord};
use hookstead::verify::KeySource;
use hookstead::{Inbox, OpenError};
use http::Request;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore, watch};

use super::Reloader;
use super::deliveries::DeliveryThreads;
use super::loops::{Common, Loops};
use super::outcome::{ServerFacts, StartError};
use super::server::Task;
use crate::api::{Api, Hosts, Places, Waiting, router};
use crate::config::Config;
use crate::intake::{BodyBudget, Gate, Handshakes, Intake, Setting};
use crate::limits::{ADMIN_CONNECTIONS_MAX, CHANGES_MAX, CLAIMS_ANSWERED_MAX, IMPORTS_MAX, READS_MAX};
use crate::listen::{Connections, HalfClosed, Listening, Share, Stop, Times, bind, serve};
use crate::network::Networks;
use crate::open::open_with;
use crate::tokens::Tokens;

/// Where a server listens.
#[derive(Clone, Copy)]
pub(super) struct Addresses {
    pub(super) intake: SocketAddr,
    pub(super) admin: SocketAddr,
}

/// Binds a listener, or says who has its address.
pub(super) fn listen(
    listener: &'static str,
    address: SocketAddr,
    config: &Config,
) -> Result<TcpListener, StartError> {
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

/// The addresses that were bound, also where the port was left to the system.
pub(super) fn addresses(intake: &TcpListener, admin: &TcpListener) -> Result<Addresses, StartError> {
    let address_of = |listener, socket: &TcpListener| {
        let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
        socket.local_addr().map_err(|source| StartError::Listen { listener, address: unknown, source })
    };
    Ok(Addresses { intake: address_of("intake", intake)?, admin: address_of("admin", admin)? })
}

/// Opens the inbox on a thread that may block.
pub(super) async fn open(
    config: &Config,
    intake: SocketAddr,
    keys: &Arc<dyn KeySource>,
) -> Result<Inbox, StartError> {
    let (config, keys) = (config.clone(), keys.clone());
    let opened = tokio::task::spawn_blocking(move || open_with(&config, intake, Some(&keys))).await;
    opened.map_err(|error| StartError::Thread(error.to_string()))?
}

/// Tells other commands where to reach this server.
pub(super) fn write_owner_record(inbox: &Inbox, addresses: Addresses) -> Result<(), StartError> {
    let Some(lock) = &inbox.opened().lock else { return Ok(()) };
    let url = |address: SocketAddr| format!("http://{address}");
    let record =
        vec![("intake".to_owned(), url(addresses.intake)), ("admin".to_owned(), url(addresses.admin))];
    lock.set_addresses(record).map_err(StartError::OwnerRecord)
}

/// What the line that says ready tells.
pub(super) fn facts(config: &Config, inbox: &Inbox, addresses: Addresses) -> ServerFacts {
    let mut sources: Vec<String> = inbox.sources().iter().map(|source| source.name().to_string()).collect();
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

/// Starts the intake's accept loops.
pub(super) async fn start_intake(
    listener: TcpListener,
    config: &Config,
    inbox: &Inbox,
    budget: &Arc<BodyBudget>,
    addresses: Addresses,
    handshakes: Arc<Handshakes>,
) -> Result<Loops, StartError> {
    let limits = &config.limits;
    let (stop, stopped) = watch::channel(Stop::default());
    let setting = Setting::Listener(stopped.clone());
    let gate = Gate::of(config, addresses.intake);
    let intake = Intake::new(inbox.clone(), budget.clone(), limits.body_time, gate, setting);
    let intake = Arc::new(intake.with_handshakes(handshakes));
    let serve = move |listening: Listening| {
        let intake = intake.clone();
        let answer = move |request: Request<Incoming>, peer: SocketAddr| {
            let intake = intake.clone();
            async move { intake.answer(request, Some(peer.ip())).await }
        };
        serve(listening, answer, stopped.clone())
    };
    let proxies = Networks::from(config.server.trusted_proxies.as_slice());
    let connections = Connections::new(limits.connections, Some(limits.connections_per_address), proxies);
    let failed = |source| StartError::Listen { listener: "intake", address: config.server.intake, source };
    let listener = listener.into_std().map_err(failed)?;
    let common = Common { listener, connections, times: times(config) };
    Loops::start(common, stop, serve).await.map_err(failed)
}

/// The threads that deliveries are made on.
pub(super) fn start_deliveries() -> Result<DeliveryThreads, StartError> {
    let failed = |source| OpenError::System { doing: "start the threads of the deliveries", source };
    DeliveryThreads::start().map_err(|error| StartError::Open(failed(error)))
}

/// What the admin listener shares with other parts.
pub(super) struct Shared {
    pub(super) intake_stop: watch::Receiver<Stop>,
    pub(super) standings: Standings,
    pub(super) waiting: Arc<Waiting>,
    pub(super) redeliveries: Arc<Notify>,
    pub(super) reloader: Arc<Reloader>,
}

/// Starts the admin listener's accept loop.
pub(super) fn start_admin(
    listener: TcpListener,
    config: &Config,
    inbox: &Inbox,
    tokens: Tokens,
    addresses: Addresses,
    shared: Shared,
) -> Task {
    let api = api(config, inbox, tokens, addresses, shared);
    let service = TowerToHyperService::new(router(Arc::new(api)));
    let answer = move |request: Request<Incoming>, _peer| {
        let answered = service.call(request);
        // A router cannot fail: what goes wrong in it is an answer.
        async move { answered.await.unwrap_or_else(|never| match never {}) }
    };
    let (stop, stopped) = watch::channel(Stop::default());
    let connections = Connections::new(ADMIN_CONNECTIONS_MAX, None, Networks::default());
    let half_closed = HalfClosed::Gone;
    let listening =
        Listening { listener, connections, share: Share::alone(), times: times(config), half_closed };
    Task { stop, handle: tokio::spawn(serve(listening, answer, stopped)) }
}

/// What the handlers of the API share.
pub(super) fn api(
    config: &Config,
    inbox: &Inbox,
    tokens: Tokens,
    addresses: Addresses,
    shared: Shared,
) -> Api {
    Api {
        inbox: inbox.clone(),
        reads: Places::new(READS_MAX),
        changes: Places::new(CHANGES_MAX),
        claims: Places::new(CLAIMS_ANSWERED_MAX),
        imports: Semaphore::new(IMPORTS_MAX),
        standings: shared.standings,
        waiting: shared.waiting,
        redeliveries: shared.redeliveries,
        reloader: shared.reloader,
        tokens,
        hosts: Hosts::new(addresses.admin, &config.server.admin_hosts),
        health: inbox.health(),
        stop: shared.intake_stop,
        intake: addresses.intake,
        limits: config.limits,
        public_url: config.server.public_url.clone(),
    }
}
