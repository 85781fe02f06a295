//! The command line of `cargo xtask siege`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use super::super::command::run_for_release;
use super::super::hookstead;
use super::attack::Attack;
use super::report::Report;
use super::rounds::{self, Settings};
use crate::run::target_dir;

/// Longer windows show nothing that more rounds do not show better.
const SECONDS_MAX: f64 = 60.0;

const EXAMPLES: &str = "Examples:\n  cargo xtask siege\n  cargo xtask siege --only idle,slow-heads --rounds 9\n  \
                        cargo xtask siege --json siege.json";

/// Attack the server, and show what is left of legitimate traffic
///
/// A release build of the server gets as many signed deliveries as it takes. In each round the same load is measured
/// without and with an attack, and the median of the rounds' ratios counts; after each attack the server must be rid of
/// its connections. Ends with exit code 1 if less than `--least` of the rate is left anywhere.
///
/// The attackers share the cores with the server. Each attack is therefore cheap and at a fixed rate, 100 connections
/// a second at the most: it is the limits that are tested, and not who has more processors. On a machine that does
/// something else as well, take more rounds.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Siege {
    /// Only these attacks
    #[arg(long, value_name = "ATTACKS", value_delimiter = ',')]
    only: Vec<Attack>,
    /// How many rounds
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// How many seconds are measured, in a round once without and once with the attack
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    seconds: f64,
    /// What must be left of the rate
    #[arg(long, value_name = "SHARE", default_value_t = 0.95)]
    least: f64,
    /// Seed of the ids and bodies
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write everything that was measured to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Attack this binary instead of building one, as to compare two versions
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// The folder whose disk is used [default: below the target folder]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Runs what the command line asks for.
pub(crate) fn run(siege: Siege) -> Result<()> {
    if cfg!(debug_assertions) {
        // The attackers and the load share the cores with the server: they have to be as light as it is.
        return run_for_release();
    }
    ensure!((0.1..=SECONDS_MAX).contains(&siege.seconds), "--seconds is between 0.1 and {SECONDS_MAX}");
    ensure!((0.0..=1.0).contains(&siege.least), "--least is a share, between 0 and 1");
    let settings =
        Settings { rounds: siege.rounds, seconds: siege.seconds, seed: siege.seed, least: siege.least };
    let attacks = if siege.only.is_empty() { Attack::ALL.to_vec() } else { siege.only };
    let folder = siege.folder.unwrap_or_else(|| target_dir().join("siege"));
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let binary = siege.binary.map_or_else(hookstead::build, Ok)?;
    let binary =
        std::path::absolute(&binary).with_context(|| format!("no such path: {}", binary.display()))?;
    let measured = rounds::run(&binary, &folder, &attacks, &settings)?;
    let report = Report::new(&measured, &settings);
    report.print();
    if let Some(file) = siege.json {
        let text = serde_json::to_string_pretty(&report).context("cannot make JSON of the report")?;
        fs::write(&file, text + "\n").with_context(|| format!("cannot write {}", file.display()))?;
    }
    let missed = measured.withstood.iter().filter(|one| one.kept.median < settings.least).count();
    if missed > 0 {
        bail!("under {missed} attacks less than {} of the rate is left", settings.least);
    }
    Ok(())
}
