//! `hookstead deliveries`: what is owed to whom, how each attempt ended, and what a person decides about it.

mod act;
mod list;
mod show;

use anyhow::Result;
use clap::{Args, Subcommand};
pub(super) use show::state;

const EXAMPLES: &str = "\
Examples:
  hookstead deliveries                       the newest ones
  hookstead deliveries --state dead          the dead letters
  hookstead deliveries show 0001:app         with every attempt, and what the target said
  hookstead deliveries redeliver 0001:app    try it again, as a new delivery";

/// How a delivery is named, for every verb that takes one.
const NAME: &str = "\
A delivery is named EVENT:DESTINATION, the event by its short id (0001), its id (a UUID) or @ for the newest; that is \
the newest of them. An earlier one is EVENT:DESTINATION:GENERATION.";

/// Look at deliveries, and decide about those that are dead, held or waiting
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = NAME, args_conflicts_with_subcommands = true)]
pub(crate) struct Deliveries {
    #[command(subcommand)]
    verb: Option<DeliveriesVerb>,
    #[command(flatten)]
    list: list::ListArgs,
}

#[derive(Debug, Subcommand)]
enum DeliveriesVerb {
    List(list::List),
    Show(show::Show),
    Redeliver(act::Redeliver),
    Done(act::Done),
    Hold(act::Hold),
    Release(act::Release),
}

pub(crate) fn run(args: &Deliveries) -> Result<()> {
    match &args.verb {
        None => list::run(&args.list),
        Some(DeliveriesVerb::List(args)) => list::run(&args.list),
        Some(DeliveriesVerb::Show(args)) => show::run(args),
        Some(DeliveriesVerb::Redeliver(args)) => act::redeliver(args),
        Some(DeliveriesVerb::Done(args)) => act::done(args),
        Some(DeliveriesVerb::Hold(args)) => act::hold(args),
        Some(DeliveriesVerb::Release(args)) => act::release(args),
    }
}
