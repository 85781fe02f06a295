//! P8: whether the ten millionth event costs what the second did. The store is filled through its own interface, by
//! the example `growth` of the crate `hookstead-store`; through HTTP the requests would hide it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::contestant::Place;
use super::settings::Settings;
use super::statistics::ratio;
use crate::run::{cargo, check, program, step, target_dir};

/// Into how many equal steps the filling is divided.
const STEPS: usize = 10;

/// The count of events that P8 is written for.
pub(super) const EVENTS: u64 = 10_000_000;

/// Room that an event may take while the store is filled, in bytes: more than any run has shown, so that the filling
/// never ends for want of room, nor takes the last of it from others.
const ROOM_PER_EVENT: u64 = 1024;

/// Room for the log, and to be left to others.
const ROOM_BESIDE: u64 = 1024 * 1024 * 1024;

/// One tenth of the events; the example prints it as a line of JSON.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Step {
    /// How many events there were at its end.
    pub(super) events: u64,
    pub(super) events_per_second: f64,
    pub(super) cpu_us_per_event: f64,
    pub(super) written_bytes_per_event: f64,
    /// The size of the database over all events so far.
    pub(super) stored_bytes_per_event: f64,
}

/// All of them.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Growth {
    pub(super) steps: Vec<Step>,
}

impl Growth {
    /// The tenth step's processor time over the second's.
    pub(super) fn cpu_ratio(&self) -> Option<f64> {
        self.tenth_over_second(|step| step.cpu_us_per_event)
    }

    /// The tenth step's bytes written over the second's.
    pub(super) fn bytes_ratio(&self) -> Option<f64> {
        self.tenth_over_second(|step| step.written_bytes_per_event)
    }

    /// How many events were filled in.
    pub(super) fn events(&self) -> u64 {
        self.steps.last().map_or(0, |step| step.events)
    }

    fn tenth_over_second(&self, value: impl Fn(&Step) -> f64) -> Option<f64> {
        ratio(value(self.steps.get(STEPS - 1)?), value(self.steps.get(1)?))
    }
}

/// Whether the disk has room for the filling. Asked before anything is measured: it comes last, and nobody shall wait
/// half an hour to hear that.
///
/// # Errors
///
/// There is less room than it may need; the message says how much and what to do.
pub(super) fn check_room(folder: &Path, events: u64) -> Result<()> {
    let disk = rustix::fs::statvfs(folder).with_context(|| format!("cannot look at {}", folder.display()))?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let needed = room(events);
    ensure!(
        free >= needed,
        "filling a store with {events} events may take {} MiB, and {} has {} MiB: choose another disk with --folder, \
         or leave P8 out with --only",
        needed >> 20,
        folder.display(),
        free >> 20
    );
    Ok(())
}

fn room(events: u64) -> u64 {
    events.saturating_mul(ROOM_PER_EVENT).saturating_add(ROOM_BESIDE)
}

/// Fills a fresh store and prints each step when it is done.
pub(super) fn run(settings: &Settings) -> Result<Growth> {
    let arguments = ["build", "--quiet", "--release", "--package", "hookstead-store", "--example", "growth"];
    step("build the example `growth` for release", || check(&mut cargo(&arguments)))?;
    check_room(&settings.folder, settings.growth_events)?;
    let place = Place::new(&settings.folder)?;
    step(&format!("fill a store with {} events", settings.growth_events), || {
        fill(&place, settings.growth_events)
    })
}

fn fill(place: &Place, events: u64) -> Result<Growth> {
    let example = target_dir().join("release/examples/growth");
    let mut command = program(&example.to_string_lossy(), &[]);
    command.arg(place.data().join("growth.db")).arg(events.to_string());
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("cannot start the example")?;
    let stdout = child.stdout.take().context("stdout is no pipe")?;
    let mut steps = Vec::with_capacity(STEPS);
    eprintln!(
        "{:>12} {:>10} {:>9} {:>14} {:>13}",
        "events", "events/s", "CPU us", "written bytes", "stored bytes"
    );
    for line in BufReader::new(stdout).lines() {
        let line = line.context("cannot read from the example")?;
        let step: Step = serde_json::from_str(&line).with_context(|| format!("not a step: {line}"))?;
        print(&step);
        steps.push(step);
    }
    let status = child.wait().context("cannot wait for the example")?;
    ensure!(
        status.success() && steps.len() == STEPS,
        "the example ended with {status} after {} steps",
        steps.len()
    );
    Ok(Growth { steps })
}

fn print(step: &Step) {
    eprintln!(
        "{:>12} {:>10.0} {:>9.2} {:>14.0} {:>13.0}",
        step.events,
        step.events_per_second,
        step.cpu_us_per_event,
        step.written_bytes_per_event,
        step.stored_bytes_per_event
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filling_that_may_not_fit_is_refused_before_it_begins() {
        let folder = tempfile::tempdir().unwrap();
        assert!(check_room(folder.path(), u64::MAX).unwrap_err().to_string().contains("--folder"));
        assert_eq!(room(EVENTS) >> 30, 10);
    }

    #[test]
    fn growth_is_the_tenth_step_over_the_second() {
        let step = |number: u32| Step {
            events: number.into(),
            events_per_second: 1.0,
            cpu_us_per_event: f64::from(number),
            written_bytes_per_event: f64::from(number + 2),
            stored_bytes_per_event: 1.0,
        };
        let growth = Growth { steps: (1..=10).map(step).collect() };
        assert_eq!((growth.cpu_ratio(), growth.bytes_ratio(), growth.events()), (Some(5.0), Some(3.0), 10));
        let unfinished = Growth { steps: (1..=9).map(step).collect() };
        assert_eq!((unfinished.cpu_ratio(), unfinished.bytes_ratio()), (None, None));
    }
}
