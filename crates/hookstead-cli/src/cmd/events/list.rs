//! `hookstead events list`.

use anyhow::Result;
use clap::Args;
use hookstead_core::{StateName, Timestamp};
use hookstead_server::api::view::{EventView, EventsView, TallyView};

use crate::output::{self, printable};
use crate::page::PageArgs;
use crate::reader::{EventQuery, Reader, WhereArgs};
use crate::sample::now;

const EXAMPLES: &str = "\
Examples:
  hookstead events list
  hookstead events list --source stripe --type 'invoice.*'
  hookstead events list --json | jq -r '.events[].short_id'";

const JSON: &str = "\
JSON: {\"events\": [EVENT], \"next\", \"cursor\"}. EVENT is as in `hookstead events show --json`, without its headers. \
next is given if there may be more, also where a page is short: call again with --after NEXT.";

/// List events, the newest first
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(super) struct List {
    #[command(flatten)]
    pub(super) list: ListArgs,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only of this source.
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Only of this type; `*` stands for anything.
    #[arg(long = "type", value_name = "PATTERN")]
    event_type: Option<String>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    place: WhereArgs,
}

pub(super) fn run(args: &ListArgs) -> Result<()> {
    let query = EventQuery {
        source: args.source.clone(),
        event_type: args.event_type.clone(),
        limit: args.page.limit,
        after: args.page.after.clone(),
    };
    let list = Reader::open(&args.place)?.events(&query)?;
    if args.page.json { output::json(&list) } else { print(&list, now()) }
}

fn print(list: &EventsView, now: Timestamp) -> Result<()> {
    if let (true, Some(next)) = (list.events.is_empty(), &list.next) {
        return output::none_yet(next);
    }
    if list.events.is_empty() {
        return output::talk("no events. Send one: hookstead send stripe");
    }
    let header = ["EVENT", "AGE", "SOURCE", "TYPE", "PROVIDER ID", "SIZE", "STATE"];
    output::table(header, list.events.iter().map(|event| row(event, now)).collect())?;
    output::more(list.next.as_deref())
}

fn row(event: &EventView, now: Timestamp) -> [String; 7] {
    [
        event.short_id.clone(),
        age(&event.committed_at, now),
        event.source.clone(),
        printable(event.event_type.as_deref().unwrap_or("-")),
        shortened(&provider_id(event), PROVIDER_ID_CHARACTERS),
        output::size(event.bytes),
        state(event),
    ]
}

/// Providers' ids of sensible length stand whole in the table; `show` gives all of any other.
const PROVIDER_ID_CHARACTERS: usize = 48;

/// The provider's id for people.
pub(in crate::cmd) fn provider_id(event: &EventView) -> String {
    match (&event.provider_event_id, &event.provider_event_id_base64) {
        (Some(id), _) => printable(id),
        (None, Some(base64)) => format!("base64:{base64}"),
        (None, None) => "-".to_owned(),
    }
}

fn shortened(text: &str, characters_max: usize) -> String {
    if text.chars().count() <= characters_max {
        return text.to_owned();
    }
    text.chars().take(characters_max - 1).chain(['…']).collect()
}

fn age(committed_at: &str, now: Timestamp) -> String {
    match output::instant(committed_at) {
        Some(at) => output::age(now.since(at)),
        None => "-".to_owned(),
    }
}

/// What became of an event so far, in a few words.
pub(in crate::cmd) fn state(event: &EventView) -> String {
    let mut parts = vec![if event.erased_at.is_some() { "erased".to_owned() } else { "stored".to_owned() }];
    parts.extend(deliveries(&event.deliveries));
    parts.extend(event.same_body_as.as_ref().map(|_| "reused body".to_owned()));
    for (count, one, many) in
        [(event.duplicates, "duplicate", "duplicates"), (u64::from(event.conflicts), "conflict", "conflicts")]
    {
        if count > 0 {
            parts.push(output::counted(count, one, many));
        }
    }
    parts.join(" · ")
}

/// The deliveries by state; nothing where there are none.
pub(super) fn deliveries(tally: &TallyView) -> Vec<String> {
    [
        (tally.waiting, StateName::Waiting),
        (tally.leased, StateName::Leased),
        (tally.done, StateName::Done),
        (tally.dead, StateName::Dead),
        (tally.held, StateName::Held),
    ]
    .iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, state)| format!("{count} {}", state.as_str()))
    .collect()
}
