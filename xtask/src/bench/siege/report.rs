//! What a siege prints: a table for people, and everything as JSON for programs.

use serde::Serialize;

use super::super::report::Machine;
use super::rounds::{Settings, Siege, Withstood};

/// Everything, as it is written with `--json`. Fields are added and never change their meaning.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    /// The arguments that made it.
    command: String,
    machine: Machine,
    settings: &'a Settings,
    attacks: &'a [Withstood],
    /// The server's resident memory at its highest.
    memory_peak_bytes: u64,
}

impl<'a> Report<'a> {
    pub(super) fn new(siege: &'a Siege, settings: &'a Settings) -> Self {
        let command = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
        let Siege { withstood, memory_peak_bytes } = siege;
        Self {
            command: format!("cargo xtask {command}"),
            machine: Machine::this(),
            settings,
            attacks: withstood,
            memory_peak_bytes: *memory_peak_bytes,
        }
    }

    pub(super) fn print(&self) {
        let Machine { cores, processor, kernel, load } = &self.machine;
        let Settings { rounds, seconds, least, .. } = self.settings;
        println!("\n{cores} x {processor}, Linux {kernel}, load {load}");
        println!(
            "{rounds} rounds of {seconds} s without and with each attack; at least {least} of the rate must be left\n"
        );
        println!(
            "{:<18} {:>10} {:>10} {:>7}   {:>16} {:>9} {:>9} {:>10}",
            "attack", "calm req/s", "attacked", "kept", "kept, low..high", "opened", "cut", "gone in"
        );
        for one in self.attacks {
            let verdict = if one.kept.median < *least { "  MISSED" } else { "" };
            let range = format!("{:.2}..{:.2}", one.kept.lowest, one.kept.highest);
            println!(
                "{:<18} {:>10.0} {:>10.0} {:>7.3}   {range:>16} {:>9} {:>9} {:>8.1} s{verdict}",
                one.attack.name(),
                one.calm.median,
                one.attacked.median,
                one.kept.median,
                one.attackers.opened,
                one.attackers.ended,
                one.recovery_seconds
            );
        }
        println!("\nserver's memory at its highest: {} MiB", self.memory_peak_bytes / 1024 / 1024);
    }
}
