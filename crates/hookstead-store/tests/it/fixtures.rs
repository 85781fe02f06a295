//! Stores that earlier programs left behind, in `fixtures/`: a copy of each opens, has everything in it, and goes on.
//! What is in them was written by `examples/fixture.rs`; `cargo xtask fixture` makes one of the present format.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hookstead_core::{
    Acceptance, AcceptanceFacts, Body, BodySelector, Claim, ConflictFilter, ConflictState, DeadReason,
    Delivery, DeliveryFilter, DeliveryState, DestinationNumber, Event, EventSelector, Identity, Order,
    Outcome, Page, ProviderEventId, RedeliveryState, Scope, Settle, Settlement, SourceNumber, Store, Sweep,
    Timestamp, Verdict, Write, Written,
};
use hookstead_store::open;
use libtest_mimic::Trial;

use crate::backend::options;
use crate::scene::{events, problems};

/// Half an hour after the last of them was closed.
const NOW: Timestamp = Timestamp::from_secs(1_770_002_800);

const APP: DestinationNumber = DestinationNumber(1);
const MAIL: DestinationNumber = DestinationNumber(2);

/// Provider event id, body, duplicates, variants.
type Known = (&'static [u8], Option<&'static [u8]>, u64, u16);

/// The events, the oldest first.
const EVENTS: [Known; 10] = [
    (b"evt_erased", None, 0, 0),
    (b"evt_done", Some(b"{\"n\":1}"), 3, 0),
    (b"evt_retry", Some(b"{\"n\":3}"), 0, 0),
    (b"evt_dead", Some(b"{\"n\":4}"), 0, 0),
    (b"evt_conflict", Some(b"first bytes"), 0, 3),
    (b"evt_conflict", Some(b"other bytes 333"), 0, 0),
    (b"evt_held", Some(b"{\"n\":6}"), 0, 0),
    (b"evt_\xff\x00bytes", Some(&[]), 0, 0),
    (b"evt_leased", Some(b"{\"n\":8}"), 0, 0),
    (b"evt_waiting", Some(b"{\"n\":9}"), 0, 0),
];

type Case = fn(&Arc<dyn Store>);

const CASES: &[(&str, Case)] = &[
    ("every_event_and_body_is_there", every_event_and_body_is_there),
    ("the_state_of_every_delivery_is_there", the_state_of_every_delivery_is_there),
    ("conflicts_runs_and_redeliveries_are_there", conflicts_runs_and_redeliveries_are_there),
    ("known_identities_are_recognised", known_identities_are_recognised),
    ("work_and_accepts_go_on", work_and_accepts_go_on),
];

/// Each case on a copy of each store.
pub(crate) fn trials() -> Vec<Trial> {
    let names: Vec<_> = std::fs::read_dir(folder())
        .expect("the fixtures are there")
        .map(|entry| entry.expect("they can be listed").file_name().to_string_lossy().into_owned())
        .collect();
    for kind in ["sqlite", "files"] {
        assert!(names.iter().any(|name| name.starts_with(kind)), "there is no store of {kind} in {names:?}");
    }
    let trial = |name: &String, (case, run): (&str, Case)| {
        let fixture = name.clone();
        Trial::test(format!("fixtures::{fixture}::{case}"), move || {
            check(&fixture, run);
            Ok(())
        })
    };
    names.iter().flat_map(|name| CASES.iter().map(move |case| trial(name, *case))).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures")
}

/// Opens a copy, runs the case on it, and looks at all of it again after another start.
fn check(fixture: &str, run: Case) {
    let scratch = tempfile::tempdir().expect("there is a place for temporary files");
    let url = copy(fixture, scratch.path());
    for round in 0..2 {
        let opened = open(&url, &options(), NOW).unwrap_or_else(|error| panic!("{fixture}: {error}"));
        assert_eq!(problems(&opened.store), [] as [&str; 0], "round {round}");
        if round == 0 {
            run(&opened.store);
        }
        opened.store.close(NOW).expect("it closes");
    }
}

/// A copy of a store in `to`, and its URL.
pub(crate) fn copy(fixture: &str, to: &Path) -> String {
    let from = folder().join(fixture);
    if fixture.starts_with("sqlite") {
        let database = to.join("events.db");
        let packed = std::fs::File::open(from.join("hookstead.db.gz")).expect("it is there");
        let mut file = std::fs::File::create_new(&database).expect("it can be made");
        std::io::copy(&mut flate2::read::GzDecoder::new(packed), &mut file).expect("it can be unpacked");
        return format!("sqlite:{}", database.display());
    }
    let root = to.join("records");
    copy_folder(&from, &root);
    format!("files:{}", root.display())
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("it can be made");
    for entry in std::fs::read_dir(from).expect("it can be listed") {
        let path = entry.expect("it can be listed").path();
        let copy = to.join(path.file_name().expect("it has a name"));
        if path.is_dir() {
            copy_folder(&path, &copy);
        } else {
            std::fs::copy(&path, &copy).expect("it can be copied");
        }
    }
}

fn every_event_and_body_is_there(store: &Arc<dyn Store>) {
    let found = events(store);
    assert_eq!(found.len(), EVENTS.len());
    for (event, (id, body, duplicates, variants)) in found.iter().zip(EVENTS) {
        assert_eq!(event.identity.id.as_bytes(), id);
        assert_eq!(
            (event.duplicates.count, event.conflicts),
            (duplicates, variants),
            "{}",
            event.identity.id
        );
        assert_eq!(event.event_type.as_deref(), Some("order.paid"));
        let kept = store.body(BodySelector::Event(event.id)).expect("it reads").expect("the event is there");
        match (body, kept) {
            (None, Body::Erased) => assert!(event.headers.fields().next().is_none()),
            (Some(body), Body::Kept(kept)) => {
                assert_eq!(kept, body_of(id, body), "{}", event.identity.id);
                assert_eq!(event.headers.value("x-raw"), Some(&b"\xff \""[..]));
            }
            (_, kept) => panic!("{} has {kept:?}", event.identity.id),
        }
    }
    assert_eq!(found[5].revises, Some(found[4].id));
    assert_eq!(found[7].identity.scope.as_bytes(), b"acct_1");
}

/// The one body that is too long to stand in the table.
fn body_of(id: &[u8], body: &[u8]) -> Vec<u8> {
    if id == b"evt_\xff\x00bytes" { (0..=255).cycle().take(20_000).collect() } else { body.to_vec() }
}

fn event(store: &Arc<dyn Store>, id: &str) -> Event {
    let selector = EventSelector::Identity(identity(id.as_bytes(), b""));
    store.event(&selector).expect("it reads").expect("the event is there")
}

fn identity(id: &[u8], scope: &[u8]) -> Identity {
    Identity {
        source: SourceNumber(1),
        scope: Scope::new(scope).expect("a legal scope"),
        id: ProviderEventId::new(id).expect("a legal id"),
    }
}

fn delivery(store: &Arc<dyn Store>, id: &str, destination: DestinationNumber) -> Delivery {
    let filter = DeliveryFilter {
        event: Some(event(store, id).id),
        destination: Some(destination),
        ..DeliveryFilter::default()
    };
    let page = Page::first(10, Order::OldestFirst);
    let mut found = store.list_deliveries(&filter, &page).expect("it reads").items;
    assert!(!found.is_empty(), "{id} is owed to {destination:?}");
    found.remove(0)
}

fn the_state_of_every_delivery_is_there(store: &Arc<dyn Store>) {
    let at = |seconds: i64| Timestamp::from_secs(1_770_000_000 + seconds);
    let state = |id, destination| delivery(store, id, destination).state;
    assert_eq!(state("evt_done", APP), DeliveryState::Done { at: at(20), decision: None });
    assert_eq!(state("evt_erased", APP), DeliveryState::Done { at: at(6), decision: None });
    assert_eq!(state("evt_retry", APP), DeliveryState::Waiting { due: at(90_000) });
    let reason = DeadReason::Refused("it is gone".to_owned());
    assert_eq!(state("evt_dead", APP), DeliveryState::Dead { at: at(63), reason });
    assert!(matches!(state("evt_held", MAIL), DeliveryState::Held { decision } if decision.by == "ops"));
    assert_eq!(state("evt_leased", APP), DeliveryState::Leased { expires_at: at(152) });
    assert_eq!(state("evt_waiting", APP), DeliveryState::Waiting { due: at(93) });
    let failed = delivery(store, "evt_retry", APP);
    assert_eq!(failed.attempts, 1);
    let attempts = store.attempts(&failed.id).expect("they read");
    assert_eq!(attempts.len(), 1);
    assert_eq!((attempts[0].status, &attempts[0].excerpt[..]), (Some(500), &b"\xffits answer"[..]));
    let registry = store.registry().expect("it reads");
    let paused: Vec<_> = registry.destinations.iter().map(|row| (row.name.as_str(), row.paused)).collect();
    assert_eq!(paused, [("app", false), ("mail", true)]);
    assert_eq!(registry.sources[0].identity_fingerprint, "id-v1");
}

fn conflicts_runs_and_redeliveries_are_there(store: &Arc<dyn Store>) {
    let first = event(store, "evt_conflict");
    let page = Page::first(10, Order::OldestFirst);
    let conflicts = store.list_conflicts(&ConflictFilter::default(), &page).expect("they read").items;
    let states: Vec<_> = conflicts.iter().map(|conflict| (conflict.variant, &conflict.state)).collect();
    assert!(
        matches!(
            states.as_slice(),
            [(1, ConflictState::Open), (2, ConflictState::Dismissed(_)), (3, ConflictState::Accepted { .. })]
        ),
        "{states:?}"
    );
    let kept = store.body(BodySelector::Variant(first.id, 1)).expect("it reads");
    assert_eq!(kept, Some(Body::Kept(b"other bytes one".as_slice().into())));
    let runs = store.runs(&event(store, "evt_done").id).expect("they read");
    assert_eq!(runs.len(), 1);
    assert_eq!((runs[0].run.as_str(), runs[0].business_id.as_deref()), ("nightly", Some("order_1")));
    assert_eq!(runs[0].payload.as_deref(), Some(&b"{\"total\":1}"[..]));
    let redeliveries = store.list_redeliveries(None, &page).expect("they read").items;
    let states: Vec<_> = redeliveries.iter().map(|redelivery| redelivery.state).collect();
    assert_eq!(states, [RedeliveryState::Complete, RedeliveryState::Running]);
    assert_eq!(redeliveries[0].plan.note, "after the outage");
}

fn accept(store: &Arc<dyn Store>, identity: Identity, body: &[u8]) -> Outcome {
    let key = &store.facts().identity_key;
    let facts = AcceptanceFacts { received_at: NOW, destinations: vec![APP], ..AcceptanceFacts::default() };
    let mut entropy = [0; 10];
    entropy.copy_from_slice(&key.hash(&identity, 1).0[..10]);
    let acceptance = Acceptance::new(key, identity, body.to_vec().into(), facts, entropy);
    let written = store.apply(&[Write::Accept(Box::new(acceptance))], NOW).expect("it is written");
    match written.as_slice() {
        [Written::Accepted(receipt)] => receipt.outcome,
        other => panic!("an accept was answered {other:?}"),
    }
}

fn known_identities_are_recognised(store: &Arc<dyn Store>) {
    for (id, body, ..) in EVENTS {
        let scope: &[u8] = if id.contains(&0xff) { b"acct_1" } else { b"" };
        let body = body_of(id, body.unwrap_or(b"{\"gone\":true}"));
        // Bytes that were accepted as a revision are no conflict any more.
        let again = accept(store, identity(id, scope), &body);
        assert_eq!(again, Outcome::Duplicate, "{}", id.escape_ascii());
        let other = accept(store, identity(id, scope), b"bytes that nobody sent");
        assert!(matches!(other, Outcome::Conflict { .. }), "{}: {other:?}", id.escape_ascii());
    }
    assert_eq!(events(store).len(), EVENTS.len());
}

fn work_and_accepts_go_on(store: &Arc<dyn Store>) {
    assert_eq!(accept(store, identity(b"evt_new", b""), b"{}"), Outcome::Stored);
    assert_eq!(accept(store, identity(b"evt_new", b""), b"{}"), Outcome::Duplicate);
    let swept = store.apply(&[Write::Sweep(Sweep { retention: Vec::new(), max: 10 })], NOW);
    assert!(matches!(swept.expect("it is swept").as_slice(), [Written::Swept(swept)] if swept.expired == 1));
    let later = NOW.plus(Duration::from_hours(1));
    let claim = Claim { destination: APP, max: 100, lease_for: Duration::from_secs(60) };
    let written = store.apply(&[Write::Claim(claim)], later).expect("it is claimed");
    let [Written::Claimed(leases)] = written.as_slice() else { panic!("a claim was answered {written:?}") };
    let claimed: Vec<_> = leases.iter().map(|lease| lease.delivery.event).collect();
    for id in ["evt_leased", "evt_waiting", "evt_new"] {
        assert!(claimed.contains(&event(store, id).id), "{id} was due, and these were claimed: {claimed:?}");
    }
    for lease in leases {
        let (delivery, token) = (lease.delivery, lease.token);
        let settle = Settle { delivery, token, verdict: Verdict::Done, attempt: None };
        let written = store.apply(&[Write::Settle(Box::new(settle))], later).expect("it is settled");
        assert!(matches!(written.as_slice(), [Written::Settled(Settlement::Settled(_))]), "{written:?}");
    }
    assert!(matches!(delivery(store, "evt_leased", APP).state, DeliveryState::Done { .. }));
}
