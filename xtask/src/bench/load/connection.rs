//! One connection of the load generator: at most one request in flight, nothing ever blocks.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::bench::response::{Answer, ResponseReader};
use crate::bench::template::{Ids, Template};

/// Connecting on this machine takes no time, unless the server's backlog is full.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// What reading came to.
pub(super) enum Received {
    /// Not all of an answer yet.
    Nothing,
    /// An answer, and how long after its request's first byte it was there.
    Answer(Answer, Duration),
    /// The server closed the connection.
    End,
}

/// A connection and its request.
pub(super) struct Connection {
    stream: TcpStream,
    request: Template,
    /// How much of the request is sent; all of it when none is on its way.
    sent: usize,
    /// When the request in flight began; `None` when there is none.
    begun: Option<Instant>,
    reader: ResponseReader,
}

impl Connection {
    pub(super) fn open(address: SocketAddr, request: Template) -> Result<Self> {
        let stream = connect(address)?;
        Ok(Self { stream, request, sent: 0, begun: None, reader: ResponseReader::default() })
    }

    /// A new stream in the place of the one that was closed.
    pub(super) fn reopen(&mut self, address: SocketAddr) -> Result<()> {
        self.stream = connect(address)?;
        self.begun = None;
        self.reader = ResponseReader::default();
        Ok(())
    }

    /// Begins the next request.
    pub(super) fn send(&mut self, ids: Ids, unix_time: u64) -> Result<()> {
        self.request.patch(ids, unix_time);
        self.sent = 0;
        self.begun = Some(Instant::now());
        self.continue_sending()
    }

    /// Sends as much as the socket takes. A connection that is broken is noticed when it is read.
    pub(super) fn continue_sending(&mut self) -> Result<()> {
        while let Some(rest) = self.request.bytes().get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(written) => self.sent += written,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if is_closed(error.kind()) => break,
                Err(error) => return Err(error).context("cannot send a request"),
            }
        }
        Ok(())
    }

    /// Whether there is more to send than the socket took.
    pub(super) fn is_sending(&self) -> bool {
        self.begun.is_some() && self.sent < self.request.bytes().len()
    }

    pub(super) fn is_in_flight(&self) -> bool {
        self.begun.is_some()
    }

    /// Reads once, into a buffer that all connections share.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Result<Received> {
        let length = match self.stream.read(buffer) {
            Ok(length) => length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(Received::Nothing);
            }
            Err(error) if is_closed(error.kind()) => return Ok(Received::End),
            Err(error) => return Err(error).context("cannot read an answer"),
        };
        if length == 0 {
            return Ok(Received::End);
        }
        let Some(answer) = self.reader.feed(&buffer[..length])? else { return Ok(Received::Nothing) };
        let begun = self.begun.take().context("an answer to no request")?;
        Ok(Received::Answer(answer, begun.elapsed()))
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, CONNECT_TIME_MAX)
        .with_context(|| format!("cannot connect to {address}"))?;
    stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
    stream.set_nonblocking(true).context("cannot make a socket non-blocking")?;
    Ok(stream)
}

fn is_closed(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted)
}
