//! `hookstead events export`: events with their bodies, as JSON lines.

mod target;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use hookstead_core::{StoreError, Timestamp};
use hookstead_server::transfer::EventLine;
use serde::Serialize;

use super::SELECTOR;
use crate::failure::{Exit, Failure};
use crate::output::{self, counted, grouped, printable};
use crate::reader::{ExportQuery, Reader, WhereArgs};
use crate::refusal::DAMAGED;
use target::Target;

const EXAMPLES: &str = "\
Examples:
  hookstead events export > events.jsonl
  hookstead events export --source stripe --from 2026-11-01T00:00:00Z --output stripe.jsonl
  hookstead events export @ | jq -r .body_base64 | base64 -d
  hookstead events export --data /var/lib/old | hookstead events import --data /var/lib/new";

const FORM: &str = "\
Each line is one event: {\"format\": 1, \"id\", \"seq\", \"source\", \"provider_event_id\", \"type\", \"account\", \
\"received_from\", \"verified_by\", \"received_at\", \"committed_at\", \"digest\", \"bytes\", \"erased_at\", \"query\", \"headers\": \
[{\"name\", \"value\"}], \"body_base64\"}, the oldest first, up to the one that is the newest at the start. Each body is \
compared with its digest. Erased bodies are null, and an import passes their events over. Deliveries, runs and conflicts stay: \
`store backup` copies all.

JSON, with --output: {\"ok\", \"file\", \"events\", \"erased\", \"bytes\", \"damaged\": [TEXT]}. Exit code 7 if an event is damaged \
and left out.";

/// Write events with their bodies as JSON lines, for another inbox or another program
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = [FORM, "\n\n", SELECTOR].concat())]
pub(super) struct Export {
    /// Only these events.
    #[arg(value_name = "EVENT", conflicts_with_all = ["source", "event_type", "from", "before"])]
    events: Vec<String>,
    /// Only of this source.
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Only of this type; `*` stands for anything.
    #[arg(long = "type", value_name = "PATTERN")]
    event_type: Option<String>,
    /// Only what was stored at this instant or later (RFC 3339).
    #[arg(long, value_name = "TIME", value_parser = instant)]
    from: Option<Timestamp>,
    /// Only what was stored before this instant (RFC 3339).
    #[arg(long, value_name = "TIME", value_parser = instant)]
    before: Option<Timestamp>,
    /// Write to this file, which is there when it is whole; it must not exist yet.
    #[arg(long, short, alias = "out", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file of --output.
    #[arg(long, requires = "output")]
    force: bool,
    /// With --output: print one JSON document.
    #[arg(long, requires = "output")]
    json: bool,
    #[command(flatten)]
    place: WhereArgs,
}

fn instant(text: &str) -> Result<Timestamp, String> {
    output::instant(text).ok_or_else(|| "not a time such as 2026-11-29T14:03:31Z".to_owned())
}

/// What was written.
#[derive(Default, Serialize)]
struct Summary {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    events: u64,
    erased: u64,
    bytes: u64,
    damaged: Vec<String>,
    /// How many there are, those beyond the maximum included.
    #[serde(skip)]
    damaged_count: u64,
}

/// The most damaged events that are named; the others are counted.
const DAMAGED_NAMED_MAX: usize = 1_000;

pub(super) fn run(args: &Export) -> Result<()> {
    let mut target = Target::open(args.output.as_deref(), args.force)?;
    let reader = Reader::open_damaged_too(&args.place)?;
    let mut summary = Summary { file: args.output.clone(), ..Summary::default() };
    if args.events.is_empty() {
        list(&reader, args, &mut target, &mut summary)?;
    } else {
        named(&reader, &args.events, &mut target, &mut summary)?;
    }
    summary.bytes = target.finish()?;
    summary.ok = summary.damaged_count == 0;
    tell(args, &summary)
}

fn list(reader: &Reader, args: &Export, target: &mut Target, summary: &mut Summary) -> Result<()> {
    let mut query = ExportQuery {
        source: args.source.clone(),
        event_type: args.event_type.clone(),
        from: args.from,
        before: args.before,
        ..ExportQuery::default()
    };
    loop {
        let page = reader.export_page(&query)?;
        target.write(&page.lines)?;
        summary.events += page.end.events;
        summary.erased += page.end.erased;
        summary.leave_out(page.end.damaged);
        if !page.end.more {
            return Ok(());
        }
        query.after = page.end.cursor;
        query.until = Some(page.end.until);
    }
}

fn named(reader: &Reader, events: &[String], target: &mut Target, summary: &mut Summary) -> Result<()> {
    for event in events {
        let line = match reader.export_event(event) {
            Err(error) if is_damage(&error) => {
                summary.leave_out([format!("{event}: {error:#}")]);
                continue;
            }
            line => line?,
        };
        let EventLine { body_base64, .. } = serde_json::from_slice(&line)?;
        target.write(&line)?;
        summary.events += 1;
        summary.erased += u64::from(body_base64.is_none());
    }
    Ok(())
}

/// Whether one event cannot be read, and others may be: as the server says it, or the store itself.
fn is_damage(error: &anyhow::Error) -> bool {
    let is_said = error.downcast_ref::<Failure>().is_some_and(|failure| failure.code() == DAMAGED);
    is_said || matches!(error.downcast_ref::<StoreError>(), Some(StoreError::Corrupt { .. }))
}

impl Summary {
    /// Names damaged events, as far as there is room, and counts them.
    fn leave_out(&mut self, damaged: impl IntoIterator<Item = String>) {
        for event in damaged {
            self.damaged_count += 1;
            if self.damaged.len() < DAMAGED_NAMED_MAX {
                self.damaged.push(event);
            }
        }
    }
}

fn tell(args: &Export, summary: &Summary) -> Result<()> {
    let erased = match summary.erased {
        0 => String::new(),
        count => format!(", {} of them without a body: retention erased it", grouped(count)),
    };
    let events = format!("{}{erased}", counted(summary.events, "event", "events"));
    match &args.output {
        None => output::talk(format_args!("exported {events}"))?,
        Some(_) if args.json => output::json(summary)?,
        Some(file) => {
            output::labelled("exported", format_args!("{events}"))?;
            output::labelled(
                "file",
                format_args!("{}, {}, on the disk", file.display(), output::size(summary.bytes)),
            )?;
        }
    }
    if summary.damaged_count == 0 {
        return Ok(());
    }
    for damaged in &summary.damaged {
        output::talk_labelled("damaged", printable(damaged))?;
    }
    let message =
        format!("{} left out", counted(summary.damaged_count, "damaged event was", "damaged events were"));
    Err(Failure::new(Exit::Partly, DAMAGED, message)
        .fix("see what is wrong with the store:   hookstead store check")
        .into())
}
