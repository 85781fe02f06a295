//! A configuration that was read and found right. How it is read is `load`'s.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::destinations::DestinationConfig;
use super::environment::{ConfigSource, DEV_DESTINATIONS_FILE};
use super::problem::ConfigErrors;
use super::sources::SourceConfig;
use crate::limits;
use crate::network::Network;
use crate::telemetry::LogFormat;

/// How a server is configured. Every value was checked; secrets are in memory and redacted in `Debug`.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file it came from.
    pub file: Option<PathBuf>,
    /// Whether sources are written down or made by themselves.
    pub mode: Mode,
    /// The folder for everything that the server writes beside the store.
    pub data: PathBuf,
    /// `[server]`.
    pub server: ServerConfig,
    /// `[store]`.
    pub store: StoreConfig,
    /// `[limits]`.
    pub limits: LimitsConfig,
    /// `[observability]`.
    pub observability: ObservabilityConfig,
    /// `[sources.*]`, by name. Empty in dev mode, where every built-in provider has one.
    pub sources: Vec<SourceConfig>,
    /// `[destinations.*]`, by name.
    pub destinations: Vec<DestinationConfig>,
    /// What it was made from. Dev mode looks for secrets in its environment, and a reload reads it again.
    pub(crate) read_from: ConfigSource,
    pub(super) origins: BTreeMap<String, Origin>,
}

/// Where sources come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// No configuration file, loopback only: a source for each built-in provider, with a secret of its own.
    Dev,
    /// From the file.
    Configured,
}

/// `[server]`.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The intake's address.
    pub intake: SocketAddr,
    /// The admin listener's address.
    pub admin: SocketAddr,
    /// How providers reach the intake, without a slash at its end.
    pub public_url: Option<String>,
    /// Further `Host` names of the intake, in lower case.
    pub intake_hosts: Vec<String>,
    /// The proxies that are believed when they say for whom they ask.
    pub trusted_proxies: Vec<Network>,
    /// The header in which they say it.
    pub proxy_header: ProxyHeader,
    /// Further `Host` names of the admin listener.
    pub admin_hosts: Vec<String>,
    /// How long a stop waits for what is in flight.
    pub drain: Duration,
    /// How long a poisoned server goes on before it ends.
    pub failstop_linger: Duration,
}

impl ServerConfig {
    /// The names that the intake answers to beside its addresses: that of the public address and the further ones.
    /// None: it answers to every name.
    pub(crate) fn intake_names(&self) -> Vec<String> {
        let uri = self.public_url.as_ref().and_then(|url| url.parse::<http::Uri>().ok());
        let public = uri.as_ref().and_then(http::Uri::host).map(str::to_ascii_lowercase);
        public.into_iter().chain(self.intake_hosts.iter().cloned()).collect()
    }
}

/// The header in which a trusted proxy says for whom it asks. Only one is read: a proxy that writes one passes the
/// other on as the client sent it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyHeader {
    /// What nearly all proxies write.
    #[default]
    XForwardedFor,
    /// RFC 7239.
    Forwarded,
}

impl ProxyHeader {
    /// Its name in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
        }
    }
}

/// How many requests a source takes in a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// So many, also all at once; at least 1.
    pub requests: u32,
    /// The time in which they are given anew, evenly.
    pub per: Duration,
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.per.as_secs() {
            60 => "m",
            3600 => "h",
            _ => "s",
        };
        write!(f, "{}/{unit}", self.requests)
    }
}

/// `[store]`.
#[derive(Clone, Debug)]
pub struct StoreConfig {
    /// The store's URL, its path absolute.
    pub url: String,
    /// With less free space than this, in bytes, nothing is accepted.
    pub min_free: u64,
    /// Whether a copy of an older database is kept before its schema is changed.
    pub upgrade_copy: bool,
}

/// `[limits]`; see [`crate::limits`] for the reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitsConfig {
    /// Largest body in bytes where nothing else says so.
    pub body: u64,
    /// Memory for all bodies in flight, in bytes.
    pub body_memory: u64,
    /// Time for the head of a request.
    pub header_time: Duration,
    /// Time for a body, beside its length at [`limits::BODY_BYTES_PER_SECOND_MIN`].
    pub body_time: Duration,
    /// Time between requests of a connection.
    pub idle_time: Duration,
    /// Time in which a client must take some of its answer.
    pub write_time: Duration,
    /// Connections of the intake.
    pub connections: usize,
    /// Connections of one address.
    pub connections_per_address: usize,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            body: limits::BODY_BYTES_MAX,
            body_memory: limits::BODY_MEMORY_BYTES,
            header_time: limits::HEADER_TIME,
            body_time: limits::BODY_TIME,
            idle_time: limits::IDLE_TIME,
            write_time: limits::WRITE_TIME,
            connections: limits::CONNECTIONS_MAX,
            connections_per_address: limits::CONNECTIONS_PER_ADDRESS_MAX,
        }
    }
}

/// `[observability]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservabilityConfig {
    /// How log lines look.
    pub log_format: LogFormat,
    /// Which lines are logged: a level, or levels by target. Checked.
    pub log_level: String,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From the file, at this line.
    File(usize),
    /// From an environment variable.
    Environment(&'static str),
    /// From an option of the command line.
    Flag(&'static str),
    /// Nobody said anything else.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(line) => write!(f, "line {line}"),
            Self::Environment(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
            Self::Default => f.write_str("default"),
        }
    }
}

impl Config {
    /// This configuration with the sources and destinations of another.
    pub(crate) fn with_tables_of(&self, other: Self) -> Self {
        let is_table = |key: &String| key.starts_with("sources.") || key.starts_with("destinations.");
        let mut origins = self.origins.clone();
        origins.retain(|key, _| !is_table(key));
        origins.extend(other.origins.into_iter().filter(|(key, _)| is_table(key)));
        Self { sources: other.sources, destinations: other.destinations, origins, ..self.clone() }
    }

    /// The file in which the sources and destinations stand, whether it is there already or not.
    pub fn tables_file(&self) -> PathBuf {
        self.file.clone().unwrap_or_else(|| self.data.join(DEV_DESTINATIONS_FILE))
    }

    /// This configuration with another text in the place of [`Config::tables_file`]'s. Nothing is written.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the text.
    pub fn with_text(&self, text: &str) -> Result<Self, ConfigErrors> {
        Self::load_text(&self.read_from, text)
    }

    /// Where the value of a key such as `server.intake` came from.
    pub fn origin(&self, key: &str) -> Origin {
        self.origins.get(key).cloned().unwrap_or(Origin::Default)
    }
}

/// How providers reach a source: by the public address if there is one, else by the intake's.
pub fn source_url(name: &str, public_url: Option<&str>, intake: SocketAddr) -> String {
    match public_url {
        Some(base) => format!("{base}/in/{name}"),
        None => format!("http://{intake}/in/{name}"),
    }
}
