//! Getting one document from a provider's own host: keys that it publishes, the confirmation of a subscription. It
//! goes the way that pushes go (one look-up, every address checked, certificates by the system's CAs, no proxy, no
//! redirect), to `https` and the public internet only.
//!
//! It knows nothing of what the document is. That the address belongs to the provider its record has said.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, HOST, HeaderValue, USER_AGENT};
use http::{Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::connector;
use super::guard::Reach;
use super::network::Network;
use super::tls;
use super::url::PushUrl;

/// The time for a document, from the look-up of the name to the end of the answer.
pub const FETCH_TIME_MAX: Duration = Duration::from_secs(10);

/// Why there is no document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The address is none that may be fetched from.
    #[error("cannot be fetched: {0}")]
    Url(String),
    /// There was no whole answer.
    #[error("{0}")]
    Unreached(String),
    /// The answer was another one than 200 to 299; a redirect is not followed.
    #[error("the host answered {0}")]
    Status(u16),
    /// The document is longer than it may be.
    #[error("the answer has more than {0} bytes, or was cut off")]
    Body(usize),
    /// It was not all there within [`FETCH_TIME_MAX`].
    #[error("no whole answer within {FETCH_TIME_MAX:?}")]
    Late,
}

impl FetchError {
    /// Whether the host itself says that there is no such document, so that asking again is of no use for a while.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Url(_) => true,
            Self::Status(status) => (400..500).contains(status) && ![408, 425, 429].contains(status),
            Self::Unreached(_) | Self::Body(_) | Self::Late => false,
        }
    }
}

/// Fetches documents, each over a connection of its own.
#[derive(Clone)]
pub struct Fetcher {
    network: Arc<dyn Network>,
    ca_file: Option<PathBuf>,
    /// Made for the first document: reading the system's CAs takes a while, and most servers fetch nothing.
    tls: Arc<OnceCell<TlsConnector>>,
}

impl std::fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fetcher")
    }
}

impl Fetcher {
    /// A fetcher that trusts the system's CAs, and those in the PEM file. They are read for the first document.
    pub fn new(network: Arc<dyn Network>, ca_file: Option<PathBuf>) -> Self {
        Self { network, ca_file, tls: Arc::default() }
    }

    /// The document at an address, of at most `bytes_max` bytes, within [`FETCH_TIME_MAX`].
    ///
    /// # Errors
    ///
    /// [`FetchError`]. Only a whole answer with a status of success is a document.
    pub async fn get(&self, url: &str, bytes_max: usize) -> Result<Bytes, FetchError> {
        let url = PushUrl::parse(url, Reach::Public).map_err(|error| FetchError::Url(error.to_string()))?;
        if !url.is_secure() {
            return Err(FetchError::Url("the address is not https".to_owned()));
        }
        timeout(FETCH_TIME_MAX, self.exchange(&url, bytes_max)).await.unwrap_or(Err(FetchError::Late))
    }

    async fn exchange(&self, url: &PushUrl, bytes_max: usize) -> Result<Bytes, FetchError> {
        let unreached = |failure: connector::Failure| FetchError::Unreached(failure.error);
        let tls = self.tls.get_or_try_init(|| trusted(self.ca_file.clone())).await?;
        let mut connection = connector::connect(&self.network, url, Some(tls)).await.map_err(unreached)?;
        let response = connection.send(request(url)?).await.map_err(unreached)?;
        let status = response.status();
        if !status.is_success() {
            return Err(FetchError::Status(status.as_u16()));
        }
        let body = connection.drive(Limited::new(response.into_body(), bytes_max).collect()).await;
        body.map(http_body_util::Collected::to_bytes).map_err(|_| FetchError::Body(bytes_max))
    }
}

async fn trusted(ca_file: Option<PathBuf>) -> Result<TlsConnector, FetchError> {
    let made = tokio::task::spawn_blocking(move || tls::connector(ca_file.as_deref())).await;
    let unreached = |error: &dyn std::error::Error| FetchError::Unreached(error.to_string());
    made.map_err(|error| unreached(&error))?.map_err(|error| unreached(&error))
}

fn request(url: &PushUrl) -> Result<Request<Full<Bytes>>, FetchError> {
    let unsendable = |error: String| FetchError::Url(error);
    let mut request = Request::new(Full::new(Bytes::new()));
    *request.uri_mut() = url.target().parse::<Uri>().map_err(|error| unsendable(error.to_string()))?;
    let host = HeaderValue::from_str(&url.authority()).map_err(|error| unsendable(error.to_string()))?;
    let fields = request.headers_mut();
    fields.insert(HOST, host);
    fields.insert(USER_AGENT, HeaderValue::from_static(concat!("hookstead/", env!("CARGO_PKG_VERSION"))));
    fields.insert(ACCEPT, HeaderValue::from_static("*/*"));
    Ok(request)
}
