//! `hookstead providers check`: whether a record can be used, and what it would check.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use hookstead_verify::{Provider, ProviderError};
use serde::Serialize;

use super::{bad_record, facts, read, record_name, words};
use crate::failure::{Exit, Failure};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  hookstead providers check acme.toml
  hookstead providers check acme.toml --json | jq .not_verified";

const JSON: &str = "\
JSON: {\"ok\", \"provider\", \"verified\", \"not_verified\", \"problem\": {\"line\", \"column\", \"message\", \"suggestion\"}}. \
Exit code 5 if the record cannot be used, with and without --json.";

/// Find what is wrong with a record of a provider
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(super) struct Check {
    /// The record; its name is the provider's.
    file: PathBuf,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    ok: bool,
    provider: &'a str,
    verified: Vec<String>,
    not_verified: Vec<String>,
    problem: Option<Problem<'a>>,
}

#[derive(Serialize)]
struct Problem<'a> {
    line: usize,
    column: usize,
    message: &'a str,
    suggestion: Option<&'a str>,
}

pub(super) fn run(args: &Check) -> Result<()> {
    let name = record_name(&args.file)?;
    match (Provider::parse(name, &read(&args.file)?), args.json) {
        (Ok(provider), true) => output::json(&Document {
            ok: true,
            provider: name,
            verified: words::verified(&provider),
            not_verified: words::not_verified(&provider),
            problem: None,
        }),
        (Ok(provider), false) => print(&provider),
        (Err(error), true) => {
            output::json(&refused(name, &error))?;
            Err(Failure::new(Exit::Refused, "bad-record", "the record cannot be used").into())
        }
        (Err(error), false) => Err(bad_record(&error).into()),
    }
}

fn print(provider: &Provider) -> Result<()> {
    output::labelled("ok", format_args!("{} ({})", provider.name(), provider.title()))?;
    facts("verified", &words::verified(provider))?;
    facts("not", &words::not_verified(provider))?;
    output::fact("identity", words::identity(provider))
}

fn refused<'a>(name: &'a str, error: &'a ProviderError) -> Document<'a> {
    let problem = Problem {
        line: error.line,
        column: error.column,
        message: &error.message,
        suggestion: error.suggestion.as_deref(),
    };
    Document {
        ok: false,
        provider: name,
        verified: Vec::new(),
        not_verified: Vec::new(),
        problem: Some(problem),
    }
}
