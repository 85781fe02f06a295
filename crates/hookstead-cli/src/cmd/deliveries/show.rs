//! `hookstead deliveries show`.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use hookstead_server::api::view::{AttemptView, DeliveryView};

use super::NAME;
use crate::client::Call;
use crate::output::{self, BOLD, printable};
use crate::reader::WhereArgs;
use crate::refusal::no_delivery;
use crate::sample::now;
use crate::work;

const EXAMPLES: &str = "\
Examples:
  hookstead deliveries show 0001:app
  hookstead deliveries show @:app --json | jq '.log[-1].status'";

const JSON: &str = "\
JSON: {\"id\", \"event\", \"event_id\", \"source\", \"type\", \"destination\", \"generation\", \"state\", \"due\", \
\"lease_until\", \"ended_at\", \"reason\", \"decision\": {\"by\", \"note\", \"at\"}, \"made_at\", \"attempts\", \
\"idempotency_key\", \"redelivery\", \"log\": [{\"number\", \"started_at\", \"took_us\", \"status\", \"error\", \"rule\", \
\"excerpt\"}]}. excerpt is the beginning of the target's answer; one that is no text stands in excerpt_base64. The rules \
stand in docs/delivery.md.";

/// How much of an answer a line shows.
const EXCERPT_CHARACTERS: usize = 120;

/// Show one delivery with all its attempts
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = [JSON, "\n\n", NAME].concat())]
pub(super) struct Show {
    /// The delivery.
    delivery: String,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: WhereArgs,
}

pub(super) fn run(args: &Show) -> Result<()> {
    let call = Call::get(&["v1", "deliveries", &args.delivery]);
    let delivery = work::with(&args.place, async |client| client.ask(call).await)?;
    let delivery: DeliveryView = delivery.ok_or_else(|| no_delivery(&args.delivery))?;
    if args.json { output::json(&delivery) } else { print(&delivery) }
}

/// A delivery for people, with the attempts if it has them.
pub(super) fn print(delivery: &DeliveryView) -> Result<()> {
    output::line(format_args!("{BOLD}{}{BOLD:#}   {}", delivery.id, state(delivery)))?;
    for (name, text) in facts(delivery) {
        output::fact(name, text)?;
    }
    for attempt in delivery.log.iter().flatten() {
        output::fact(&format!("attempt {}", attempt.number), told(attempt))?;
    }
    Ok(())
}

fn facts(delivery: &DeliveryView) -> Vec<(&'static str, String)> {
    let event_type = printable(delivery.event_type.as_deref().unwrap_or("no type"));
    let decision = delivery.decision.as_ref().map(|decision| {
        let note = if decision.note.is_empty() { "no note".to_owned() } else { printable(&decision.note) };
        format!("{note}   by {}, {}", printable(&decision.by), decision.at)
    });
    let facts = [
        ("event", Some(format!("{} · {} · {event_type}", delivery.event, delivery.source))),
        ("reason", delivery.reason.as_deref().map(printable)),
        ("decision", decision),
        ("made", Some(delivery.made_at.clone())),
        ("redelivery", delivery.redelivery.clone()),
        ("key", Some(printable(&delivery.idempotency_key))),
        ("attempts", Some(delivery.attempts.to_string())),
    ];
    facts.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
}

/// A state and what goes with it, in a few words.
pub(in crate::cmd) fn state(delivery: &DeliveryView) -> String {
    let since = |at: &Option<String>| at.as_deref().and_then(output::instant);
    let state = &delivery.state;
    match state.as_str() {
        "waiting" => match since(&delivery.due).map(|due| (due, due.since(now()))) {
            Some((_, wait)) if wait > Duration::ZERO => format!("{state}, due in {}", output::age(wait)),
            Some((due, _)) => format!("{state}, due {} ago", output::age(now().since(due))),
            None => state.clone(),
        },
        "leased" => match since(&delivery.lease_until) {
            Some(until) => format!("{state} for {}", output::age(until.since(now()))),
            None => state.clone(),
        },
        "dead" => match &delivery.reason {
            Some(reason) => format!("{state}: {}", printable(reason)),
            None => state.clone(),
        },
        _ => state.clone(),
    }
}

fn told(attempt: &AttemptView) -> String {
    let status = attempt.status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
    let took = output::took(Duration::from_micros(attempt.took_us));
    let mut text = format!("{}   {took}   {status}", attempt.started_at);
    let parts = [attempt.rule.as_deref(), attempt.error.as_deref()];
    for part in parts.into_iter().flatten() {
        text.push_str(&format!("   {}", printable(part)));
    }
    let said = match (&attempt.excerpt, &attempt.excerpt_base64) {
        (Some(excerpt), _) if !excerpt.is_empty() => shortened(excerpt),
        (_, Some(_)) => "(the answer is no text: --json)".to_owned(),
        _ => return text,
    };
    format!("{text}\n{:13}{said}", "")
}

fn shortened(excerpt: &str) -> String {
    let text = printable(&excerpt.chars().take(EXCERPT_CHARACTERS).collect::<String>());
    if excerpt.chars().count() > EXCERPT_CHARACTERS { format!("{text}…   (more: --json)") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_target_says_cannot_steer_the_terminal_and_is_cut() {
        assert_eq!(shortened("no\x1b[2J"), "no\\u{1b}[2J");
        assert!(shortened(&"x".repeat(500)).ends_with("…   (more: --json)"));
    }
}
