//! `hookstead redeliveries`: what was delivered again, by whom, why, and how far it is.

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use hookstead_core::RedeliveryState;
use hookstead_server::api::view::{NewDecision, RedeliveriesView, RedeliveryView};

use crate::client::Call;
use crate::output::{self, BOLD, printable};
use crate::page::PageArgs;
use crate::reader::WhereArgs;
use crate::refusal::no_redelivery;
use crate::work;

const EXAMPLES: &str = "\
Examples:
  hookstead redeliveries                     the newest ones
  hookstead redeliveries --state running
  hookstead redeliveries cancel ID           one that should not go on";

const LIST_EXAMPLES: &str = "\
Examples:
  hookstead redeliveries list
  hookstead redeliveries list --state running --json";

const SHOW_EXAMPLES: &str = "\
Examples:
  hookstead redeliveries show 019ad0c8-7d6e-7000-8000-000000000001
  hookstead redeliveries show 019ad0c8-7d6e-7000-8000-000000000001 --json | jq .made";

const CANCEL_EXAMPLES: &str = "\
Examples:
  hookstead redeliveries cancel 019ad0c8-7d6e-7000-8000-000000000001
  hookstead redeliveries cancel 019ad0c8-7d6e-7000-8000-000000000001 --note mistake";

const LIST_JSON: &str = "\
JSON: {\"redeliveries\": [REDELIVERY], \"next\", \"cursor\"}. REDELIVERY is as in `hookstead redeliveries show --json`. \
next is given if there may be more, also where a page is short: call again with --after NEXT.";

const JSON: &str = "\
JSON: {\"id\", \"to\", \"state\", \"made\", \"skipped\", \"looked_at\", \"until\", \"fresh_key\", \"by\", \"note\", \
\"made_at\"}. state is running, complete or cancelled; looked_at and until are short ids of events.";

/// Look at redeliveries: list, show one, cancel one
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Redeliveries {
    #[command(subcommand)]
    verb: Option<RedeliveriesVerb>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Subcommand)]
enum RedeliveriesVerb {
    List(List),
    Show(Show),
    Cancel(Cancel),
}

/// List redeliveries, the newest first
#[derive(Debug, Args)]
#[command(before_help = LIST_EXAMPLES, after_help = LIST_JSON)]
struct List {
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Only those in this state.
    #[arg(long, value_name = "STATE", value_parser = PossibleValuesParser::new(RedeliveryState::ALL.map(RedeliveryState::as_str)))]
    state: Option<String>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    place: WhereArgs,
}

/// Show how far a redelivery is
#[derive(Debug, Args)]
#[command(before_help = SHOW_EXAMPLES, after_help = JSON)]
struct Show {
    /// Its id, a UUID.
    id: String,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: WhereArgs,
}

/// End a redelivery that is running; the deliveries that it made stay
#[derive(Debug, Args)]
#[command(before_help = CANCEL_EXAMPLES, after_help = JSON)]
struct Cancel {
    /// Its id, a UUID.
    id: String,
    /// Why, for the record.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: WhereArgs,
}

pub(crate) fn run(args: &Redeliveries) -> Result<()> {
    match &args.verb {
        None => list(&args.list),
        Some(RedeliveriesVerb::List(args)) => list(&args.list),
        Some(RedeliveriesVerb::Show(args)) => {
            let call = Call::get(&["v1", "redeliveries", &args.id]);
            one(&args.place, &args.id, call, args.json)
        }
        Some(RedeliveriesVerb::Cancel(args)) => {
            let asked = NewDecision { note: args.note.clone() };
            let call = Call::post(&["v1", "redeliveries", &args.id, "cancel"], &asked)?.about(&args.id);
            one(&args.place, &args.id, call, args.json)
        }
    }
}

fn list(args: &ListArgs) -> Result<()> {
    let call = Call::get(&["v1", "redeliveries"])
        .with("state", args.state.as_deref())
        .with("limit", Some(args.page.limit))
        .with("cursor", args.page.after.as_deref());
    let list = work::with(&args.place, async |client| client.ask(call).await)?;
    let list = list.unwrap_or(RedeliveriesView { redeliveries: Vec::new(), next: None, cursor: None });
    if args.page.json {
        return output::json(&list);
    }
    if let (true, Some(next)) = (list.redeliveries.is_empty(), &list.next) {
        return output::none_yet(next);
    }
    if list.redeliveries.is_empty() {
        return output::talk("no redeliveries. Ask for one: hookstead events redeliver EVENT --to NAME");
    }
    output::table(
        ["REDELIVERY", "TO", "MADE", "PASSED OVER", "STATE"],
        list.redeliveries.iter().map(row).collect(),
    )?;
    output::more(list.next.as_deref())
}

fn row(redelivery: &RedeliveryView) -> [String; 5] {
    let RedeliveryView { id, to, made, skipped, state, .. } = redelivery;
    [id.clone(), to.clone(), made.to_string(), skipped.to_string(), state.clone()]
}

fn one(place: &WhereArgs, id: &str, call: Call<'_>, json: bool) -> Result<()> {
    let redelivery = work::with(place, async |client| client.ask(call).await)?;
    let redelivery: RedeliveryView = redelivery.ok_or_else(|| no_redelivery(id))?;
    if json { output::json(&redelivery) } else { print(&redelivery) }
}

/// A redelivery for people.
pub(super) fn print(redelivery: &RedeliveryView) -> Result<()> {
    output::line(format_args!("{BOLD}{}{BOLD:#}   {}", redelivery.id, redelivery.state))?;
    output::fact("to", &redelivery.to)?;
    output::fact(
        "made",
        format_args!(
            "{}, {} passed over",
            output::counted(redelivery.made, "delivery", "deliveries"),
            output::counted(redelivery.skipped, "event", "events")
        ),
    )?;
    if redelivery.state == RedeliveryState::Running.as_str() {
        output::fact(
            "looked at",
            format_args!("{} of {}; it goes on by itself", redelivery.looked_at, redelivery.until),
        )?;
    }
    output::fact("asked", format_args!("{}   by {}", redelivery.made_at, printable(&redelivery.by)))?;
    if redelivery.note.is_empty() { Ok(()) } else { output::fact("note", printable(&redelivery.note)) }
}
