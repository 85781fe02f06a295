//! What the cases about destinations share: a source, events, and what a consumer and an operator ask for.

use serde_json::{Value, json};

use super::case::{hmac_hex, text, wire};
use super::stage::Stage;
use crate::harness::{Admin, Server, instant, wait_until};

pub(crate) const SECRET: &str = "hookbox-test-secret-01";
pub(crate) const NOW: i64 = 1_760_000_000;

/// Connections on which many events are sent beside each other, so that a commit takes as many of them.
const SENDERS: usize = 32;

/// Requests that are under way on each of them.
const PIPELINED: usize = 16;

/// A stage with the source `gen` and these destinations.
pub(crate) fn stage(destinations: &str) -> Stage {
    Stage::at(NOW).source(&source("gen")).toml(destinations)
}

pub(crate) fn source(name: &str) -> Value {
    json!({
        "name": name, "preset": "hmac", "signature_header": "X-Signature", "event_id": "header:X-Event-Id",
        "secrets": [SECRET]
    })
}

/// Sends an event to `gen`, which must be stored.
pub(crate) fn post(server: &Server, id: &str, body: &[u8]) {
    post_to(server, "gen", id, body);
}

pub(crate) fn post_to(server: &Server, source: &str, id: &str, body: &[u8]) {
    let reply = server.connect().exchange(&request(source, id, body)).expect("an answer");
    assert_eq!(reply.status, 202, "{id}: {reply}");
}

/// Sends the events `e0` to `e{count - 1}` to `gen`, each with its number as the body; all must be stored. It takes few
/// commits, and so little time also where each one is slow.
pub(crate) fn post_many(server: &Server, count: usize) {
    let mut connections: Vec<_> = (0..SENDERS.min(count)).map(|_| server.connect()).collect();
    let numbers: Vec<usize> = (0..count).collect();
    for round in numbers.chunks(SENDERS * PIPELINED) {
        let share = round.len().div_ceil(connections.len());
        let shares = || round.chunks(share);
        for (connection, share) in connections.iter_mut().zip(shares()) {
            let requests = share.iter().flat_map(|number| numbered(*number)).collect::<Vec<u8>>();
            connection.send(&requests).expect("they are taken");
        }
        for (connection, share) in connections.iter_mut().zip(shares()) {
            for number in share {
                let reply = connection.receive().expect("an answer").expect("an answer before the end");
                assert_eq!(reply.status, 202, "e{number}: {reply}");
            }
        }
    }
}

fn numbered(number: usize) -> Vec<u8> {
    request("gen", &format!("e{number}"), number.to_string().as_bytes())
}

fn request(source: &str, id: &str, body: &[u8]) -> Vec<u8> {
    let signature = hmac_hex(SECRET, body);
    let headers = [("X-Event-Id", id), ("X-Signature", signature.as_str()), ("Content-Type", "text/plain")];
    wire("POST", &format!("/in/{source}"), &headers, body)
}

/// Claims for `app`; an empty list if nothing came in time.
pub(crate) fn claim(admin: &mut Admin, query: &str) -> Vec<Value> {
    let reply = admin.post(&format!("/v1/destinations/app/claim?{query}"), &Value::Null);
    assert_eq!(reply.status, 200, "{reply}");
    reply.json()["leases"].as_array().expect("a list").clone()
}

/// Settles a lease; the status of the answer.
pub(crate) fn settle(admin: &mut Admin, lease: &Value, outcome: &str, details: &Value) -> u16 {
    admin.post(&format!("/v1/leases/{}/{outcome}", text(&lease["lease"])), details).status
}

pub(crate) fn delivery(admin: &mut Admin, event: &str, destination: &str) -> Value {
    let event = admin.get(&format!("/v1/events/gen:{event}")).json();
    admin.get(&format!("/v1/deliveries/{}:{destination}", text(&event["short_id"]))).json()
}

/// Waits until a delivery is as it must be, and gives it.
pub(crate) fn wait_for(
    admin: &mut Admin,
    event: &str,
    destination: &str,
    holds: impl Fn(&Value) -> bool,
) -> Value {
    let mut last = Value::Null;
    let shown = std::cell::RefCell::new(String::new());
    wait_until(
        || {
            last = delivery(admin, event, destination);
            *shown.borrow_mut() = last.to_string();
            holds(&last)
        },
        || shown.borrow().clone(),
    );
    last
}

/// How many deliveries are in a state, over all pages.
pub(crate) fn count(admin: &mut Admin, state: &str) -> usize {
    let mut target = format!("/v1/deliveries?state={state}&limit=1000");
    let mut found = 0;
    loop {
        let page = admin.get(&target).json();
        found += page["deliveries"].as_array().expect("a list").len();
        match page["next"].as_str() {
            Some(next) => target = format!("/v1/deliveries?state={state}&limit=1000&cursor={next}"),
            None => return found,
        }
    }
}

/// An instant of the API in Unix seconds.
pub(crate) fn seconds(at: &Value) -> i64 {
    instant(at).as_second()
}
