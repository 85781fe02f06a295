//! The loop over all connections.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::connection::{Connection, Received};
use super::{Plan, Tally};
use crate::bench::settings::mix;
use crate::bench::template::Template;

/// A server that closes more connections than this is not measured but reported.
const CLOSED_MAX: u64 = 10_000;

/// How long the kernel is asked to wait at once: the loop looks at its deadline as often.
const WAIT_MAX: Duration = Duration::from_millis(50);

const BUFFER_BYTES: usize = 16 * 1024;

/// Whether answers are followed by the next request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sending {
    On,
    Off,
}

/// All connections and what they have come to.
pub(super) struct Generator<'a> {
    address: SocketAddr,
    plan: &'a Plan,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    sent: u64,
    in_flight: usize,
    tally: Tally,
    /// The time that requests are signed with, to the second.
    unix_time: u64,
}

impl<'a> Generator<'a> {
    pub(super) fn connect(address: SocketAddr, plan: &'a Plan) -> Result<Self> {
        let mut number = mix(!plan.seed);
        let mut filler = || {
            number = mix(number);
            number
        };
        let template = Template::new(&address.to_string(), plan.body_bytes, &mut filler)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("cannot make an epoll")?;
        let open = |_| Connection::open(address, template.clone());
        let connections = (0..plan.connections).map(open).collect::<Result<Vec<_>>>()?;
        for (at, connection) in connections.iter().enumerate() {
            watch(&epoll, connection, at)?;
        }
        let tally = Tally::default();
        Ok(Self { address, plan, epoll, connections, sent: 0, in_flight: 0, tally, unix_time: unix_time()? })
    }

    /// Sends the first request on every connection.
    pub(super) fn start(&mut self) -> Result<()> {
        (0..self.connections.len()).try_for_each(|at| self.send_next(at))
    }

    /// Goes on until the deadline, or until nothing is in flight.
    pub(super) fn pump(&mut self, deadline: Instant, sending: Sending) -> Result<()> {
        let mut events = Vec::with_capacity(self.connections.len());
        let mut buffer = vec![0; BUFFER_BYTES];
        while self.in_flight > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            wait(&self.epoll, &mut events, left.min(WAIT_MAX))?;
            self.unix_time = unix_time()?;
            for event in &events {
                self.serve(event, sending, &mut buffer)?;
            }
        }
        Ok(())
    }

    /// What was counted since it was last asked.
    pub(super) fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    fn serve(&mut self, event: &epoll::Event, sending: Sending, buffer: &mut [u8]) -> Result<()> {
        // Copies, because the kernel's struct is packed.
        let (data, flags) = (event.data, event.flags);
        let at = usize::try_from(data.u64()).context("an event of no connection")?;
        if flags.contains(epoll::EventFlags::OUT) {
            self.connections[at].continue_sending()?;
            self.watch_again(at)?;
        }
        if flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR) {
            self.receive(at, sending, buffer)?;
        }
        Ok(())
    }

    fn receive(&mut self, at: usize, sending: Sending, buffer: &mut [u8]) -> Result<()> {
        let was_in_flight = self.connections[at].is_in_flight();
        match self.connections[at].receive(buffer)? {
            Received::Nothing => return Ok(()),
            Received::Answer(answer, time) => {
                self.tally.add(answer.status, time);
                self.in_flight -= 1;
                if answer.closes {
                    self.reopen(at)?;
                }
            }
            Received::End => {
                self.in_flight -= usize::from(was_in_flight);
                self.reopen(at)?;
            }
        }
        if sending == Sending::On { self.send_next(at) } else { Ok(()) }
    }

    /// A request that was lost with its connection is not sent again: it is counted as a closed connection.
    fn reopen(&mut self, at: usize) -> Result<()> {
        self.tally.closed += 1;
        ensure!(self.tally.closed <= CLOSED_MAX, "the server closed {CLOSED_MAX} connections");
        // The old socket leaves the epoll by being closed.
        self.connections[at].reopen(self.address)?;
        watch(&self.epoll, &self.connections[at], at)
    }

    fn send_next(&mut self, at: usize) -> Result<()> {
        if self.sent == self.plan.requests_max {
            return Ok(());
        }
        let ids = self.plan.mode.ids(self.plan.seed, self.sent);
        self.sent += 1;
        self.in_flight += 1;
        self.connections[at].send(ids, self.unix_time)?;
        if self.connections[at].is_sending() { self.watch_again(at) } else { Ok(()) }
    }

    /// Asks to be told of room in the socket only while something waits for it.
    fn watch_again(&self, at: usize) -> Result<()> {
        let connection = &self.connections[at];
        let mut flags = epoll::EventFlags::IN;
        flags.set(epoll::EventFlags::OUT, connection.is_sending());
        epoll::modify(&self.epoll, connection, data(at), flags).context("cannot watch a socket")
    }
}

fn watch(epoll: &OwnedFd, connection: &Connection, at: usize) -> Result<()> {
    epoll::add(epoll, connection, data(at), epoll::EventFlags::IN).context("cannot watch a socket")
}

fn data(at: usize) -> epoll::EventData {
    epoll::EventData::new_u64(at as u64)
}

fn wait(epoll: &OwnedFd, events: &mut Vec<epoll::Event>, time: Duration) -> Result<()> {
    events.clear();
    let time = Timespec::try_from(time)?;
    match epoll::wait(epoll, rustix::buffer::spare_capacity(events), Some(&time)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error).context("cannot wait for sockets"),
    }
}

fn unix_time() -> Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?.as_secs())
}
