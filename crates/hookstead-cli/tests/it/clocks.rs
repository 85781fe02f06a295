//! Clocks that jump, and races for deliveries. Under a wall clock that is set while the server runs, a lease lasts as
//! long as it should and has one owner; over a restart under another clock nothing is stuck and nothing is given out
//! twice at once. What is late is refused, and comes again once under its key.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{
    Act, Consumer, Evidence, PULLED, Project, Request, SOURCE, Server, StoreKind, WallClock, wait_until,
};

const HOUR_S: i64 = 3_600;
const TEN_YEARS_S: i64 = 3_653 * 24 * HOUR_S;

/// Of a race for deliveries.
const RACED: usize = 1_000;
const CLAIMED_AT_ONCE: usize = 7;

/// A lease that is over soon, and not before somebody else has asked for it: it begins before its own commit.
const SHORT: Duration = Duration::from_secs(6);

fn project(store: StoreKind) -> Project {
    Project::new().on(store).section(PULLED)
}

fn accept(server: &Server, id: &str) {
    let reply = server.connect().exchange(&Request::signed(id, id.as_bytes()).bytes()).expect("an answer");
    assert_eq!(reply.status, 202, "{id}: {reply}");
}

/// What a claim that does not wait gets.
fn claim_now(consumer: &mut Consumer) -> Value {
    let reply = consumer.ask(Act::Claim, "1h").expect("an answer");
    assert_eq!(reply.status, 200, "{reply}");
    reply.json()["leases"].clone()
}

fn check_same_event(first: &Value, again: &Value) {
    for same in ["event_id", "idempotency_key", "body_base64"] {
        assert_eq!(first[same], again[same], "{same}");
    }
}

#[test]
fn a_clock_that_jumps_during_a_lease_neither_ends_nor_lengthens_it() {
    for store in StoreKind::ALL {
        // At once, since each of them waits for the end of a lease.
        std::thread::scope(|scope| {
            for jump in [-HOUR_S, TEN_YEARS_S, -TEN_YEARS_S] {
                scope.spawn(move || check_jump(store, jump));
            }
        });
    }
}

fn check_jump(store: StoreKind, jump: i64) {
    let clock = WallClock::ahead_by(0);
    let project = project(store);
    let server = clock.serve(&project);
    let token = Consumer::token(&project);
    let mut first = Consumer::of(&server, &token);
    accept(&server, "long");
    let long = first.claimed("1h");
    accept(&server, "short");
    let begun = Instant::now();
    let short = first.claimed(&format!("{}s", SHORT.as_secs()));
    clock.set_ahead_by(jump);
    let mut second = Consumer::of(&server, &token);
    assert_eq!(claim_now(&mut second), json!([]), "{jump}: nobody else gets what is leased");
    let again = second.claimed("1h");
    assert!(begun.elapsed() >= SHORT, "{jump}: the lease ended early, after {:?}", begun.elapsed());
    check_same_event(&short, &again);
    assert_eq!(again["attempt"], 2, "{jump}");
    assert_eq!(first.settle(Act::Done, &short), 409, "{jump}: the late one");
    assert_eq!(second.settle(Act::Done, &again), 204, "{jump}");
    assert_eq!(first.settle(Act::Retry, &long), 204, "{jump}: the long lease is still its holder's");
    assert_eq!(server.admin().delivery(SOURCE, "long", "app")["state"], "waiting", "{jump}");
    server.kill9();
}

#[test]
fn what_a_run_under_a_clock_years_ahead_left_behind_is_owed_at_the_next_start() {
    for store in StoreKind::ALL {
        let project = project(store);
        let ahead = WallClock::ahead_by(TEN_YEARS_S);
        let server = ahead.serve(&project);
        let token = Consumer::token(&project);
        let mut consumer = Consumer::of(&server, &token);
        let signed = |id: &str| {
            let time = crate::harness::unix_time() + TEN_YEARS_S;
            Request::signed_at(time, id, id.as_bytes()).bytes()
        };
        let mut leases = BTreeMap::new();
        for id in ["leased", "tried", "waiting"] {
            assert_eq!(server.connect().exchange(&signed(id)).expect("an answer").status, 202, "{id}");
            if id != "waiting" {
                leases.insert(id.to_owned(), consumer.claimed("1h"));
            }
        }
        assert_eq!(consumer.settle(Act::Retry, &leases["tried"]), 204, "due in an hour");
        server.kill9();

        let server = project.serve();
        assert!(project.log().contains("a clock far ahead"), "it is said");
        let mut consumer = Consumer::of(&server, &token);
        let mut again = BTreeMap::new();
        while again.len() < 3 {
            let lease = consumer.claimed("1h");
            let id = lease["provider_id"].as_str().expect("an id").to_owned();
            assert!(again.insert(id, lease.clone()).is_none(), "given out twice: {lease}");
        }
        assert_eq!(claim_now(&mut consumer), json!([]));
        assert_eq!(consumer.settle(Act::Done, &leases["leased"]), 409, "whoever had it before is late");
        for (id, attempt) in [("leased", 2), ("tried", 2), ("waiting", 1)] {
            assert_eq!(again[id]["attempt"], attempt, "{store:?}: {id}");
            assert_eq!(consumer.settle(Act::Done, &again[id]), 204, "{store:?}: {id}");
        }
        server.kill9();
        assert_eq!(project.run(&["store", "check"]).exit_code, Some(0));
    }
}

#[test]
fn a_start_under_a_clock_an_hour_behind_leaves_leases_to_their_holders_and_retries_in_bounds() {
    for store in StoreKind::ALL {
        let project = project(store);
        let server = project.serve();
        let token = Consumer::token(&project);
        let mut consumer = Consumer::of(&server, &token);
        accept(&server, "held");
        let held = consumer.claimed("1h");
        accept(&server, "tried");
        let tried = consumer.claimed("1h");
        assert_eq!(consumer.settle(Act::Retry, &tried), 204, "due in an hour");
        server.kill9();

        let behind = WallClock::ahead_by(-HOUR_S);
        let server = behind.serve(&project);
        let mut consumer = Consumer::of(&server, &token);
        assert_eq!(claim_now(&mut consumer), json!([]), "one owner, and no early retry");
        assert_eq!(consumer.settle(Act::Done, &held), 204);
        server.kill9();

        // Two hours on, as that clock went, all is due.
        let ahead = WallClock::ahead_by(HOUR_S + 60);
        let server = ahead.serve(&project);
        let again = Consumer::of(&server, &token).claimed("1h");
        check_same_event(&tried, &again);
        assert_eq!(again["attempt"], 2);
        server.kill9();
    }
}

#[test]
fn a_consumer_that_stands_still_beyond_its_lease_is_late_and_the_event_comes_again_once() {
    for store in StoreKind::ALL {
        let project = project(store);
        let server = project.serve();
        let token = Consumer::token(&project);
        accept(&server, "slow");
        // It stands still here: it asks for nothing until its lease is another's.
        let mut stopped = Consumer::of(&server, &token);
        let first = stopped.claimed("1s");
        let mut next = Consumer::of(&server, &token);
        let second = next.claimed("1h");
        check_same_event(&first, &second);
        assert_eq!((&first["attempt"], &second["attempt"]), (&json!(1), &json!(2)));
        for act in Act::SETTLES {
            assert_eq!(stopped.settle(act, &first), 409, "{act:?}");
        }
        assert_eq!(claim_now(&mut stopped), json!([]), "it comes again once");
        assert_eq!(next.settle(Act::Done, &second), 204);
        assert_eq!(stopped.settle(Act::Done, &first), 409);
        assert_eq!(server.admin().delivery(SOURCE, "slow", "app")["state"], "done");
        server.kill9();
    }
}

#[test]
fn of_consumers_that_claim_at_once_each_delivery_has_one() {
    for store in StoreKind::ALL {
        let mut evidence = Evidence::begin("leases-race", store);
        let project = project(store);
        let server = project.serve();
        let token = Consumer::token(&project);
        accept_many(&server);
        let leased: Vec<Vec<Value>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    let consumer = Consumer::of(&server, &token);
                    scope.spawn(|| claim_all(consumer))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no consumer failed")).collect()
        });
        let all = leased.concat();
        let distinct: BTreeSet<&str> =
            all.iter().map(|lease| lease["event_id"].as_str().expect("an id")).collect();
        evidence.count("deliveries", RACED);
        evidence.count("lost", RACED - distinct.len());
        evidence.count("doubled", all.len() - distinct.len());
        evidence.finish(project.data());
        assert_eq!((distinct.len(), all.len()), (RACED, RACED), "each once");
        assert!(all.iter().all(|lease| lease["attempt"] == 1));
        let busy = leased.iter().filter(|leases| !leases.is_empty()).count();
        assert!(busy > 1, "there was no race");
        server.kill9();
    }
}

fn accept_many(server: &Server) {
    let mut connection = server.connect();
    for number in 0..RACED {
        let id = format!("event-{number}");
        connection.send(&Request::signed(&id, id.as_bytes()).bytes()).expect("it is taken");
        if number % 50 == 49 {
            (0..50).for_each(|_| {
                let reply = connection.receive().expect("an answer").expect("an answer");
                assert_eq!(reply.status, 202, "{reply}");
            });
        }
    }
}

/// Claims until nothing is left.
fn claim_all(mut consumer: Consumer) -> Vec<Value> {
    let mut claimed = Vec::new();
    wait_until(
        || {
            let leases = consumer.claimed_now(CLAIMED_AT_ONCE);
            claimed.extend(leases.iter().cloned());
            leases.is_empty()
        },
        || "there is always more".to_owned(),
    );
    claimed
}
