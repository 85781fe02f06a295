//! Theme dead-letter: what was given up is never lost, and always has a way out.

use serde_json::{Value, json};

use super::case::text;
use super::owed::{claim, count, post, post_many, stage, wait_for};
use super::stage::Printed;
use crate::harness::{Admin, ClosedPort, Target, instant, wait_until};

const PULL: &str = "[destinations.app]\npull = true\n";

/// Claims everything that is due and gives it up.
fn give_up(admin: &mut Admin, events: usize) {
    let mut given_up = 0;
    while given_up < events {
        let leases = claim(admin, "max=100&wait=20s");
        let settle: Vec<_> = leases
            .iter()
            .map(|lease| json!({"lease": lease["lease"], "outcome": "dead", "reason": "cannot be read"}))
            .collect();
        given_up += settle.len();
        assert_eq!(admin.post("/v1/leases/settle", &json!({"settle": settle})).status, 200);
    }
}

/// The document that a verb printed.
fn document(printed: &Printed) -> Value {
    serde_json::from_str(&printed.stdout).unwrap_or_else(|error| panic!("{error} in {printed:?}"))
}

#[test]
fn b162_an_outage_does_not_bury_what_waits() {
    // Nothing listens there until the target is back.
    let closed = ClosedPort::new();
    let port = closed.number();
    let push = format!(
        "[destinations.app]\npush = \"http://127.0.0.1:{port}\"\nallow_private = true\n\
         retry = [\"0s\", \"1s\", \"1s\", \"1s\", \"1s\", \"1s\", \"1s\", \"1s\"]\n"
    );
    let stage = stage(&push);
    let server = stage.serve();
    post_many(&server, 300);
    let mut admin = server.admin();
    let mut down = Value::Null;
    // Both in one look: a rest ends, and then one of the 300 is leased for a moment.
    let mut rests = || {
        down = admin.get("/v1/destinations/app").json();
        down["circuit"] == "open" && down["unfinished"]["waiting"] == 300
    };
    wait_until(&mut rests, || "an open circuit before which all 300 wait".to_owned());
    assert_eq!(down["unfinished"]["dead"], 0, "{down}");
    wait_until(
        || stage.run(&["destinations"]).stdout.contains("down, rests until"),
        || "the verb tells of the rest".to_owned(),
    );
    let tried = |admin: &mut Admin| {
        let page = admin.get("/v1/deliveries?limit=1000").json();
        let deliveries = page["deliveries"].as_array().expect("a list").clone();
        deliveries.iter().filter_map(|delivery| delivery["attempts"].as_u64()).sum::<u64>()
    };
    assert!(tried(&mut admin) <= 40, "{} attempts", tried(&mut admin));
    let target = Target::answering_on(closed.listen(), 200, b"");
    wait_until(|| count(&mut admin, "done") == 300, || format!("{} pushes", target.got().len()));
    assert_eq!(count(&mut admin, "dead"), 0);
}

/// The case says 100,001; what would drop them or not find them is reached with 2,500 as well: more than any page.
#[test]
fn b163_dead_letters_have_no_cap() {
    const EVENTS: usize = 2_500;
    let stage = stage(PULL);
    let server = stage.serve();
    post_many(&server, EVENTS);
    let mut admin = server.admin();
    give_up(&mut admin, EVENTS);
    assert_eq!(count(&mut admin, "dead"), EVENTS);
    assert_eq!(admin.get("/v1/stats").json()["deliveries"]["dead"], EVENTS);
    let first = wait_for(&mut admin, "e0", "app", |delivery| delivery["state"] == "dead");
    assert_eq!(first["reason"], "cannot be read", "{first}");
}

/// Purging by a command comes with retention; until then the way out without a delivery is `done` with a note.
#[test]
fn b164_every_dead_letter_has_a_way_out() {
    let stage = stage(PULL);
    let server = stage.serve();
    post_many(&server, 100);
    let mut admin = server.admin();
    give_up(&mut admin, 100);
    let listed = document(&stage.run(&["deliveries", "--state", "dead", "--limit", "1000", "--json"]));
    let deliveries = listed["deliveries"].as_array().expect("a list");
    assert_eq!(deliveries.len(), 100);
    let noted = text(&deliveries[0]["id"]);
    let by_hand = stage.run(&["deliveries", "done", noted, "--note", "booked by hand", "--json"]);
    assert_eq!(by_hand.exit_code, Some(0), "{by_hand:?}");
    let again = ["events", "redeliver", "--all", "--to", "app", "--json"];
    let which = ["--source", "gen", "--from", "2025-01-01T00:00:00Z"];
    let mut again = document(&stage.run(&[again.as_slice(), &which].concat()));
    // The verb watches it for a while only; it goes on by itself.
    let id = text(&again["id"]).to_owned();
    let mut over = || {
        again = document(&stage.run(&["redeliveries", "show", &id, "--json"]));
        again["state"] == "complete"
    };
    wait_until(&mut over, || "the redelivery is complete".to_owned());
    assert_eq!(again["made"], 100, "{again}");
    let mut done = 0;
    while done < 100 {
        for lease in claim(&mut admin, "max=100&wait=20s") {
            assert_eq!(lease["attempt"], 1, "a fresh budget: {lease}");
            let end = format!("/v1/leases/{}/done", text(&lease["lease"]));
            assert_eq!(admin.post(&end, &Value::Null).status, 204);
            done += 1;
        }
    }
    assert_eq!((count(&mut admin, "done"), count(&mut admin, "waiting")), (101, 0));
}

/// Metrics and a page come with them.
#[test]
fn b165_a_dead_letter_shows_with_its_number_and_its_time() {
    let stage = stage(PULL);
    let server = stage.serve();
    post(&server, "e0", b"x");
    let mut admin = server.admin();
    give_up(&mut admin, 1);
    assert_eq!(admin.get("/v1/stats").json()["deliveries"]["dead"], 1);
    assert_eq!(admin.get("/v1/destinations/app").json()["unfinished"]["dead"], 1);
    let listed = document(&stage.run(&["deliveries", "--state", "dead", "--json"]));
    let deliveries = listed["deliveries"].as_array().expect("a list");
    assert_eq!(deliveries.len(), 1, "{listed}");
    assert!(instant(&deliveries[0]["ended_at"]) >= instant(&deliveries[0]["made_at"]), "{listed}");
    let told = stage.run(&["doctor"]);
    assert!(told.stdout.contains("1 dead delivery"), "{told:?}");
}
