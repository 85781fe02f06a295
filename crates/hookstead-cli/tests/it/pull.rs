//! Consuming from outside: what a person does with curl, what a push brings, a configuration that changes, and what a
//! crash between claim and done leaves behind.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Connection, Reply, Request, SOURCE, Server, send_signal, wait_until};
use crate::terminal::Terminal;

const WORKER: &str = "\n[destinations.app]\npull = true\nretry = [\"0s\", \"0s\", \"0s\"]\n";

fn with_destinations(tables: &str) -> Terminal {
    let terminal = Terminal::configured();
    add(&terminal, tables);
    terminal
}

fn add(terminal: &Terminal, tables: &str) {
    let config = fs::read_to_string(terminal.path("hookstead.toml")).expect("the configuration");
    terminal.write("hookstead.toml", &format!("{config}{tables}"));
}

fn post_event(server: &Server, id: &str, body: &[u8]) {
    let reply = server.connect().exchange(&Request::signed(id, body).bytes()).expect("an answer");
    assert_eq!(reply.status, 202, "{id}: {reply}");
}

fn token(terminal: &Terminal) -> String {
    terminal.ok(&["token", "create", "--scope", "consume:app"]).stdout.trim().to_owned()
}

/// `curl -X POST`.
fn post(server: &Server, token: &str, target: &str, body: &Value) -> Reply {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::new("POST", target, server.admin_address())
        .with("authorization", &format!("Bearer {token}"))
        .with_body(&body);
    let mut connection = Connection::open(server.admin_address()).expect("the admin listener accepts");
    connection.exchange(&request.bytes()).expect("an answer")
}

fn claimed(server: &Server, token: &str, query: &str) -> Value {
    let reply = post(server, token, &format!("/v1/destinations/app/claim{query}"), &Value::Null);
    assert_eq!(reply.status, 200, "{reply}");
    reply.json()["leases"][0].clone()
}

fn end_of(lease: &Value, outcome: &str) -> String {
    format!("/v1/leases/{}/{outcome}", lease["lease"].as_str().expect("a lease"))
}

fn until(what: &str, holds: impl FnMut() -> bool) {
    wait_until(holds, || what.to_owned());
}

#[test]
fn an_event_is_pulled_and_done_with_two_requests() {
    let terminal = with_destinations(WORKER);
    let server = terminal.serve();
    let token = token(&terminal);
    post_event(&server, "evt_1", b"{\"paid\":true}");
    let lease = claimed(&server, &token, "?max=1&wait=20s");
    assert_eq!(lease["body_base64"], "eyJwYWlkIjp0cnVlfQ==");
    assert_eq!((&lease["source"], &lease["provider_id"]), (&json!(SOURCE), &json!("evt_1")));
    assert_eq!((&lease["event"], &lease["attempt"]), (&json!("0001"), &json!(1)));
    let done = post(&server, &token, &end_of(&lease, "done"), &Value::Null);
    assert_eq!((done.status, done.body.len()), (204, 0), "{done}");
    let seen = server.admin().get("/v1/deliveries/0001:app").json();
    assert_eq!(seen["state"], "done", "{seen}");
    let elsewhere = server.admin().get("/v1/events").status;
    let consumer = Request::new("GET", "/v1/events", server.admin_address())
        .with("authorization", &format!("Bearer {token}"));
    let mut connection = Connection::open(server.admin_address()).expect("the admin listener accepts");
    let refused = connection.exchange(&consumer.bytes()).expect("an answer");
    assert_eq!((elsewhere, refused.status), (200, 403), "a consumer sees its deliveries only");
    assert!(server.stop().success());
}

#[test]
fn a_push_brings_the_bytes_and_a_signature_of_its_own() {
    let target = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = target.local_addr().expect("it has one");
    let push = format!("\n[destinations.app]\npush = \"http://{address}/webhooks\"\nallow_private = true\n");
    let terminal = with_destinations(&push);
    let server = terminal.serve();
    post_event(&server, "evt_1", b"{\"paid\":true}");
    let (stream, _) = target.accept().expect("the push connects");
    let mut stream = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).expect("a line of the head");
        if line.trim().is_empty() {
            break;
        }
        head.push(line.trim().to_ascii_lowercase());
    }
    let header =
        |name: &str| head.iter().find_map(|line| line.strip_prefix(&format!("{name}: "))).map(str::to_owned);
    let length: usize = header("content-length").expect("a length").parse().expect("a number");
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("the body");
    stream
        .get_mut()
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        .expect("an answer is taken");
    assert_eq!((head[0].as_str(), body.as_slice()), ("post /webhooks http/1.1", &b"{\"paid\":true}"[..]));
    assert!(header("webhook-signature").is_some_and(|value| value.starts_with("v1,")), "{head:?}");
    assert_eq!(header("webhook-id"), header("idempotency-key"));
    let mut admin = server.admin();
    until("the delivery is done", || admin.get("/v1/deliveries/0001:app").json()["state"] == "done");
    let attempt = admin.get("/v1/deliveries/0001:app").json()["log"][0].clone();
    assert_eq!((&attempt["status"], &attempt["excerpt"]), (&json!(200), &json!("ok")), "{attempt}");
    assert!(server.stop().success());
}

#[test]
fn a_hangup_takes_a_changed_configuration_over_and_leaves_a_bad_one() {
    let terminal = Terminal::configured();
    let server = terminal.serve();
    let good = fs::read_to_string(terminal.path("hookstead.toml")).expect("the configuration");
    add(&terminal, "\n[destinations.app]\npul = true\n");
    send_signal("HUP", server.pid());
    let log = terminal.path("server.log");
    until("the mistake is in the log", || {
        fs::read_to_string(&log).is_ok_and(|log| log.contains("did you mean `pull`?"))
    });
    post_event(&server, "evt_1", b"1");
    terminal.write("hookstead.toml", &format!("{good}{WORKER}"));
    send_signal("HUP", server.pid());
    let mut admin = server.admin();
    until("the destination is there", || admin.get("/v1/destinations/app").status == 200);
    post_event(&server, "evt_2", b"2");
    let lease = claimed(&server, &token(&terminal), "");
    assert_eq!(lease["provider_id"], "evt_2", "what came before was owed to nobody");
    assert!(server.stop().success());
}

#[test]
fn what_was_claimed_before_a_crash_comes_again_under_the_same_key() {
    let sqlite = with_destinations(WORKER);
    check_crash(&sqlite);
    let mut files = with_destinations(WORKER);
    files.set("HOOKSTEAD_STORE", "files:inbox");
    check_crash(&files);
}

fn check_crash(terminal: &Terminal) {
    let server = terminal.serve();
    let token = token(terminal);
    post_event(&server, "evt_1", b"1");
    post_event(&server, "evt_2", b"2");
    let first = claimed(&server, &token, "?lease=12h");
    let other = claimed(&server, &token, "?lease=12h");
    let done = post(&server, &token, &end_of(&other, "done"), &Value::Null);
    assert_eq!(done.status, 204, "{done}");
    // So that the next server need not be waited with for long.
    let extended = post(&server, &token, &end_of(&first, "extend"), &json!({"lease": "1s"}));
    assert_eq!(extended.status, 200, "{extended}");
    server.kill9();
    let server = terminal.serve();
    let again = claimed(&server, &token, "?wait=30s");
    for same in ["event_id", "provider_id", "idempotency_key", "body_base64"] {
        assert_eq!(again[same], first[same], "{same}");
    }
    assert_eq!((&first["attempt"], &again["attempt"]), (&json!(1), &json!(2)));
    let late = post(&server, &token, &end_of(&first, "done"), &Value::Null);
    assert_eq!((late.status, &late.json()["code"]), (409, &json!("lease-lost")), "{late}");
    assert_eq!(post(&server, &token, &end_of(&again, "done"), &Value::Null).status, 204);
    let repeated = post(&server, &token, &end_of(&other, "done"), &Value::Null);
    assert_eq!(repeated.status, 204, "what was settled before the crash is answered the same");
    let none = post(&server, &token, "/v1/destinations/app/claim", &Value::Null);
    assert_eq!(none.json()["leases"], json!([]), "nothing that is done is ever given out again");
    assert!(server.stop().success());
}

#[test]
fn a_server_that_was_stopped_for_longer_than_a_lease_gives_it_to_the_next_and_refuses_the_late() {
    let terminal = with_destinations(WORKER);
    let server = terminal.serve();
    let token = token(&terminal);
    post_event(&server, "evt_1", b"1");
    let first = claimed(&server, &token, "?lease=1s");
    let claimed_at = Instant::now();
    send_signal("STOP", server.pid());
    until("the lease has ended", || claimed_at.elapsed() > Duration::from_millis(1_500));
    send_signal("CONT", server.pid());
    let second = claimed(&server, &token, "?wait=30s&lease=10m");
    for same in ["event_id", "idempotency_key", "body_base64"] {
        assert_eq!(second[same], first[same], "{same}");
    }
    assert_eq!((&first["attempt"], &second["attempt"]), (&json!(1), &json!(2)));
    for outcome in ["done", "retry", "dead", "release", "extend"] {
        let late = post(&server, &token, &end_of(&first, outcome), &Value::Null);
        assert_eq!((late.status, &late.json()["code"]), (409, &json!("lease-lost")), "{outcome}: {late}");
    }
    let mut admin = server.admin();
    let held = admin.get("/v1/deliveries/0001:app").json();
    assert_eq!((&held["state"], &held["lease_until"]), (&json!("leased"), &second["lease_until"]), "{held}");
    assert_eq!(post(&server, &token, &end_of(&second, "done"), &Value::Null).status, 204);
    assert_eq!(admin.get("/v1/deliveries/0001:app").json()["state"], "done");
    assert!(server.stop().success());
}
