//! The configuration: what may be written, how it is read, and what is said when it is wrong.

mod conf;
mod destinations;
mod environment;
mod keys;
mod load;
mod problem;
mod reader;
mod schedule;
mod secret;
mod settings;
mod show;
mod show_destination;
mod sources;
mod units;
mod values;

pub use crate::network::{Network, NetworkError};
pub use destinations::DestinationConfig;
pub use environment::{ConfigSource, DEV_DESTINATIONS_FILE, Environment, FILE_NAME, Overrides, VARIABLES};
pub use keys::{KEYS, Key};
pub use problem::{ConfigErrors, ConfigProblem, Place};
pub use secret::{SecretEntry, SecretReference};
pub use settings::{
    Config, LimitsConfig, Mode, ObservabilityConfig, Origin, ProxyHeader, RateLimit, ServerConfig,
    StoreConfig, source_url,
};
pub use show::{ShownKey, default_text};
pub use sources::SourceConfig;
pub use units::{format_duration, format_size, parse_duration, parse_size};
pub use values::store_path;
