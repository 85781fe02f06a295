//! One HTTP/1.1 connection to a target, and the few that are kept between pushes.
//!
//! A connection that is dropped is closed at once, whatever it was doing. Nothing here knows what a request
//! means or what an answer says.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout};

use super::connector::Failure;
use super::rules::PushRule;

/// Most bytes of an answer's head.
pub const ANSWER_HEAD_BYTES_MAX: usize = 64 * 1024;

/// Most header fields of an answer: as many as hyper has room for without an allocation. Any other number costs each
/// push two of several KiB.
pub const ANSWER_FIELDS_MAX: usize = 100;

/// Most connections to one destination that are kept while nothing is pushed: as many as a destination may use at a
/// time. Fewer would be opened and closed again and again between the attempts of a busy one.
pub const IDLE_CONNECTIONS_MAX: usize = crate::destination::CONCURRENCY_MAX as usize;

/// How long a connection is kept while nothing is pushed: less than the five seconds after which Node's
/// server, the quickest of the common ones, closes it from its side.
pub const IDLE_TIME_MAX: Duration = Duration::from_secs(4);

/// How old a connection may become: a name that has moved to other addresses is followed after that.
pub const CONNECTION_AGE_MAX: Duration = Duration::from_mins(2);

/// How long a kept connection may take to say that it is ready; it is at once, unless it is closing.
const READY_TIME_MAX: Duration = Duration::from_millis(50);

/// A connection that one request at a time goes over.
///
/// It has no task of its own: what is to be read and written is read and written while somebody waits for it by
/// [`Connection::drive`], and by whoever waits. One task for an attempt instead of two that wake each other.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: Driver,
    since: Instant,
}

/// What reads and writes; `None` when it has ended.
type Driver = Option<Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>>;

impl Connection {
    /// Starts HTTP on a stream.
    pub(super) async fn start<S>(stream: S) -> Result<Self, Failure>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let mut builder = http1::Builder::new();
        builder.max_buf_size(ANSWER_HEAD_BYTES_MAX);
        let started = builder.handshake(TokioIo::new(stream)).await;
        let (sender, connection) = started.map_err(|error| explain(&error))?;
        Ok(Self { sender, driver: Some(Box::pin(connection)), since: Instant::now() })
    }

    /// Sends a request and waits for the head of the answer.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, Failure> {
        let answer = self.sender.send_request(request);
        drive(&mut self.driver, answer).await.map_err(|error| explain(&error))
    }

    /// Waits for something that comes over this connection: the parts of an answer's body.
    pub(super) async fn drive<F: Future>(&mut self, future: F) -> F::Output {
        drive(&mut self.driver, future).await
    }

    /// Does what can be done at once, and says whether it may be used again: not if the target closes it.
    pub(super) async fn is_open(&mut self) -> bool {
        let driver = &mut self.driver;
        poll_fn(|context| {
            step(driver, context);
            Poll::Ready(driver.is_some())
        })
        .await
    }

    async fn is_ready(&mut self) -> bool {
        let ready = drive(&mut self.driver, self.sender.ready());
        matches!(timeout(READY_TIME_MAX, ready).await, Ok(Ok(())))
    }
}

/// Reads and writes until the future is ready. How the connection ends is seen by the future.
async fn drive<F: Future>(driver: &mut Driver, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        // First, so that the connection knows what is wanted of it.
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(output);
        }
        step(driver, context);
        future.as_mut().poll(context)
    })
    .await
}

fn step(driver: &mut Driver, context: &mut Context<'_>) {
    if driver.as_mut().is_some_and(|driver| driver.as_mut().poll(context).is_ready()) {
        *driver = None;
    }
}

/// Connections that wait for the next push, the newest in front. What has waited too long is closed, whether or not
/// there is a next push.
#[derive(Default)]
pub(super) struct IdleConnections(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    connections: VecDeque<(Connection, Instant)>,
    /// Whether a task closes what waits too long.
    is_watched: bool,
}

impl IdleConnections {
    /// The newest that is still good.
    pub(super) async fn take(&self) -> Option<Connection> {
        while let Some(mut connection) = self.newest() {
            if connection.is_ready().await {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection whose answer was read to its end, unless it is too old.
    pub(super) fn put(&self, connection: Connection) {
        if connection.since.elapsed() > CONNECTION_AGE_MAX {
            return;
        }
        let mut kept = lock(&self.0);
        kept.connections.push_front((connection, Instant::now()));
        kept.connections.truncate(IDLE_CONNECTIONS_MAX);
        kept.close_expired();
        if !kept.is_watched {
            kept.is_watched = true;
            tokio::spawn(close_idle(Arc::downgrade(&self.0)));
        }
    }

    fn newest(&self) -> Option<Connection> {
        let mut kept = lock(&self.0);
        if kept.connections.front().is_some_and(has_waited_too_long) {
            // All others have waited longer.
            kept.connections.clear();
        }
        kept.connections.pop_front().map(|(connection, _)| connection)
    }
}

impl Kept {
    fn close_expired(&mut self) {
        // Those that have waited longest are behind; the last that is good ends the search.
        while self.connections.back().is_some_and(has_waited_too_long) {
            self.connections.pop_back();
        }
    }
}

/// Closes what waits too long, until nothing waits or the connections are nobody's any more.
async fn close_idle(kept: Weak<Mutex<Kept>>) {
    loop {
        tokio::time::sleep(IDLE_TIME_MAX).await;
        let Some(kept) = kept.upgrade() else { return };
        let mut kept = lock(&kept);
        kept.close_expired();
        if kept.connections.is_empty() {
            kept.is_watched = false;
            return;
        }
    }
}

/// A list and a flag, right at every step, so a panic elsewhere does not spoil them.
fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

fn has_waited_too_long((_, since): &(Connection, Instant)) -> bool {
    since.elapsed() >= IDLE_TIME_MAX
}

/// What a failed exchange means.
fn explain(error: &hyper::Error) -> Failure {
    let cause = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    if error.is_parse_too_large() {
        let limits = format!("{ANSWER_HEAD_BYTES_MAX} bytes or {ANSWER_FIELDS_MAX} fields");
        return Failure::new(PushRule::AnswerInvalid, format!("the answer's head has more than {limits}"));
    }
    if error.is_parse() {
        return Failure::new(PushRule::AnswerInvalid, format!("the answer is no valid HTTP/1.1: {error}"));
    }
    let lost = if error.is_incomplete_message() {
        "the target closed the connection before it answered".to_owned()
    } else {
        format!("the connection was lost before there was an answer: {cause}")
    };
    Failure::new(PushRule::ConnectionLost, lost)
}
