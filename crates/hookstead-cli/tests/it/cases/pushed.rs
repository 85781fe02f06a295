//! What other themes' cases say of consumers: the same bytes go out, processing keeps no sender waiting, and a stop gives
//! leases back.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::case::{Case, text};
use super::owed::{claim, count, delivery, post, post_many, settle, stage, wait_for};
use super::stage::Stage;
use super::trace;
use crate::harness::{Connection, Request, Server, Target, median, send_signal, wait_until};

const PULL: &str = "[destinations.app]\npull = true\n";

/// How soon most answers are there, however much waits for a target.
const PROMPT: Duration = Duration::from_secs(1);

/// So long that no push to a target that hangs ends before the test does.
fn push_to(target: &Target) -> String {
    let (url, times) = (target.url(), "timeout = \"15m\"\nretry = [\"0s\", \"1h\", \"1h\"]\n");
    format!("[destinations.app]\npush = \"{url}\"\nallow_private = true\n{times}")
}

/// A target that takes a push and does not answer it.
fn hanging() -> Target {
    let target = Target::answering(200, b"");
    target.answer_raw(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\nx-slow: ");
    target
}

/// Sends the case's first request to a server with this destination.
fn sent(id: &str, destination: &str) -> (Case, Stage, Server) {
    let case = Case::get(id);
    let stage = Stage::at(case.now()).source(&case.sources()[0]).toml(destination);
    let server = stage.serve();
    let reply = server.connect().exchange(&case.requests()[0].bytes).expect("an answer");
    assert_eq!(reply.status, 202, "{id}: {reply}");
    (case, stage, server)
}

#[test]
fn b001_what_is_pushed_is_what_came() {
    let target = Target::answering(200, b"");
    let (case, _stage, server) = sent("B001", &push_to(&target));
    let body = case.requests().remove(0).body.expect("a body");
    assert_eq!(target.wait_for(1)[0].body, body);
    drop(server);
}

#[test]
fn b022_a_push_has_one_length_and_no_stored_framing() {
    let target = Target::answering(200, b"");
    let (_case, _stage, server) = sent("B022", &push_to(&target));
    let pushed = target.wait_for(1).remove(0);
    let lengths: Vec<_> = pushed.headers.iter().filter(|(name, _)| name == "content-length").collect();
    assert_eq!(lengths, [&("content-length".to_owned(), pushed.body.len().to_string())]);
    assert_eq!(pushed.header("transfer-encoding"), None, "{pushed:?}");
    assert_eq!(pushed.body, "{\"id\":\"ch-2\",\"t\":\"éé\"}".as_bytes());
    drop(server);
}

#[test]
fn b078_nul_in_an_answer_is_kept_and_shown_escaped() {
    let target = Target::answering(400, b"no\0thing");
    let (_case, stage, server) = sent("B078", &push_to(&target));
    let mut admin = server.admin();
    let failed = wait_for(&mut admin, "nul-1", "app", |delivery| {
        delivery["attempts"] == 1 && delivery["state"] == "waiting"
    });
    assert_eq!(failed["log"][0]["excerpt"], "no\0thing", "{failed}");
    let shown = stage.run(&["deliveries", "show", "@:app"]);
    assert!(shown.stdout.contains("no\\u{0}thing") && !shown.stdout.contains('\0'), "{shown:?}");
}

#[test]
fn b102_a_conflict_is_a_conflict_also_while_the_event_is_worked() {
    let (case, _stage, server) = sent("B102", PULL);
    let mut admin = server.admin();
    let lease = claim(&mut admin, "max=1&wait=20s").remove(0);
    let requests = case.requests();
    let status =
        |request: usize| server.connect().exchange(&requests[request].bytes).expect("an answer").status;
    assert_eq!([status(1), status(2)], [409, 200]);
    assert_eq!(delivery(&mut admin, "ip-1", "app")["state"], "leased");
    assert_eq!(admin.get("/v1/conflicts").json()["conflicts"].as_array().map(Vec::len), Some(1));
    assert_eq!(settle(&mut admin, &lease, "done", &Value::Null), 204);
    assert_eq!([status(1), status(2)], [409, 200], "and afterwards");
}

/// The case says 100,000; a queue that reached back to the senders would do so with 3,000. No push ends, so a sender that
/// had to wait for one would not be told 202 but, in the end, 503; and one that had to wait for something else is late.
#[test]
fn b128_what_waits_for_a_target_keeps_no_sender_waiting() {
    let target = hanging();
    let stage = stage(&push_to(&target));
    let server = stage.serve();
    post_many(&server, 3_000);
    target.wait_for(16);
    let send = |number: usize| {
        let begun = Instant::now();
        post(&server, &format!("more{number}"), b"x");
        begun.elapsed()
    };
    let median = median((0..100).map(send).collect());
    assert!(median < PROMPT, "most answers took {median:?} and more");
    let mut admin = server.admin();
    assert_eq!([count(&mut admin, "waiting"), count(&mut admin, "leased")], [3_084, 16]);
    assert_eq!(target.got().len(), 16);
}

#[test]
fn b209_leases_are_given_back_at_the_stop_in_spite_of_a_follower() {
    let target = hanging();
    let stage = stage(&push_to(&target)).server("drain", "\"1s\"");
    let mut server = stage.serve();
    post_many(&server, 10);
    target.wait_for(10);
    assert_eq!(count(&mut server.admin(), "leased"), 10);
    let token = stage.run(&["token", "create"]);
    let mut follower = Connection::open(server.admin_address()).expect("a connection");
    let follow = Request::new("GET", "/v1/tail?wait=50s", server.admin_address());
    let follow = follow.with("Authorization", &format!("Bearer {}", token.stdout.trim()));
    follower.send(&follow.bytes()).expect("sent");
    let begun = Instant::now();
    send_signal("TERM", server.pid());
    assert_eq!(server.wait_for_end().code(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(30), "not before its answer: {:?}", begun.elapsed());

    target.answer(200, b"");
    let server = stage.serve();
    let mut admin = server.admin();
    for number in 0..10 {
        let done = wait_for(&mut admin, &format!("e{number}"), "app", |delivery| delivery["state"] == "done");
        assert_eq!(done["attempts"], 1, "the attempt that was broken off is not counted: {done}");
        assert_eq!(text(&done["log"][0]["rule"]), "success", "{done}");
    }
}

/// Before a push its attempt is recorded by the claim; while nothing can be recorded nothing more is pushed.
#[test]
fn b138_without_a_record_there_is_no_push() {
    let target = hanging();
    let url = target.url();
    let push = format!(
        "[destinations.app]\npush = \"{url}\"\nallow_private = true\ntimeout = \"4s\"\nretry = [{}]\n",
        ["\"0s\""; 10].join(", ")
    );
    let stage = stage(&push);
    let server = stage.serve();
    let mut admin = server.admin();
    post_many(&server, 100);
    // Sixteen are leased and pushed, and now the disk is full.
    target.wait_for(16);
    let calls = "pwrite64,ftruncate,fallocate";
    let fault = trace::attach(&server, calls, &format!("inject={calls}:error=ENOSPC"));
    let begun = target.got().len();
    target.answer(200, b"");
    // Longer than the attempts; nothing that comes in can be stored, so this waits for its whole time.
    assert_eq!(admin.get("/v1/tail?wait=9s").status, 200);
    let pushed_meanwhile = target.got().len() - begun;
    assert!(pushed_meanwhile <= 16, "{pushed_meanwhile} pushes that nothing records");
    assert_eq!(count(&mut admin, "done"), 0);
    fault.detach();
    wait_until(|| count(&mut admin, "done") == 100, || format!("{} done", target.got().len()));
    let mut pushes: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    target.got().into_iter().for_each(|pushed| *pushes.entry(pushed.body).or_default() += 1);
    assert_eq!(pushes.len(), 100);
    for (number, count) in pushes {
        let number = String::from_utf8(number).expect("the body is a number");
        let attempts = delivery(&mut admin, &format!("e{number}"), "app")["attempts"].as_u64();
        assert!(attempts.is_some_and(|attempts| count <= attempts), "{number}: {count} of {attempts:?}");
    }
}
