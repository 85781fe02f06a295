//! What push knows of the network: names become addresses, and an address becomes a connection. Nothing else
//! in push opens a socket, and no environment is read: proxies that are named there are not used.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// Most names that are looked up at a time. The system's look-up cannot be called off, so each one that hangs
/// holds a thread.
pub const RESOLVING_MAX: usize = 32;

/// A look-up under way.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// A connection under way.
pub type Dialing<'a> = Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send + 'a>>;

/// The network as pushes see it.
pub trait Network: Send + Sync {
    /// The addresses that a name stands for now, in the order to try them in.
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a>;

    /// Connects to exactly this address.
    fn dial(&self, address: SocketAddr) -> Dialing<'_>;
}

/// The machine's own network and its resolver.
#[derive(Debug)]
pub struct SystemNetwork {
    resolving: Arc<Semaphore>,
}

impl SystemNetwork {
    /// The machine's network; one is enough for all destinations.
    pub fn new() -> Self {
        Self { resolving: Arc::new(Semaphore::new(RESOLVING_MAX)) }
    }
}

impl Default for SystemNetwork {
    fn default() -> Self {
        Self::new()
    }
}

impl Network for SystemNetwork {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        Box::pin(async move {
            let permit = Arc::clone(&self.resolving).acquire_owned().await.map_err(io::Error::other)?;
            let name = name.to_owned();
            let look_up = move || {
                let _held_to_the_end = permit;
                (name.as_str(), 0).to_socket_addrs().map(|found| found.map(|address| address.ip()).collect())
            };
            tokio::task::spawn_blocking(look_up).await.map_err(io::Error::other)?
        })
    }

    fn dial(&self, address: SocketAddr) -> Dialing<'_> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(stream)
        })
    }
}
