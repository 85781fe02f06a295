//! `hookstead doctor`: everything that can be checked from outside, one line a check, each with what to do about it.
//!
//! The store is looked at by the same steps as a start takes ([`hookstead_store::examine`]); what only the server
//! itself knows, it is asked for.

mod clock;
mod configured;
mod deliveries;
mod machine;
mod server;

use anyhow::Result;
use clap::Args;
use hookstead_server::Config;
use hookstead_server::api::view::FindingView;
use hookstead_server::config::ConfigErrors;
use hookstead_server::store_options;
use hookstead_store::{Finding, Verdict, examine};
use serde::Serialize;

use crate::failure::{Exit, Failure};
use crate::output::{self, BAD, BOLD, DIM, GOOD, printable};
use crate::place::PlaceArgs;
use server::Look;

const EXAMPLES: &str = "\
Examples:
  hookstead doctor
  hookstead doctor --config /etc/hookstead/hookstead.toml
  hookstead doctor --json | jq -r '.checks[] | select(.outcome != \"ok\") | .name, .fix'";

const JSON: &str = "\
JSON: {\"ok\", \"store\", \"server\", \"failed\", \"warned\", \"checks\": [{\"name\", \"outcome\", \"what\", \"fix\"}]}; outcome is ok, \
skip, warn or fail, server is null if none runs.

Exit code 0 if nothing fails, also with warnings; 5 if the configuration has errors, else 1.";

/// Check configuration, store, clock, disk, server and destinations, each with what to do
///
/// It runs beside a server and changes nothing: a probe file beside the store is written and removed. Without a server
/// it holds the store's lock while it reads the log.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(crate) struct Doctor {
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

/// What was found.
struct Report {
    store: Option<String>,
    server: Option<String>,
    findings: Vec<Finding>,
}

pub(crate) fn run(args: &Doctor) -> Result<()> {
    let (report, exit) = match args.place.load() {
        Ok(config) => (look(&config)?, Exit::Failed),
        Err(error) => (without_configuration(error)?, Exit::Refused),
    };
    if args.json {
        output::json(&Document::of(&report))?;
    } else {
        print(&report)?;
    }
    match report.count(Verdict::Failed) {
        0 => Ok(()),
        1 => Err(Failure::new(exit, "doctor", "1 check failed").into()),
        failed => Err(Failure::new(exit, "doctor", format!("{failed} checks failed")).into()),
    }
}

fn look(config: &Config) -> Result<Report> {
    let mut findings = configured::look(config);
    let Look { server, start, findings: of_server } = server::look(config)?;
    findings.push(machine::free_space(config));
    findings.push(machine::time_synchronised());
    if server.is_none() {
        findings.push(machine::open_files(&config.limits));
    }
    let examined = examine(&config.store.url, &store_options(config));
    findings.extend(examined.into_iter().map(|finding| as_the_server_saw(finding, &start)));
    findings.extend(of_server);
    Ok(Report { store: Some(config.store.url.clone()), server, findings })
}

/// A step that cannot be taken beside a server came out as it did at that server's start.
fn as_the_server_saw(finding: Finding, start: &[FindingView]) -> Finding {
    let seen = start.iter().find(|seen| seen.name == finding.name);
    match (finding.verdict, seen) {
        (Verdict::Skipped, Some(seen)) if seen.outcome != Verdict::Skipped.as_str() => Finding {
            name: finding.name,
            verdict: Verdict::from_word(&seen.outcome).unwrap_or(Verdict::Warning),
            words: format!("{} (at the server's start)", seen.what),
            fix: seen.fix.clone().unwrap_or_default(),
        },
        _ => finding,
    }
}

/// Nothing else can be looked at before it is known where it is.
fn without_configuration(error: anyhow::Error) -> Result<Report> {
    let Some(errors) = error.downcast_ref::<ConfigErrors>() else { return Err(error) };
    let mut findings = configured::problems(errors);
    findings.push(Finding::skipped("store", "the configuration comes first: it says where everything is"));
    Ok(Report { store: None, server: None, findings })
}

impl Report {
    fn count(&self, verdict: Verdict) -> usize {
        self.findings.iter().filter(|finding| finding.verdict == verdict).count()
    }
}

/// What was found, for programs.
#[derive(Serialize)]
struct Document<'a> {
    ok: bool,
    store: Option<&'a str>,
    server: Option<&'a str>,
    failed: usize,
    warned: usize,
    checks: Vec<FindingView>,
}

impl<'a> Document<'a> {
    fn of(report: &'a Report) -> Self {
        let failed = report.count(Verdict::Failed);
        Self {
            ok: failed == 0,
            store: report.store.as_deref(),
            server: report.server.as_deref(),
            failed,
            warned: report.count(Verdict::Warning),
            checks: report.findings.iter().map(FindingView::from).collect(),
        }
    }
}

/// How wide the columns of verdicts and names are.
const VERDICT_WIDTH: usize = 6;
const NAME_WIDTH: usize = 16;

fn print(report: &Report) -> Result<()> {
    report.findings.iter().try_for_each(print_one)?;
    let [good, skipped, warned, failed] =
        [Verdict::Good, Verdict::Skipped, Verdict::Warning, Verdict::Failed]
            .map(|verdict| report.count(verdict));
    output::line(format_args!("\n{good} ok, {warned} warn, {failed} fail, {skipped} skip"))
}

fn print_one(finding: &Finding) -> Result<()> {
    let style = match finding.verdict {
        Verdict::Good => GOOD,
        Verdict::Skipped => DIM,
        Verdict::Warning => BOLD,
        Verdict::Failed => BAD,
    };
    let (verdict, name, words) = (finding.verdict.as_str(), &finding.name, printable(&finding.words));
    output::line(format_args!("{style}{verdict:<VERDICT_WIDTH$}{style:#}{name:<NAME_WIDTH$}{words}"))?;
    if finding.fix.is_empty() {
        return Ok(());
    }
    output::line(format_args!(
        "{:VERDICT_WIDTH$}{DIM}{:<NAME_WIDTH$}{DIM:#}{}",
        "",
        "fix",
        printable(&finding.fix)
    ))
}
