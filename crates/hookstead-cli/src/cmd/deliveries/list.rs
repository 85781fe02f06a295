//! `hookstead deliveries list`.

use anyhow::Result;
use clap::Args;
use clap::builder::PossibleValuesParser;
use hookstead_core::StateName;
use hookstead_server::api::view::{DeliveriesView, DeliveryView};

use super::show::state;
use crate::client::Call;
use crate::output::{self, printable};
use crate::page::PageArgs;
use crate::reader::WhereArgs;
use crate::work;

const EXAMPLES: &str = "\
Examples:
  hookstead deliveries list --state dead
  hookstead deliveries list --event 0001
  hookstead deliveries list --destination app --json | jq -r '.deliveries[].id'";

const JSON: &str = "\
JSON: {\"deliveries\": [DELIVERY], \"next\", \"cursor\"}. DELIVERY is as in `hookstead deliveries show --json`, without \
its log. next is given if there may be more, also where a page is short: call again with --after NEXT.";

/// List deliveries, the newest first
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(super) struct List {
    #[command(flatten)]
    pub(super) list: ListArgs,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only of this event.
    #[arg(long, value_name = "EVENT")]
    event: Option<String>,
    /// Only to this destination.
    #[arg(long, value_name = "NAME")]
    destination: Option<String>,
    /// Only those in this state.
    #[arg(long, value_name = "STATE", value_parser = PossibleValuesParser::new(StateName::ALL.map(StateName::as_str)))]
    state: Option<String>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    place: WhereArgs,
}

pub(super) fn run(args: &ListArgs) -> Result<()> {
    let call = Call::get(&["v1", "deliveries"])
        .with("event", args.event.as_deref())
        .with("destination", args.destination.as_deref())
        .with("state", args.state.as_deref())
        .with("limit", Some(args.page.limit))
        .with("cursor", args.page.after.as_deref())
        .about(args.event.as_deref().unwrap_or("these deliveries"));
    let list = work::with(&args.place, async |client| client.ask(call).await)?;
    let list = list.unwrap_or(DeliveriesView { deliveries: Vec::new(), next: None, cursor: None });
    if args.page.json { output::json(&list) } else { print(&list) }
}

fn print(list: &DeliveriesView) -> Result<()> {
    if let (true, Some(next)) = (list.deliveries.is_empty(), &list.next) {
        return output::none_yet(next);
    }
    if list.deliveries.is_empty() {
        return output::talk("no deliveries. See who gets events: hookstead destinations");
    }
    let header = ["DELIVERY", "SOURCE", "TYPE", "ATTEMPTS", "STATE"];
    output::table(header, list.deliveries.iter().map(row).collect())?;
    output::more(list.next.as_deref())
}

fn row(delivery: &DeliveryView) -> [String; 5] {
    [
        delivery.id.clone(),
        delivery.source.clone(),
        printable(delivery.event_type.as_deref().unwrap_or("-")),
        delivery.attempts.to_string(),
        state(delivery),
    ]
}
