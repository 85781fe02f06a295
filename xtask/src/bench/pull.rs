//! P15: what batches bring to whoever pulls: claims and settles over the API, a hundred leases at a time and one at a
//! time, by one consumer on one connection.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::{Value, json};

use super::admin::Admin;
use super::contestant::Place;
use super::hookstead;
use super::load::{self, Mode, Plan};
use super::settings::Settings;
use super::statistics::{count, ratio};
use super::usage::Meter;

const BATCH: usize = 100;

/// Events that are there to be claimed, for each second that is measured: more than any batch takes.
const EVENTS_PER_SECOND: f64 = 40_000.0;

/// How long the events may take to come in.
const FILL_TIME_MAX: Duration = Duration::from_mins(2);

const DESTINATION: &str = "\n[destinations.work]\npull = true\nlease = \"10m\"\n";

/// What came of it.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Pull {
    /// Deliveries a second that were claimed and settled as done, one at a time.
    pub(super) single_per_second: f64,
    /// The same, a hundred at a time.
    pub(super) batch_per_second: f64,
}

/// Fills a server with events and works them in both ways.
pub(super) fn run(binary: &Path, settings: &Settings, seed: u64) -> Result<Pull> {
    let place = Place::new(&settings.folder)?;
    let server = hookstead::start_with(binary, &place, &hookstead::sqlite(&place), DESTINATION)?;
    let meter = Meter::new(server.pid, &place.data())?;
    let plan = fill(settings, seed);
    let load = load::run(server.address, &plan, &|| meter.read()).context("fill the store")?;
    ensure!(load.expected_in_all == plan.requests_max, "only {} events", load.expected_in_all);
    let mut admin = Admin::connect(&server)?;
    let single_per_second = work(&mut admin, 1, settings.measured())?;
    let batch_per_second = work(&mut admin, BATCH, settings.measured())?;
    server.stop()?;
    Ok(Pull { single_per_second, batch_per_second })
}

fn fill(settings: &Settings, seed: u64) -> Plan {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the command line bounds the seconds"
    )]
    let events = (settings.seconds * EVENTS_PER_SECOND).ceil() as u64;
    Plan {
        connections: 64,
        mode: Mode::Unique,
        body_bytes: settings.body_bytes,
        warm_up: Duration::ZERO,
        measured: FILL_TIME_MAX,
        requests_max: events,
        seed,
    }
}

/// Claims and settles for so long; how many deliveries a second.
fn work(admin: &mut Admin, batch: usize, time: Duration) -> Result<f64> {
    let begun = Instant::now();
    let mut done = 0;
    while begun.elapsed() < time {
        let claimed = admin.post(&format!("/v1/destinations/work/claim?max={batch}"), "")?;
        let leases = claimed["leases"].as_array().context("an answer without leases")?;
        ensure!(leases.len() == batch, "{} leases, not {batch}: too few events", leases.len());
        let settle: Vec<Value> =
            leases.iter().map(|lease| json!({ "lease": lease["lease"], "outcome": "done" })).collect();
        let answer = admin.post("/v1/leases/settle", &json!({ "settle": settle }).to_string())?;
        let results = answer["results"].as_array().context("an answer without results")?;
        ensure!(
            results.len() == batch && results.iter().all(|result| result["state"] == "done"),
            "not all were settled: {answer}"
        );
        done += batch as u64;
    }
    ratio(count(done), begun.elapsed().as_secs_f64()).context("no time went by")
}
