//! Theme ack-semantics: what a sender is told, when, and that nothing else is waited for.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::case::{Case, hmac_hex, wire};
use super::play::{find, play};
use super::stage::Stage;
use super::trace;
use crate::harness::{Connection, Request, Target, median, wait_until};

const SECRET: &str = "hookbox-test-secret-01";

/// How soon most answers are there while the log is blocked, on a small machine.
const PROMPT: Duration = Duration::from_secs(1);

fn signed(id: &str, body: &[u8]) -> Vec<u8> {
    let signature = hmac_hex(SECRET, body);
    wire("POST", "/in/gen", &[("X-Event-Id", id), ("X-Signature", &signature)], body)
}

#[test]
fn b123_a_source_may_want_200_for_every_success() {
    play("B123").ids(&["ak-1"]);
}

#[test]
fn b124_a_source_may_want_its_own_text() {
    let played = play("B124");
    let again = played.case.requests().remove(0);
    let again = played.server.connect().exchange(&again.bytes).expect("an answer");
    for reply in [&played.replies[0], &again] {
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/xml")), "{reply}");
        assert_eq!(reply.body, b"<ok>true</ok>");
    }
    let refused =
        played.server.connect().exchange(&wire("POST", "/in/gen", &[], b"<a/>")).expect("an answer");
    assert_ne!(refused.body, b"<ok>true</ok>", "only after a commit");
}

#[test]
fn b127_while_nothing_can_be_stored_nothing_is_acknowledged() {
    let case = Case::get("B127");
    let stage = Stage::at(case.now()).source(&case.sources()[0]);
    let server = stage.serve();
    let [first, second] = case.requests().try_into().unwrap_or_else(|_| panic!("two requests"));
    let calls = "pwrite64,ftruncate,fallocate";
    let outage = trace::attach(&server, calls, &format!("inject={calls}:error=ENOSPC"));
    let refused = server.connect().exchange(&first.bytes).expect("an answer");
    assert_eq!(refused.status, 503, "{refused}");
    assert!(refused.header("retry-after").is_some());
    let ready = Request::new("GET", "/readyz", "localhost").bytes();
    assert_eq!(server.connect().exchange(&ready).expect("an answer").status, 503, "it says so itself");
    outage.detach();

    wait_until(
        || server.connect().exchange(&ready).expect("an answer").status == 200,
        || "it does not recover by itself".to_owned(),
    );
    assert_eq!(server.connect().exchange(&second.bytes).expect("an answer").status, 202);
    assert_eq!(server.admin().events().len(), 1);
}

/// Everything is logged, into a pipe that nobody reads, and owed to a target that never answers: whoever waited for one
/// of them would wait for longer than the server and this client do, and whoever took a while to give up is late.
#[test]
fn b129_a_blocked_log_delays_no_answer() {
    let case = Case::get("B129");
    let target = Target::answering(200, b"");
    target.answer_raw(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\nx-slow: ");
    let push =
        format!("[destinations.app]\npush = \"{}\"\nallow_private = true\ntimeout = \"15m\"\n", target.url());
    let stage =
        Stage::at(case.now()).source(&case.sources()[0]).toml(&push).variable("HOOKSTEAD_LOG", "debug");
    let (log, mut full) = pipe(stage.data());
    let server = stage.serve_logging_to(&log);
    let address = server.intake();
    let times: Vec<Duration> = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..50).map(|sender| scope.spawn(move || send_ten(address, sender))).collect();
        senders.into_iter().flat_map(|sender| sender.join().expect("no sender failed")).collect()
    });
    let blocked = full.write(&[0; 4096]).expect_err("the log is full");
    assert_eq!(blocked.kind(), ErrorKind::WouldBlock);
    assert_eq!(server.admin().events().len(), 500);
    let median = median(times);
    assert!(median < PROMPT, "most answers took {median:?} and more");
}

/// Ten events one after the other, all of which must be stored: how long each answer took.
fn send_ten(address: &str, sender: usize) -> Vec<Duration> {
    let mut connection = Connection::open(address).expect("a connection");
    let send = |number: usize| {
        let begun = Instant::now();
        let reply = connection.exchange(&signed(&format!("{sender}-{number}"), b"x"));
        assert_eq!(reply.expect("an answer").status, 202);
        begun.elapsed()
    };
    (0..10).map(send).collect()
}

/// A named pipe that is open, so that its writer can start, and that nobody ever reads.
fn pipe(folder: &Path) -> (std::path::PathBuf, File) {
    let path = folder.join("log.pipe");
    assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo starts").success());
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).expect("a small number");
    let open = OpenOptions::new().read(true).write(true).custom_flags(nonblocking).open(&path);
    (path, open.expect("the pipe can be opened"))
}

#[test]
fn b130_a_wrong_secret_is_401_and_its_source_is_named_to_the_operator() {
    let case = Case::get("B130");
    let mut sketch = case.sources().remove(0);
    sketch["secrets"] = serde_json::json!(["hookbox-another-secret-02"]);
    let stage = Stage::at(case.now()).source(&sketch);
    let server = stage.serve();
    for number in 0..6 {
        let reply = server.connect().exchange(&signed(&format!("e-{number}"), b"x")).expect("an answer");
        assert_eq!(reply.status, 401, "{reply}");
    }
    assert!(server.admin().events().is_empty());
    let log = stage.log();
    let refusals: Vec<_> = log.iter().filter(|line| find(line, "refusal.code").is_some()).collect();
    assert_eq!(refusals.len(), 6, "{log:#?}");
    for line in refusals {
        assert_eq!(find(line, "source.name").and_then(|name| name.as_str()), Some("gen"));
        assert_eq!(find(line, "refusal.code").and_then(|code| code.as_str()), Some("signature-differs"));
    }
}
