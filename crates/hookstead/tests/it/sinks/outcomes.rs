//! Each way in which a target can answer, or not, has its outcome, and none costs more than it may.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use hookstead::core::attempt::ATTEMPT_EXCERPT_BYTES_MAX;
use hookstead::core::retry::RETRY_WAIT_MAX;
use hookstead::sink::push::{
    ANSWER_BYTES_MAX, ANSWER_HEAD_BYTES_MAX, PushOptions, PushSink, PushUrl, Reach, SigningSecret,
    SystemNetwork,
};
use hookstead::sink::{Sink, TargetHealth, Tried, TriedVerdict};
use tokio::net::TcpSocket;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::network::MadeUp;
use super::outgoing::{BODY, outgoing, outgoing_with};
use super::target::{Step, Target, say};
use crate::scene::HeldTime;
use TargetHealth::{Down, Up};

/// For targets that answer; long, since the machine may be busy.
const LONG: Duration = Duration::from_secs(30);

/// For targets that let one wait; time enough for the connection and the request, also on a busy machine.
const SHORT: Duration = Duration::from_secs(5);

/// How much later than its timeout an attempt may end on a busy machine.
const SLACK: Duration = Duration::from_secs(10);

/// What sockets may hold beside what was read, in bytes.
const SOCKETS_HOLD: usize = 32 * 1024 * 1024;

fn options(url: &str, timeout: Duration) -> PushOptions {
    let secret = SigningSecret::generate().unwrap();
    PushOptions { timeout, ..PushOptions::new(PushUrl::parse(url, Reach::Loopback).unwrap(), secret) }
}

fn sink(target: &Target, timeout: Duration) -> PushSink {
    PushSink::new(options(&target.url(), timeout), Arc::new(SystemNetwork::new())).unwrap()
}

/// One attempt at a target that plays the script. It ends in time, on one connection that does not outlive
/// it.
async fn try_script(script: Vec<Step>, timeout: Duration) -> (Tried, Target) {
    let target = Target::start(script).await;
    let sink = sink(&target, timeout);
    let begun = Instant::now();
    let tried = sink.deliver(&outgoing()).await;
    assert!(begun.elapsed() < timeout + SLACK, "{tried:?}");
    assert!(tried.excerpt.len() <= ATTEMPT_EXCERPT_BYTES_MAX);
    drop(sink);
    target.wait_for_a_connection().await;
    target.wait_for_silence().await;
    assert_eq!(target.connections(), 1);
    (tried, target)
}

const RETRY: TriedVerdict = TriedVerdict::Retry { after: None };

#[track_caller]
fn check(tried: &Tried, rule: &str, verdict: &TriedVerdict, target: TargetHealth, error: &str) {
    let seen = (tried.rule, &tried.verdict, tried.target);
    assert_eq!(seen, (rule, verdict, target), "{tried:?}");
    let said = tried.error.as_deref().unwrap_or_default();
    assert!(said.contains(error) && said.is_empty() == error.is_empty(), "{tried:?}");
}

/// The request is read, then the target says this and closes.
async fn answered(answer: impl AsRef<[u8]>) -> Tried {
    try_script(vec![Step::Read, say(answer)], LONG).await.0
}

#[tokio::test]
async fn each_status_is_ruled_as_standard_webhooks_says() {
    let gone = TriedVerdict::Hold("the target answered 410 Gone".into());
    for (status, rule, verdict, target, error) in [
        (200, "success", &TriedVerdict::Done, Up, ""),
        (202, "success", &TriedVerdict::Done, Up, ""),
        (299, "success", &TriedVerdict::Done, Up, ""),
        (400, "client-error", &RETRY, Up, "400"),
        (404, "client-error", &RETRY, Up, "404"),
        (410, "gone", &gone, Up, "410"),
        (429, "throttled", &RETRY, Down, "429"),
        (500, "server-error", &RETRY, Down, "500"),
        (501, "server-error", &RETRY, Down, "501"),
        (502, "unavailable", &RETRY, Down, "502"),
        (503, "unavailable", &RETRY, Down, "503"),
        (504, "unavailable", &RETRY, Down, "504"),
        (999, "status-unknown", &RETRY, Up, "999"),
    ] {
        let tried = answered(format!("HTTP/1.1 {status} So\r\ncontent-length: 4\r\n\r\nsaid")).await;
        check(&tried, rule, verdict, target, error);
        assert_eq!((tried.status, &tried.excerpt[..]), (Some(status), &b"said"[..]));
    }
}

#[tokio::test]
async fn another_protocol_is_not_switched_to() {
    let tried = answered("HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nhello").await;
    check(&tried, "status-unknown", &RETRY, Up, "101");
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let elsewhere =
        Target::start(vec![Step::Read, say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")]).await;
    for status in [300, 301, 302, 303, 304, 305, 307, 308] {
        for location in
            [elsewhere.url().as_str(), "/again", "http://169.254.169.254/", "//127.0.0.1/", "file:///"]
        {
            let tried = answered(format!(
                "HTTP/1.1 {status} Go\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"
            ))
            .await;
            check(&tried, "redirect-not-followed", &RETRY, Up, &format!("redirect not followed ({status})"));
            assert_eq!(tried.status, Some(status));
        }
    }
    let refreshing = "HTTP/1.1 200 OK\r\nrefresh: 0; url=http://127.0.0.1/\r\ncontent-length: 0\r\n\r\n";
    check(&answered(refreshing).await, "success", &TriedVerdict::Done, Up, "");
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn retry_after_lengthens_the_wait_within_its_bound() {
    for (value, after) in [
        ("7", Some(Duration::from_secs(7))),
        ("Mon, 02 Feb 2026 02:41:00 GMT", Some(Duration::from_secs(60))),
        ("Mon, 02 Feb 1970 02:41:00 GMT", Some(Duration::ZERO)),
        ("1000000000", Some(RETRY_WAIT_MAX)),
        ("123456789012345678901234567890", Some(RETRY_WAIT_MAX)),
        ("Fri, 31 Dec 9999 23:59:59 GMT", Some(RETRY_WAIT_MAX)),
        ("-5", None),
        ("later", None),
    ] {
        let head = format!("HTTP/1.1 429 Slow\r\nretry-after: {value}\r\ncontent-length: 0\r\n\r\n");
        check(&answered(head).await, "throttled", &TriedVerdict::Retry { after }, Down, "429");
    }
}

/// All at once: each takes its whole timeout.
#[tokio::test]
async fn a_target_that_lets_one_wait_costs_no_more_than_the_timeout() {
    let slow_head =
        || Step::Drip(b"HTTP/1.1 200 OK\r\nx: ".iter().chain(&[b'y'; 100_000]).copied().collect());
    let mut trying = JoinSet::new();
    for script in [
        vec![Step::Hang],
        vec![Step::Read, Step::Hang],
        vec![Step::Read, say("HTTP/1.1 200"), Step::Hang],
        vec![Step::Read, say("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n"), Step::Hang],
        vec![Step::Read, say("HTTP/1.1 100 Continue\r\n\r\n"), Step::Hang],
        vec![Step::Read, Step::SayForever(b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec())],
        vec![Step::Read, slow_head()],
    ] {
        trying.spawn(try_script(script, SHORT));
    }
    for (tried, _) in trying.join_all().await {
        check(&tried, "timeout", &RETRY, Down, "no answer within 5s");
        assert_eq!(tried.status, None);
    }
}

/// All at once: a body that hangs or drips ends by the time that answers have, long before the timeout.
#[tokio::test]
async fn a_body_that_does_not_end_changes_no_verdict() {
    let ok = |rest: &str| say(format!("HTTP/1.1 200 OK\r\n{rest}"));
    let begun = Instant::now();
    let mut trying = JoinSet::new();
    for (script, error) in [
        (vec![ok("content-length: 10\r\n\r\nhalf"), Step::Hang], "too slow: 4 bytes"),
        (vec![ok("content-length: 10\r\n\r\nhalf")], "broke off after 4 bytes"),
        (vec![ok("content-length: 10\r\n\r\nhalf"), Step::Reset], "broke off after 4 bytes"),
        (vec![ok("transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"), Step::Hang], "too slow: 4 bytes"),
        (vec![ok("transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n")], "broke off after 4 bytes"),
        (vec![ok("transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\nno number\r\n")], "broke off after 4 bytes"),
        (vec![ok("\r\n"), Step::Drip(b"y".to_vec())], "too slow"),
    ] {
        let script = [vec![Step::Read], script].concat();
        trying.spawn(async move {
            let (tried, _) = try_script(script, LONG).await;
            check(&tried, "success-answer-cut", &TriedVerdict::Done, Up, error);
        });
    }
    let failing = say("HTTP/1.1 500 Oh\r\ncontent-length: 10\r\n\r\nhalf");
    let (tried, _) = try_script(vec![Step::Read, failing, Step::Hang], LONG).await;
    assert_eq!(trying.join_all().await.len(), 7);
    assert!(begun.elapsed() < LONG, "it was the timeout that ended a body");
    check(&tried, "server-error", &RETRY, Down, "the target answered 500; the answer was too slow: 4 bytes");
    assert_eq!(&tried.excerpt[..], b"half");
}

#[tokio::test]
async fn of_a_huge_answer_only_the_beginning_is_read() {
    let line = vec![b'y'; 64 * 1024];
    let chunk = [b"10000\r\n", line.as_slice(), b"\r\n"].concat();
    for (head, rest) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n", line.clone()),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", chunk),
        ("HTTP/1.1 200 OK\r\n\r\n", line),
    ] {
        let (tried, target) = try_script(vec![Step::Read, say(head), Step::SayForever(rest)], LONG).await;
        check(&tried, "success", &TriedVerdict::Done, Up, "");
        assert_eq!(&tried.excerpt[..], [b'y'; ATTEMPT_EXCERPT_BYTES_MAX]);
        assert!(target.said_bytes() < ANSWER_BYTES_MAX + SOCKETS_HOLD, "{} bytes", target.said_bytes());
    }
}

#[tokio::test]
async fn a_head_without_bounds_is_no_answer() {
    let field = format!("x-filler: {}\r\n", "y".repeat(1000)).into_bytes();
    let endless_line = Step::SayForever(vec![b'y'; 64 * 1024]);
    for script in [
        vec![say("HTTP/1.1 200 OK\r\n"), Step::SayForever(field)],
        vec![say("HTTP/1.1 200 OK\r\nx: "), endless_line.clone()],
        vec![say("HTTP/1.1 200 "), endless_line],
        vec![say(format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(5000)))],
    ] {
        let (tried, target) = try_script([vec![Step::Read], script].concat(), LONG).await;
        check(&tried, "answer-invalid", &RETRY, Down, "answer");
        assert!(target.said_bytes() < ANSWER_HEAD_BYTES_MAX + SOCKETS_HOLD, "{} bytes", target.said_bytes());
    }
}

#[tokio::test]
async fn what_is_no_http_is_no_answer() {
    for answer in [
        "\0\x01\x02",
        "hello\r\n\r\n",
        "SSH-2.0-OpenSSH_9.6\r\n",
        "HTTP/1.1 abc OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nbad name: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx: \0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
        "HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\nhello",
    ] {
        check(&answered(answer).await, "answer-invalid", &RETRY, Down, "no valid HTTP/1.1");
    }
}

#[tokio::test]
async fn a_connection_that_ends_before_the_answer_is_lost() {
    for script in [
        vec![],
        vec![Step::Reset],
        vec![Step::Read],
        vec![Step::Read, Step::Reset],
        vec![Step::Read, say("HTTP/1.1 2")],
        vec![Step::Read, say("HTTP/1.1 200 OK\r\ncontent-le"), Step::Reset],
    ] {
        let (tried, _) = try_script(script, LONG).await;
        check(&tried, "connection-lost", &RETRY, Down, "connection");
    }
}

#[tokio::test]
async fn a_target_may_answer_before_it_has_read_everything() {
    let answer = say("HTTP/1.1 413 Much\r\ncontent-length: 0\r\n\r\n");
    let outgoing = outgoing_with(&[], vec![b'y'; 8 * 1024 * 1024]);
    let target = Target::start(vec![Step::Glance, answer.clone(), Step::Hang]).await;
    let tried = sink(&target, LONG).deliver(&outgoing).await;
    check(&tried, "client-error", &RETRY, Up, "413");
    target.wait_for_silence().await;

    // If it closes as well, the reset may overtake the answer.
    let target = Target::start(vec![Step::Glance, answer]).await;
    let tried = sink(&target, LONG).deliver(&outgoing).await;
    assert!(["client-error", "connection-lost"].contains(&tried.rule), "{tried:?}");
    assert_eq!(tried.verdict, RETRY);
    target.wait_for_silence().await;
}

#[tokio::test]
async fn who_cannot_be_reached_is_down() {
    // A port that is taken, so that nobody else can get it, and on which nobody listens.
    let taken = TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/", taken.local_addr().unwrap());
    let sink = PushSink::new(options(&url, LONG), Arc::new(SystemNetwork::new())).unwrap();
    check(&sink.deliver(&outgoing()).await, "connect-failed", &RETRY, Down, "no connection to `127.0.0.1:");
    drop(taken);

    let network = Arc::new(MadeUp::dead_end().with("nowhere.test", &[&[]]));
    for name in ["nowhere.test", "unknown.test"] {
        let options = options(&format!("http://{name}/"), LONG);
        let sink = PushSink::new(options, Arc::clone(&network) as _).unwrap();
        check(
            &sink.deliver(&outgoing()).await,
            "name-unresolved",
            &RETRY,
            Down,
            &format!("no address of `{name}`"),
        );
    }
}

#[tokio::test]
async fn a_name_with_several_addresses_is_tried_in_turn() {
    let answer = vec![Step::Read, say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")];
    let target = Target::start(answer).await;
    let addresses: &[&str] = &["127.0.0.2", "127.0.0.3", "127.0.0.1"]; // nobody listens on the first two
    let network = LoopbackNamed(MadeUp::dead_end().with("app.test", &[addresses]));
    let options = options(&format!("http://app.test:{}/", target.address().port()), LONG);
    let tried = PushSink::new(options, Arc::new(network)).unwrap().deliver(&outgoing()).await;
    check(&tried, "success", &TriedVerdict::Done, Up, "");
}

/// Made-up names, real connections.
struct LoopbackNamed(MadeUp);

impl hookstead::sink::push::Network for LoopbackNamed {
    fn resolve<'a>(&'a self, name: &'a str) -> hookstead::sink::push::Resolving<'a> {
        self.0.resolve(name)
    }

    fn dial(&self, address: std::net::SocketAddr) -> hookstead::sink::push::Dialing<'_> {
        Box::pin(tokio::net::TcpStream::connect(address))
    }
}

#[tokio::test]
async fn connections_are_kept_and_a_closed_one_costs_no_attempt() {
    let ok = || say("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    let target = Target::start(vec![Step::Read, ok(), Step::Read, ok()]).await; // closes after the second
    let sink = sink(&target, LONG);
    // No connection grows old between two pushes, however long they take.
    tokio::time::pause();
    let held = HeldTime::new();
    for (pushes, connections) in [(1, 1), (2, 1)] {
        check(&sink.deliver(&outgoing()).await, "success", &TriedVerdict::Done, Up, "");
        assert_eq!((target.seen().len(), target.connections()), (pushes, connections));
    }
    drop(held);
    tokio::time::resume();
    target.wait_for_silence().await;
    check(&sink.deliver(&outgoing()).await, "success", &TriedVerdict::Done, Up, "");
    assert_eq!((target.seen().len(), target.connections()), (3, 2));
}

/// The target closes between two pushes, and nothing here has had time to notice when the second one is sent.
#[tokio::test(flavor = "current_thread")]
async fn a_connection_that_closed_unnoticed_is_replaced() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (close, closing) = channel::<()>();
    let (closed, is_closed) = channel();
    let serving = std::thread::spawn(move || {
        let (first, _) = listener.accept().unwrap();
        answer_one(&first);
        closing.recv().unwrap();
        drop(first);
        closed.send(()).unwrap();
        answer_one(&listener.accept().unwrap().0);
    });
    let sink = PushSink::new(options(&url, LONG), Arc::new(SystemNetwork::new())).unwrap();
    check(&sink.deliver(&outgoing()).await, "success", &TriedVerdict::Done, Up, "");
    close.send(()).unwrap();
    is_closed.recv().unwrap();
    check(&sink.deliver(&outgoing()).await, "success", &TriedVerdict::Done, Up, "");
    serving.join().unwrap();
}

fn answer_one(mut stream: &std::net::TcpStream) {
    let mut read = vec![];
    while !read.ends_with(BODY) {
        let mut some = [0; 4096];
        let count = stream.read(&mut some).unwrap();
        assert!(count > 0, "the request ends early");
        read.extend_from_slice(&some[..count]);
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
}

/// What is not sent by the end of the attempt is never sent.
#[tokio::test]
async fn a_target_that_does_not_read_gets_no_more_after_the_timeout() {
    let body = vec![b'y'; 64 * 1024 * 1024];
    let target = Target::start(vec![Step::Pause, Step::Hang]).await;
    let sink = sink(&target, SHORT);
    let tried = sink.deliver(&outgoing_with(&[], &body)).await;
    check(&tried, "timeout", &RETRY, Down, "no answer within 5s");
    target.go_on();
    target.wait_for_silence().await;
    assert!(target.heard_bytes() < SOCKETS_HOLD, "{} bytes", target.heard_bytes());
}

#[tokio::test]
async fn an_attempt_that_is_called_off_leaves_no_connection() {
    let target = Target::start(vec![Step::Read, Step::Hang]).await;
    let sink = Arc::new(sink(&target, LONG));
    let attempt = tokio::spawn({
        let sink = Arc::clone(&sink);
        async move { sink.deliver(&outgoing()).await }
    });
    target.wait_for_requests(1).await;
    attempt.abort();
    target.wait_for_silence().await;
}

#[tokio::test]
async fn options_out_of_range_are_refused() {
    let network = || Arc::new(MadeUp::dead_end());
    let good = options("http://127.0.0.1/", LONG);
    for bad in [
        PushOptions { secrets: vec![], ..good.clone() },
        PushOptions { secrets: vec![good.secrets[0].clone(); 5], ..good.clone() },
        PushOptions { timeout: Duration::ZERO, ..good.clone() },
        PushOptions { timeout: Duration::from_hours(9), ..good.clone() },
    ] {
        assert!(PushSink::new(bad.clone(), network()).is_err(), "{bad:?}");
    }
    assert!(PushSink::new(good, network()).is_ok());
}
