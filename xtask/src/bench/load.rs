//! The load generator: so many connections, each of which sends its next request when it has the answer to the last
//! one. One thread, raw sockets, epoll; requests are patched templates and answers are read to their end.
//!
//! It is bounded in connections, in requests and in time, and speaks to this machine only.

mod connection;
mod generator;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::Serialize;

use super::latency::{Percentiles, Times};
use super::statistics::{count, ratio};
use super::template::Ids;
use super::usage::Usage;
use generator::{Generator, Sending};

/// More make no sense on one machine, and a process may open 1024 files.
pub(super) const CONNECTIONS_MAX: usize = 900;

/// How long answers are waited for when nothing more is sent.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(15);

/// What the ids of one request after the other are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Every one new.
    Unique,
    /// So many events that are there, again and again.
    Duplicate { events: u64 },
    /// The same, each time with another body.
    Conflict { events: u64 },
}

impl Mode {
    /// Of the `number`th request, from 0. The first `events` ids of [`Mode::Unique`] are those of the other two.
    pub(super) fn ids(self, seed: u64, number: u64) -> Ids {
        let id = |number: u64| super::settings::mix(seed.wrapping_add(number));
        match self {
            Self::Unique => Ids { event: id(number), body: id(number) },
            Self::Duplicate { events } => Ids { event: id(number % events), body: id(number % events) },
            Self::Conflict { events } => Ids { event: id(number % events), body: id(events + number) },
        }
    }

    /// How a server answers when it does what it should.
    pub(super) fn status_expected(self) -> u16 {
        match self {
            Self::Unique => 202,
            Self::Duplicate { .. } => 200,
            Self::Conflict { .. } => 409,
        }
    }
}

/// One run of the generator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) connections: usize,
    pub(super) mode: Mode,
    pub(super) body_bytes: usize,
    /// Time under load that is not measured.
    pub(super) warm_up: Duration,
    /// Time that is measured.
    pub(super) measured: Duration,
    /// It ends earlier when so many were sent.
    pub(super) requests_max: u64,
    pub(super) seed: u64,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Load {
    /// Answers a second that were as expected.
    pub(super) rate: f64,
    /// Answers by status, in the measured time.
    pub(super) statuses: BTreeMap<u16, u64>,
    /// Connections that the server closed, in the measured time.
    pub(super) closed: u64,
    #[serde(flatten)]
    pub(super) latency: Percentiles,
    /// The server's processor time for a request.
    pub(super) server_cpu_us: f64,
    /// The generator's own.
    pub(super) client_cpu_us: f64,
    /// Bytes that the server wrote to files, for a request and in all.
    pub(super) written_bytes_per_request: f64,
    pub(super) written_bytes: u64,
    /// Bytes that the disk was given, by everybody, for a request.
    pub(super) disk_bytes_per_request: Option<f64>,
    /// Requests that were answered as expected from the first to the last, also those that were not measured.
    pub(super) expected_in_all: u64,
}

/// What is counted while it runs.
#[derive(Default)]
struct Tally {
    times: Times,
    statuses: BTreeMap<u16, u64>,
    closed: u64,
}

impl Tally {
    fn add(&mut self, status: u16, time: Duration) {
        self.times.add(time);
        *self.statuses.entry(status).or_default() += 1;
    }

    fn with_status(&self, status: u16) -> u64 {
        self.statuses.get(&status).copied().unwrap_or(0)
    }
}

/// Puts the server at `address` under load; `usage` reads what it has spent.
///
/// # Errors
///
/// A server that cannot be reached, breaks HTTP or closes connections without end, or that answers nothing as
/// expected.
pub(super) fn run(address: SocketAddr, plan: &Plan, usage: &dyn Fn() -> Result<Usage>) -> Result<Load> {
    ensure!(address.ip().is_loopback(), "only servers on this machine are put under load");
    ensure!((1..=CONNECTIONS_MAX).contains(&plan.connections), "1 to {CONNECTIONS_MAX} connections");
    let expected = plan.mode.status_expected();
    let mut generator = Generator::connect(address, plan)?;
    generator.start()?;
    generator.pump(Instant::now() + plan.warm_up, Sending::On)?;
    let warmed_up = generator.take_tally();

    let before = Moment::now(usage)?;
    generator.pump(Instant::now() + plan.measured, Sending::On)?;
    let after = Moment::now(usage)?;
    let measured = generator.take_tally();

    generator.pump(Instant::now() + DRAIN_TIME_MAX, Sending::Off)?;
    let drained = generator.take_tally();
    ensure!(
        measured.with_status(expected) > 0,
        "nothing was answered {expected}, but {:?}",
        measured.statuses
    );
    let in_all = [&warmed_up, &measured, &drained].map(|tally| tally.with_status(expected)).iter().sum();
    Ok(load(measured, expected, &before, &after, in_all))
}

fn load(tally: Tally, expected: u16, before: &Moment, after: &Moment, expected_in_all: u64) -> Load {
    let spent = after.usage.since(&before.usage);
    let answers = count(tally.statuses.values().sum());
    let each = |total: f64| ratio(total, answers).unwrap_or(0.0);
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let seconds = after.at.duration_since(before.at).as_secs_f64();
    Load {
        rate: ratio(count(tally.with_status(expected)), seconds).unwrap_or(0.0),
        closed: tally.closed,
        server_cpu_us: each(micros(spent.cpu)),
        client_cpu_us: each(micros(after.client_cpu.saturating_sub(before.client_cpu))),
        written_bytes_per_request: each(count(spent.written_bytes)),
        written_bytes: spent.written_bytes,
        disk_bytes_per_request: spent.disk_bytes.map(|bytes| each(count(bytes))),
        expected_in_all,
        statuses: tally.statuses,
        latency: tally.times.percentiles(),
    }
}

/// When, and what was spent until then.
struct Moment {
    at: Instant,
    usage: Usage,
    client_cpu: Duration,
}

impl Moment {
    fn now(usage: &dyn Fn() -> Result<Usage>) -> Result<Self> {
        let own = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let client_cpu = Duration::try_from(own)?;
        Ok(Self { at: Instant::now(), usage: usage()?, client_cpu })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::bench::template::Template;

    const BODY_BYTES: usize = 200;

    /// A server that stores nothing. Every third answer is its connection's last, and every answer comes in two
    /// pieces.
    fn server() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                std::thread::spawn(move || answer_three(stream.unwrap()));
            }
        });
        address
    }

    fn answer_three(mut stream: TcpStream) {
        stream.set_nodelay(true).unwrap();
        let host = stream.local_addr().unwrap().to_string();
        let length = Template::new(&host, BODY_BYTES, &mut || 0).unwrap().bytes().len();
        let mut request = vec![0; length];
        for number in 1..=3 {
            if stream.read_exact(&mut request).is_err() {
                return;
            }
            let connection = if number == 3 { "close" } else { "keep-alive" };
            stream.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n").unwrap();
            stream.write_all(format!("connection: {connection}\r\n\r\nok").as_bytes()).unwrap();
        }
    }

    fn plan(mode: Mode) -> Plan {
        Plan {
            connections: 4,
            mode,
            body_bytes: BODY_BYTES,
            warm_up: Duration::ZERO,
            measured: Duration::from_secs(60),
            requests_max: 50,
            seed: 7,
        }
    }

    #[test]
    fn every_request_is_answered_once_also_over_connections_that_close() {
        let load = run(server(), &plan(Mode::Unique), &|| Ok(Usage::default())).unwrap();
        assert_eq!(load.statuses, BTreeMap::from([(202, 50)]));
        assert_eq!(load.expected_in_all, 50);
        assert!((13..=16).contains(&load.closed), "{} closed", load.closed);
        assert!(load.rate > 0.0 && load.latency.p50_ms <= load.latency.max_ms, "{load:?}");
    }

    #[test]
    fn a_server_that_answers_otherwise_is_no_success() {
        let error =
            run(server(), &plan(Mode::Duplicate { events: 2 }), &|| Ok(Usage::default())).unwrap_err();
        assert_eq!(error.to_string(), "nothing was answered 200, but {202: 50}");
    }

    #[test]
    fn only_this_machine_is_put_under_load() {
        let elsewhere = "192.0.2.1:80".parse().unwrap();
        let error = run(elsewhere, &plan(Mode::Unique), &|| Ok(Usage::default())).unwrap_err();
        assert_eq!(error.to_string(), "only servers on this machine are put under load");
    }

    #[test]
    fn unique_ids_never_come_again() {
        let ids: BTreeSet<u64> = (0..10_000).map(|number| Mode::Unique.ids(7, number).event).collect();
        assert_eq!(ids.len(), 10_000);
    }

    #[test]
    fn duplicates_and_conflicts_meet_what_was_stored() {
        let stored: Vec<Ids> = (0..4).map(|number| Mode::Unique.ids(7, number)).collect();
        for number in 0..40 {
            let duplicate = Mode::Duplicate { events: 4 }.ids(7, number);
            assert!(stored.contains(&duplicate), "request {number}");
            let conflict = Mode::Conflict { events: 4 }.ids(7, number);
            let first =
                stored.iter().find(|first| first.event == conflict.event).expect("an event that is there");
            assert_ne!(first.body, conflict.body, "request {number}");
        }
    }
}
