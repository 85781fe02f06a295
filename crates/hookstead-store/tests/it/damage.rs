//! Bytes that changed on the disk are found before anything rests on them.

use std::sync::Arc;
use std::time::Duration;

use hookstead_core::{
    Acceptance, AcceptanceFacts, BodySelector, Claim, EventFilter, EventSelector, Fetched, Lease, Order,
    Page, Redeliver, RedeliveryId, RedeliveryPlan, RedeliveryState, Settle, Settled, Settlement, Store,
    StoreError, Verdict, Write, Written,
};
use hookstead_store::{IdentityFlush, OpenError, OpenOptions, open, open_read_only};
use rusqlite::Connection;

use crate::backend::{Folder, OPENED_AT, options};
use crate::case::cases;
use crate::scene::{APP, accept, accepting, find, problems, register, try_accept};

cases!("damage":
    a_body_with_one_bit_changed_is_found,
    a_body_that_grew_is_found,
    a_body_that_shrank_is_found,
    a_body_that_vanished_is_found,
    a_changed_digest_is_found,
    a_damaged_conflict_is_found,
    a_damaged_newest_event_refuses_the_start,
    an_event_that_is_missing_is_named,
    an_identity_that_is_missing_or_points_elsewhere_is_named,
    an_event_id_that_leads_to_another_event_serves_and_settles_nothing,
    an_event_id_that_leads_to_what_is_owed_to_nobody_is_told_of_a_settle,
    an_event_id_that_leads_nowhere_is_told_alike_by_each_read_and_by_a_settle,
    a_long_damaged_body_and_a_row_that_cannot_be_read_fail_alone,
    a_redelivery_that_cannot_be_read_is_not_in_the_way_of_those_in_another_state,
    a_delivery_of_no_event_is_counted,
    a_sound_store_has_no_problems,
);

const BODY: &[u8] = b"{\"amount\": 1000}";

/// Stores two events, changes the first by `sql`, and expects that its duplicate, its conflict, its body and
/// the check all find it, while the second is served as before.
fn check_found(sql: &str) {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    accept(&store, "evt_1", BODY);
    accept(&store, "evt_2", BODY);
    let id = find(&store, "evt_1").id;
    edit(&folder, sql);
    for body in [BODY, b"other"] {
        let refused = try_accept(&store, "evt_1", body);
        assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{sql}: {refused:?}");
    }
    let body = store.body(BodySelector::Event(id));
    assert!(matches!(body, Err(StoreError::Corrupt { .. })), "{sql}: {body:?}");
    let report = store.check(&mut |_| ()).expect("the check runs to its end");
    assert_eq!(report.problem_count, 1, "{sql}: {:?}", report.problems);
    assert_eq!(report.problems[0].event, Some(id), "{sql}");
    assert_eq!((report.events, report.bodies), (2, if sql.contains("NULL") { 1 } else { 2 }));
    accept(&store, "evt_2", BODY);
}

/// Changes the database behind the store's back.
fn edit(folder: &Folder, sql: &str) {
    let raw = Connection::open(folder.database()).expect("anybody can open it");
    let changed = raw.execute(sql, []).expect("the edit is legal");
    assert!(changed > 0, "{sql} changed nothing");
}

fn a_body_with_one_bit_changed_is_found() {
    check_found("UPDATE events SET body = CAST('{\"amount\": 1001}' AS BLOB) WHERE seq = 1");
}

fn a_body_that_grew_is_found() {
    check_found("UPDATE events SET body = CAST(body || ' ' AS BLOB) WHERE seq = 1");
}

fn a_body_that_shrank_is_found() {
    check_found("UPDATE events SET body = substr(body, 1, length(body) - 1) WHERE seq = 1");
}

fn a_body_that_vanished_is_found() {
    check_found("UPDATE events SET body = NULL WHERE seq = 1");
}

fn a_changed_digest_is_found() {
    check_found("UPDATE events SET digest = zeroblob(32) WHERE seq = 1");
}

fn a_damaged_conflict_is_found() {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    accept(&store, "evt_1", BODY);
    accept(&store, "evt_1", b"other bytes");
    let id = find(&store, "evt_1").id;
    edit(&folder, "UPDATE variants SET body = CAST('Other bytes' AS BLOB)");
    let body = store.body(BodySelector::Variant(id, 1));
    assert!(matches!(body, Err(StoreError::Corrupt { .. })), "{body:?}");
    assert_eq!(problems(&store), ["the body of variant 1 of event 0001 differs from its digest"]);
}

fn a_damaged_newest_event_refuses_the_start() {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    accept(&store, "evt_1", BODY);
    store.close(OPENED_AT).expect("it closes");
    edit(&folder, "UPDATE events SET body = CAST('{\"amount\": 9000}' AS BLOB)");
    let refused = open(&folder.url(), &options(), OPENED_AT);
    let Err(OpenError::Damaged { what, .. }) = refused else { panic!("it was opened: {refused:?}") };
    assert!(what.contains("event 0001"), "{what}");
    let to_check = OpenOptions { spot_check_events: 0, ..options() };
    let store = open(&folder.url(), &to_check, OPENED_AT).expect("it can be opened to be checked").store;
    assert_eq!(problems(&store), ["the body of event 0001 differs from its digest"]);
}

fn an_event_that_is_missing_is_named() {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    for n in 1..=3 {
        accept(&store, &format!("evt_{n}"), BODY);
    }
    edit(&folder, "DELETE FROM events WHERE seq = 2");
    assert_eq!(problems(&store), ["event 0002 is missing"]);
    let refused = try_accept(&store, "evt_2", BODY);
    assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{refused:?}");
}

fn an_identity_that_is_missing_or_points_elsewhere_is_named() {
    let folder = Folder::new();
    let nothing_deferred = IdentityFlush { events: 1, ranges: 256 };
    let store = folder.open_with(&OpenOptions { identity_flush: nothing_deferred, ..options() }).store;
    register(&store);
    for n in 1..=2 {
        accept(&store, &format!("evt_{n}"), BODY);
    }
    edit(&folder, "UPDATE identities SET seq = 1 WHERE seq = 2");
    assert_eq!(problems(&store), ["event 0002 is not in the index of identities"]);
    edit(&folder, "DELETE FROM identities WHERE seq = 1");
    let found = problems(&store);
    assert!(found.contains(&"event 0001 is not in the index of identities".to_owned()), "{found:?}");
    assert!(
        found.contains(&"the index of identities and the events differ by 2 rows".to_owned()),
        "{found:?}"
    );
    edit(&folder, "DELETE FROM event_ids WHERE seq = 2");
    assert!(problems(&store).contains(&"event 0002 is not in the index of ids".to_owned()));
}

/// The other event is whole, and its digest right: only its id tells that it was not asked for.
fn an_event_id_that_leads_to_another_event_serves_and_settles_nothing() {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    accept(&store, "evt_1", BODY);
    accept(&store, "evt_2", b"other");
    let claim = Claim { destination: APP, max: 2, lease_for: Duration::from_secs(60) };
    let written = store.apply(&[Write::Claim(claim)], OPENED_AT).expect("both are due");
    let Written::Claimed(leases) = &written[0] else { panic!("a claim was answered {written:?}") };
    let [first, second] = leases.as_slice() else { panic!("{leases:?}") };
    edit(&folder, "UPDATE event_ids SET seq = 2 WHERE seq = 1");

    let (misled, sound) = (first.delivery.event, second.delivery.event);
    let event = store.event(&EventSelector::Id(misled));
    assert!(matches!(event, Err(StoreError::Corrupt { .. })), "{event:?}");
    let body = store.body(BodySelector::Event(misled));
    assert!(matches!(body, Err(StoreError::Corrupt { .. })), "{body:?}");
    let fetched = store.fetch(&[misled, sound], &mut |_, _| true).expect("the sound one can be read");
    assert!(matches!(fetched[0], Fetched::Failed(StoreError::Corrupt { .. })), "{:?}", fetched[0]);
    assert!(matches!(&fetched[1], Fetched::Whole(event, _) if event.id == sound), "{:?}", fetched[1]);
    let refused = settled(&store, first);
    assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{refused:?}");
    let written = settled(&store, second).expect("the sound one is settled");
    assert_eq!(written, [Written::Settled(Settlement::Settled(Settled::Done))]);
}

/// A store whose first event is leased and the second, which is owed to nobody, is not; then an edit.
fn misled(sql: &str) -> (Folder, Arc<dyn Store>, Lease) {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    accept(&store, "evt_1", BODY);
    let Write::Accept(plain) = accepting(&store, "evt_2", BODY) else { panic!("an accept") };
    let facts = AcceptanceFacts { destinations: Vec::new(), ..plain.facts().clone() };
    let key = &store.facts().identity_key;
    let unowed = Acceptance::new(key, plain.identity().clone(), plain.body().clone(), facts, [2; 10]);
    let claim = Claim { destination: APP, max: 2, lease_for: Duration::from_secs(60) };
    let writes = [Write::Accept(Box::new(unowed)), Write::Claim(claim)];
    let written = store.apply(&writes, OPENED_AT).expect("the first is due");
    let Written::Claimed(leases) = &written[1] else { panic!("a claim was answered {written:?}") };
    let [lease] = leases.as_slice() else { panic!("{leases:?}") };
    let lease = lease.clone();
    edit(&folder, sql);
    (folder, store, lease)
}

fn settled(store: &Arc<dyn Store>, lease: &Lease) -> Result<Vec<Written>, StoreError> {
    let settle =
        Settle { delivery: lease.delivery, token: lease.token, verdict: Verdict::Done, attempt: None };
    store.apply(&[Write::Settle(Box::new(settle))], OPENED_AT)
}

/// The event that is there has no such delivery: that is no proof that the one asked for has none.
fn an_event_id_that_leads_to_what_is_owed_to_nobody_is_told_of_a_settle() {
    let (_folder, store, lease) = misled("UPDATE event_ids SET seq = 2 WHERE seq = 1");
    let refused = settled(&store, &lease);
    assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{refused:?}");
}

fn an_event_id_that_leads_nowhere_is_told_alike_by_each_read_and_by_a_settle() {
    let (folder, store, lease) = misled("UPDATE event_ids SET seq = 99 WHERE seq = 1");
    let id = lease.delivery.event;
    let refused = settled(&store, &lease);
    assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{refused:?}");
    let reader = open_read_only(&folder.url(), &OpenOptions { spot_check_events: 0, ..options() });
    for store in [store, reader.expect("it opens to be read")] {
        let event = store.event(&EventSelector::Id(id));
        assert!(matches!(event, Err(StoreError::Corrupt { .. })), "{event:?}");
        let body = store.body(BodySelector::Event(id));
        assert!(matches!(body, Err(StoreError::Corrupt { .. })), "{body:?}");
        let fetched = store.fetch(&[id], &mut |_, _| true).expect("it is told of the event");
        assert!(matches!(fetched[0], Fetched::Failed(StoreError::Corrupt { .. })), "{:?}", fetched[0]);
    }
}

/// Also where the store is only read, and whether or not the body came along with its row.
fn a_long_damaged_body_and_a_row_that_cannot_be_read_fail_alone() {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    let long = vec![b'x'; 100 * 1024];
    for (id, body) in [("evt_1", &*long), ("evt_2", BODY), ("evt_3", BODY), ("evt_4", &*long)] {
        accept(&store, id, body);
    }
    let ids = [1, 2, 3, 4].map(|n| find(&store, &format!("evt_{n}")).id);
    edit(&folder, "UPDATE events SET body = CAST('y' || substr(body, 2) AS BLOB) WHERE seq = 1");
    edit(&folder, "UPDATE events SET digest = x'00' WHERE seq = 2");
    let reader = open_read_only(&folder.url(), &OpenOptions { spot_check_events: 0, ..options() });
    for store in [store, reader.expect("it opens to be read")] {
        let fetched = store.fetch(&ids, &mut |_, _| true).expect("the others can be read");
        for failed in &fetched[..2] {
            assert!(matches!(failed, Fetched::Failed(StoreError::Corrupt { .. })), "{failed:?}");
        }
        for (whole, id) in fetched[2..].iter().zip(&ids[2..]) {
            assert!(matches!(whole, Fetched::Whole(event, _) if event.id == *id), "{whole:?}");
        }
    }
}

/// The redeliverer asks for those that run: a row that is long complete must not keep it from them.
fn a_redelivery_that_cannot_be_read_is_not_in_the_way_of_those_in_another_state() {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    accept(&store, "evt_1", BODY);
    store.apply(&[redelivering(1, 10), redelivering(2, 0)], OPENED_AT).expect("both are legal");
    edit(&folder, "UPDATE redeliveries SET event_type = '' WHERE state = 'complete'");
    let reader = open_read_only(&folder.url(), &options());
    for store in [store, reader.expect("it opens to be read")] {
        for order in [Order::OldestFirst, Order::NewestFirst] {
            let listed = |state| store.list_redeliveries(state, &Page::first(10, order));
            let running = listed(Some(RedeliveryState::Running)).expect("it can be read").items;
            let ids: Vec<_> = running.iter().map(|redelivery| redelivery.plan.id).collect();
            assert_eq!(ids, [RedeliveryId([2; 16])], "{order:?}");
            for state in [None, Some(RedeliveryState::Complete)] {
                let refused = listed(state);
                assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{state:?}: {refused:?}");
            }
        }
    }
}

/// A redelivery of everything, as far as one step goes.
fn redelivering(id: u8, events_max: u32) -> Write {
    let plan = RedeliveryPlan {
        id: RedeliveryId([id; 16]),
        events: EventFilter::default(),
        destination: APP,
        fresh_key: false,
        by: "ada".to_owned(),
        note: String::new(),
    };
    Write::Redeliver(Box::new(Redeliver { plan, only: None, events_max }))
}

fn a_delivery_of_no_event_is_counted() {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    accept(&store, "evt_1", BODY);
    edit(&folder, "UPDATE work SET seq = 99");
    assert_eq!(problems(&store), ["work and the events differ by 1 rows"]);
}

fn a_sound_store_has_no_problems() {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    let batch: Vec<_> = (0..1_050).map(|n| accepting(&store, &format!("evt_{n}"), BODY)).collect();
    store.apply(&batch, OPENED_AT).expect("all are legal");
    accept(&store, "evt_7", BODY);
    accept(&store, "evt_7", b"other bytes");
    let mut steps = Vec::new();
    let report = store.check(&mut |progress| steps.push((progress.done, progress.total))).expect("it runs");
    assert_eq!((report.events, report.bodies, report.problem_count), (1_050, 1_051, 0));
    assert_eq!(steps, [(500, 1_050), (1_000, 1_050), (1_050, 1_050)]);
}
