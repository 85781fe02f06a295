//! The accept loop: one task that takes connections, one task for each of them, and an orderly end.
//!
//! A runtime a core runs one loop each, on clones of one listener. Nothing is shared between the loops but the
//! count of connections and their even spread; see `share`.

use std::convert::Infallible;
use std::error::Error;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::activity::{Activity, Phase, Unread};
use super::connections::{Connections, NoPlace};
use super::share::{Given, Held, Share};
use super::timed::{TimedStream, Times};
use crate::limits::{ACCEPT_PAUSE, BACKLOG, HEAD_BYTES_MAX, LAST_TURN_TIME, SILENT_GRACE};

/// The answer to a connection for which there is no place. It is the same for all, so that it costs nothing.
const NO_PLACE: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/problem+json\r\nx-content-type-options: nosniff\r\nretry-after: 5\r\n\
    connection: close\r\ncontent-length: 104\r\n\r\n\
    {\"type\":\"urn:hookstead:problem:busy\",\"title\":\"too many connections are open\",\"status\":503,\"code\":\"busy\"}";

/// A listener that is bound and not yet served.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) listener: TcpListener,
    pub(crate) connections: Arc<Connections>,
    /// This loop's part of the connections.
    pub(crate) share: Share,
    pub(crate) times: Times,
    pub(crate) half_closed: HalfClosed,
}

/// What the end of a client's side means while its request is being answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HalfClosed {
    /// It said all that it has to say, and still gets its answer; the work on it goes on.
    Answered,
    /// It is gone: what waits for it ends.
    Gone,
}

/// When a loop ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Not yet.
    #[default]
    Not,
    /// Nothing new is accepted; what is in flight is answered until then.
    Until(Instant),
}

/// Binds an address and listens. Connections wait in the kernel until the loop runs.
pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restart must not wait for the old connections to be forgotten.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Accepts and serves connections until it is told to stop and every connection has ended, or the time for
/// that, and one last turn, is over. `service` makes what answers the requests of one connection.
pub(crate) async fn serve<A, F, B>(listening: Listening, answer: A, mut stop: watch::Receiver<Stop>)
where
    A: Fn(Request<Incoming>, SocketAddr) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let Listening { listener, connections, mut share, times, half_closed } = listening;
    let mut tasks = JoinSet::new();
    let begin =
        |tasks: &mut JoinSet<()>, stream: TcpStream, peer, held: Held, stop: &watch::Receiver<Stop>| {
            let answer = answer.clone();
            let answer = move |request| answer(request, peer);
            tasks.spawn(connection(stream, held, answer, times, half_closed, stop.clone()));
        };
    let until = loop {
        tokio::select! {
            until = stopped(&mut stop) => break until,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    if let Some((stream, held)) = take(stream, peer, &connections, &share) {
                        begin(&mut tasks, stream, peer, held, &stop);
                    }
                }
                Err(error) => pause(&error).await,
            },
            given = share.given() => {
                let peer = given.peer;
                if let Some((stream, held)) = received(given) {
                    begin(&mut tasks, stream, peer, held, &stop);
                }
            }
            Some(ended) = tasks.join_next() => report(ended),
        }
    };
    for given in share.close() {
        let peer = given.peer;
        if let Some((stream, held)) = received(given) {
            begin(&mut tasks, stream, peer, held, &stop);
        }
    }
    for (stream, peer) in waiting(listener) {
        match connections.take(peer.ip()) {
            Ok(place) => begin(&mut tasks, stream, peer, share.keep(place), &stop),
            Err(no_place) => turn_away(&stream, peer, no_place),
        }
    }
    // The end may be found to be over before the connections that were to answer by then have run at all.
    if !all_end(&mut tasks, until).await && !all_end(&mut tasks, Instant::now() + LAST_TURN_TIME).await {
        tracing::warn!(connections.open = tasks.len(), "connections were cut: the time to finish is over");
        tasks.shutdown().await;
    }
}

/// Whether all of them end by then.
async fn all_end(tasks: &mut JoinSet<()>, until: Instant) -> bool {
    let ends = async {
        while let Some(ended) = tasks.join_next().await {
            report(ended);
        }
    };
    tokio::time::timeout_at(until, ends).await.is_ok()
}

/// A new connection, with its place, if there is one and this loop is the one to serve it.
fn take(
    stream: TcpStream,
    peer: SocketAddr,
    connections: &Arc<Connections>,
    share: &Share,
) -> Option<(TcpStream, Held)> {
    let place = match connections.take(peer.ip()) {
        Ok(place) => place,
        Err(no_place) => {
            turn_away(&stream, peer, no_place);
            return None;
        }
    };
    let held = share.keep(place);
    if !share.leads() {
        return Some((stream, held));
    }
    // Out of this runtime, whoever serves it: a stream belongs to the runtime that it was made in.
    let stream = stream.into_std().inspect_err(lost).ok()?;
    share.give(Given { stream, peer, held }).err().and_then(received)
}

/// A connection that comes from another runtime.
fn received(given: Given) -> Option<(TcpStream, Held)> {
    let Given { stream, held, .. } = given;
    TcpStream::from_std(stream).inspect_err(lost).ok().map(|stream| (stream, held))
}

/// No memory or no handles in the kernel: the sender sees its connection end.
fn lost(error: &io::Error) {
    tracing::warn!(error = %error, "a connection was lost on the way to the thread that serves it");
}

/// A connection's task ends without a word, unless the program has a fault.
fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(error = %error, "a connection's task did not end in order");
    }
}

/// The connections that the kernel has made already and nobody has taken yet. Their senders may have sent a
/// whole request: without this a stop would reset them.
fn waiting(listener: TcpListener) -> Vec<(TcpStream, SocketAddr)> {
    let accept_all = || -> io::Result<Vec<_>> {
        // Asked directly, since the runtime may not have heard of them.
        let listener = listener.into_std()?;
        let mut waiting = Vec::new();
        while let Ok((stream, peer)) = listener.accept() {
            stream.set_nonblocking(true)?;
            waiting.push((TcpStream::from_std(stream)?, peer));
        }
        Ok(waiting)
    };
    accept_all().unwrap_or_else(|error| {
        tracing::warn!(error = %error, "connections that were waiting at the stop are lost");
        Vec::new()
    })
}

/// The end of the time to finish, once a stop was asked for.
async fn stopped(stop: &mut watch::Receiver<Stop>) -> Instant {
    match stop.wait_for(|stop| *stop != Stop::Not).await.map(|stop| *stop) {
        Ok(Stop::Until(until)) => until,
        // Whoever could say so is gone: so are the listeners.
        Ok(Stop::Not) | Err(_) => Instant::now(),
    }
}

/// As [`stopped`], beside a connection, which is polled several times for each request: the channel is asked again only
/// once it has something new.
async fn stop_begins(stop: &mut watch::Receiver<Stop>) {
    let news = stop.clone();
    // Pending has to mean that this task will be woken, however much of its turn the connection has used up.
    let mut stopped = pin!(tokio::task::unconstrained(stopped(stop)));
    let mut asked_by: Option<Waker> = None;
    poll_fn(|cx| {
        let wakes_us = asked_by.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        if wakes_us && matches!(news.has_changed(), Ok(false)) {
            return Poll::Pending;
        }
        asked_by = Some(cx.waker().clone());
        stopped.as_mut().poll(cx).map(|_until| ())
    })
    .await;
}

/// No handles, or a connection that was gone before it was taken. Neither is a reason to end the loop.
async fn pause(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) {
        return;
    }
    tracing::warn!(error = %error, "a connection could not be accepted");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}

/// Says why as far as the socket takes it at once; nothing may wait here.
fn turn_away(stream: &TcpStream, peer: SocketAddr, no_place: NoPlace) {
    let said = stream.try_write(NO_PLACE).is_ok();
    tracing::debug!(peer.address = %peer.ip(), reason = ?no_place, said, "no place for a connection");
}

/// One connection, from its first byte to its last.
async fn connection<F, B>(
    stream: TcpStream,
    held: Held,
    answer: impl Fn(Request<Incoming>) -> F + Send + Sync,
    times: Times,
    half_closed: HalfClosed,
    mut stop: watch::Receiver<Stop>,
) where
    F: Future<Output = Response<B>> + Send,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let _until_it_ends = held;
    // Answers are small and written whole: waiting for more of them would only add latency.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(error = %error, "the connection was gone before it was served");
        return;
    }
    let activity = Arc::new(Activity::new());
    let stream = TimedStream::new(stream, activity.clone(), times);
    let service = service_fn(|request| tracked(request, &answer, &activity));
    let mut connection = pin!(builder(half_closed).serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = stop_begins(&mut stop) => {
            if !activity.has_received() {
                // hyper would close at once. What was sent a moment ago is still served; a connection that
                // is only open in advance is not waited for.
                let moment = tokio::time::timeout(SILENT_GRACE, connection.as_mut()).await;
                if moment.is_ok() || !activity.has_received() {
                    return;
                }
            }
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error = %error, "a connection ended with an error");
    }
}

/// Answers one request, and notes the phases of the connection around that.
fn tracked<'a, F: Future<Output = Response<B>> + 'a, B>(
    request: Request<Incoming>,
    answer: &'a impl Fn(Request<Incoming>) -> F,
    activity: &'a Activity,
) -> impl Future<Output = Result<Response<B>, Infallible>> + 'a {
    activity.enter(Phase::Busy);
    // The answer begins in here: given from outside it would be kept twice, and moved with each request.
    async move {
        let mut response = answer(request).await;
        if response.extensions_mut().remove::<Unread>().is_some() {
            activity.leave_unread();
        }
        activity.enter(Phase::Idle);
        Ok(response)
    }
}

fn builder(half_closed: HalfClosed) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .max_buf_size(HEAD_BYTES_MAX)
        // The socket has the timers; see `timed`.
        .header_read_timeout(None)
        .half_close(half_closed == HalfClosed::Answered)
        // Head and body in one buffer: answers are small, and one `send` costs less than gathering two pieces.
        .writev(false);
    builder
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body_util::Full;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::Notify;

    use super::*;
    use crate::network::Networks;

    fn listening(listener: TcpListener) -> Listening {
        let minute = Duration::from_secs(60);
        Listening {
            listener,
            connections: Connections::new(1, None, Networks::default()),
            share: Share::alone(),
            times: Times { header: minute, idle: minute, write: minute },
            half_closed: HalfClosed::Answered,
        }
    }

    /// As on a thread that stood still: the loop finds its time over, and runs before the one that answers by then.
    #[tokio::test]
    async fn an_answer_that_was_due_when_a_stop_found_its_time_over_goes_out() {
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, told) = watch::channel(Stop::Not);
        let arrived = Arc::new(Notify::new());
        let answer = {
            let (told, arrived) = (told.clone(), arrived.clone());
            move |_request, _peer| {
                let (mut told, arrived) = (told.clone(), arrived.clone());
                async move {
                    arrived.notify_one();
                    stopped(&mut told).await;
                    Response::new(Full::new(Bytes::from_static(b"in time")))
                }
            }
        };
        let client = async {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
            arrived.notified().await;
            let over = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
            stop.send_replace(Stop::Until(over));
            let mut said = String::new();
            client.read_to_string(&mut said).await.unwrap();
            said
        };
        let (said, ()) = tokio::join!(biased; client, serve(listening(listener), answer, told));
        assert!(said.starts_with("HTTP/1.1 200") && said.ends_with("in time"), "{said:?}");
    }

    #[test]
    fn the_fixed_answer_is_whole() {
        let text = std::str::from_utf8(NO_PLACE).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{}", body.len());
        let document: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(document["code"], "busy");
    }
}
