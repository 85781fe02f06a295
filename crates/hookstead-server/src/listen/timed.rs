//! A socket with time limits: for the head of a request, between requests, for a peer that does not read its
//! answer, and for the end of a connection.
//!
//! hyper has one timer, which counts the pause between requests as part of the next head; here they differ.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Duration, Instant, Sleep, sleep_until};

use super::activity::{Activity, Phase};
use crate::limits::{LINGER_BYTES_MAX, LINGER_TIME};

/// The time limits of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) header: Duration,
    pub(crate) idle: Duration,
    pub(crate) write: Duration,
}

/// A socket with time limits.
pub(crate) struct TimedStream {
    stream: TcpStream,
    activity: Arc<Activity>,
    times: Times,
    read_timer: Timer,
    write_timer: Timer,
    /// Since when the peer has taken nothing of what waits for it.
    write_stuck_since: Option<Instant>,
    linger: Option<Linger>,
}

/// What is left to throw away at the end of a connection.
struct Linger {
    until: Instant,
    bytes_left: u64,
}

/// A timer that is made when it is first needed, and moved only when it rings: most deadlines are replaced
/// by later ones long before.
#[derive(Default)]
struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    /// Ready once `deadline` has passed; else the task is woken then, or earlier.
    fn poll(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if sleep.deadline() > deadline {
            sleep.as_mut().reset(deadline);
        }
        loop {
            ready!(sleep.as_mut().poll(cx));
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(deadline);
        }
    }
}

impl TimedStream {
    pub(crate) fn new(stream: TcpStream, activity: Arc<Activity>, times: Times) -> Self {
        Self {
            stream,
            activity,
            times,
            read_timer: Timer::default(),
            write_timer: Timer::default(),
            write_stuck_since: None,
            linger: None,
        }
    }

    fn read_deadline(&self) -> Option<Instant> {
        match self.activity.phase() {
            Phase::Head => Some(self.activity.since() + self.times.header),
            Phase::Idle => Some(self.activity.since() + self.times.idle),
            Phase::Busy => None,
        }
    }

    /// Watches over the result of a write.
    fn watch(&mut self, written: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.write_stuck_since = None;
            return written;
        }
        let since = *self.write_stuck_since.get_or_insert_with(Instant::now);
        match self.write_timer.poll(since + self.times.write, cx) {
            Poll::Ready(()) => Poll::Ready(Err(timed_out("the peer does not read its answer"))),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Throws away what still comes, until the peer closes or a limit is reached.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let linger = self.linger.get_or_insert_with(|| Linger {
            until: Instant::now() + LINGER_TIME,
            bytes_left: LINGER_BYTES_MAX,
        });
        let mut scratch = [0_u8; 8 * 1024];
        loop {
            let mut buffer = ReadBuf::new(&mut scratch);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
                Poll::Pending => return self.read_timer.poll(linger.until, cx),
                // An error here is the peer's end as well: there is nobody left who could miss something.
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(())) => {}
            }
            let bytes = buffer.filled().len() as u64;
            if bytes == 0 || bytes > linger.bytes_left || Instant::now() >= linger.until {
                return Poll::Ready(());
            }
            linger.bytes_left -= bytes;
        }
    }
}

fn timed_out(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, what)
}

impl AsyncRead for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        if let Poll::Ready(result) = Pin::new(&mut this.stream).poll_read(cx, buffer) {
            if buffer.filled().len() > before {
                this.activity.received();
            }
            return Poll::Ready(result);
        }
        match this.read_deadline() {
            Some(deadline) => {
                ready!(this.read_timer.poll(deadline, cx));
                Poll::Ready(Err(timed_out("the peer sends nothing")))
            }
            None => Poll::Pending,
        }
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, buffers);
        self.watch(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A socket has nothing to flush, so this says nothing about the peer.
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            if !self.activity.may_lose_the_answer() {
                return Poll::Ready(Ok(()));
            }
        }
        self.poll_linger(cx).map(Ok)
    }
}
