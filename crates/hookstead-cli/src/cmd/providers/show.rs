//! `hookstead providers show`: one provider in full, for a person, a program, or docs/providers/.

use anyhow::Result;
use clap::Args;
use hookstead_verify::Provider;

use super::facts::Document;
use super::{named, page, words};
use crate::output::{self, BOLD, DIM};

const EXAMPLES: &str = "\
Examples:
  hookstead providers show stripe
  hookstead providers show github --json | jq .not_verified
  hookstead providers show shopify --markdown > shopify.md";

const JSON: &str = "\
JSON: {\"provider\", \"title\", \"docs\", \"notes\", \"confidence\", \"verified\", \"not_verified\", \"schemes\", \"identity\", \
\"secret\", \"conf\", \"retry\", \"ack\", \"handshakes\", \"body_bytes_max\", \"samples\", \"steps\", \"source\"}; what is not \
known is null. source is the TOML to add.";

/// Show what is checked of a provider's requests, what is not, and how to connect it
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(super) struct Show {
    /// The provider, such as stripe or github.
    name: String,
    /// Print one JSON document.
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print its page of docs/providers/.
    #[arg(long)]
    markdown: bool,
}

pub(super) fn run(args: &Show) -> Result<()> {
    let provider = named(&args.name)?;
    match (args.json, args.markdown) {
        (true, _) => output::json(&Document::of(provider)),
        (_, true) => output::bytes(page::page(provider).as_bytes()),
        _ => print(provider),
    }
}

fn print(provider: &Provider) -> Result<()> {
    output::line(format_args!("{BOLD}{}{BOLD:#}   {DIM}{}{DIM:#}", provider.title(), provider.docs()))?;
    let confidence = provider.confidence();
    output::fact("confidence", format_args!("{}: {}", confidence.as_str(), confidence.meaning()))?;
    super::facts("verified", &words::verified(provider))?;
    super::facts("not", &words::not_verified(provider))?;
    output::fact("identity", words::identity(provider))?;
    super::facts("retries", &words::retries(provider))?;
    super::facts("answers", &words::answers(provider))?;
    let conf = provider.conf().map(|(name, what, _)| format!("`{name}`: {what}")).collect::<Vec<_>>();
    super::facts("needs", &conf)?;
    if !provider.notes().is_empty() {
        output::fact("notes", provider.notes())?;
    }
    output::line("")?;
    for (number, step) in words::steps(provider).iter().enumerate() {
        output::line(format_args!("{}. {step}", number + 1))?;
    }
    output::line(format_args!("\n{}", words::source(provider).trim_end()))
}
