//! `hookstead sources refusals`: what a running server refused of late at a source, why, and what to do. A sender never
//! learns it.

use anyhow::Result;
use clap::Args;
use hookstead_server::api::view::{RefusalView, RefusalsView};

use crate::client::{Call, Client};
use crate::cmd::runtime;
use crate::failure::{Exit, Failure};
use crate::output::{self, printable};
use crate::reader::{WhereArgs, server};
use crate::running::none_running;

const EXAMPLES: &str = "\
Examples:
  hookstead sources refusals stripe
  hookstead sources refusals stripe --json | jq '.refusals[].code'";

const JSON: &str = "\
JSON: {\"source\", \"refusals\": [{\"number\", \"at\", \"count\", \"code\", \"part\", \"age_ms\", \"from\", \"meaning\", \"fix\"}]}, the \
oldest first. The server keeps the newest 32 of a source in memory, equal ones in a row as one, until it ends or takes \
the configuration over again. Exit code 6 if no server runs.";

/// Show what was refused of late at a source, why, and what to do
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(super) struct Refusals {
    /// The source.
    name: String,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: WhereArgs,
}

pub(super) fn run(args: &Refusals) -> Result<()> {
    let config = args.place.place.load()?;
    let address = server(&args.place, &config)?.ok_or_else(|| none_running(&config))?;
    let client = Client::at(&address, &config.data)?;
    let view = runtime()?.block_on(newest(&client, &args.name, 0))?;
    if args.json {
        return output::json(&view);
    }
    if view.refusals.is_empty() {
        return output::talk(format_args!("`{}` refused nothing since it was configured", args.name));
    }
    view.refusals.iter().try_for_each(tell)
}

/// Tells those behind a number; gives the number behind which the next ones are.
pub(super) async fn tell_new(client: &Client, source: &str, after: u64) -> Result<u64> {
    let view = newest(client, source, after).await?;
    view.refusals.iter().try_for_each(tell)?;
    Ok(view.refusals.last().map_or(after, |last| last.number))
}

async fn newest(client: &Client, source: &str, after: u64) -> Result<RefusalsView> {
    let call = Call::get(&["v1", "sources", source, "refusals"]).with("after", Some(after)).about(source);
    match client.ask(call).await {
        Err(error) if is_unknown(&error) => Err(unknown(source).into()),
        answered => answered,
    }
}

fn is_unknown(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Failure>().is_some_and(|failure| failure.code() == "unknown-source")
}

fn unknown(source: &str) -> Failure {
    let message = format!("the running server has no source `{source}`");
    Failure::new(Exit::NotFound, "unknown-source", message).fix("see which there are: hookstead sources list")
}

/// One line: when, why, and what to do.
fn tell(refusal: &RefusalView) -> Result<()> {
    let RefusalView { at, code, meaning, fix, count, .. } = refusal;
    let part = refusal.part.as_deref().map(|part| format!(" ({})", printable(part))).unwrap_or_default();
    let age = refusal.age_ms.map(age).unwrap_or_default();
    let times = if *count > 1 { format!(", {count} times in a row") } else { String::new() };
    output::labelled("refused", format_args!("{at}  {code}{part}: {meaning}{age}{times}; {fix}"))
}

fn age(age_ms: i64) -> String {
    let time = output::age(std::time::Duration::from_millis(age_ms.unsigned_abs()));
    if age_ms < 0 { format!(", {time} ahead") } else { format!(", {time} before it came") }
}
