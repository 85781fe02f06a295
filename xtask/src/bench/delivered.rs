//! P11: what accepting costs when everything that is accepted is also pushed to a target on this machine and recorded
//! as done: from the first request to the last record.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use super::admin::Admin;
use super::child::Server;
use super::contestant::{Place, Ran};
use super::hookstead;
use super::load::{self, Plan};
use super::sink::{Seen, Sink};
use super::statistics::{count, ratio};
use super::usage::Meter;

/// As many attempts at a time as a destination may make: the target answers at once, so that what an attempt waits
/// for is its turn.
const CONCURRENCY: u16 = 256;

/// A backlog that is not done by then is a failure.
const DRAIN_TIME_MAX: Duration = Duration::from_mins(5);

/// How often it is looked whether everything is done.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// What came of the deliveries.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Delivered {
    /// Events a second that were accepted, pushed and recorded as done, from the first request to the last record.
    pub(super) rate: f64,
    /// From the end of the load to the last record.
    pub(super) drain_ms: f64,
    /// Connections that the pushes were made over.
    pub(super) connections: u64,
    /// The server's processor time for an event, from the first request to the last record.
    pub(super) server_cpu_us: f64,
    /// The target's own processor time for a push.
    pub(super) sink_cpu_us: f64,
}

/// Starts a server and a target, puts the server under load, and waits until everything is done.
pub(super) fn run(binary: &Path, place: &Place, plan: &Plan) -> Result<Ran> {
    let sink = Sink::start()?;
    let destination = format!(
        "\n[destinations.sink]\npush = \"http://{}/hook\"\nallow_private = true\nconcurrency = {CONCURRENCY}\n",
        sink.address
    );
    let server = hookstead::start_with(binary, place, &hookstead::sqlite(place), &destination)?;
    let meter = Meter::new(server.pid, &place.data())?;
    let (begun, before) = (Instant::now(), meter.read()?);
    let load = load::run(server.address, plan, &|| meter.read())?;
    let loaded = Instant::now();
    wait_until_done(&server, &sink, load.expected_in_all)?;
    let (done, spent) = (Instant::now(), meter.read()?.since(&before));
    let seen = sink.stop()?;
    server.stop()?;
    ensure!(
        seen.requests == load.expected_in_all,
        "{} events were pushed {} times",
        load.expected_in_all,
        seen.requests
    );
    let events = count(load.expected_in_all);
    let delivered = Delivered {
        rate: ratio(events, done.duration_since(begun).as_secs_f64()).context("no time went by")?,
        drain_ms: done.duration_since(loaded).as_secs_f64() * 1e3,
        connections: seen.connections,
        server_cpu_us: ratio(micros(spent.cpu), events).context("nothing was accepted")?,
        sink_cpu_us: sink_cpu_us(&seen)?,
    };
    Ok(Ran { load, data_bytes: place.data_bytes()?, delivered: Some(delivered) })
}

fn wait_until_done(server: &Server, sink: &Sink, events: u64) -> Result<()> {
    let deadline = Instant::now() + DRAIN_TIME_MAX;
    let mut asking = None;
    loop {
        // Asking costs the server something, and it closes connections that nothing comes over: not before there may
        // be an answer.
        if sink.requests() >= events {
            let admin = match &mut asking {
                Some(admin) => admin,
                None => asking.insert(Admin::connect(server)?),
            };
            let unfinished = &admin.get("/v1/destinations/sink")?["unfinished"];
            let counts: Option<Vec<u64>> = ["waiting", "leased", "dead", "held"]
                .map(|state| unfinished[state].as_u64())
                .into_iter()
                .collect();
            let counts = counts.with_context(|| format!("no counts of deliveries: {unfinished}"))?;
            ensure!(counts[2..] == [0, 0], "deliveries ended dead or held: {unfinished}");
            if counts == [0; 4] {
                return Ok(());
            }
        }
        ensure!(Instant::now() < deadline, "{} of {events} pushes after {DRAIN_TIME_MAX:?}", sink.requests());
        std::thread::sleep(LOOK_INTERVAL);
    }
}

fn sink_cpu_us(seen: &Seen) -> Result<f64> {
    ratio(micros(seen.cpu), count(seen.requests)).context("nothing was pushed")
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
