//! The rounds: in each of them every contestant runs once, in an order of the round's own, beside the fsync probe.
//! This machine may be twice as fast a minute later, so that only figures of one round are compared.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use super::contestant::{Contestant, Missing, Ran};
use super::latency::Percentiles;
use super::memory::{self, Memory};
use super::probe;
use super::pull::{self, Pull};
use super::settings::{Settings, mix};

/// What of a round is asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Agenda {
    pub(super) contestants: Vec<Contestant>,
    pub(super) memory: bool,
    pub(super) pull: bool,
}

/// What one round came to.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Round {
    /// One append and fdatasync.
    pub(super) probe: Percentiles,
    pub(super) runs: BTreeMap<Contestant, Ran>,
    pub(super) memory: Option<Memory>,
    pub(super) pull: Option<Pull>,
}

/// Runs all rounds. A peer that fails is noted in `missing` and left out from then on; any other failure ends it.
pub(super) fn run(
    agenda: &Agenda,
    binary: &Path,
    settings: &Settings,
    missing: &mut Missing,
) -> Result<Vec<Round>> {
    (0..settings.rounds).map(|number| round(number, agenda, binary, settings, missing)).collect()
}

fn round(
    number: u32,
    agenda: &Agenda,
    binary: &Path,
    settings: &Settings,
    missing: &mut Missing,
) -> Result<Round> {
    eprintln!("==> round {} of {}", number + 1, settings.rounds);
    let seed = mix(settings.seed.wrapping_add(number.into()));
    write_back(&settings.folder)?;
    let probe = probe::run(&settings.folder)?;
    let mut runs = BTreeMap::new();
    for contestant in shuffled(&agenda.contestants, seed) {
        if missing.contains_key(&contestant) {
            continue;
        }
        write_back(&settings.folder)?;
        match contestant.run(binary, settings, seed) {
            Ok(ran) => {
                eprintln!("    {:<30} {:>9.0} requests/s", contestant.name(), ran.load.rate);
                runs.insert(contestant, ran);
            }
            Err(error) if contestant.peer().is_some() => {
                missing.insert(contestant, format!("{error:#}"));
            }
            Err(error) => return Err(error.context(contestant.name())),
        }
    }
    let memory =
        agenda.memory.then(|| memory::run(binary, settings).context("256 bodies of 1 MiB")).transpose()?;
    let pull =
        agenda.pull.then(|| pull::run(binary, settings, seed).context("claims and settles")).transpose()?;
    Ok(Round { probe, runs, memory, pull })
}

/// Has the disk write what the one before left in memory: else it would do so while the next one is measured.
fn write_back(folder: &Path) -> Result<()> {
    let folder = File::open(folder).context("cannot open the folder of the runs")?;
    rustix::fs::syncfs(&folder).context("cannot write back what the run before left")
}

/// Another order in each round, so that nobody always comes after the same neighbour.
fn shuffled(contestants: &[Contestant], seed: u64) -> Vec<Contestant> {
    let mut keyed: Vec<(u64, Contestant)> =
        contestants.iter().zip(0..).map(|(contestant, at)| (mix(seed ^ mix(at)), *contestant)).collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, contestant)| contestant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_an_order_of_all_and_another_makes_another() {
        let order = |seed| shuffled(&Contestant::ALL, seed);
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        let mut sorted = order(3);
        sorted.sort_unstable();
        assert_eq!(sorted, Contestant::ALL);
    }
}
