//! `hookstead destinations show`.

use anyhow::Result;
use clap::Args;
use hookstead_server::api::view::DestinationView;

use super::list::{state, target, wanted};
use crate::client::Call;
use crate::output::{self, BOLD};
use crate::reader::WhereArgs;
use crate::refusal::no_destination;
use crate::work;

const EXAMPLES: &str = "\
Examples:
  hookstead destinations show app
  hookstead destinations show app --json | jq .unfinished";

pub(super) const JSON: &str = "\
JSON: {\"name\", \"number\", \"kind\", \"url\", \"command\", \"sources\", \"types\", \"lease\", \"paused\", \"circuit\", \
\"rests_until\", \"in_flight\", \"problem\", \"next_due\", \"generation\", \"max_attempts\", \"unfinished\": {\"waiting\", \
\"leased\", \"done\", \"dead\", \"held\"}}. kind is null if it stands in no configuration any more; circuit, in_flight and \
problem are known by the server that works it. Each count stops at 1000.";

/// Show how one destination stands, and what it is owed
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(super) struct Show {
    /// The destination.
    name: String,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: WhereArgs,
}

pub(super) fn run(args: &Show) -> Result<()> {
    let call = Call::get(&["v1", "destinations", &args.name]);
    let found = work::with(&args.place, async |client| client.ask(call).await)?;
    let destination: DestinationView = found.ok_or_else(|| no_destination_named(&args.name))?;
    if args.json { output::json(&destination) } else { print(&destination) }
}

/// Nothing was ever stored, so nobody has such a destination.
pub(super) fn no_destination_named(name: &str) -> crate::failure::Failure {
    no_destination(&format!("there has never been a destination `{name}`"))
}

fn print(destination: &DestinationView) -> Result<()> {
    output::line(format_args!("{BOLD}{}{BOLD:#}   {}", destination.name, state(destination)))?;
    output::fact("to", target(destination))?;
    output::fact("wants", wanted(destination))?;
    if let Some(owed) = &destination.unfinished {
        let counts =
            [(owed.waiting, "waiting"), (owed.leased, "leased"), (owed.dead, "dead"), (owed.held, "held")];
        let counts: Vec<_> = counts.iter().filter(|(count, _)| *count > 0).collect();
        let text: Vec<_> = counts.iter().map(|(count, state)| format!("{count} {state}")).collect();
        output::fact("owed", if text.is_empty() { "nothing".to_owned() } else { text.join(" · ") })?;
    }
    if let Some(due) = &destination.next_due {
        output::fact("next due", due)?;
    }
    output::fact("attempts", format_args!("at most {}", destination.max_attempts))
}
