//! Theme dedupe-conflict: one identity, one event; other bytes are kept, and never take its place.

use std::sync::Barrier;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::case::{Case, hmac_hex, text, wire};
use super::play::{body, events, play};
use super::stage::Stage;
use crate::harness::Connection;

#[test]
fn b093_a_retry_with_other_bytes_is_a_conflict() {
    let played = play("B093");
    played.ids(&["ev-9"]);
    let told = String::from_utf8_lossy(&played.replies[1].body).into_owned();
    assert!(!told.contains("video") && !told.contains("ev-9"), "{told}");
}

#[test]
fn b094_an_id_of_several_parts() {
    play("B094").ids(&["DOC_DONE:77"]);
}

#[test]
fn b098_two_ids_are_two_events() {
    play("B098").ids(&["EvA", "EvB"]);
}

#[test]
fn b101_fifty_at_once_make_one_event() {
    let case = Case::get("B101");
    let stage = Stage::at(case.now()).source(&case.sources()[0]);
    let server = stage.serve();
    let mut bodies = vec![case.bytes("/build/identical/b64"); 40];
    let changed = case.input("/build/changed");
    let changed = changed.as_array().expect("a list of bodies").iter();
    bodies.extend(changed.map(|body| STANDARD.decode(text(body)).expect("base64")));
    let (start, address) = (Barrier::new(bodies.len()), server.intake());
    let send = |body: &Vec<u8>| {
        let signature = hmac_hex("hookbox-test-secret-01", body);
        let mut connection = Connection::open(address).expect("a connection");
        start.wait();
        let request = wire("POST", "/in/gen", &[("X-Signature", &signature)], body);
        (body.clone(), connection.exchange(&request).expect("an answer").status)
    };
    let send = &send;
    let answers: Vec<(Vec<u8>, u16)> = std::thread::scope(|scope| {
        let threads: Vec<_> = bodies.iter().map(|body| scope.spawn(move || send(body))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no sender failed")).collect()
    });
    let mut admin = server.admin();
    let events = events(&mut admin);
    assert_eq!(events.len(), 1, "{events:#?}");
    let winner = body(&mut admin, &events[0]);
    let count = |wanted: u16, same: bool| {
        answers.iter().filter(|(body, status)| *status == wanted && (*body == winner) == same).count()
    };
    let copies = bodies.iter().filter(|body| **body == winner).count();
    assert_eq!((count(202, true), count(200, true)), (1, copies - 1), "{answers:?}");
    assert_eq!(count(409, false), 50 - copies, "{answers:?}");
    let conflicts = admin.get("/v1/conflicts").json();
    let kept = conflicts["conflicts"].as_array().expect("a list of conflicts");
    let mut digests: Vec<&Value> = kept.iter().map(|conflict| &conflict["digest"]).collect();
    digests.sort_by_key(|digest| text(digest).to_owned());
    digests.dedup();
    assert_eq!(digests.len(), kept.len(), "each variant once");
    assert_eq!(kept.len(), 10, "eleven bodies, one of which won");
}

#[test]
fn b104_a_conflict_can_be_held_with_success() {
    let played = play("B104");
    played.ids(&["st-1"]);
    assert_eq!(played.replies[1].json()["outcome"], "conflict");
}
