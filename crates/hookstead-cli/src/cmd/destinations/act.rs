//! `hookstead destinations pause` and `resume`.

use anyhow::Result;
use clap::Args;
use hookstead_server::api::view::{DestinationView, NewDecision};

use super::list::state;
use super::show::{JSON, no_destination_named};
use crate::client::Call;
use crate::output;
use crate::reader::WhereArgs;
use crate::work;

const PAUSE_EXAMPLES: &str = "\
Examples:
  hookstead destinations pause app
  hookstead destinations pause app --note maintenance";

const RESUME_EXAMPLES: &str = "\
Examples:
  hookstead destinations resume app
  hookstead destinations resume app --json";

/// Deliver nothing to a destination until it is resumed; events go on being stored and owed
#[derive(Debug, Args)]
#[command(before_help = PAUSE_EXAMPLES, after_help = JSON)]
pub(super) struct Pause {
    #[command(flatten)]
    act: Act,
}

/// Deliver again to a destination that was paused
#[derive(Debug, Args)]
#[command(before_help = RESUME_EXAMPLES, after_help = JSON)]
pub(super) struct Resume {
    #[command(flatten)]
    act: Act,
}

#[derive(Debug, Args)]
struct Act {
    /// The destination.
    name: String,
    /// Why, for the record.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: WhereArgs,
}

pub(super) fn pause(args: &Pause) -> Result<()> {
    args.act.run("pause")
}

pub(super) fn resume(args: &Resume) -> Result<()> {
    args.act.run("resume")
}

impl Act {
    fn run(&self, verb: &str) -> Result<()> {
        let asked = NewDecision { note: self.note.clone() };
        let call = Call::post(&["v1", "destinations", &self.name, verb], &asked)?.about(&self.name);
        let found = work::with(&self.place, async |client| client.ask(call).await)?;
        let destination: DestinationView = found.ok_or_else(|| no_destination_named(&self.name))?;
        if self.json {
            return output::json(&destination);
        }
        output::labelled(&destination.name, state(&destination))
    }
}
