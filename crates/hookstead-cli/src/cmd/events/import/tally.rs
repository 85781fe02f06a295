//! What became of the lines of an import: counted for people and programs, and what went wrong by its line.

use std::fmt;

use anyhow::Result;
use hookstead_server::api::view::{ImportView, ImportedLine};
use serde::Serialize;

use crate::failure::{Exit, Failure};
use crate::output::{self, counted, grouped, printable};

/// The most problems that are named; the others are counted.
const PROBLEMS_MAX: usize = 1_000;

/// The most problems that a person is shown.
const PROBLEMS_SHOWN_MAX: usize = 20;

/// What became of the lines.
#[derive(Default, Serialize)]
pub(super) struct Tally {
    ok: bool,
    /// How many were no blank ones.
    lines: u64,
    stored: u64,
    duplicates: u64,
    conflicts: u64,
    erased: u64,
    refused: u64,
    problems: Vec<ImportedLine>,
    /// The number of the last line that is counted.
    #[serde(skip)]
    pub(super) at: u64,
}

impl Tally {
    /// Counts the answers to the lines with these numbers.
    pub(super) fn add(&mut self, answer: ImportView, numbers: &[u64]) -> Result<()> {
        if answer.lines.len() != numbers.len() {
            let (got, sent) = (answer.lines.len(), numbers.len());
            let message = format!("the server answered for {got} lines of {sent}");
            return Err(Failure::new(Exit::Failed, "server", message)
                .fix("use the same version of hookstead on both sides, and import the file again")
                .into());
        }
        for (line, number) in answer.lines.into_iter().zip(numbers) {
            self.count(ImportedLine { line: *number, ..line });
        }
        Ok(())
    }

    /// Counts lines that are longer than any can be.
    pub(super) fn too_long(&mut self, numbers: &[u64], bytes_max: u64) {
        for line in numbers {
            let reason =
                format!("the line has more than {bytes_max} bytes: no source here takes such a body");
            let fix = "raise the largest body of its source, or see that this is an export";
            self.count(ImportedLine {
                line: *line,
                outcome: "refused".to_owned(),
                code: Some("too-large".to_owned()),
                reason: Some(reason),
                fix: Some(fix.to_owned()),
                ..ImportedLine::default()
            });
        }
    }

    fn count(&mut self, line: ImportedLine) {
        self.lines += 1;
        let (count, is_problem) = match line.outcome.as_str() {
            "stored" => (&mut self.stored, false),
            "duplicate" => (&mut self.duplicates, false),
            "erased" => (&mut self.erased, false),
            "conflict" => (&mut self.conflicts, true),
            _ => (&mut self.refused, true),
        };
        *count += 1;
        if is_problem && self.problems.len() < PROBLEMS_MAX {
            self.problems.push(line);
        }
    }

    /// Says what became of all, and fails if something went wrong.
    pub(super) fn tell(mut self, json: bool) -> Result<()> {
        self.problems.sort_by_key(|problem| problem.line);
        let bad = self.conflicts + self.refused;
        self.ok = bad == 0;
        if json {
            output::json(&self)?;
        } else {
            self.print()?;
        }
        if bad == 0 {
            return Ok(());
        }
        let exit = if bad == self.lines { Exit::Refused } else { Exit::Partly };
        let message = format!("{} of {} not taken over", grouped(bad), counted(self.lines, "line", "lines"));
        Err(Failure::new(exit, "not-imported", message)
            .fix("every other line is durable; importing the file again is safe")
            .into())
    }

    fn print(&self) -> Result<()> {
        let row = |(outcome, count): (&str, u64)| [outcome.to_owned(), grouped(count)];
        output::table(["OUTCOME", "LINES"], self.counts().map(row).collect())?;
        if self.erased > 0 {
            output::talk_labelled("erased", forgotten(self.erased))?;
        }
        for problem in self.problems.iter().take(PROBLEMS_SHOWN_MAX) {
            output::talk_labelled(&format!("line {}", problem.line), said(problem))?;
        }
        let bad = self.conflicts + self.refused;
        match bad.saturating_sub(PROBLEMS_SHOWN_MAX as u64) {
            0 => Ok(()),
            more => {
                output::talk(format_args!("and {} more: --json names up to {PROBLEMS_MAX}", grouped(more)))
            }
        }
    }

    fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("stored", self.stored),
            ("duplicates", self.duplicates),
            ("conflicts", self.conflicts),
            ("erased", self.erased),
            ("refused", self.refused),
        ]
        .into_iter()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<_> =
            self.counts().map(|(name, count)| format!("{} {name}", grouped(count))).collect();
        f.write_str(&counts.join(", "))
    }
}

/// What it means that retention erased bodies before the export: an identity comes with its body or not at all.
fn forgotten(erased: u64) -> String {
    format!(
        "{} erased: unknown here from now on; should they come again, they are new\n`hookstead store backup` keeps them",
        grouped(erased)
    )
}

/// What is wrong with a line, and what to do.
fn said(problem: &ImportedLine) -> String {
    if problem.outcome == "conflict" {
        let event = problem.short_id.as_deref().unwrap_or("-");
        return format!(
            "conflict: event {event} has other bytes under this id and is untouched; these are kept beside it"
        );
    }
    let code = problem.code.as_deref().unwrap_or("refused");
    let reason = printable(problem.reason.as_deref().unwrap_or("refused"));
    match &problem.fix {
        Some(fix) => format!("{code}: {reason}\n{}", printable(fix)),
        None => format!("{code}: {reason}"),
    }
}
