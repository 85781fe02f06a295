//! `hookstead sources add`: into the configuration file and into the running server.

use anyhow::Result;
use clap::Args;
use hookstead_server::config::source_url;
use serde::Serialize;
use toml::Value;

use super::reference::ReferenceArgs;
use super::{configured, other_file};
use crate::cmd::providers;
use crate::config_file::{Changed, ConfigFile};
use crate::config_text::with_section;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::place::PlaceArgs;

const EXAMPLES: &str = "\
Examples:
  hookstead sources add stripe --env STRIPE_WEBHOOK_SECRET
  hookstead sources add shop --provider shopify --file /etc/hookstead/shop
  hookstead sources add gitea --generate gitea-secret
  hookstead sources add plaid --identity body";

const JSON: &str = "\
JSON: {\"source\", \"provider\", \"address\", \"file\", \"reloaded\", \"generated\"}. The configuration file gets a table \
[sources.NAME], and a running server takes it over at once. Exit code 5 if it would be wrong, such as an API key in the \
place of a signing secret: nothing is changed then.";

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
    if args.json { output::json(&document) } else { print(&document, provider.title()) }
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
