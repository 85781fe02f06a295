//! `hookstead providers`: what hookstead knows of who sends, and the work of adding one more.
//!
//! Needs no server, no configuration and no store: records are part of the binary, or given as files.

mod check;
mod facts;
mod list;
mod page;
mod show;
mod test;
mod words;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use clap::{Args, Subcommand};
use hookstead_verify::{Provider, ProviderError, Registry};

use crate::failure::{Exit, Failure};
use crate::output;
pub(crate) use list::samples;
pub(crate) use words::steps_at;

/// Longest record or file of vectors that is read, in bytes. All vectors of all providers together have 5 MB.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

const EXAMPLES: &str = "\
Examples:
  hookstead providers list                     every provider that can be verified
  hookstead providers show stripe              what is checked, what is not, how to connect
  hookstead providers check acme.toml          is this a record that can be used?
  hookstead providers test acme.json --record acme.toml";

/// Look at the providers that can be verified, and try records of your own
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct ProvidersArgs {
    #[command(subcommand)]
    verb: ProvidersVerb,
}

#[derive(Debug, Subcommand)]
enum ProvidersVerb {
    List(list::List),
    Show(show::Show),
    Check(check::Check),
    Test(test::Test),
}

pub(crate) fn run(args: &ProvidersArgs) -> Result<()> {
    match &args.verb {
        ProvidersVerb::List(args) => list::run(args),
        ProvidersVerb::Show(args) => show::run(args),
        ProvidersVerb::Check(args) => check::run(args),
        ProvidersVerb::Test(args) => test::run(args),
    }
}

/// The provider of this name.
pub(crate) fn named(name: &str) -> Result<&'static Arc<Provider>> {
    Registry::builtin().get(name).ok_or_else(|| {
        let message = match Registry::builtin().nearest(name) {
            Some(close) => format!("there is no provider `{name}`; did you mean `{close}`?"),
            None => format!("there is no provider `{name}`"),
        };
        Failure::new(Exit::NotFound, "unknown-provider", message)
            .fix("see them all: hookstead providers list")
            .into()
    })
}

/// The text of a file that somebody wrote.
fn read(file: &Path) -> Result<String> {
    let not_read = |error: &std::io::Error| {
        let exit = if error.kind() == std::io::ErrorKind::NotFound { Exit::NotFound } else { Exit::Failed };
        Failure::new(exit, "not-read", format!("cannot read {}: {error}", file.display()))
            .fix("name a file that exists and that you may read")
    };
    let bytes = fs::metadata(file).map_err(|error| not_read(&error))?.len();
    if bytes > FILE_BYTES_MAX {
        let message = format!("{} has {bytes} bytes, more than {FILE_BYTES_MAX}", file.display());
        return Err(Failure::new(Exit::Refused, "too-large", message).into());
    }
    Ok(fs::read_to_string(file).map_err(|error| not_read(&error))?)
}

/// The name of a record: its file's, without the suffix.
fn record_name(file: &Path) -> Result<&str> {
    file.file_stem().and_then(|stem| stem.to_str()).ok_or_else(|| {
        Failure::new(Exit::Usage, "no-name", format!("`{}` gives a provider no name", file.display()))
            .fix("call the file as the provider: acme.toml")
            .into()
    })
}

/// A record that cannot be used.
fn bad_record(error: &ProviderError) -> Failure {
    let place = format!("{}.toml:{}:{}", error.provider, error.line, error.column);
    let failure = Failure::new(Exit::Refused, "bad-record", format!("{place}: {}", error.message));
    // The excerpt with its caret: what is left of the text behind the line that stands above already.
    let text = error.to_string();
    match text.split_once('\n') {
        Some((_, excerpt)) => failure.line("at", excerpt),
        None => failure,
    }
    .fix("what every key means: crates/hookstead-verify/providers/README.md")
}

/// A JSON document, or the line of a table that a person reads.
fn yes_no(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

/// Lines of a fact, or nothing.
fn facts(name: &str, lines: &[String]) -> Result<()> {
    for (index, line) in lines.iter().enumerate() {
        output::fact(if index == 0 { name } else { "" }, line)?;
    }
    Ok(())
}
