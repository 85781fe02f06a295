//! What the bench prints: a table for people, and everything as JSON for programs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use super::bars::{Judged, Must, Verdict};
use super::contestant::{Contestant, Missing, Ran};
use super::growth::Growth;
use super::rounds::Round;
use super::settings::Settings;
use super::statistics::Spread;

/// Everything, as it is written with `--json`. Fields are added and never change their meaning.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    /// The arguments that made it.
    pub(super) command: String,
    pub(super) machine: Machine,
    pub(super) settings: &'a Settings,
    pub(super) rounds: &'a [Round],
    pub(super) growth: Option<&'a Growth>,
    /// The contestants that were not measured, and why.
    pub(super) missing: &'a Missing,
    pub(super) bars: &'a [Judged],
}

/// Where it was measured: figures of different machines are not compared.
#[derive(Serialize)]
pub(super) struct Machine {
    pub(super) cores: usize,
    pub(super) processor: String,
    pub(super) kernel: String,
    /// The load averages at the end: a machine that does something else as well measures that.
    pub(super) load: String,
}

impl Machine {
    pub(super) fn this() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Self {
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            processor: model.map_or_else(|| "unknown".to_owned(), |(_, name)| name.to_owned()),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load: read("/proc/loadavg").split(' ').take(3).collect::<Vec<_>>().join(" "),
        }
    }
}

impl Report<'_> {
    pub(super) fn print(&self) {
        let Machine { cores, processor, kernel, load } = &self.machine;
        println!("\n{cores} x {processor}, Linux {kernel}, load {load}");
        if !self.rounds.is_empty() {
            let Settings { rounds, seconds, body_bytes, seed, .. } = self.settings;
            println!(
                "rounds {rounds}, {seconds} s each, bodies of {body_bytes} bytes, seed {seed}; medians\n"
            );
            self.print_runs();
        }
        self.print_bars();
    }

    pub(super) fn write(&self, file: &Path) -> Result<()> {
        let json = serde_json::to_vec_pretty(self).context("cannot make JSON of the report")?;
        fs::write(file, json).with_context(|| format!("cannot write {}", file.display()))
    }

    fn print_runs(&self) {
        println!(
            "{:<30} {:>8} {:>17} {:>8} {:>8} {:>8} {:>7} {:>8} {:>8} {:>10}",
            "contestant",
            "req/s",
            "of rounds",
            "p50 ms",
            "p99 ms",
            "p999 ms",
            "CPU us",
            "written",
            "disk",
            "client us"
        );
        for contestant in Contestant::ALL {
            let runs: Vec<&Ran> =
                self.rounds.iter().filter_map(|round| round.runs.get(&contestant)).collect();
            if let Some(reason) = self.missing.get(&contestant) {
                println!("{:<30} not measured: {reason}", contestant.name());
            } else if !runs.is_empty() {
                print_run(contestant, &runs);
            }
        }
        for pull in self.rounds.iter().filter_map(|round| round.pull) {
            println!(
                "{:<30} {:.0} claimed and done a second one by one, {:.0} in batches of 100",
                "hookstead, pulled", pull.single_per_second, pull.batch_per_second
            );
        }
        let probe = |value: fn(&Round) -> f64| shown(Spread::of(self.rounds.iter().map(value)), 3);
        let (p50, p99) = (probe(|round| round.probe.p50_ms), probe(|round| round.probe.p99_ms));
        println!("{:<30} {:>8} {:>17} {p50:>8} {p99:>8}\n", "append + fdatasync of 4 KiB", "", "");
    }

    fn print_bars(&self) {
        println!("{:<4} {:<44} {:>9} {:>19} {:>9}  bar", "bar", "what", "median", "of rounds", "must");
        for judged in self.bars {
            let median = judged.value.map_or("-".to_owned(), |value| number(value.median));
            let range = judged.value.map_or(String::new(), |value| {
                format!("{} to {}", number(value.lowest), number(value.highest))
            });
            let must = judged.must.map_or("-".to_owned(), |must| match must {
                Must::AtLeast(least) => format!(">= {}", number(least)),
                Must::AtMost(most) => format!("<= {}", number(most)),
            });
            let verdict = match &judged.verdict {
                Verdict::Holds => "holds",
                Verdict::Missed => "MISSED",
                Verdict::Printed => "no must",
                Verdict::NotShown(reason) => &format!("not shown: {reason}"),
            };
            println!("{:<4} {:<44} {median:>9} {range:>19} {must:>9}  {verdict}", judged.bar, judged.what);
        }
    }
}

fn print_run(contestant: Contestant, runs: &[&Ran]) {
    let spread = |value: fn(&Ran) -> f64| Spread::of(runs.iter().map(|ran| value(ran)));
    let rate = spread(|ran| ran.load.rate);
    let range = rate.map_or(String::new(), |rate| format!("{:.0} to {:.0}", rate.lowest, rate.highest));
    let disk = Spread::of(runs.iter().filter_map(|ran| ran.load.disk_bytes_per_request));
    println!(
        "{:<30} {:>8} {range:>17} {:>8} {:>8} {:>8} {:>7} {:>8} {:>8} {:>10}",
        contestant.name(),
        shown(rate, 0),
        shown(spread(|ran| ran.load.latency.p50_ms), 2),
        shown(spread(|ran| ran.load.latency.p99_ms), 2),
        shown(spread(|ran| ran.load.latency.p999_ms), 2),
        shown(spread(|ran| ran.load.server_cpu_us), 1),
        shown(spread(|ran| ran.load.written_bytes_per_request), 0),
        shown(disk, 0),
        shown(spread(|ran| ran.load.client_cpu_us), 1),
    );
    for delivered in runs.iter().filter_map(|ran| ran.delivered) {
        println!(
            "{:<30} {:.0} a second accepted, pushed and done; {:.0} ms after the load; CPU us {:.1}, of the target {:.1}; {} \
             connections",
            "",
            delivered.rate,
            delivered.drain_ms,
            delivered.server_cpu_us,
            delivered.sink_cpu_us,
            delivered.connections
        );
    }
    for (status, count) in statuses(runs) {
        println!("{:<30} {count} times {status}, which does not count", "");
    }
    let closed: u64 = runs.iter().map(|ran| ran.load.closed).sum();
    if closed > 0 {
        println!("{:<30} the server closed {closed} connections", "");
    }
}

/// The answers of all rounds that had another status than most.
fn statuses(runs: &[&Ran]) -> BTreeMap<u16, u64> {
    let mut sums = BTreeMap::new();
    for (status, count) in runs.iter().flat_map(|ran| &ran.load.statuses) {
        *sums.entry(*status).or_default() += count;
    }
    let most = sums.iter().max_by_key(|(_, count)| **count).map(|(status, _)| *status);
    sums.retain(|status, _| Some(*status) != most);
    sums
}

fn shown(spread: Option<Spread>, digits: usize) -> String {
    spread.map_or("-".to_owned(), |spread| format!("{:.digits$}", spread.median))
}

/// With about three digits that say something.
fn number(value: f64) -> String {
    let digits = if value.fract() == 0.0 || value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_few_digits() {
        let numbers = [0.0, 0.3, 0.456, 8.0, 9.876, 12.34, 160.0, 12345.6].map(number);
        assert_eq!(numbers, ["0", "0.30", "0.46", "8", "9.88", "12.3", "160", "12346"]);
    }
}
