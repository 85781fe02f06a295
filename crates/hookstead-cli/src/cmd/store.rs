//! `hookstead store`: the store as a whole.

mod backup;
mod progress;

use anyhow::Result;
use clap::{Args, Subcommand};
use hookstead_core::{CheckProblem, CheckReport};
use hookstead_store::{OpenError, OpenOptions};
use serde::Serialize;

use crate::failure::{Exit, Failure};
use crate::output::{self, GOOD, counted, grouped};
use crate::place::PlaceArgs;
use crate::reader;
use crate::running::Running;
use progress::Progress;

const EXAMPLES: &str = "\
Examples:
  hookstead store check
  hookstead store backup /backups/monday
  hookstead store restore /backups/monday --data /var/lib/restored";

const CHECK_EXAMPLES: &str = "\
Examples:
  hookstead store check
  hookstead store check --data /var/lib/hookstead --json";

const JSON: &str = "\
JSON: {\"ok\", \"store\", \"events\", \"bodies\", \"problem_count\", \"problems\": [{\"event\", \"what\"}]}; at most 1000 \
problems are named. Exit code 1 if there is one.";

/// Check the store, back it up, restore it
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    verb: StoreVerb,
}

#[derive(Debug, Subcommand)]
enum StoreVerb {
    Check(Check),
    Backup(backup::Backup),
    Restore(backup::Restore),
}

/// Read everything and compare it with its digests; every damaged event is named
///
/// A check changes nothing that is stored. A sqlite store is checked beside its server; stop that of a store
/// of files first.
#[derive(Debug, Args)]
#[command(before_help = CHECK_EXAMPLES, after_help = JSON)]
struct Check {
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) fn run(args: &StoreArgs) -> Result<()> {
    match &args.verb {
        StoreVerb::Check(args) => check(args),
        StoreVerb::Backup(args) => backup::backup(args),
        StoreVerb::Restore(args) => backup::restore(args),
    }
}

fn check(args: &Check) -> Result<()> {
    let config = args.place.load()?;
    let url = &config.store.url;
    if !reader::reads_beside_owner(&config)
        && let Some(running) = Running::find(&config)?
    {
        return Err(in_use(&running, url).into());
    }
    // Damage that refuses a start must not keep the check from naming it.
    let options = OpenOptions { spot_check_events: 0, ..OpenOptions::default() };
    let opened = reader::open_store(&config, &options).map_err(|error| not_opened(&error))?;
    let store = opened.ok_or_else(|| {
        Failure::new(Exit::NotFound, "no-store", format!("there is no store at {url}"))
            .fix("name its data folder with --data DIR, or its configuration with --config FILE")
    })?;
    let mut progress = Progress::new();
    let report = store.check(&mut |seen| progress.show("checking", seen.done, seen.total, "events"))?;
    progress.clear()?;
    if args.json {
        output::json(&document(&report, url))?;
    } else {
        print(&report, url)?;
    }
    verdict(&report)
}

fn in_use(running: &Running, url: &str) -> Failure {
    let pid = running.pid;
    Failure::new(Exit::Failed, "in-use", format!("a server has {url} open"))
        .line("by", format!("process {pid}, {}", running.admin))
        .fix(format!("stop it (kill {pid}), check, and start it again"))
}

fn not_opened(error: &OpenError) -> Failure {
    match error {
        OpenError::Damaged { .. } => Failure::new(Exit::Failed, "damaged", error.reason()).fix(
            "restore a backup; or save database and log, move the log away and check again:\n\
             what only the log held is gone then",
        ),
        _ => reader::refused(error),
    }
}

/// What a check found, for programs.
#[derive(Serialize)]
struct Document<'a> {
    ok: bool,
    store: &'a str,
    events: u64,
    bodies: u64,
    problem_count: u64,
    problems: Vec<Problem<'a>>,
}

#[derive(Serialize)]
struct Problem<'a> {
    event: Option<String>,
    what: &'a str,
}

fn document<'a>(report: &'a CheckReport, url: &'a str) -> Document<'a> {
    let problem = |problem: &'a CheckProblem| {
        let event = problem.event.map(|event| event.to_string());
        Problem { event, what: &problem.what }
    };
    Document {
        ok: report.problem_count == 0,
        store: url,
        events: report.events,
        bodies: report.bodies,
        problem_count: report.problem_count,
        problems: report.problems.iter().map(problem).collect(),
    }
}

fn print(report: &CheckReport, url: &str) -> Result<()> {
    output::labelled("store", url)?;
    let events = counted(report.events, "event", "events");
    let bodies = counted(report.bodies, "body", "bodies");
    output::labelled("checked", format_args!("{events}, {bodies} compared with the stored digests"))?;
    if report.problem_count == 0 {
        return output::labelled("result", format_args!("{GOOD}everything is as it was stored{GOOD:#}"));
    }
    for problem in &report.problems {
        let event = problem.event.map_or_else(|| "the store".to_owned(), |event| event.to_string());
        output::labelled("damaged", format_args!("{event}: {}", output::printable(&problem.what)))?;
    }
    let unnamed = report.problem_count - report.problems.len() as u64;
    if unnamed > 0 { output::labelled("and", format_args!("{} more", grouped(unnamed))) } else { Ok(()) }
}

fn verdict(report: &CheckReport) -> Result<()> {
    match report.problem_count {
        0 => Ok(()),
        count => Err(Failure::new(Exit::Failed, "damaged", format!("{} in the store", counted(count, "problem", "problems")))
            .fix("keep the file for an analysis, and restore the named events from a backup or from their providers")
            .into()),
    }
}
