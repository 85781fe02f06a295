//! One line on a terminal that is written over and over.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use anyhow::Result;
use hookstead_store::{BackupPhase, BackupProgress};

use crate::output::{self, grouped};

/// How far something is.
pub(super) struct Progress {
    on: bool,
    shown_at: Option<Instant>,
}

impl Progress {
    /// A person can read no faster.
    const PAUSE: Duration = Duration::from_millis(100);

    pub(super) fn new() -> Self {
        Self { on: std::io::stderr().is_terminal(), shown_at: None }
    }

    /// `verb` done of total `things`.
    pub(super) fn show(&mut self, verb: &str, done: u64, total: u64, things: &str) {
        if !self.on || self.shown_at.is_some_and(|at| at.elapsed() < Self::PAUSE) {
            return;
        }
        self.shown_at = Some(Instant::now());
        let text = format!("{verb} {} of {} {things}", grouped(done), grouped(total));
        // Without a terminal to talk to there is nothing to show; the work itself goes on.
        self.on = output::talk_over(&text).is_ok();
    }

    pub(super) fn show_backup(&mut self, seen: BackupProgress) {
        let (verb, things) = match seen.phase {
            BackupPhase::Copying => ("copying", "pages or records"),
            BackupPhase::Digests => ("comparing digests:", "files"),
            BackupPhase::Checking => ("checking", "events"),
        };
        self.show(verb, seen.done, seen.total, things);
    }

    pub(super) fn clear(&self) -> Result<()> {
        if self.shown_at.is_some() { output::talk_over("") } else { Ok(()) }
    }
}
