//! `hookstead sources add`: into the configuration file and into the running server.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use hookstead_server::config::source_url;
use serde::Serialize;
use toml::Value;

use super::first_event::FirstEvent;
use super::reference::ReferenceArgs;
use super::{configured, first_event, other_file};
use crate::cmd::providers;
use crate::config_file::{Changed, ConfigFile};
use crate::config_text::with_section;
use crate::failure::{Exit, Failure};
use crate::output::{self, printable};
use crate::place::PlaceArgs;

const EXAMPLES: &str = "\
Examples:
  hookstead sources add stripe --env STRIPE_WEBHOOK_SECRET
  hookstead sources add shop --provider shopify --file /etc/hookstead/shop
  hookstead sources add gitea --generate gitea-secret
  hookstead sources add stripe --env STRIPE_WEBHOOK_SECRET --wait 10m
  hookstead sources add plaid --identity body";

const JSON: &str = "\
JSON: {\"source\", \"provider\", \"address\", \"file\", \"reloaded\", \"generated\"}. The configuration file gets a table \
[sources.NAME], and a running server takes it over at once. Exit code 5 if it would be wrong, such as an API key in the \
place of a signing secret: nothing is changed then. With --wait, exit code 6 if no server runs, before anything is \
changed, and 7 if no event came; the source stays, also if you interrupt it (130).";

/// Add a source: who may send, and the secret that they sign with
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(super) struct Add {
    /// What you call it; its address is /in/NAME.
    name: String,
    /// Who sends [default: the provider of that name].
    #[arg(long, value_name = "PROVIDER")]
    provider: Option<String>,
    #[command(flatten)]
    reference: ReferenceArgs,
    /// What makes an event the same, where the provider names none: body, none or a template.
    #[arg(long, value_name = "RULE")]
    identity: Option<String>,
    /// Then wait this long for the first event, at most 1h; for people, `tail` is for programs.
    #[arg(long, value_name = "DURATION", value_parser = first_event::wait, conflicts_with = "json")]
    wait: Option<Duration>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Serialize)]
struct Document<'a> {
    source: &'a str,
    provider: &'a str,
    address: String,
    file: String,
    reloaded: bool,
    generated: Option<String>,
}

pub(super) fn run(args: &Add) -> Result<()> {
    let config = configured(args.place.load()?)?;
    if config.sources.iter().any(|known| known.name.as_str() == args.name) {
        let message = format!("there is a source `{}` already; nothing was changed", args.name);
        return Err(Failure::new(Exit::Refused, "exists", message)
            .fix(format!("give it another secret: hookstead sources rotate {} --env VARIABLE", args.name))
            .into());
    }
    let first = args.wait.map(|within| FirstEvent::from_now_on(&config).map(|first| (first, within)));
    let first = first.transpose()?;
    let provider = providers::named(args.provider.as_deref().unwrap_or(&args.name))?;
    let reference = args.reference.make(provider)?;
    let keys = [
        Some(("provider", Value::from(provider.name()))),
        reference.value.clone().map(|value| ("secret", value)),
        args.identity.as_deref().map(|rule| ("identity", Value::from(rule))),
    ];
    let keys: Vec<_> = keys.into_iter().flatten().collect();
    let file = ConfigFile::of(config)?;
    let path = file.path().display().to_string();
    let text = with_section(&file.text, &format!("sources.{}", args.name), &keys);
    let Changed { config, reloaded } = file.change(&text)?;
    let generated = reference.keep().map(|file| file.display().to_string());
    if reloaded.as_ref().is_some_and(|reloaded| !reloaded.sources.contains(&args.name)) {
        return Err(other_file(&path).into());
    }
    let address = source_url(&args.name, config.server.public_url.as_deref(), config.server.intake);
    let reloaded = reloaded.is_some();
    let document =
        Document { source: &args.name, provider: provider.name(), address, file: path, reloaded, generated };
    if args.json {
        return output::json(&document);
    }
    print(&document, provider.title())?;
    first.map_or(Ok(()), |(first, within)| wait(first, &args.name, within))
}

fn wait(first: FirstEvent, source: &str, within: Duration) -> Result<()> {
    let event = first.of(source, within)?;
    let event_type = printable(event.event_type.as_deref().unwrap_or("no type"));
    output::labelled("event", format_args!("{}   {event_type}", event.short_id))?;
    output::labelled("see", format_args!("hookstead events show {}", event.short_id))
}

fn print(added: &Document<'_>, title: &str) -> Result<()> {
    output::labelled("added", format_args!("{} ← {title}   ({})", added.source, added.file))?;
    if let Some(file) = &added.generated {
        output::labelled("secret", format_args!("in {file}: enter it at {title}"))?;
    }
    if !added.reloaded {
        output::labelled("next", "no server runs on this store: it is taken over when one starts")?;
    }
    output::labelled("address", format_args!("{}   register it at {title}", added.address))?;
    output::labelled("try", format_args!("hookstead send {} --source {}", added.provider, added.source))
}
