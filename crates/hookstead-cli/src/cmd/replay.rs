//! `hookstead replay`: process an event under a name, and get the receipt.

use anyhow::Result;
use clap::Args;
use hookstead_core::RunName;
use hookstead_server::api::view::RunView;

use crate::output::{self, BOLD, printable};
use crate::reader::{self, WhereArgs};

const EXAMPLES: &str = "\
Examples:
  hookstead replay @ --run first-import
  hookstead replay signed-inbox:delivery-1 --run nightly-2026-11-29
  hookstead replay 0001 --run check --json | jq .payload";

const JSON: &str = "\
JSON: {\"schemaVersion\", \"deliveryId\", \"runId\", \"businessEventId\", \"bodySHA256\", \"processedAt\", \"payload\", \
\"event\", \"new\"}. payload is the value of the body's data, byte for byte; bytes that are no UTF-8 stand in \
payloadBase64 instead. Sources other than signed-inbox have neither businessEventId nor payload.

Exit codes: 0 with a receipt, new or known; 2 a malformed run name; 3 no such event; 5 the body cannot be read, or \
the receipt of this run is damaged; 6 no server answered.

An event is named by its short id (0001), its id (a UUID), @ for the newest, or SOURCE:PROVIDER-ID.";

/// How much of a payload a terminal shows.
const PAYLOAD_CHARACTERS: usize = 400;

/// Process an event under a name; the same name again gives the same receipt
///
/// The first time, a receipt is written that stays. A running server does it; without one, the store is opened.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(crate) struct Replay {
    /// The event.
    event: String,
    /// The name of the run: 1 to 128 of A-Z, a-z, 0-9, `.`, `_`, `-`, the first a letter or digit.
    #[arg(long, value_name = "NAME")]
    run: RunName,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: WhereArgs,
}

pub(crate) fn run(args: &Replay) -> Result<()> {
    let receipt = reader::replay(&args.place, &args.event, &args.run)?;
    if args.json { output::json(&receipt) } else { print(&receipt) }
}

fn print(receipt: &RunView) -> Result<()> {
    let word = if receipt.new == Some(true) { "new" } else { "known: this run was recorded before" };
    output::line(format_args!("{BOLD}{}{BOLD:#}   {word}", receipt.run_id))?;
    for (name, text) in facts(receipt) {
        output::fact(name, text)?;
    }
    Ok(())
}

fn facts(receipt: &RunView) -> Vec<(&'static str, String)> {
    let base64 = |text: &Option<String>| text.as_ref().map(|text| format!("base64:{text}"));
    let delivery = receipt.delivery_id.as_deref().map(printable);
    let payload = receipt.payload.as_ref().map(|payload| shortened(payload.get()));
    let facts = [
        ("event", Some(receipt.event.clone())),
        ("delivery", delivery.or_else(|| base64(&receipt.delivery_id_base64))),
        ("business", receipt.business_event_id.as_deref().map(printable)),
        ("processed", Some(receipt.processed_at.clone())),
        ("digest", Some(format!("sha256 {}", receipt.body_sha256))),
        ("payload", payload.or_else(|| base64(&receipt.payload_base64))),
    ];
    facts.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
}

fn shortened(payload: &str) -> String {
    let text: String = printable(&payload.chars().take(PAYLOAD_CHARACTERS).collect::<String>());
    match payload.chars().count() {
        count if count > PAYLOAD_CHARACTERS => format!("{text}…   (all {count} characters: --json)"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_payload_is_cut() {
        assert_eq!(shortened("{\"a\":1}"), "{\"a\":1}");
        let long = shortened(&"x".repeat(500));
        assert!(long.starts_with(&"x".repeat(400)) && long.ends_with("…   (all 500 characters: --json)"));
    }
}
