//! Theme lease-processing: who holds an event, for how long, and what becomes of it when its holder is gone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::case::text;
use super::owed::{NOW, claim, count, delivery, post, post_many, settle, stage, wait_for};
use crate::harness::{Admin, Target, wait_until};

const PULL: &str = "[destinations.app]\npull = true\nlease = \"1s\"\nretry = [\"0s\", \"0s\", \"0s\"]\n";

#[test]
fn b139_a_lease_that_is_renewed_is_nobody_elses() {
    let stage = stage(PULL);
    let server = stage.serve();
    post(&server, "long", b"x");
    let (mut first, mut second) = (server.admin(), server.admin());
    // It is waited for longer than a lease lasts, and each time for so much less that a slow commit fits between.
    let held = claim(&mut first, "max=1&wait=20s&lease=6s").remove(0);
    for _ in 0..4 {
        assert_eq!(claim(&mut second, "max=1&wait=2s"), Vec::<Value>::new(), "it is held");
        extend(&mut first, &held, "6s");
    }
    let shown = delivery(&mut second, "long", "app");
    assert_eq!((&shown["state"], &shown["attempts"]), (&"leased".into(), &1.into()), "{shown}");
    assert!(shown["lease_until"].is_string(), "{shown}");
    assert_eq!(settle(&mut first, &held, "done", &Value::Null), 204);
    assert_eq!(delivery(&mut second, "long", "app")["state"], "done");
}

/// The lease ends so long after this instant.
fn extend(admin: &mut Admin, lease: &Value, lease_for: &str) {
    let extend = format!("/v1/leases/{}/extend", text(&lease["lease"]));
    let extended = admin.post(&extend, &json!({ "lease": lease_for }));
    assert_eq!(extended.status, 200, "{extended}");
}

#[test]
fn b140_a_late_end_of_a_lost_lease_changes_nothing() {
    let stage = stage(PULL);
    let server = stage.serve();
    post(&server, "one", b"x");
    let (mut a, mut b) = (server.admin(), server.admin());
    let stalled = claim(&mut a, "max=1&wait=20s").remove(0);
    let taken = claim(&mut b, "max=1&wait=20s&lease=60s").remove(0);
    assert_eq!(taken["attempt"], 2, "{taken}");
    let late = a.post(&format!("/v1/leases/{}/done", text(&stalled["lease"])), &Value::Null);
    assert_eq!((late.status, &late.json()["code"]), (409, &"lease-lost".into()), "{late}");
    assert_eq!(settle(&mut b, &taken, "retry", &json!({"after": "1h", "reason": "not yet"})), 204);
    let shown = delivery(&mut a, "one", "app");
    assert_eq!((&shown["state"], &shown["attempts"]), (&"waiting".into(), &2.into()), "{shown}");
}

#[test]
fn b143_an_event_that_kills_its_consumer_is_given_up() {
    let stage = stage(PULL);
    let server = stage.serve();
    let events = ["a", "poison-1", "b", "c"];
    events.iter().for_each(|id| post(&server, id, b"x"));
    let mut admin = server.admin();
    // A consumer that dies of it settles nothing, and its lease ends soon; each round is another life. Three are done,
    // and three times it is the poison.
    for _ in 0..6 {
        let lease = claim(&mut admin, "max=1&wait=20s&lease=60s").remove(0);
        if lease["provider_id"] == "poison-1" {
            extend(&mut admin, &lease, "1s");
        } else {
            assert_eq!(settle(&mut admin, &lease, "done", &Value::Null), 204);
        }
    }
    let poison = wait_for(&mut admin, "poison-1", "app", |delivery| delivery["state"] == "dead");
    assert_eq!(poison["attempts"], 3, "{poison}");
    assert_eq!(count(&mut admin, "done"), 3);
}

/// At least once: the crash between a target's 200 and its record cannot be told from one before it.
#[test]
fn b144_what_is_sent_again_after_a_crash_can_be_recognised() {
    let target = Target::answering(200, b"");
    // The status and half of the body: the target is done, the record is not yet.
    target.answer_raw(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no");
    let push = format!("[destinations.app]\npush = \"{}\"\nallow_private = true\n", target.url());
    let stage = stage(&push);
    let server = stage.serve();
    post(&server, "one", b"the body");
    target.wait_for(1);
    server.kill9();
    target.answer(200, b"ok");
    // The lease of the process that is gone has to expire.
    stage.set_clock(NOW + 3_600);
    let server = stage.serve();
    let pushed = target.wait_for(2);
    let done = wait_for(&mut server.admin(), "one", "app", |delivery| delivery["state"] == "done");
    assert_eq!(done["attempts"], 2, "{done}");
    let facts =
        |name: &str| pushed.iter().map(|pushed| pushed.header(name).map(str::to_owned)).collect::<Vec<_>>();
    assert_eq!(facts("hookstead-attempt"), [Some("1".to_owned()), Some("2".to_owned())]);
    for name in ["hookstead-event", "idempotency-key", "webhook-id"] {
        let values = facts(name);
        assert!(values[0].is_some() && values[0] == values[1], "{name}: {values:?}");
    }
    assert!(pushed.len() == 2 && pushed.iter().all(|pushed| pushed.body == b"the body"), "{pushed:?}");
}

#[test]
fn b146_a_holder_that_was_killed_does_not_look_alive_after_a_restart() {
    let stage = stage(PULL);
    let server = stage.serve();
    post_many(&server, 10);
    assert_eq!(claim(&mut server.admin(), "max=10&wait=20s").len(), 10);
    server.kill9();
    let server = stage.serve();
    let mut admin = server.admin();
    let mut again = Vec::new();
    wait_until(
        || {
            again.extend(claim(&mut admin, "max=10&wait=5s&lease=60s"));
            again.len() >= 10
        },
        || "ten leases".to_owned(),
    );
    let ids: BTreeSet<_> = again.iter().map(|lease| text(&lease["provider_id"]).to_owned()).collect();
    assert_eq!((again.len(), ids.len()), (10, 10));
    assert!(again.iter().all(|lease| lease["attempt"] == 2), "{again:?}");
}

#[test]
fn b148_restarts_in_the_middle_push_nothing_twice() {
    const EVENTS: usize = 1_000;
    let target = Target::answering(200, b"");
    let push = format!("[destinations.app]\npush = \"{}\"\nallow_private = true\n", target.url());
    let stage = stage(&push);
    let mut server = stage.serve();
    assert_eq!(server.admin().post("/v1/destinations/app/pause", &Value::Null).status, 200);
    post_many(&server, EVENTS);
    assert_eq!(server.admin().post("/v1/destinations/app/resume", &Value::Null).status, 200);
    for restart in 1..=5 {
        target.wait_for(restart * 30);
        assert_eq!(server.stop().code(), Some(0));
        server = stage.serve();
    }
    let mut admin = server.admin();
    wait_until(|| count(&mut admin, "done") == EVENTS, || format!("{} pushes", target.got().len()));
    let mut attempts: BTreeMap<Vec<u8>, Vec<String>> = BTreeMap::new();
    for pushed in target.got() {
        let attempt = pushed.header("hookstead-attempt").expect("an attempt").to_owned();
        attempts.entry(pushed.body).or_default().push(attempt);
    }
    assert_eq!(attempts.len(), EVENTS);
    let twice: Vec<_> = attempts.iter().filter(|(_, attempts)| attempts.len() > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
}
