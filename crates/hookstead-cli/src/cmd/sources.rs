//! `hookstead sources`: who may send. The configuration file is the truth about them; `add` and `rotate` change it,
//! `secret` changes what it points at, and each has the running server take it over.

mod add;
mod entered;
mod first_event;
mod list;
mod new_secret;
mod reference;
mod refusals;
mod rotate;
mod secret;
mod secret_file;

use anyhow::Result;
use clap::{Args, Subcommand};
use hookstead_server::Config;
use hookstead_server::config::{Mode, SourceConfig};

use crate::failure::{Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  hookstead sources list
  hookstead sources add stripe
  hookstead sources add shop --provider shopify --file /etc/hookstead/shop
  hookstead sources secret stripe
  hookstead sources rotate stripe --add --env STRIPE_NEW_SECRET
  hookstead sources refusals stripe              why nothing arrives";

/// Say who may send, and change their secrets without a gap
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Sources {
    #[command(subcommand)]
    verb: SourcesVerb,
}

#[derive(Debug, Subcommand)]
enum SourcesVerb {
    List(list::List),
    Add(add::Add),
    Rotate(rotate::Rotate),
    Secret(secret::Secret),
    Refusals(refusals::Refusals),
}

pub(crate) fn run(args: &Sources) -> Result<()> {
    match &args.verb {
        SourcesVerb::List(args) => list::run(args),
        SourcesVerb::Add(args) => add::run(args),
        SourcesVerb::Rotate(args) => rotate::run(args),
        SourcesVerb::Secret(args) => secret::run(args),
        SourcesVerb::Refusals(args) => refusals::run(args),
    }
}

/// Fails in dev mode: every provider is a source there already, and no file says so.
fn configured(config: Config) -> Result<Config> {
    match config.mode {
        Mode::Configured => Ok(config),
        Mode::Dev => {
            Err(Failure::new(Exit::Refused, "no-configuration", "there is no hookstead.toml to change")
                .fix("write one: hookstead config init\nin dev mode every provider is a source by itself")
                .into())
        }
    }
}

/// A source of the configuration.
fn named<'a>(config: &'a Config, name: &str) -> Result<&'a SourceConfig> {
    let found = config.sources.iter().find(|source| source.name.as_str() == name);
    found.ok_or_else(|| {
        Failure::new(Exit::NotFound, "unknown-source", format!("there is no source `{name}`"))
            .fix("see which there are: hookstead sources list")
            .into()
    })
}

/// The change stands in a file that the running server does not read.
fn other_file(path: &str) -> Failure {
    let message = format!("the running server does not read {path}, so it knows nothing of the change");
    Failure::new(Exit::Partly, "other-configuration", message)
        .fix("name the server's configuration with --config FILE, and take this one out again")
}
