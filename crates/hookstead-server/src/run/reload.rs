//! Taking over a changed configuration file while the server runs: its sources and destinations, whole or not at
//! all. What cannot change at run time is named and waits for a restart.

use std::net::SocketAddr;
use std::sync::Arc;

use hookstead::verify::{KeySource, VerifierError};
use hookstead::{Inbox, ReconfigureError, Unavailable};
use tokio::sync::Mutex;

use super::outcome::StartError;
use crate::api::view::ReloadView;
use crate::config::{Config, ConfigErrors, Mode, ShownKey};
use crate::folder::FolderError;
use crate::open::{configured_sources, destinations};

/// Why a configuration was not taken over. The one before stays in force, whole.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReloadError {
    /// Mistakes in it.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// A source cannot be used after all.
    #[error("source `{name}`: {error}")]
    Source {
        /// Its name.
        name: String,
        /// Why.
        error: VerifierError,
    },
    /// The signing secrets could not be read or made.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Its parts do not go together.
    #[error("{0}")]
    Refused(String),
    /// The store could not take note of it.
    #[error(transparent)]
    Unavailable(Unavailable),
}

/// What a reload needs.
pub(crate) struct Reloader {
    inbox: Inbox,
    intake: SocketAddr,
    /// The keys that providers publish, for new sources as well.
    keys: Arc<dyn KeySource>,
    /// What is in force; held for as long as a reload takes, so that there is one at a time.
    running: Mutex<Config>,
}

impl Reloader {
    pub(crate) fn new(
        inbox: Inbox,
        intake: SocketAddr,
        keys: Arc<dyn KeySource>,
        running: Config,
    ) -> Arc<Self> {
        Arc::new(Self { inbox, intake, keys, running: Mutex::new(running) })
    }

    /// Reads the configuration again from where it came from, and takes its sources and destinations over.
    pub(crate) async fn reload(&self) -> Result<ReloadView, ReloadError> {
        let mut running = self.running.lock().await;
        let read_from = running.read_from.clone();
        let loaded = tokio::task::spawn_blocking(move || Config::load(&read_from)).await;
        let new = loaded.map_err(|error| ReloadError::Refused(error.to_string()))??;
        let restart_needed = restart_needed(&running, &new);
        if running.mode != new.mode || running.data != new.data {
            let what = "the configuration moved: the server must be restarted to use it";
            return Err(ReloadError::Refused(format!("{what} ({})", restart_needed.join(", "))));
        }
        // What cannot change stays as it is, also where sources depend on it.
        let next = running.with_tables_of(new);
        self.take_over(&next).await?;
        let view = ReloadView {
            sources: sorted(self.inbox.sources().iter().map(|source| source.name().to_string())),
            destinations: sorted(self.inbox.destinations().iter().map(|route| route.name().to_string())),
            restart_needed,
        };
        *running = next;
        tracing::info!(
            sources = view.sources.len(),
            destinations = view.destinations.len(),
            restart_needed = view.restart_needed.join(", "),
            "the configuration was taken over"
        );
        Ok(view)
    }

    /// As [`Reloader::reload`], with the reason in the log.
    pub(crate) async fn reload_logged(&self) {
        if let Err(error) = self.reload().await {
            tracing::error!(error = %error, "the configuration was not taken over; the one before stays in force");
        }
    }

    async fn take_over(&self, next: &Config) -> Result<(), ReloadError> {
        let config = next.clone();
        let (intake, keys) = (self.intake, self.keys.clone());
        let made = tokio::task::spawn_blocking(move || {
            // In dev mode they are there already, all of them.
            let sources = match config.mode {
                Mode::Configured => {
                    Some(configured_sources(&config, intake, Some(&keys)).map_err(of_source)?)
                }
                Mode::Dev => None,
            };
            Ok::<_, ReloadError>((sources, destinations(&config)?))
        });
        let (sources, destinations) =
            made.await.map_err(|error| ReloadError::Refused(error.to_string()))??;
        let done = match sources {
            Some(sources) => self.inbox.reconfigure(sources, destinations).await,
            None => self.inbox.reconfigure_destinations(destinations).await,
        };
        done.map_err(|error| match error {
            ReconfigureError::Unavailable(error) => ReloadError::Unavailable(error),
            other => ReloadError::Refused(other.to_string()),
        })
    }
}

fn of_source(error: StartError) -> ReloadError {
    match error {
        StartError::Source { name, error } => ReloadError::Source { name, error },
        other => ReloadError::Refused(other.to_string()),
    }
}

fn sorted(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names
}

/// The keys whose new values are not taken over: all that belong to no source or destination, and rates, which are
/// counted where requests arrive.
fn restart_needed(running: &Config, new: &Config) -> Vec<String> {
    let fixed = |shown: &ShownKey| {
        let table = shown.key.split('.').next().unwrap_or_default();
        let is_rate = table == "sources" && shown.key.ends_with(".rate");
        is_rate || !matches!(table, "sources" | "destinations")
    };
    let values = |config: &Config| -> Vec<(String, String)> {
        config.show().into_iter().filter(fixed).map(|shown| (shown.key, shown.value)).collect()
    };
    let (before, after) = (values(running), values(new));
    let changed = after.iter().filter(|value| !before.contains(value)).map(|(key, _)| key.clone());
    let gone = before.iter().filter(|(key, _)| !after.iter().any(|(known, _)| known == key));
    let mut keys: Vec<_> = changed.chain(gone.map(|(key, _)| key.clone())).collect();
    if running.data != new.data {
        keys.push("the data folder".to_owned());
    }
    if running.mode != new.mode {
        keys.push("a configuration file where there was none, or none where there was one".to_owned());
    }
    keys
}
