//! `hookstead destinations remove`: out of the configuration file. What it was owed stays.

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::secret::configured;
use crate::config_file::ConfigFile;
use crate::config_text::{NotCut, without_table};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::place::PlaceArgs;

const EXAMPLES: &str = "\
Examples:
  hookstead destinations remove app
  hookstead destinations remove app --config prod.toml --json";

const JSON: &str = "\
JSON: {\"destination\", \"file\", \"reloaded\"}. Its table is cut out of the configuration file, everything else stays. \
Deliveries that are still owed to it stay owed, and go on when it is added again.";

/// Take a destination out of the configuration; what it is owed stays
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(super) struct Remove {
    /// The destination.
    name: String,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Serialize)]
struct Document<'a> {
    destination: &'a str,
    file: String,
    reloaded: bool,
}

pub(super) fn run(args: &Remove) -> Result<()> {
    let config = args.place.load()?;
    configured(&config, &args.name)?;
    let file = ConfigFile::of(config)?;
    let path = file.path().display().to_string();
    let text = without_table(&file.text, &args.name).map_err(|fault| not_cut(fault, &args.name, &path))?;
    let changed = file.change(&text)?;
    let reloaded = changed.reloaded.is_some();
    if args.json {
        return output::json(&Document { destination: &args.name, file: path, reloaded });
    }
    output::labelled("removed", format_args!("{} from {path}", args.name))?;
    output::labelled(
        "note",
        format_args!("what is still owed to it stays: hookstead deliveries --destination {}", args.name),
    )
}

fn not_cut(fault: NotCut, name: &str, file: &str) -> Failure {
    let what = match fault {
        NotCut::Absent => "is not written in",
        NotCut::Inline => "is not a table of its own in",
    };
    Failure::new(Exit::Refused, "not-a-table", format!("`{name}` {what} {file}; nothing was changed"))
        .fix("take it out by hand, then: hookstead config check, and send the server SIGHUP")
}
