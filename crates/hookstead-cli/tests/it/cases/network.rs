//! Themes network-listen and shutdown: where the server listens, and how it goes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::case::{hmac_hex, wire};
use super::stage::Stage;
use crate::harness::{Connection, Request, Server, send_signal, wait_until};

const SECRET: &str = "hookbox-test-secret-01";
const NOW: i64 = 1_760_000_000;

/// The time that an orchestrator gives before it kills. Less than what would be waited for in vain: 75 s for an idle
/// connection, and the whole drain for what never ends.
const GRACE: Duration = Duration::from_secs(30);

/// How long a stop may wait for what is in flight: so long that what it should not wait for shows.
const DRAIN: &str = "\"10m\"";

fn stage() -> Stage {
    Stage::at(NOW).source(&json!({
        "name": "gen", "preset": "hmac", "signature_header": "X-Signature", "event_id": "header:X-Event-Id",
        "secrets": [SECRET]
    }))
}

/// Somebody who follows the events: it is answered at once that there are none yet, and asks for what comes next.
fn follower(stage: &Stage, server: &Server) -> Connection {
    let token = stage.run(&["token", "create"]);
    let get = |target: &str| {
        let get = Request::new("GET", target, server.admin_address());
        get.with("Authorization", &format!("Bearer {}", token.stdout.trim())).bytes()
    };
    let mut follower = Connection::open(server.admin_address()).expect("a connection");
    assert_eq!(follower.exchange(&get("/v1/tail")).expect("an answer").status, 200);
    follower.send(&get("/v1/tail?wait=50s")).expect("sent");
    follower
}

fn signed(id: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let signature = hmac_hex(SECRET, b"x");
    let headers = [&[("X-Event-Id", id), ("X-Signature", &signature)], more].concat();
    wire("POST", "/in/gen", &headers, b"x")
}

#[test]
fn b198_addresses_of_ipv6_work_or_are_refused_with_what_to_write() {
    for wrong in ["::1", ":::8080", "[::1]", "[::1:8080", "::1:http"] {
        let stage = stage().variable("HOOKSTEAD_INTAKE", wrong);
        let refused = stage.refused_start();
        assert_eq!(refused.exit_code, Some(5), "{wrong}: {refused:?}");
        assert!(refused.stderr.contains(&format!("`{wrong}` is not an address")), "{refused:?}");
        assert!(refused.stderr.contains("[::1]:4665"), "{refused:?}");
    }
    let stage = stage().variable("HOOKSTEAD_INTAKE", "[::1]:0");
    let server = stage.serve();
    let url = server.ready()["intake"].as_str().expect("a text").to_owned();
    assert!(url.starts_with("http://[::1]:"), "{url}");
    assert_eq!(server.connect().exchange(&signed("six", &[])).expect("an answer").status, 202);
}

#[test]
fn b198_a_mapped_peer_is_in_its_network_of_ipv4() {
    let stage = stage().server("trusted_proxies", "[\"127.0.0.0/8\", \"fd00::/8\"]");
    let stage = stage.variable("HOOKSTEAD_INTAKE", "[::]:0");
    let server = stage.serve();
    let port = server.intake().rsplit(':').next().expect("a port").to_owned();
    // On the socket of the listener, this client is ::ffff:127.0.0.1.
    let mut connection = Connection::open(&format!("127.0.0.1:{port}")).expect("a connection");
    let request = signed("mapped", &[("X-Forwarded-For", "203.0.113.9")]);
    assert_eq!(connection.exchange(&request).expect("an answer").status, 202);
    assert_eq!(connection.exchange(&signed("direct", &[])).expect("an answer").status, 202);
    let mut admin = server.admin();
    let mut from = |id: &str| admin.get(&format!("/v1/events/gen:{id}")).json()["received_from"].clone();
    assert_eq!((from("mapped"), from("direct")), (json!("203.0.113.9"), json!("127.0.0.1")));
}

/// What became of a sender's last request.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Refused,
    Answered(u16),
}

#[test]
fn b208_sigterm_under_load_cuts_no_answer() {
    let stage = stage().server("drain", DRAIN);
    let mut server = stage.serve();
    let address = server.intake().to_owned();
    let acknowledged = AtomicUsize::new(0);
    let (stopped_after, ends) = std::thread::scope(|scope| {
        let sender = |sender: usize| {
            let (address, acknowledged) = (&address, &acknowledged);
            scope.spawn(move || {
                let mut number = 0;
                loop {
                    match attempt(address, &signed(&format!("{sender}-{number}"), &[])) {
                        End::Answered(202) => acknowledged.fetch_add(1, Ordering::Relaxed),
                        end => break (sender, number, end),
                    };
                    number += 1;
                }
            })
        };
        let senders: Vec<_> = (0..8).map(sender).collect();
        wait_until(|| acknowledged.load(Ordering::Relaxed) >= 100, || "no load".to_owned());
        let _follower = follower(&stage, &server);
        let begun = Instant::now();
        send_signal("TERM", server.pid());
        assert_eq!(server.wait_for_end().code(), Some(0));
        let ends: Vec<_> = senders.into_iter().map(|sender| sender.join().expect("no cut answer")).collect();
        (begun.elapsed(), ends)
    });
    assert!(stopped_after < GRACE, "{stopped_after:?}");
    drop(server);

    let server = stage.serve();
    for (sender, numbers, end) in ends {
        assert!([End::Refused, End::Answered(503)].contains(&end), "sender {sender}: {end:?}");
        for number in 0..numbers {
            let again = server.connect().exchange(&signed(&format!("{sender}-{number}"), &[]));
            assert_eq!(again.expect("an answer").status, 200, "{sender}-{number} was acknowledged");
        }
    }
}

/// One request on a connection of its own. A connection that ends before the first byte of an answer was not taken
/// any more; an answer that ends in its middle is an error.
fn attempt(address: &str, request: &[u8]) -> End {
    let Ok(mut connection) = Connection::open(address) else { return End::Refused };
    let sent = connection.send(request);
    match connection.receive() {
        Ok(Some(reply)) => End::Answered(reply.status),
        Ok(None) => End::Refused,
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => End::Refused,
        Err(error) => panic!("an answer was cut: {error}; sent: {sent:?}"),
    }
}

#[test]
fn b209_open_connections_do_not_delay_the_end() {
    let stage = stage().server("drain", DRAIN);
    let mut server = stage.serve();
    let _follower = follower(&stage, &server);
    let mut idle = server.connect();
    assert_eq!(idle.exchange(&signed("idle", &[])).expect("an answer").status, 202);
    let mut half = server.connect();
    half.send(b"POST /in/gen HTTP/1.1\r\nHo").expect("sent");
    let silent = server.connect();
    let mut admin = Connection::open(server.admin_address()).expect("a connection");
    let alive = Request::new("GET", "/livez", server.admin_address()).bytes();
    assert_eq!(admin.exchange(&alive).expect("an answer").status, 200);

    let begun = Instant::now();
    send_signal("TERM", server.pid());
    assert_eq!(server.wait_for_end().code(), Some(0));
    assert!(begun.elapsed() < GRACE, "{:?}", begun.elapsed());
    for (name, mut connection) in [("idle", idle), ("half", half), ("silent", silent), ("admin", admin)] {
        let rest = connection.rest().expect("the end");
        assert!(
            rest.is_empty() || rest.starts_with(b"HTTP/1.1 408") || rest.starts_with(b"HTTP/1.1 503"),
            "{name}"
        );
    }
}
