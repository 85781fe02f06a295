//! `hookstead destinations list`.

use anyhow::Result;
use clap::Args;
use hookstead_server::api::view::{DestinationView, DestinationsView};

use crate::client::Call;
use crate::output::{self, printable};
use crate::reader::WhereArgs;
use crate::work;

const EXAMPLES: &str = "\
Examples:
  hookstead destinations list
  hookstead destinations list --json | jq -r '.destinations[] | select(.paused) | .name'";

const JSON: &str = "\
JSON: {\"destinations\": [DESTINATION]}. DESTINATION is as in `hookstead destinations show --json`, without its counts.";

/// List destinations, also those that stand in no configuration any more
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(super) struct List {
    #[command(flatten)]
    pub(super) list: ListArgs,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: WhereArgs,
}

pub(super) fn run(args: &ListArgs) -> Result<()> {
    let call = Call::get(&["v1", "destinations"]);
    let list = work::with(&args.place, async |client| client.ask(call).await)?;
    let list = list.unwrap_or(DestinationsView { destinations: Vec::new() });
    if args.json {
        return output::json(&list);
    }
    if list.destinations.is_empty() {
        return output::talk(
            "no destinations: events are stored and wait. Add one: hookstead destinations add NAME --push URL",
        );
    }
    let rows = list.destinations.iter().map(|destination| {
        [destination.name.clone(), target(destination), wanted(destination), state(destination)]
    });
    output::table(["DESTINATION", "TO", "WANTS", "STATE"], rows.collect())
}

/// How it is reached.
pub(super) fn target(destination: &DestinationView) -> String {
    match (&destination.url, &destination.command, &destination.kind) {
        (Some(url), _, _) => format!("push {}", printable(url)),
        (_, Some(command), _) => format!("exec {}", printable(&command.join(" "))),
        (_, _, Some(kind)) => kind.clone(),
        _ => "-".to_owned(),
    }
}

/// Which events it takes.
pub(super) fn wanted(destination: &DestinationView) -> String {
    let part = |items: &[String], every: &str| {
        if items.is_empty() { every.to_owned() } else { items.join(", ") }
    };
    match (&destination.kind, destination.sources.is_empty(), destination.types.is_empty()) {
        (None, _, _) => "nothing any more".to_owned(),
        (Some(_), _, true) => part(&destination.sources, "every source"),
        (Some(_), true, _) => part(&destination.types, "every type"),
        (Some(_), false, false) => {
            format!("{} of {}", destination.types.join(", "), destination.sources.join(", "))
        }
    }
}

/// How it stands, in a few words.
pub(super) fn state(destination: &DestinationView) -> String {
    if destination.kind.is_none() {
        return "not configured".to_owned();
    }
    if destination.paused {
        return "paused".to_owned();
    }
    if let Some(problem) = &destination.problem {
        return format!("not worked: {}", printable(problem));
    }
    match (destination.circuit.as_deref(), &destination.rests_until) {
        (Some("open"), Some(until)) => format!("down, rests until {until}"),
        (Some("half-open"), _) => "down, one delivery tries it".to_owned(),
        (Some(_), _) => match destination.in_flight {
            Some(count) if count > 0 => format!("up, {count} in flight"),
            _ => "up".to_owned(),
        },
        (None, _) => "ready".to_owned(),
    }
}
