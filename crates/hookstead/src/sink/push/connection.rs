//! One HTTP/1.1 connection to a target, and the few that are kept between pushes.
//!
//! A connection that is dropped is closed at once, whatever it was doing. Nothing here knows what a request
//! means or what an answer says.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

use super::connector::Failure;
use super::rules::PushRule;

/// Most bytes of an answer's head.
pub const ANSWER_HEAD_BYTES_MAX: usize = 64 * 1024;

/// Most header fields of an answer.
pub const ANSWER_FIELDS_MAX: usize = 256;

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
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: AbortHandle,
    since: Instant,
}

impl Connection {
    /// Starts HTTP on a stream.
    pub(super) async fn start<S>(stream: S) -> Result<Self, Failure>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let mut builder = http1::Builder::new();
        builder.max_buf_size(ANSWER_HEAD_BYTES_MAX).max_headers(ANSWER_FIELDS_MAX);
        let started = builder.handshake(TokioIo::new(stream)).await;
        let (sender, connection) = started.map_err(|error| explain(&error))?;
        // How it ends is seen by whoever waits for an answer; between answers it is of no interest.
        let driver = tokio::spawn(async move { drop(connection.await) }).abort_handle();
        Ok(Self { sender, driver, since: Instant::now() })
    }

    /// Sends a request and waits for the head of the answer.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, Failure> {
        self.sender.send_request(request).await.map_err(|error| explain(&error))
    }

    async fn is_ready(&mut self) -> bool {
        matches!(timeout(READY_TIME_MAX, self.sender.ready()).await, Ok(Ok(())))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Connections that wait for the next push, the newest in front.
#[derive(Default)]
pub(super) struct IdleConnections(Mutex<VecDeque<(Connection, Instant)>>);

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
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_front((connection, Instant::now()));
        kept.truncate(IDLE_CONNECTIONS_MAX);
        // Those that have waited longest are behind; the last that is good ends the search.
        while kept.back().is_some_and(has_waited_too_long) {
            kept.pop_back();
        }
    }

    fn newest(&self) -> Option<Connection> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.front().is_some_and(has_waited_too_long) {
            // All others have waited longer.
            kept.clear();
        }
        kept.pop_front().map(|(connection, _)| connection)
    }
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
