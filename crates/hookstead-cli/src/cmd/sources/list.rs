//! `hookstead sources list`.

use anyhow::Result;
use clap::Args;
use hookstead_server::config::{Mode, SourceConfig, source_url};
use serde::Serialize;

use crate::output;
use crate::place::PlaceArgs;

const EXAMPLES: &str = "\
Examples:
  hookstead sources list
  hookstead sources list --json | jq -r '.[].address'";

const JSON: &str = "\
JSON: [{\"source\", \"provider\", \"address\", \"secrets\", \"identity\"}]; secrets says where they are kept, never what they \
are.";

/// List the sources of the configuration
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(super) struct List {
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Serialize)]
struct Entry {
    source: String,
    provider: String,
    address: String,
    secrets: Vec<String>,
    identity: String,
}

pub(super) fn run(args: &List) -> Result<()> {
    let config = args.place.load()?;
    let public = config.server.public_url.as_deref();
    let entry = |source: &SourceConfig| Entry {
        source: source.name.to_string(),
        provider: source.provider.name().to_owned(),
        address: source_url(source.name.as_str(), public, config.server.intake),
        secrets: source.secret_entries.iter().map(ToString::to_string).collect(),
        identity: source.identity.to_string(),
    };
    let sources: Vec<Entry> = config.sources.iter().map(entry).collect();
    if args.json {
        return output::json(&sources);
    }
    if sources.is_empty() {
        return output::talk(match config.mode {
            Mode::Dev => "dev mode: every provider of `hookstead send --list` is a source",
            Mode::Configured => {
                "no sources: nothing is accepted. Add one: hookstead sources add NAME --env VARIABLE"
            }
        });
    }
    let rows = sources
        .into_iter()
        .map(|entry| [entry.source, entry.provider, entry.address, entry.secrets.join(", ")]);
    output::table(["SOURCE", "PROVIDER", "ADDRESS", "SECRETS"], rows.collect())
}
