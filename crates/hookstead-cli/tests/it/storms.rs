//! Storms: thousands of retries of one id at once, and thousands of requests under ids that are taken, each with one
//! byte changed. One row an id, every conflict 409, the other bytes kept once a digest, nothing altered.
//!
//! `HOOKSTEAD_STORM` says how many requests an id gets at most (2,000 here; `cargo xtask storms` takes 10,000).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Barrier;

use crate::harness::{
    Admin, Connection, Events, Evidence, Losses, Project, Request, SOURCE, Server, StoreKind, size_from,
    unix_time,
};

/// Every request of a storm is under way at once: so many connections, on each of which its share is sent before the
/// first answer is read.
const CONNECTIONS: usize = 200;

/// Ids of the storm of conflicts.
const IDS: usize = 10;

/// Different bodies that half of the ids get; the other half gets a different one each time.
const FEW_VARIANTS: usize = 8;

/// No more variants of an event are kept.
const VARIANTS_MAX: usize = 10;

const BODY_BYTES: usize = 1_024;

#[test]
fn storms_leave_one_event_an_id_on_sqlite() {
    check_storms(StoreKind::Sqlite);
}

#[test]
fn storms_leave_one_event_an_id_on_files() {
    check_storms(StoreKind::Files);
}

fn check_storms(store: StoreKind) {
    let size = size_from("HOOKSTEAD_STORM", 2_000);
    let mut evidence = Evidence::begin("storms", store);
    let project = Project::new().on(store);
    let server = project.serve();
    let mut stored = Events::from([("retried".to_owned(), body("retried"))]);

    // The first of them is no retry, and nobody knows which one that is.
    let statuses = storm(&server, (0..size).map(|_| ("retried".to_owned(), body("retried"))).collect());
    assert_eq!(statuses, BTreeMap::from([(200, size - 1), (202, 1)]), "{size} times one id");
    evidence.count("retries", size);

    let ids: Vec<String> = (0..IDS).map(|number| format!("contradicted-{number}")).collect();
    let first: Vec<_> = ids.iter().map(|id| (id.clone(), body(id))).collect();
    assert_eq!(storm(&server, first.clone()), BTreeMap::from([(202, IDS)]));
    stored.extend(first);
    let each = size.div_ceil(IDS).max(FEW_VARIANTS);
    let contradictions: Vec<_> = (0..each)
        .flat_map(|number| ids.iter().enumerate().map(move |(at, id)| (id.clone(), changed(id, at, number))))
        .collect();
    let sent = contradictions.len();
    assert_eq!(storm(&server, contradictions), BTreeMap::from([(409, sent)]), "{sent} conflicts");
    evidence.count("conflicts", sent);

    check_evidence_kept(&mut server.admin(), &ids, each);
    server.kill9();
    let server = project.serve();
    check_evidence_kept(&mut server.admin(), &ids, each);
    let events = server.admin().events();
    let found: BTreeSet<&str> =
        events.iter().filter_map(|event| event["provider_event_id"].as_str()).collect();
    let doubled = events.len() - found.len();
    assert_eq!((events.len(), doubled), (stored.len(), 0), "one row an id");
    let mut losses = Losses::default();
    losses.look(&server, &stored);
    server.kill9();
    let check = project.run(&["store", "check"]);
    evidence.count("acknowledged", stored.len());
    evidence.count("checked", losses.checked);
    evidence.count("lost", losses.faults.len());
    evidence.count("doubled", doubled);
    evidence.finish(project.data());
    losses.judge();
    assert_eq!(check.exit_code, Some(0), "{check:?}");
}

fn body(id: &str) -> Vec<u8> {
    format!("{{\"eventId\":\"{id}\"}} ").bytes().cycle().take(BODY_BYTES).collect()
}

/// The body of an id with one byte changed: a few different ones for every other id, else a new one each time.
fn changed(id: &str, at: usize, number: usize) -> Vec<u8> {
    let variant = if at.is_multiple_of(2) { number % FEW_VARIANTS } else { number };
    let mut body = body(id);
    // Another place or another value: never the byte that was there.
    let (place, value) = (variant % BODY_BYTES, 1 + variant / BODY_BYTES);
    body[place] ^= u8::try_from(value).expect("fewer variants than a body has bits");
    body
}

/// Sends all of them at once, and counts the answers by their status.
fn storm(server: &Server, requests: Vec<(String, Vec<u8>)>) -> BTreeMap<u16, usize> {
    let time = unix_time();
    let connections = CONNECTIONS.min(requests.len());
    let mut shares = vec![(0, Vec::new()); connections];
    for (number, (id, body)) in requests.into_iter().enumerate() {
        let (count, bytes) = &mut shares[number % connections];
        *count += 1;
        bytes.extend(Request::signed_at(time, &id, &body).bytes());
    }
    let (start, address) = (&Barrier::new(connections), server.intake());
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let threads: Vec<_> = shares
            .iter()
            .map(|(count, bytes)| scope.spawn(move || send_share(address, *count, bytes, start)))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no sender failed")).collect()
    });
    statuses.into_iter().fold(BTreeMap::new(), |mut counts, status| {
        *counts.entry(status).or_default() += 1;
        counts
    })
}

/// Sends on one thread and reads on another: the server reads on only while its answers are taken.
fn send_share(address: &str, count: usize, bytes: &[u8], start: &Barrier) -> Vec<u16> {
    let mut connection = Connection::open(address).expect("the intake accepts connections");
    let mut sending = connection.sending_half().expect("a socket has two directions");
    start.wait();
    std::thread::scope(|scope| {
        scope.spawn(move || sending.send(bytes).expect("the server takes all of it"));
        (0..count)
            .map(|_| connection.receive().expect("an answer").expect("an answer to each").status)
            .collect()
    })
}

/// Every variant is there once, under its own digest, and no more of them than there were or are kept.
fn check_evidence_kept(admin: &mut Admin, ids: &[String], each: usize) {
    let mut kept: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for conflict in admin.conflicts() {
        let text = |name: &str| {
            conflict[name].as_str().unwrap_or_else(|| panic!("no {name}: {conflict}")).to_owned()
        };
        kept.entry(text("event")).or_default().push(text("digest"));
    }
    for (at, id) in ids.iter().enumerate() {
        let event = admin.get(&format!("/v1/events/{SOURCE}:{id}")).json();
        let digests = kept.remove(event["id"].as_str().expect("an event has an id")).unwrap_or_default();
        let different: BTreeSet<&String> = digests.iter().collect();
        let wanted = if at.is_multiple_of(2) { FEW_VARIANTS } else { each.min(VARIANTS_MAX) };
        assert_eq!((digests.len(), different.len()), (wanted, wanted), "kept of {id}: {digests:?}");
        assert!(!digests.iter().any(|digest| event["digest"] == digest.as_str()), "{event}");
    }
    assert!(kept.is_empty(), "conflicts of events that had none: {kept:?}");
}
