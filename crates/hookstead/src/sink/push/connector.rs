//! From a URL to a connection: look up once, check every address, connect to one that was checked.
//!
//! There is no second look-up between the check and the connection that could answer otherwise. A name that
//! stands for one forbidden address beside ten good ones is refused: whoever set it up can move it to that
//! one.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::connection::Connection;
use super::guard::check_address;
use super::network::Network;
use super::options::PUSH_TIMEOUT_MAX;
use super::rules::PushRule;
use super::tls;
use super::url::{PushHost, PushUrl};

/// Most addresses of one name that an attempt tries to connect to.
pub const DIALED_MAX: usize = 4;

/// How long one address is tried alone before the next one is tried beside it, as RFC 8305 advises.
pub const DIAL_STAGGER: Duration = Duration::from_millis(250);

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) rule: PushRule,
    pub(super) error: String,
}

impl Failure {
    pub(super) fn new(rule: PushRule, error: impl Into<String>) -> Self {
        Self { rule, error: error.into() }
    }
}

/// Connects to the URL's host, with TLS if there is a connector for it.
pub(super) async fn connect(
    network: &Arc<dyn Network>,
    url: &PushUrl,
    tls: Option<&TlsConnector>,
) -> Result<Connection, Failure> {
    let addresses = addresses(network.as_ref(), url).await?;
    let stream = dial(network, &addresses, url.port()).await;
    let stream =
        stream.map_err(|error| Failure::new(PushRule::ConnectFailed, cannot_connect(url, &error)))?;
    let Some(tls) = tls else { return Connection::start(stream).await };
    let failed = |error: String| Failure::new(PushRule::TlsFailed, error);
    let name = tls::server_name(url.host()).map_err(|error| failed(error.to_string()))?;
    let stream = tls.connect(name, stream).await.map_err(|error| failed(tls::explain(&error)))?;
    Connection::start(stream).await
}

/// The host's addresses, every one of them checked.
async fn addresses(network: &dyn Network, url: &PushUrl) -> Result<Vec<IpAddr>, Failure> {
    let found = match url.host() {
        PushHost::Address(address) => vec![*address],
        PushHost::Name(name) => resolve(network, name).await?,
    };
    for address in &found {
        check_address(*address, url.reach()).map_err(|forbidden| {
            let name = match url.host() {
                PushHost::Name(name) => format!("`{name}` stands for "),
                PushHost::Address(_) => String::new(),
            };
            Failure::new(PushRule::AddressForbidden, format!("{name}{forbidden}; {}", forbidden.fix()))
        })?;
    }
    Ok(found)
}

async fn resolve(network: &dyn Network, name: &str) -> Result<Vec<IpAddr>, Failure> {
    let unresolved =
        |why: &str| Failure::new(PushRule::NameUnresolved, format!("no address of `{name}`: {why}"));
    let found = network.resolve(name).await.map_err(|error| unresolved(&error.to_string()))?;
    if found.is_empty() { Err(unresolved("the name stands for none")) } else { Ok(found) }
}

/// The first connection that comes about. The addresses are tried in their order, each next one when the one
/// before it has failed or taken [`DIAL_STAGGER`].
async fn dial(network: &Arc<dyn Network>, addresses: &[IpAddr], port: u16) -> io::Result<TcpStream> {
    let mut waiting = addresses.iter().take(DIALED_MAX).map(|address| SocketAddr::new(*address, port));
    let mut dialing = JoinSet::new();
    let mut failed = io::Error::other("it has no address");
    loop {
        if let Some(address) = waiting.next() {
            let network = Arc::clone(network);
            dialing.spawn(async move { network.dial(address).await });
        }
        let patience = if waiting.len() > 0 { DIAL_STAGGER } else { PUSH_TIMEOUT_MAX };
        match timeout(patience, dialing.join_next()).await.map(|ended| ended.map(flatten)) {
            Ok(Some(Ok(stream))) => return Ok(stream),
            Ok(Some(Err(error))) => failed = error,
            Ok(None) => return Err(failed),
            Err(_) => {} // the next address beside those that are still being tried
        }
    }
}

fn flatten(ended: Result<io::Result<TcpStream>, JoinError>) -> io::Result<TcpStream> {
    ended.unwrap_or_else(|error| Err(io::Error::other(error)))
}

fn cannot_connect(url: &PushUrl, error: &io::Error) -> String {
    format!("no connection to `{}`: {error}", url.authority())
}
