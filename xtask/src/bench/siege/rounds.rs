//! The measurement: for each attack the same load without and with it, in turn, on one server.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;

use super::super::child::Server;
use super::super::contestant::Place;
use super::super::load::{self, Mode, Plan};
use super::super::settings::{BODY_BYTES, mix};
use super::super::statistics::{Spread, ratio};
use super::super::template::{SECRET, SECRET_VARIABLE};
use super::super::usage::Meter;
use super::attack::Attack;
use super::attacker::{Attacker, Tally};

/// Connections of those who keep the rules.
const CONNECTIONS: usize = 16;

/// Far more than a window can send.
const REQUESTS_MAX: u64 = 10_000_000;

/// File handles of ours and of the server: the largest attack, and what is beside it.
const DESCRIPTORS_NEEDED: u64 = 6_000;

/// How long the server has to be rid of an attack's connections after its end.
const RECOVERY_TIME_MAX: Duration = Duration::from_secs(30);

/// What it may have open more than before: files of the store that are opened when they are needed.
const DESCRIPTORS_KEPT: usize = 16;

/// How it is measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Settings {
    pub(super) rounds: u32,
    /// Of each window.
    pub(super) seconds: f64,
    pub(super) seed: u64,
    /// What must be left of the rate.
    pub(super) least: f64,
}

/// What became of the load under one attack.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Withstood {
    pub(super) attack: Attack,
    /// Requests a second without it, and with it.
    pub(super) calm: Spread,
    pub(super) attacked: Spread,
    /// What was left of the rate, round by round. The median is what counts: the machine may be twice as fast a minute
    /// later, so that only figures of one round are compared.
    pub(super) kept: Spread,
    /// The attackers' connections, of all windows.
    pub(super) attackers: Tally,
    /// In how many seconds after its end the last of its connections was gone, at most.
    pub(super) recovery_seconds: f64,
}

/// Everything that was measured.
pub(super) struct Siege {
    pub(super) withstood: Vec<Withstood>,
    pub(super) memory_peak_bytes: u64,
}

/// Measures these attacks on a server of their own, whose files lie in `folder`.
pub(super) fn run(binary: &Path, folder: &Path, attacks: &[Attack], settings: &Settings) -> Result<Siege> {
    provide_descriptors()?;
    let place = Place::new(folder)?;
    let server = start(binary, &place)?;
    let meter = Meter::new(server.pid, &place.data())?;
    let mut field = Field { server: &server, meter: &meter, settings, windows: 0 };
    // The first window makes what every other one finds.
    field.load()?;
    let withstood = attacks.iter().map(|attack| field.withstand(*attack)).collect::<Result<_>>()?;
    let memory_peak_bytes = meter.memory_peak_bytes()?;
    server.stop()?;
    Ok(Siege { withstood, memory_peak_bytes })
}

fn provide_descriptors() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).context("cannot raise the limit of open files")?;
    let most = limit.maximum.unwrap_or(u64::MAX);
    ensure!(
        most >= DESCRIPTORS_NEEDED,
        "{most} files may be open; raise that to {DESCRIPTORS_NEEDED} (ulimit -Hn)"
    );
    Ok(())
}

/// The server with room for the largest attack, and with times so short that attackers are cut, and come again, within
/// each window.
fn start(binary: &Path, place: &Place) -> Result<Server> {
    let database = place.data().join("hookstead.db");
    let configuration = format!(
        "[server]\nintake = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\n[store]\nurl = \"sqlite:{}\"\n\n\
         [limits]\nconnections = 8192\nheader_time = \"1s\"\nbody_time = \"1s\"\nwrite_time = \"1s\"\n\n\
         [sources.bench]\nprovider = \"signed-inbox\"\nsecret = {{ env = \"{SECRET_VARIABLE}\" }}\n",
        database.display()
    );
    let file = place.folder().join("siege.toml");
    fs::write(&file, configuration).with_context(|| format!("cannot write {}", file.display()))?;
    let mut command = Command::new(binary);
    command.args(["serve", "--json", "--while-stdin", "--config"]).arg(file);
    command.current_dir(place.folder()).env("HOME", place.folder()).env(SECRET_VARIABLE, SECRET);
    Server::start("hookstead", &mut command, &place.log())
}

/// Where it takes place.
struct Field<'a> {
    server: &'a Server,
    meter: &'a Meter,
    settings: &'a Settings,
    windows: u64,
}

impl Field<'_> {
    fn withstand(&mut self, attack: Attack) -> Result<Withstood> {
        let (mut calm, mut attacked) = (Vec::new(), Vec::new());
        let (mut attackers, mut recovery_seconds) = (Tally::default(), 0.0_f64);
        for round in 0..self.settings.rounds {
            // Each goes first in every other round, so that a machine that slows down favours neither.
            for with_attack in [round % 2 == 1, round % 2 == 0] {
                if with_attack {
                    let (rate, tally, seconds) = self.attacked(attack)?;
                    attacked.push(rate);
                    attackers.opened += tally.opened;
                    attackers.ended += tally.ended;
                    attackers.held = tally.held;
                    recovery_seconds = recovery_seconds.max(seconds);
                } else {
                    calm.push(self.load()?);
                }
            }
        }
        let kept = calm.iter().zip(&attacked).filter_map(|(calm, attacked)| ratio(*attacked, *calm));
        let kept = Spread::of(kept).context("there was no load")?;
        let spread = |rates: Vec<f64>| Spread::of(rates).context("there was no round");
        let (calm, attacked) = (spread(calm)?, spread(attacked)?);
        let (name, without, with) = (attack.name(), calm.median, attacked.median);
        eprintln!("    {name:<18} {without:>9.0} {with:>9.0} requests/s  {:.3}", kept.median);
        Ok(Withstood { attack, calm, attacked, kept, attackers, recovery_seconds })
    }

    fn attacked(&mut self, attack: Attack) -> Result<(f64, Tally, f64)> {
        let before = self.descriptors()?;
        let attacker = Attacker::start(attack.shape(), self.server.address)?;
        let rate = self.load();
        let tally = attacker.end()?;
        let seconds = self.recovery(attack, before)?;
        Ok((rate?, tally, seconds))
    }

    /// One window of load; its rate.
    fn load(&mut self) -> Result<f64> {
        self.windows += 1;
        let plan = Plan {
            connections: CONNECTIONS,
            mode: Mode::Unique,
            body_bytes: BODY_BYTES,
            warm_up: Duration::from_secs_f64(self.settings.seconds / 4.0),
            measured: Duration::from_secs_f64(self.settings.seconds),
            requests_max: REQUESTS_MAX,
            seed: mix(self.settings.seed.wrapping_add(self.windows)),
        };
        Ok(load::run(self.server.address, &plan, &|| self.meter.read())?.rate)
    }

    /// Waits until the attack's connections are gone, and says how long that took.
    fn recovery(&self, attack: Attack, before: usize) -> Result<f64> {
        let begun = Instant::now();
        loop {
            let open = self.descriptors()?;
            if open <= before + DESCRIPTORS_KEPT {
                return Ok(begun.elapsed().as_secs_f64());
            }
            ensure!(
                begun.elapsed() < RECOVERY_TIME_MAX,
                "{RECOVERY_TIME_MAX:?} after `{}` the server has {open} files open, before it had {before}",
                attack.name()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn descriptors(&self) -> Result<usize> {
        let folder = format!("/proc/{}/fd", self.server.pid);
        Ok(fs::read_dir(&folder)
            .with_context(|| format!("cannot list {folder}; has the server ended?"))?
            .count())
    }
}
