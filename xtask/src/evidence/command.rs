//! `cargo xtask evidence`: what was done to the server how often, and what it lost: one table, on this machine.
//!
//! It runs the checks one after the other and says how far it is. It must not know how a check works.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Args;
use clap::builder::PossibleValuesParser;

use super::checks::{self, CHECKS, Check, Size};
use super::machine;
use super::report::{Failure, Report};
use crate::longer::{Longer, Output};
use crate::run::root;

/// Show what becomes of acknowledged events under kills, faults, damage, a full disk and overload
///
/// A release build is killed at every system call and under load, its disk fails at every call, is slowed and filled,
/// its store's bytes are flipped, backups are taken under load and restored elsewhere. One table says how often, on
/// which kernel and file system, and what was lost. Without an option it takes a quarter of an hour at most on two
/// processors that have nothing else to do, after the build. A check that fails says so, the others are done all the
/// same, and the last line of each failure is the command that repeats it alone. The exit code is 0 only if every check
/// held.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  cargo xtask evidence --quick\n  cargo xtask evidence --write docs/evidence.md\n  \
                  cargo xtask evidence --only storms --only backups --json"
)]
pub(crate) struct Evidence {
    /// As much as the test command does: three minutes at most
    #[arg(long, conflicts_with = "long")]
    quick: bool,
    /// Twenty to forty times as much: for hours
    #[arg(long)]
    long: bool,
    /// Only this check; may be given again
    #[arg(long, value_name = "CHECK", value_parser = PossibleValuesParser::new(checks::names()))]
    only: Vec<String>,
    /// Seed of the random choices, as a failing run prints it
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u32,
    /// Print the records as JSON
    #[arg(long)]
    json: bool,
    /// Put the table into this page, between its two marks
    #[arg(long, value_name = "FILE", conflicts_with = "only")]
    write: Option<PathBuf>,
}

impl Evidence {
    fn size(&self) -> Size {
        match (self.quick, self.long) {
            (true, _) => Size::Quick,
            (_, true) => Size::Long,
            _ => Size::Full,
        }
    }

    fn chosen(&self) -> Vec<&'static Check> {
        let is_chosen =
            |check: &&Check| self.only.is_empty() || self.only.iter().any(|name| name == check.name);
        CHECKS.iter().filter(is_chosen).collect()
    }

    /// What repeats one check as it was done now.
    fn again(&self, check: &Check) -> String {
        format!("cargo xtask evidence --only {} --seed {}{}", check.name, self.seed, self.size().option())
    }
}

/// Runs the checks, also after one has failed, and shows the table of all that were done.
pub(crate) fn run(arguments: &Evidence) -> Result<()> {
    let chosen = arguments.chosen();
    let mut subjects: Vec<_> = chosen.iter().map(|check| check.subject).collect();
    subjects.dedup();
    let longer = Longer::build(if arguments.json { Output::Kept } else { Output::Shown }, &subjects)?;
    let failures = run_all(&longer, &chosen, arguments);
    let (made_by, on) = (command_line(), machine::described()?);
    let report = Report { made_by, on, records: longer.records()?, failures };
    if arguments.json {
        println!("{}", report.json()?);
    } else {
        println!("\n{}", report.table());
    }
    report.judge()?;
    arguments.write.as_ref().map_or(Ok(()), |file| report.write(&root().join(file)))
}

/// Those that did not hold.
fn run_all(longer: &Longer, chosen: &[&'static Check], arguments: &Evidence) -> Vec<Failure> {
    let (begun, size) = (Instant::now(), arguments.size());
    let expected = |checks: &[&Check]| checks.iter().map(|check| check.seconds(size)).sum();
    let mut failures = Vec::new();
    for (place, check) in chosen.iter().enumerate() {
        let progress = Progress {
            place: place + 1,
            of: chosen.len(),
            elapsed: begun.elapsed(),
            expected: check.seconds(size),
            rest: expected(&chosen[place..]),
        };
        if let Err(error) = run_one(longer, check, &progress, arguments) {
            let (why, again_with) = (format!("{error:#}"), arguments.again(check));
            eprintln!("FAILED {}: {why}\n  again with: {again_with}", check.name);
            failures.push(Failure { check: check.name, why, again_with });
        }
    }
    eprintln!("{} checks, {} failed, {} s", chosen.len(), failures.len(), begun.elapsed().as_secs());
    failures
}

fn run_one(longer: &Longer, check: &Check, progress: &Progress, arguments: &Evidence) -> Result<()> {
    let before = longer.records()?.len();
    let variables = check.variables(arguments.size(), arguments.seed);
    longer.run_of(check.subject, &progress.line(check), check.filter, &variables, check.at_once)?;
    // A filter that fits no test any more would pass.
    ensure!(longer.records()?.len() > before, "no test wrote anything down");
    Ok(())
}

/// How far it is.
struct Progress {
    /// Which check this is, from 1.
    place: usize,
    of: usize,
    elapsed: Duration,
    /// What this check takes, in seconds.
    expected: u32,
    /// What this and the checks after it take, in seconds.
    rest: u32,
}

impl Progress {
    fn line(&self, check: &Check) -> String {
        let Self { place, of, elapsed, expected, rest } = self;
        let elapsed = elapsed.as_secs();
        format!("{place}/{of} {}: about {expected} s; {elapsed} s so far, about {rest} s to go", check.name)
    }
}

fn command_line() -> String {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    format!("cargo xtask {}", arguments.join(" "))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        evidence: Evidence,
    }

    fn typed(words: &str) -> Evidence {
        Typed::parse_from(words.split(' ')).evidence
    }

    #[test]
    fn what_repeats_a_check_is_what_was_asked_for() {
        let evidence = typed("evidence --quick --seed 7 --only storms");
        let [storms] = evidence.chosen()[..] else { panic!("one was named") };
        assert_eq!(evidence.again(storms), "cargo xtask evidence --only storms --seed 7 --quick");
        let again = typed("evidence --only storms --seed 7 --quick");
        assert_eq!((again.size(), again.seed, again.chosen().len()), (Size::Quick, 7, 1));
        assert_eq!(typed("evidence --long").chosen().len(), CHECKS.len());
    }

    #[test]
    fn a_line_says_what_runs_and_how_long_it_will_take() {
        let elapsed = Duration::from_millis(61_500);
        let progress = Progress { place: 2, of: 9, elapsed, expected: 40, rest: 100 };
        let [storms] = typed("evidence --only storms").chosen()[..] else { panic!("one was named") };
        assert_eq!(progress.line(storms), "2/9 storms: about 40 s; 61 s so far, about 100 s to go");
    }
}
