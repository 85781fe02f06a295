//! `hookstead events`: what came in. Asks the running server, or reads the store itself when none runs.

mod body;
mod export;
mod import;
mod list;
mod redeliver;
mod show;

use anyhow::Result;
use clap::{Args, Subcommand};
pub(super) use list::{provider_id, state};

const EXAMPLES: &str = "\
Examples:
  hookstead events                        the newest ones
  hookstead events show @                 the newest one, with everything that is known of it
  hookstead events show stripe:evt_123    by the provider's id
  hookstead events body @ | jq .          exactly the bytes that came
  hookstead events export > events.jsonl  all of them, with their bodies
  hookstead events redeliver @ --to app   to a destination, again";

/// How an event is named, for every verb that takes one.
const SELECTOR: &str = "\
An event is named by its short id (0001), its id (a UUID), @ for the newest, or SOURCE:PROVIDER-ID.";

/// Look at events: list, show one, get its body, deliver it again, export, import
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = SELECTOR, args_conflicts_with_subcommands = true)]
pub(crate) struct Events {
    #[command(subcommand)]
    verb: Option<EventsVerb>,
    #[command(flatten)]
    list: list::ListArgs,
}

#[derive(Debug, Subcommand)]
enum EventsVerb {
    List(list::List),
    Show(show::Show),
    Body(body::Body),
    Redeliver(redeliver::Redeliver),
    Export(export::Export),
    Import(import::Import),
}

pub(crate) fn run(args: &Events) -> Result<()> {
    match &args.verb {
        None => list::run(&args.list),
        Some(EventsVerb::List(args)) => list::run(&args.list),
        Some(EventsVerb::Show(args)) => show::run(args),
        Some(EventsVerb::Body(args)) => body::run(args),
        Some(EventsVerb::Redeliver(args)) => redeliver::run(args),
        Some(EventsVerb::Export(args)) => export::run(args),
        Some(EventsVerb::Import(args)) => import::run(args),
    }
}
