//! Which configuration and which data folder a verb works with: the options that most verbs share.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use hookstead_server::config::{Config, ConfigSource, Overrides};

/// Where things are.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Where")]
pub(crate) struct PlaceArgs {
    /// The configuration [default: $HOOKSTEAD_CONFIG, else ./hookstead.toml, else none].
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The data folder [default: ./.hookstead with ./hookstead.toml, else ~/.local/share/hookstead].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

impl PlaceArgs {
    /// The overrides that these options amount to.
    pub(crate) fn overrides(&self) -> Overrides {
        Overrides { config: self.config.clone(), data: self.data.clone(), ..Overrides::default() }
    }

    /// The configuration.
    pub(crate) fn load(&self) -> Result<Config> {
        load(self.overrides())
    }
}

/// The configuration with what the command line says. What is wrong with it is told all at once.
pub(crate) fn load(overrides: Overrides) -> Result<Config> {
    let source = ConfigSource::of_process(overrides).context("find the current folder")?;
    Ok(Config::load(&source)?)
}
