//! `hookstead events show`.

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use hookstead_server::api::view::{AnswersView, EventView};

use super::list::{deliveries, provider_id};
use crate::output::{self, BOLD, printable};
use crate::reader::{self, Reader, WhereArgs};

const EXAMPLES: &str = "\
Examples:
  hookstead events show @
  hookstead events show stripe:evt_123 --headers
  hookstead events show github:7c1f0000-0000-4000-8000-000000000001 --receipt
  hookstead events show 0001 --json | jq .digest";

const JSON: &str = "\
JSON: {\"id\", \"short_id\", \"seq\", \"source\", \"provider_event_id\", \"type\", \"account\", \"received_from\", \
\"verified_by\", \"received_at\", \"committed_at\", \"digest\", \"bytes\", \"erased_at\", \"revises\", \"same_body_as\", \"duplicates\", \
\"last_duplicate_at\", \"conflicts\", \"deliveries\": {\"waiting\", \"leased\", \"done\", \"dead\", \"held\"}, \"answers\": \
{\"stored\", \"duplicate\", \"conflict\"}, \"query\", \"headers\": [{\"name\", \"value\"}]}. An id that is no text is null, and stands \
in provider_event_id_base64. With --receipt: {\"event\", \"short_id\", \"outcome\", \"source\", \"provider_event_id\", \
\"scope\", \"digest\", \"bytes\", \"received_at\", \"committed_at\", \"verified_by\", \"store\": {\"kind\", \"location\", \
\"durability\", \"persistent\"}}.

An event is named by its short id (0001), its id (a UUID), @ for the newest, or SOURCE:PROVIDER-ID; that is searched \
without a scope, then under the scopes (of GitHub: the hook's id) of the source's 10 000 newest events. Exit code 3 if it \
never came, 2 if it stands under several scopes.";

/// Show everything that is known of one event
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(super) struct Show {
    /// The event.
    event: String,
    /// Print its header fields too.
    #[arg(long)]
    headers: bool,
    /// Print the receipt of its acceptance instead, one JSON document.
    #[arg(long, conflicts_with = "headers")]
    receipt: bool,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: WhereArgs,
}

pub(super) fn run(args: &Show) -> Result<()> {
    if args.receipt {
        return output::json(&reader::receipt(&args.place, &args.event)?);
    }
    let event = Reader::open(&args.place)?.event(&args.event)?;
    if args.json { output::json(&event) } else { print(&event, args.headers) }
}

fn print(event: &EventView, with_headers: bool) -> Result<()> {
    let event_type = printable(event.event_type.as_deref().unwrap_or("no type"));
    output::line(format_args!(
        "{BOLD}{}{BOLD:#}   {} · {event_type} · {}",
        event.short_id,
        event.source,
        provider_id(event)
    ))?;
    for (label, text) in facts(event) {
        output::fact(label, text)?;
    }
    if with_headers {
        for header in event.headers.iter().flatten() {
            output::fact(
                "header",
                format_args!("{}: {}", printable(&header.name), printable(&header.value)),
            )?;
        }
    }
    Ok(())
}

fn facts(event: &EventView) -> Vec<(&'static str, String)> {
    let from = event
        .received_from
        .as_deref()
        .map_or_else(String::new, |from| format!("   from {}", printable(from)));
    let tally = deliveries(&event.deliveries);
    let tally = if tally.is_empty() { "none: no destination yet".to_owned() } else { tally.join(" · ") };
    let mut facts = vec![
        ("received", format!("{}{from}", event.received_at)),
        ("verified", printable(event.verified_by.as_deref().unwrap_or("not by a signature"))),
        ("committed", committed(event)),
    ];
    if let Some(answers) = &event.answers {
        let AnswersView { stored, duplicate, conflict } = answers;
        let text =
            format!("{stored} when it was stored; {duplicate} to a duplicate, {conflict} to a conflict");
        facts.push(("answered", text));
    }
    if let Some(query) = &event.query {
        facts.push(("query", printable(query)));
    }
    if let Some(scope) = &event.scope_base64 {
        facts.push(("scope", scope_text(scope)));
    }
    if let Some(account) = &event.account {
        facts.push(("account", printable(account)));
    }
    if event.duplicates > 0 {
        let last =
            event.last_duplicate_at.as_deref().map_or_else(String::new, |last| format!(", last {last}"));
        facts.push(("duplicates", format!("{}{last}", event.duplicates)));
    }
    if event.conflicts > 0 {
        facts
            .push(("conflicts", format!("{} other bodies came under this id and are kept", event.conflicts)));
    }
    if let Some(first) = &event.revises {
        facts.push(("revises", first.clone()));
    }
    if let Some(first) = &event.same_body_as {
        facts.push((
            "body reused",
            format!("same signed bytes as {first}, which came first under another id"),
        ));
    }
    facts.push(("deliveries", tally));
    facts.push(("id", event.id.clone()));
    facts.push(("digest", format!("sha256 {}", event.digest)));
    facts.push(("body", body(event)));
    facts
}

/// A scope as text where it is text.
fn scope_text(base64: &str) -> String {
    let text = STANDARD.decode(base64).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.map_or_else(|| format!("base64:{base64}"), |text| printable(&text))
}

fn committed(event: &EventView) -> String {
    let times = (output::instant(&event.received_at), output::instant(&event.committed_at));
    match times {
        (Some(received), Some(committed)) => format!("+{}", output::took(committed.since(received))),
        _ => event.committed_at.clone(),
    }
}

fn body(event: &EventView) -> String {
    let content_type =
        event.headers.iter().flatten().find(|header| header.name.eq_ignore_ascii_case("content-type"));
    let content_type =
        content_type.map_or_else(|| "no content type".to_owned(), |header| printable(&header.value));
    let bytes = output::grouped(event.bytes);
    match &event.erased_at {
        Some(at) => format!("{content_type}, {bytes} bytes, erased {at}"),
        None => format!("{content_type}, {bytes} bytes   (hookstead events body {})", event.short_id),
    }
}
