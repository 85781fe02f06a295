//! `hookstead events redeliver`: one event to one destination again, or many.

use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use hookstead_core::RedeliveryState;
use hookstead_server::api::view::{DeliveryView, NewEventRedelivery, NewRedelivery, RedeliveryView};

use super::SELECTOR;
use crate::client::{Call, Client};
use crate::cmd::{deliveries, redeliveries};
use crate::output;
use crate::reader::WhereArgs;
use crate::refusal::no_event;
use crate::work;

const EXAMPLES: &str = "\
Examples:
  hookstead events redeliver 0001 --to app
  hookstead events redeliver stripe:evt_123 --to app --note lost
  hookstead events redeliver --all --to app                      everything that is stored
  hookstead events redeliver --all --to app --type 'invoice.*' --from 2026-11-01T00:00:00Z";

const JSON: &str = "\
JSON: of one event the new delivery, as in `hookstead deliveries show --json`; with --all the redelivery, as in \
`hookstead redeliveries show --json`. An event whose delivery to the destination is still unfinished is passed over. \
Exit codes: 3 no such event or destination, 5 the event's delivery is still unfinished.";

/// For how long a redelivery of many is watched; it goes on by itself.
const WATCHED_MAX: Duration = Duration::from_secs(10);

/// How often it is looked at meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Deliver an event again, or every stored event, to a destination
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = [JSON, "\n\n", SELECTOR].concat())]
pub(super) struct Redeliver {
    /// The event.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    event: Option<String>,
    /// The destination.
    #[arg(long, value_name = "NAME")]
    to: String,
    /// All events, or those that the following options name.
    #[arg(long)]
    all: bool,
    /// With --all: only of this source.
    #[arg(long, value_name = "NAME", requires = "all")]
    source: Option<String>,
    /// With --all: only of this type; `*` stands for anything.
    #[arg(long = "type", value_name = "PATTERN", requires = "all")]
    event_type: Option<String>,
    /// With --all: only what was stored at this instant or later (RFC 3339).
    #[arg(long, value_name = "TIME", requires = "all")]
    from: Option<String>,
    /// With --all: only what was stored before this instant (RFC 3339).
    #[arg(long, value_name = "TIME", requires = "all")]
    before: Option<String>,
    /// Send a new idempotency key: the application is to take it for something new.
    #[arg(long)]
    fresh_key: bool,
    /// Why, for the record.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: WhereArgs,
}

pub(super) fn run(args: &Redeliver) -> Result<()> {
    match &args.event {
        Some(event) => one(args, event),
        None => many(args),
    }
}

fn one(args: &Redeliver, event: &str) -> Result<()> {
    let asked =
        NewEventRedelivery { to: args.to.clone(), fresh_key: args.fresh_key, note: args.note.clone() };
    let call = Call::post(&["v1", "events", event, "redeliver"], &asked)?.about(event);
    let delivery = work::with(&args.place, async |client| client.ask(call).await)?;
    let delivery: DeliveryView = delivery.ok_or_else(|| no_event(event, None))?;
    if args.json {
        return output::json(&delivery);
    }
    output::labelled("again", format_args!("{}   {}", delivery.id, deliveries::state(&delivery)))
}

fn many(args: &Redeliver) -> Result<()> {
    let asked = NewRedelivery {
        id: None,
        to: args.to.clone(),
        source: args.source.clone(),
        event_type: args.event_type.clone(),
        from: args.from.clone(),
        before: args.before.clone(),
        fresh_key: args.fresh_key,
        note: args.note.clone(),
    };
    let call = Call::post(&["v1", "redeliveries"], &asked)?.about(&args.to);
    let redelivery = work::with(&args.place, async |client| watched(client, client.ask(call).await?).await)?;
    let Some(redelivery) = redelivery else { return output::talk("no events: nothing was ever stored") };
    if args.json { output::json(&redelivery) } else { redeliveries::print(&redelivery) }
}

/// The redelivery when it has ended, or as it is after a while.
async fn watched(client: &Client, begun: RedeliveryView) -> Result<RedeliveryView> {
    let begin = Instant::now();
    let mut redelivery = begun;
    while redelivery.state == RedeliveryState::Running.as_str() && begin.elapsed() < WATCHED_MAX {
        tokio::time::sleep(LOOK_EVERY).await;
        redelivery = client.ask(Call::get(&["v1", "redeliveries", &redelivery.id.clone()])).await?;
    }
    Ok(redelivery)
}
