//! `hookstead demo`: the tour that ends by itself. Nothing in it is played: the server is this executable, the
//! requests are signed and go over loopback, the kill is a SIGKILL, and every claim is checked.

mod application;
mod child;
mod ending;
mod story;
mod telling;

use anyhow::Result;
use clap::Args;
use hookstead_server::termination;

use crate::cmd::runtime;
use crate::failure::{Exit, Failure};
use telling::Telling;

const EXAMPLES: &str = "\
Examples:
  hookstead demo                 watch it
  hookstead demo --json          one JSON document a step, for scripts";

const JSON: &str = "\
JSON: one line a step: {\"step\", \"title\", \"ok\", \"ms\", \"detail\"}, and for a request \"status\" and \"expected\". The \
steps are start, stored, retry, altered, stale, conflict, kill, restart, kept, retry-after-kill, application, event, \
dead, redelivered. The last line is \
{\"step\": \"end\", \"ok\", \"ms\"}. If a step is not as it must be, the tour ends there with exit code 1.";

/// Show the whole story in a temporary folder: stored, forged, killed, still there, delivered
///
/// Starts a server of its own, sends it real signed requests over loopback, kills it with SIGKILL, starts it
/// again and shows that nothing was lost. Then an application gets an event, fails, is fixed, and gets it
/// again. Each answer is checked. Ends by itself and leaves nothing behind.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(crate) struct Demo {
    /// Print one JSON document a step instead of text.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Demo) -> Result<()> {
    let telling = Telling::new(args.json);
    runtime()?.block_on(async {
        let interruption = termination()?;
        tokio::select! {
            told = story::tell(&telling) => told,
            () = interruption => Err(interrupted().into()),
        }
    })
}

fn interrupted() -> Failure {
    Failure::new(
        Exit::Interrupted,
        "interrupted",
        "the demo was interrupted; its server and its folder are gone",
    )
}
