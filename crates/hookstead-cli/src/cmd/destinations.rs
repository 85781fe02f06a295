//! `hookstead destinations`: who gets the events. The configuration file is the truth about them; `add` and `remove`
//! change it and have the running server take it over.

mod act;
mod add;
mod check;
mod list;
mod remove;
mod secret;
mod show;

use anyhow::Result;
use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  hookstead destinations                     who gets the events, and how it stands
  hookstead destinations add app --push http://localhost:3000/webhooks
  hookstead destinations add worker --pull --types 'invoice.*'
  hookstead destinations pause app           deliveries wait until you resume it";

/// Say who gets the events, and see how each stands
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Destinations {
    #[command(subcommand)]
    verb: Option<DestinationsVerb>,
    #[command(flatten)]
    list: list::ListArgs,
}

#[derive(Debug, Subcommand)]
enum DestinationsVerb {
    List(list::List),
    Show(show::Show),
    Add(Box<add::Add>),
    Pause(act::Pause),
    Resume(act::Resume),
    Secret(secret::Secret),
    Remove(remove::Remove),
}

pub(crate) fn run(args: &Destinations) -> Result<()> {
    match &args.verb {
        None => list::run(&args.list),
        Some(DestinationsVerb::List(args)) => list::run(&args.list),
        Some(DestinationsVerb::Show(args)) => show::run(args),
        Some(DestinationsVerb::Add(args)) => add::run(args),
        Some(DestinationsVerb::Pause(args)) => act::pause(args),
        Some(DestinationsVerb::Resume(args)) => act::resume(args),
        Some(DestinationsVerb::Secret(args)) => secret::run(args),
        Some(DestinationsVerb::Remove(args)) => remove::run(args),
    }
}
