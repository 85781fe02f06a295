//! All providers in a list: those that can be verified, and those of which a sample can be sent.

use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use hookstead_verify::{Provider, Registry};
use serde::Serialize;

use super::page;
use crate::output;

const EXAMPLES: &str = "\
Examples:
  hookstead providers list
  hookstead providers list pay                those with this in their name
  hookstead providers list --json | jq -r '.[] | select(.id_covered | not) | .provider'";

const JSON: &str = "\
JSON: [{\"provider\", \"title\", \"confidence\", \"algorithms\", \"timestamp\", \"id_covered\", \"docs\"}]; id_covered is null \
where the provider names no event.";

/// List every provider that can be verified
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(super) struct List {
    /// Only those with this in their name or title.
    part: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    /// Print the index of docs/providers/.
    #[arg(long, conflicts_with_all = ["json", "part"])]
    markdown: bool,
}

#[derive(Serialize)]
struct Entry {
    provider: &'static str,
    title: &'static str,
    confidence: &'static str,
    algorithms: Vec<String>,
    timestamp: bool,
    id_covered: Option<bool>,
    docs: &'static str,
}

pub(super) fn run(args: &List) -> Result<()> {
    if args.markdown {
        return output::bytes(page::index().as_bytes());
    }
    let part = args.part.as_deref().unwrap_or_default().to_lowercase();
    let is_meant = |provider: &&'static Arc<Provider>| {
        provider.name().contains(&part) || provider.title().to_lowercase().contains(&part)
    };
    let found: Vec<_> = Registry::builtin().iter().filter(is_meant).map(entry).collect();
    if args.json {
        return output::json(&found);
    }
    let row = |entry: &Entry| {
        let covered = entry.id_covered.map_or("no id", super::yes_no);
        [
            entry.provider.to_owned(),
            entry.algorithms.join(", "),
            super::yes_no(entry.timestamp).to_owned(),
            covered.to_owned(),
            entry.confidence.to_owned(),
        ]
    };
    let rows = found.iter().map(row).collect();
    output::table(["PROVIDER", "PROOF", "SIGNS TIME", "SIGNS ID", "CONFIDENCE"], rows)?;
    output::talk(format_args!(
        "{} providers; one of them in full: hookstead providers show NAME",
        found.len()
    ))
}

fn entry(provider: &'static Arc<Provider>) -> Entry {
    Entry {
        provider: provider.name(),
        title: provider.title(),
        confidence: provider.confidence().as_str(),
        algorithms: algorithms(provider),
        timestamp: provider.has_timestamp(),
        id_covered: provider.has_id().then(|| provider.id_covered()),
        docs: provider.docs(),
    }
}

/// Its algorithms, each once.
pub(super) fn algorithms(provider: &Provider) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for scheme in provider.schemes() {
        if !found.contains(&scheme.algorithm) {
            found.push(scheme.algorithm);
        }
    }
    found
}

/// A provider with samples, for programs.
#[derive(Serialize)]
struct Sampled {
    provider: &'static str,
    title: &'static str,
    events: Vec<&'static str>,
    timestamp: bool,
}

/// Prints every provider that has sample events, and whose secret anybody can make up: `send --list`.
pub(crate) fn samples(json: bool) -> Result<()> {
    let providers = || Registry::builtin().iter().filter(|provider| can_be_sent(provider));
    if json {
        let sampled = |provider: &'static Arc<Provider>| Sampled {
            provider: provider.name(),
            title: provider.title(),
            events: events(provider),
            timestamp: provider.has_timestamp(),
        };
        let list: Vec<_> = providers().map(sampled).collect();
        return output::json(&list);
    }
    let rows = providers().map(|provider| {
        let time = super::yes_no(provider.has_timestamp());
        [provider.name().to_owned(), time.to_owned(), events(provider).join(", ")]
    });
    output::table(["PROVIDER", "SIGNS TIME", "SAMPLE EVENTS"], rows.collect())
}

/// Whether dev mode has a source for it: a public key, or an id of the account, is nothing that can be made up.
fn can_be_sent(provider: &Provider) -> bool {
    let asks = provider.conf().any(|(_, _, is_needed)| is_needed);
    provider.shares_secret() && !asks && !provider.samples().is_empty()
}

pub(super) fn events(provider: &Provider) -> Vec<&str> {
    provider.samples().iter().map(|sample| sample.event.as_str()).collect()
}
