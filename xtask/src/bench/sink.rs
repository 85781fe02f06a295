//! The cheapest target of pushes: one thread with raw sockets, which reads a request to its end, says 200 and counts.
//! It shares the cores with the server, so what it spends is reported beside.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

mod connection;

use connection::Connection;

/// More connections than any destination has slots.
const CONNECTIONS_MAX: usize = 900;

/// How long the kernel is asked to wait at once: as soon an end is noticed.
const WAIT_MAX: Duration = Duration::from_millis(50);

const EVENTS_MAX: usize = 256;

const BUFFER_BYTES: usize = 64 * 1024;

/// Where the listener stands among the events; connections follow.
const LISTENER: u64 = u64::MAX;

/// The target, until it is stopped.
pub(super) struct Sink {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
    thread: JoinHandle<Result<Duration>>,
}

#[derive(Default)]
struct Shared {
    requests: AtomicU64,
    connections: AtomicU64,
    is_over: AtomicBool,
}

/// What it has seen and spent.
pub(super) struct Seen {
    pub(super) requests: u64,
    /// Connections that were opened to it.
    pub(super) connections: u64,
    pub(super) cpu: Duration,
}

impl Sink {
    pub(super) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen")?;
        let address = listener.local_addr().context("where it listens")?;
        listener.set_nonblocking(true).context("cannot make a socket non-blocking")?;
        let shared = Arc::new(Shared::default());
        let of_thread = shared.clone();
        let thread = std::thread::Builder::new().name("bench-sink".to_owned());
        let thread = thread.spawn(move || Loop::new(listener, of_thread)?.run());
        Ok(Self { address, shared, thread: thread.context("cannot start a thread")? })
    }

    /// Requests that were answered so far.
    pub(super) fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Ends it.
    pub(super) fn stop(self) -> Result<Seen> {
        self.shared.is_over.store(true, Ordering::Relaxed);
        let cpu = self.thread.join().map_err(|_| anyhow::anyhow!("the sink panicked"))??;
        let connections = self.shared.connections.load(Ordering::Relaxed);
        Ok(Seen { requests: self.shared.requests.load(Ordering::Relaxed), connections, cpu })
    }
}

struct Loop {
    listener: TcpListener,
    epoll: OwnedFd,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    shared: Arc<Shared>,
}

impl Loop {
    fn new(listener: TcpListener, shared: Arc<Shared>) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("cannot make an epoll")?;
        let data = epoll::EventData::new_u64(LISTENER);
        epoll::add(&epoll, &listener, data, epoll::EventFlags::IN).context("cannot watch a socket")?;
        Ok(Self { listener, epoll, connections: Vec::new(), free: Vec::new(), shared })
    }

    /// Works until it is told to end; answers what it has spent.
    fn run(mut self) -> Result<Duration> {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        let mut buffer = vec![0; BUFFER_BYTES];
        let wait = Timespec::try_from(WAIT_MAX)?;
        while !self.shared.is_over.load(Ordering::Relaxed) {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&wait)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("cannot wait for sockets"),
            }
            for event in &events {
                match event.data.u64() {
                    LISTENER => self.accept()?,
                    at => self.serve(usize::try_from(at)?, &mut buffer)?,
                }
            }
        }
        Ok(Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime))?)
    }

    fn accept(&mut self) -> Result<()> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.add(stream)?,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("cannot accept a connection"),
            }
        }
    }

    fn add(&mut self, stream: TcpStream) -> Result<()> {
        stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
        stream.set_nonblocking(true).context("cannot make a socket non-blocking")?;
        let at = self.free.pop().unwrap_or(self.connections.len());
        ensure!(at < CONNECTIONS_MAX, "more than {CONNECTIONS_MAX} connections to the sink");
        if at == self.connections.len() {
            self.connections.push(None);
        }
        let data = epoll::EventData::new_u64(at as u64);
        epoll::add(&self.epoll, &stream, data, epoll::EventFlags::IN).context("cannot watch a socket")?;
        self.connections[at] = Some(Connection::new(stream));
        self.shared.connections.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn serve(&mut self, at: usize, buffer: &mut [u8]) -> Result<()> {
        let Some(connection) = self.connections[at].as_mut() else { return Ok(()) };
        match connection.serve(buffer)? {
            Some(answered) => {
                self.shared.requests.fetch_add(answered, Ordering::Relaxed);
            }
            None => {
                // The socket leaves the epoll by being closed.
                self.connections[at] = None;
                self.free.push(at);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn requests_are_counted_however_they_are_split() {
        let sink = Sink::start().unwrap();
        let request = b"POST /hook HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello";
        let mut stream = TcpStream::connect(sink.address).unwrap();
        stream.set_nodelay(true).unwrap();
        for split in 1..request.len() {
            stream.write_all(&request[..split]).unwrap();
            stream.write_all(&request[split..]).unwrap();
            let mut answer = vec![0; connection::ANSWER.len()];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(answer, connection::ANSWER, "split at {split}");
        }
        drop(stream);
        let seen = sink.stop().unwrap();
        assert_eq!((seen.requests, seen.connections), (request.len() as u64 - 1, 1));
    }
}
