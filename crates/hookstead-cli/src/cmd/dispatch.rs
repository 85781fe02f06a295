//! From a parsed command line to the verb that carries it out.

use anyhow::Result;

use crate::cli::{Cli, Verb};
use crate::cmd::{
    completions, config, deliveries, demo, destinations, doctor, events, overview, providers, redeliveries,
    replay, send, serve, sign, sources, store, tail, token,
};

/// Runs the verb; without one, prints the overview.
pub(crate) fn run(cli: &Cli) -> Result<()> {
    match &cli.verb {
        None => overview::run(),
        Some(Verb::Demo(args)) => demo::run(args),
        Some(Verb::Serve(args)) => serve::run(args),
        Some(Verb::Send(args)) => send::run(args),
        Some(Verb::Events(args)) => events::run(args),
        Some(Verb::Deliveries(args)) => deliveries::run(args),
        Some(Verb::Redeliveries(args)) => redeliveries::run(args),
        Some(Verb::Replay(args)) => replay::run(args),
        Some(Verb::Sign(args)) => sign::run(args),
        Some(Verb::Sources(args)) => sources::run(args),
        Some(Verb::Destinations(args)) => destinations::run(args),
        Some(Verb::Tail(args)) => tail::run(args),
        Some(Verb::Providers(args)) => providers::run(args),
        Some(Verb::Doctor(args)) => doctor::run(args),
        Some(Verb::Store(args)) => store::run(args),
        Some(Verb::Config(args)) => config::run(args),
        Some(Verb::Token(args)) => token::run(args),
        Some(Verb::Completions(args)) => completions::run(args),
    }
}
