//! `hookstead events body`: exactly the bytes that came.

use std::fs::OpenOptions;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use super::SELECTOR;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::reader::{Reader, WhereArgs};

const EXAMPLES: &str = "\
Examples:
  hookstead events body @ | jq .
  hookstead events body stripe:evt_123 --output event.json";

/// Write the body of an event, exactly as it came
///
/// The digest of the stored bytes is checked first: damaged bytes are never written.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = SELECTOR)]
pub(super) struct Body {
    /// The event.
    event: String,
    /// Write to this file instead of stdout; it must not exist yet.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write bytes that are no text to a terminal too, and overwrite the file of --output.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    place: WhereArgs,
}

pub(super) fn run(args: &Body) -> Result<()> {
    let body = Reader::open(&args.place)?.body(&args.event)?;
    if let Some(file) = &args.output {
        return write(file, &body, args.force);
    }
    if std::io::stdout().is_terminal() && !args.force && !is_text(&body) {
        let message = format!("the body is no text ({} bytes), and this is a terminal", body.len());
        return Err(Failure::new(Exit::Failed, "binary", message)
            .fix("write it to a file with --output FILE, or insist with --force")
            .into());
    }
    output::bytes(&body)
}

fn write(file: &Path, body: &[u8], force: bool) -> Result<()> {
    let mut options = OpenOptions::new();
    let options = if force { options.create(true).truncate(true) } else { options.create_new(true) };
    let mut opened = options.write(true).open(file).map_err(|error| {
        Failure::new(Exit::Failed, "not-written", format!("cannot write {}: {error}", file.display()))
            .fix("name another file, or overwrite it with --force")
    })?;
    opened.write_all(body).with_context(|| format!("cannot write {}", file.display()))
}

/// Whether a terminal shows it and does nothing else with it.
fn is_text(body: &[u8]) -> bool {
    let harmless = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    std::str::from_utf8(body).is_ok_and(|text| text.chars().all(harmless))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_text_is_text() {
        assert!(is_text("{\"a\":\n\t\"é\"}\r\n".as_bytes()));
        assert!(!is_text(b"\xff"));
        assert!(!is_text(b"\x1b[2J"));
        assert!(!is_text(b"a\0"));
    }
}
