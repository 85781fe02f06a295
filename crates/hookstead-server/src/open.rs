//! From a configuration to what it stands for without any listener: its inbox, and how its sources answer. A server
//! opens its inbox here, and so does a verb that has to do its work while no server runs.

use std::net::SocketAddr;
use std::sync::Arc;

use hookstead::store::{OpenOptions, UpgradeCopy};
use hookstead::verify::{KeySource, Registry};
use hookstead::{Destination, Inbox, OnConflict, Source, SourceOptions};

use crate::api::view::AnswersView;
use crate::config::{Config, DestinationConfig, Mode, SourceConfig, source_url};
use crate::destination_secrets::DestinationSecrets;
use crate::dev::{self, DevSecrets};
use crate::folder::FolderError;
use crate::handed_secrets::HandedSecrets;
use crate::intake::answer::Policy;
use crate::run::StartError;

/// Opens the inbox of a configuration with all its sources. `intake` is where the server listens: the address of
/// sources without a public one. Blocks for as long as the disk takes.
///
/// # Errors
///
/// [`StartError`]: a secret, a source or the store.
pub fn open_inbox(config: &Config, intake: SocketAddr) -> Result<Inbox, StartError> {
    open_with(config, intake, None)
}

/// How the store of a configuration is opened, and looked at as a start would.
pub fn store_options(config: &Config) -> OpenOptions {
    let upgrade_copy = if config.store.upgrade_copy { UpgradeCopy::Beside } else { UpgradeCopy::None };
    OpenOptions { free_bytes_min: config.store.min_free, upgrade_copy, ..OpenOptions::default() }
}

/// As [`open_inbox`], with the keys that providers publish.
pub(crate) fn open_with(
    config: &Config,
    intake: SocketAddr,
    keys: Option<&Arc<dyn KeySource>>,
) -> Result<Inbox, StartError> {
    let mut builder = Inbox::builder().store(&config.store.url).open_options(store_options(config));
    for destination in destinations(config)? {
        builder = builder.destination(destination);
    }
    match config.mode {
        Mode::Configured => {
            for source in configured_sources(config, intake, keys)? {
                builder = builder.source(source);
            }
        }
        Mode::Dev => {
            let (secrets, none) = (DevSecrets::open(&config.data)?, HandedSecrets::default());
            for source in &dev::sources(&secrets, &config.read_from.environment, config.limits.body) {
                // A provider nobody uses shall not show up as a source.
                builder = builder.source_at_first_use(made(source, config, intake, &none, keys)?);
            }
        }
    }
    Ok(builder.open()?)
}

/// The sources of a configuration, ready for an inbox.
pub(crate) fn configured_sources(
    config: &Config,
    intake: SocketAddr,
    keys: Option<&Arc<dyn KeySource>>,
) -> Result<Vec<Source>, StartError> {
    let waits = config.sources.iter().any(SourceConfig::awaits_secret);
    let handed = if waits { HandedSecrets::read(&config.data)? } else { HandedSecrets::default() };
    config.sources.iter().map(|source| made(source, config, intake, &handed, keys)).collect()
}

/// The destinations of a configuration, ready for an inbox. The secrets that they lack are made and kept.
pub(crate) fn destinations(config: &Config) -> Result<Vec<Destination>, FolderError> {
    let secrets = DestinationSecrets::open(&config.data, &config.destinations)?;
    let made = |known: &DestinationConfig| known.made(secrets.get(known.name.as_str()));
    Ok(config.destinations.iter().map(made).collect())
}

fn made(
    source: &SourceConfig,
    config: &Config,
    intake: SocketAddr,
    handed: &HandedSecrets,
    keys: Option<&Arc<dyn KeySource>>,
) -> Result<Source, StartError> {
    let url = source_url(source.name.as_str(), config.server.public_url.as_deref(), intake);
    let options = SourceOptions {
        verify: source.verify_options(Some(url), keys.cloned()),
        body_bytes_max: Some(source.body_bytes_max),
        on_conflict: source.on_conflict,
        body_reuse: source.body_reuse,
        success_status: source.success_status,
        success_body: source.success_body.clone(),
    };
    let (name, provider) = (source.name.clone(), source.provider.clone());
    let made = match handed.get(name.as_str()).filter(|_| source.awaits_secret()) {
        Some(secret) => Source::new(name, provider, std::slice::from_ref(secret), options),
        None if source.awaits_secret() => {
            tracing::warn!(
                source.name = %name,
                "no secret is configured: the first one that is handed over will be taken, until then no event is"
            );
            Source::awaiting_secret(name, provider, options)
        }
        None => Source::new(name, provider, &source.secrets, options),
    };
    made.map_err(|error| StartError::Source { name: source.name.to_string(), error })
}

/// With which status a source's requests are answered; `None` if it stands in no configuration.
pub fn answers(config: &Config, source: &str) -> Option<AnswersView> {
    let policy = match config.mode {
        Mode::Configured => {
            let source = config.sources.iter().find(|configured| configured.name.as_str() == source)?;
            Policy {
                ack: Some(source.provider.ack()),
                on_conflict: source.on_conflict,
                success_status: source.success_status,
            }
        }
        Mode::Dev => Policy {
            ack: Some(Registry::builtin().get(source)?.ack()),
            on_conflict: OnConflict::Refuse,
            success_status: None,
        },
    };
    Some(policy.answers())
}
