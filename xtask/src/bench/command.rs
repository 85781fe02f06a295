//! The command line of `cargo xtask bench`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};

use super::bars::{self, Evidence, Judged, Verdict};
use super::contestant::{Contestant, Missing};
use super::growth::{self, Growth};
use super::peers::{FASTAPI, FASTIFY};
use super::report::{Machine, Report};
use super::rounds::{self, Agenda, Round};
use super::settings::{BODY_BYTES, Settings};
use super::{hookstead, log, noop, seed};
use crate::run::{cargo, check, root, step, target_dir};

/// Longer rounds show nothing that more rounds do not show better.
const SECONDS_MAX: f64 = 600.0;

const EXAMPLES: &str = "Examples:\n  cargo xtask bench --quick\n  cargo xtask bench --only P1,P7 --rounds 3\n  \
                        cargo xtask bench --check --json bench.json\n  cargo xtask bench growth --events 10000000";

/// Measure the server beside others, and compare with the bars of docs/performance.md
///
/// Each round runs every server once, each on a fresh store and in a process of its own, with a load generator of
/// signed requests on the same machine and a probe of the disk. A bar is the median of the ratios inside the rounds.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub(crate) struct Bench {
    #[command(subcommand)]
    part: Option<Part>,
    /// One round, a second for each server, a small P8: to see that it works
    #[arg(long)]
    quick: bool,
    /// Only these bars, as in P1,P4
    #[arg(long, value_name = "BARS", value_delimiter = ',')]
    only: Vec<String>,
    /// How many rounds [default: 5; 1 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: Option<u32>,
    /// How many seconds each server is measured in a round [default: 5; 1 with --quick]
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Seed of the ids, the bodies and the order in the rounds
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write everything that was measured to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// End with exit code 1 if a bar is missed or could not be shown
    #[arg(long)]
    check: bool,
    /// Measure this binary instead of building one, as to compare two versions
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    #[command(flatten)]
    disk: Disk,
    /// Only install the peers that it is measured against
    #[arg(long)]
    install: bool,
}

#[derive(Args)]
struct Disk {
    /// The folder whose disk is measured [default: below the target folder]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Part {
    /// Fill a store, and show what an event costs in each tenth (P8)
    Growth {
        /// How many events
        #[arg(long, value_name = "N", default_value_t = growth::EVENTS,
              value_parser = clap::value_parser!(u64).range(10..=1_000_000_000))]
        events: u64,
        /// Write the steps to this file
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        #[command(flatten)]
        disk: Disk,
    },
    /// The no-op server
    #[command(hide = true)]
    ServeNoop,
    /// The append-only log server
    #[command(hide = true)]
    ServeLog {
        /// The log
        file: PathBuf,
    },
    /// The seed's own protocol as a server
    #[command(hide = true)]
    ServeSeed {
        /// Where its records go
        folder: PathBuf,
    },
}

/// Runs what the command line asks for.
pub(crate) fn run(bench: Bench) -> Result<()> {
    match bench.part {
        Some(Part::ServeNoop) => noop::serve(),
        Some(Part::ServeLog { file }) => log::serve(&file),
        Some(Part::ServeSeed { folder }) => seed::serve(&folder),
        // The generator shares the cores with the servers: it has to be as light as they are.
        _ if cfg!(debug_assertions) => run_for_release(),
        Some(Part::Growth { events, json, disk }) => grow(events, json, disk),
        None if bench.install => FASTIFY.install().and_then(|()| FASTAPI.install()),
        None => measure(&bench),
    }
}

pub(super) fn run_for_release() -> Result<()> {
    step("build the bench for release", || {
        check(&mut cargo(&["build", "--quiet", "--release", "--package", "xtask"]))
    })?;
    let mut again = Command::new(target_dir().join("release/xtask"));
    let status = again.args(std::env::args_os().skip(1)).status().context("cannot start the bench")?;
    // What is wrong was said there.
    std::process::exit(status.code().unwrap_or(1));
}

fn measure(bench: &Bench) -> Result<()> {
    let mut settings = settings(bench)?;
    // Everything that the runs leave goes with it, at the end.
    let all = tempfile::tempdir_in(&settings.folder).context("no room for the runs")?;
    settings.folder = all.path().to_owned();
    let only: Vec<String> = bench.only.iter().map(|bar| bar.to_uppercase()).collect();
    if let Some(unknown) = only.iter().find(|bar| !bars::is_known(bar)) {
        bail!("there is no bar `{unknown}`; there are P1 to P12, P15 and F1");
    }
    let figures = bars::chosen(&only);
    let mut agenda = bars::agenda(&figures);
    if only.is_empty() {
        agenda.contestants = Contestant::ALL.to_vec();
    }
    if bars::needs_growth(&figures) {
        growth::check_room(&settings.folder, settings.growth_events)?;
    }
    let mut missing = install(&agenda);
    let rounds = run_rounds(&agenda, &settings, &mut missing, bench.binary.as_deref())?;
    let growth = bars::needs_growth(&figures).then(|| growth::run(&settings)).transpose()?;
    let evidence = Evidence { rounds: &rounds, growth: growth.as_ref(), missing: &missing };
    let judged: Vec<Judged> = figures.iter().map(|figure| bars::judge(figure, &evidence)).collect();
    let report = Report {
        command: command_line(),
        machine: Machine::this(),
        settings: &settings,
        rounds: &rounds,
        growth: growth.as_ref(),
        missing: &missing,
        bars: &judged,
    };
    report.print();
    if let Some(file) = &bench.json {
        report.write(file)?;
    }
    if bench.check { all_hold(&judged) } else { Ok(()) }
}

fn run_rounds(
    agenda: &Agenda,
    settings: &Settings,
    missing: &mut Missing,
    binary: Option<&Path>,
) -> Result<Vec<Round>> {
    if agenda.contestants.is_empty() && !agenda.memory && !agenda.pull {
        return Ok(Vec::new());
    }
    let binary = match binary {
        // Each run has a folder of its own.
        Some(given) => {
            std::path::absolute(given).with_context(|| format!("no such path: {}", given.display()))?
        }
        None => hookstead::build()?,
    };
    rounds::run(agenda, &binary, settings, missing)
}

fn grow(events: u64, json: Option<PathBuf>, disk: Disk) -> Result<()> {
    let settings = Settings { growth_events: events, ..settings_of(1, 1.0, 0, disk.folder)? };
    let growth = growth::run(&settings)?;
    let figures = bars::chosen(&["P8".to_owned()]);
    let missing = Missing::new();
    let evidence = Evidence { rounds: &[], growth: Some(&growth), missing: &missing };
    let judged: Vec<Judged> = figures.iter().map(|figure| bars::judge(figure, &evidence)).collect();
    print_growth(&growth, &judged, &settings, &missing, json)
}

fn print_growth(
    growth: &Growth,
    judged: &[Judged],
    settings: &Settings,
    missing: &Missing,
    json: Option<PathBuf>,
) -> Result<()> {
    let report = Report {
        command: command_line(),
        machine: Machine::this(),
        settings,
        rounds: &[],
        growth: Some(growth),
        missing,
        bars: judged,
    };
    report.print();
    json.map_or(Ok(()), |file| report.write(&file))
}

/// A peer that cannot be installed is left out, and the report says why.
fn install(agenda: &Agenda) -> Missing {
    let mut missing = Missing::new();
    for contestant in &agenda.contestants {
        if let Some(Err(error)) = contestant.peer().map(super::peers::Peer::install) {
            missing.insert(*contestant, format!("{error:#}").replace('\n', " "));
        }
    }
    missing
}

fn settings(bench: &Bench) -> Result<Settings> {
    let (rounds, seconds) = if bench.quick { (1, 1.0) } else { (5, 5.0) };
    let rounds = bench.rounds.unwrap_or(rounds);
    let seconds = bench.seconds.unwrap_or(seconds);
    let settings = settings_of(rounds, seconds, bench.seed, bench.disk.folder.clone())?;
    Ok(if bench.quick { Settings { growth_events: growth::EVENTS / 100, ..settings } } else { settings })
}

fn settings_of(rounds: u32, seconds: f64, seed: u64, folder: Option<PathBuf>) -> Result<Settings> {
    ensure!((0.1..=SECONDS_MAX).contains(&seconds), "--seconds takes 0.1 to {SECONDS_MAX}");
    let folder = folder.map_or_else(|| target_dir().join("bench"), |folder| root().join(folder));
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(Settings {
        rounds,
        seconds,
        // Long enough for the first batches, the file's growth and the first checkpoint.
        warm_up_seconds: (seconds / 4.0).min(1.5),
        body_bytes: BODY_BYTES,
        seed,
        growth_events: growth::EVENTS,
        folder,
    })
}

fn command_line() -> String {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    format!("cargo xtask {}", arguments.join(" "))
}

fn all_hold(judged: &[Judged]) -> Result<()> {
    let count = |fails: fn(&Judged) -> bool| judged.iter().filter(|judged| fails(judged)).count();
    let missed = count(|judged| judged.verdict == Verdict::Missed);
    let not_shown = count(|judged| judged.must.is_some() && matches!(judged.verdict, Verdict::NotShown(_)));
    ensure!(missed + not_shown == 0, "{missed} figures missed their bar, {not_shown} could not be shown");
    Ok(())
}
