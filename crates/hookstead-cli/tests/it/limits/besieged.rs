//! A server under attack: who attacks, and what must hold of the server meanwhile and afterwards.

use std::time::{Duration, Instant};

use crate::harness::{Connection, Project, Reply, Request, Server, median, wait_until};

/// How many clients attack at once.
pub(super) const CROWD: usize = 100;

/// What the process may have more afterwards than before: the allocator keeps some of what a crowd needed.
const MEMORY_KEPT_KIB: u64 = 48 * 1024;

/// What it may have open more: the store opens another file for a reader when one is needed.
const DESCRIPTORS_KEPT: usize = 8;

/// How long most of those who keep the rules may wait, on a busy machine. Where the attack's own time can be minutes, that
/// is what tests set it to: who waits for the crowd is late then.
const PROMPT: Duration = Duration::from_secs(3);

/// How often an event comes again at once: with it these are enough that one slow sync is not the middle of their times.
const RETRIES: usize = 2;

/// A server, and what it had before anybody attacked it.
pub(super) struct Besieged {
    pub(super) server: Server,
    /// Where those call who keep the rules.
    address: String,
    /// How many files and sockets it has open while nobody is connected.
    pub(super) descriptors: usize,
    pub(super) memory_kib: u64,
    _project: Project,
}

impl Besieged {
    pub(super) fn start(project: Project) -> Self {
        Self::start_at(project, "")
    }

    /// As [`Besieged::start`], for a server that listens everywhere: who keeps the rules calls it at `host`.
    pub(super) fn start_at(project: Project, host: &str) -> Self {
        let server = project.serve();
        let address = match host {
            "" => server.intake().to_owned(),
            _ => format!("{host}:{}", server.intake().rsplit(':').next().expect("a port")),
        };
        let mut besieged = Self { server, address, descriptors: 0, memory_kib: 0, _project: project };
        // The first event opens and allocates what every other one needs. Its connection is still open.
        let mut connection = besieged.answered("before", 202);
        besieged.descriptors = besieged.server.descriptors() - 1;
        besieged.memory_kib = besieged.server.memory_kib();
        // Its place is free for others once the server has closed its side.
        connection.end_sending();
        assert_eq!(connection.rest().expect("the end"), b"", "nothing behind the answer");
        besieged
    }

    /// A crowd of connections, on each of which this is sent. The server may answer before it has read everything.
    pub(super) fn crowd(&self, bytes: &[u8]) -> Vec<Connection> {
        (0..CROWD).map(|_| self.connected(bytes)).collect()
    }

    /// One connection on which this is sent.
    pub(super) fn connected(&self, bytes: &[u8]) -> Connection {
        let mut connection = self.server.connect();
        drop(connection.send(bytes));
        connection
    }

    /// Somebody who keeps the rules is served, and soon: with an event, and with its retries on connections of their own.
    pub(super) fn assert_serves(&self, id: &str) {
        let timed = |number: usize| {
            let begun = Instant::now();
            self.answered(id, if number == 0 { 202 } else { 200 });
            begun.elapsed()
        };
        let times: Vec<Duration> = (0..=RETRIES).map(timed).collect();
        assert!(median(times.clone()) < PROMPT, "{id}: answered after {times:?}");
    }

    /// The connection on which somebody who keeps the rules was answered so.
    fn answered(&self, id: &str, status: u16) -> Connection {
        let mut connection = Connection::open(&self.address).expect("a connection");
        let reply = connection.exchange(&Request::signed(id, b"good").bytes()).expect("an answer");
        assert_eq!(reply.status, status, "{id}: {reply}");
        connection
    }

    /// Every connection of the attack is closed.
    pub(super) fn assert_closed(&self) {
        let most = self.descriptors + DESCRIPTORS_KEPT;
        wait_until(
            || self.server.descriptors() <= most,
            || format!("{} files are open, {most} were to be expected", self.server.descriptors()),
        );
    }

    /// Every connection of the attack is closed and its memory is free.
    pub(super) fn assert_freed(&self) {
        self.assert_closed();
        let grown = self.server.memory_kib().saturating_sub(self.memory_kib);
        assert!(grown < MEMORY_KEPT_KIB, "{grown} KiB more than before");
    }

    /// As [`Besieged::assert_freed`]; and the next one is served, and nothing was stored that should not be: `stored`
    /// events are there, with the one of the start and the one of this.
    pub(super) fn assert_recovered(&self, stored: usize) {
        self.assert_freed();
        self.assert_serves("afterwards");
        assert_eq!(self.server.admin().events().len(), stored, "events");
    }
}

/// The answer, and the end of the connection after it.
pub(super) fn last_answer(mut connection: Connection) -> Reply {
    let reply = connection.receive().expect("an answer").expect("an answer before the end");
    assert_eq!(connection.rest().expect("the end"), b"", "something behind {reply}");
    reply
}
