//! What `hookstead` says when it is called without a verb: what it is, and the first things to try.

use anyhow::Result;

use crate::output::{self, BOLD, DIM};

const FIRST: [(&str, &str); 6] = [
    ("hookstead demo", "the whole story in a second: stored, forged, killed, still there, delivered"),
    ("hookstead serve", "start an inbox on http://127.0.0.1:4665; no configuration is needed"),
    ("hookstead send stripe", "send it a signed sample from a second terminal"),
    ("hookstead events", "look at what came in"),
    ("hookstead destinations", "who gets it: push, pull or a program"),
    ("hookstead help", "every verb; `hookstead help VERB` shows examples"),
];

pub(crate) fn run() -> Result<()> {
    output::line(format_args!(
        "{BOLD}hookstead {}{BOLD:#}   a durable inbox for webhooks\n\
         {DIM}It checks the signature, writes the event to disk, and only then answers.{DIM:#}\n",
        env!("CARGO_PKG_VERSION")
    ))?;
    for (command, what) in FIRST {
        output::line(format_args!("  {BOLD}{command:<24}{BOLD:#}{what}"))?;
    }
    Ok(())
}
