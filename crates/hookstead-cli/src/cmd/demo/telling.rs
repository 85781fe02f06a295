//! How the tour is told: as text that is pleasant to follow, or as JSON lines.

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use crate::failure::{Exit, Failure};
use crate::output::{self, BAD, BOLD, DIM, GOOD};

/// One step, after it was taken.
#[derive(Serialize)]
pub(super) struct Step {
    /// Its stable name.
    pub(super) step: &'static str,
    /// What happens, for people.
    pub(super) title: &'static str,
    /// Whether it went as it must.
    pub(super) ok: bool,
    /// How long it took.
    #[serde(rename = "ms", serialize_with = "as_millis")]
    pub(super) took: Duration,
    /// The status of the answer, if it was a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<u16>,
    /// The status that it must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expected: Option<u16>,
    /// What came of it.
    pub(super) detail: String,
}

#[derive(Serialize)]
struct End {
    step: &'static str,
    ok: bool,
    #[serde(rename = "ms", serialize_with = "as_millis")]
    took: Duration,
}

/// The teller.
pub(super) struct Telling {
    json: bool,
}

impl Telling {
    pub(super) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Says what this is before anything happens.
    pub(super) fn open(&self) -> Result<()> {
        self.say(format_args!(
            "{BOLD}hookstead demo{BOLD:#}   a webhook is on disk before it is answered: see for yourself\n\
             {DIM}real requests over loopback, in a temporary folder; nothing of yours is touched{DIM:#}\n"
        ))
    }

    /// A line of its own between the groups of steps.
    pub(super) fn pause(&self) -> Result<()> {
        self.say("")
    }

    /// Tells a step, and ends the tour if it did not go as it must.
    pub(super) fn step(&self, step: &Step) -> Result<()> {
        if self.json {
            output::json(step)?;
        } else {
            output::line(text(step))?;
        }
        if step.ok { Ok(()) } else { Err(surprise(step).into()) }
    }

    /// Says how it ended and what to try next.
    pub(super) fn close(&self, took: Duration) -> Result<()> {
        if self.json {
            return output::json(&End { step: "end", ok: true, took });
        }
        self.say(format_args!(
            "\n{GOOD}Every answer was as promised{GOOD:#}, in {}. The server and its folder are gone.\n",
            output::took(took)
        ))?;
        for (label, command, what) in NEXT {
            output::labelled(label, format_args!("{BOLD}{command:<28}{BOLD:#}{what}"))?;
        }
        Ok(())
    }

    fn say(&self, text: impl std::fmt::Display) -> Result<()> {
        if self.json { Ok(()) } else { output::line(text) }
    }
}

const NEXT: [(&str, &str, &str); 5] = [
    ("next", "hookstead serve", "an inbox of your own; no configuration is needed"),
    ("", "hookstead send stripe", "in a second terminal: send it a signed sample"),
    ("", "hookstead events", "look at what came in"),
    ("", "hookstead destinations add", "say who gets it"),
    ("", "hookstead config init", "write a configuration for your own providers"),
];

fn text(step: &Step) -> String {
    let mark = if step.ok { format!("{GOOD}✓{GOOD:#}") } else { format!("{BAD}✗{BAD:#}") };
    let status = step.status.map_or_else(|| "   ".to_owned(), |status| format!("{status:>3}"));
    let took = output::took(step.took);
    format!("  {mark} {:<44} {BOLD}{status}{BOLD:#} {DIM}{took:>8}{DIM:#}   {}", step.title, step.detail)
}

fn surprise(step: &Step) -> Failure {
    let message = match (step.expected, step.status) {
        (Some(expected), Some(status)) => {
            format!("step `{}` must be answered {expected}, but the answer was {status}", step.step)
        }
        _ => format!("step `{}` did not go as it must: {}", step.step, step.detail),
    };
    Failure::new(Exit::Failed, "demo-surprise", message)
        .fix("this is a bug, or something else answers on loopback; please report it with this output")
}

fn as_millis<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(output::millis(*time))
}
