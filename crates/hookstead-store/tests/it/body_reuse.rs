//! What the SQLite store keeps of bodies that came under two identities: what a check finds when it is damaged, and
//! that a database from before there was any of it is taken over. And of both stores that a damaged body refuses nothing.

use std::path::Path;
use std::sync::Arc;

use hookstead_core::{
    AcceptReceipt, Acceptance, Body, BodyReuse, BodySelector, Outcome, Store, Write, Written,
};
use rusqlite::Connection;

use crate::backend::{Folder, OPENED_AT};
use crate::case::cases;
use crate::files::backend::Dir;
use crate::scene::{accept, accepting, find, problems, register};

cases!("body_reuse":
    an_entry_of_the_index_that_is_not_its_events_is_found,
    a_mark_that_names_another_event_is_found,
    a_mark_of_no_event_is_found,
    a_database_from_before_the_index_is_taken_over,
    what_was_stored_before_the_index_is_neither_found_nor_marked,
    a_damaged_body_refuses_no_sound_one,
);

/// Accepts an event whose body is looked out for.
fn watched(store: &Arc<dyn Store>, id: &str, body: &[u8]) -> AcceptReceipt {
    ruled(store, id, body, BodyReuse::Flag)
}

fn ruled(store: &Arc<dyn Store>, id: &str, body: &[u8], body_reuse: BodyReuse) -> AcceptReceipt {
    let Write::Accept(plain) = accepting(store, id, body) else { panic!("an accept") };
    let facts = hookstead_core::AcceptanceFacts { body_reuse, ..plain.facts().clone() };
    let mut entropy = [0; 10];
    entropy.copy_from_slice(&plain.identity_hash().0[..10]);
    let key = &store.facts().identity_key;
    let acceptance = Acceptance::new(key, plain.identity().clone(), plain.body().clone(), facts, entropy);
    let written = store.apply(&[Write::Accept(Box::new(acceptance))], OPENED_AT).expect("it is accepted");
    match written.as_slice() {
        [Written::Accepted(receipt)] => *receipt,
        other => panic!("an accept was answered {other:?}"),
    }
}

/// Three events, the second and the third with one body; then an edit, and what the check names.
fn problems_after(sql: &str) -> Vec<String> {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    watched(&store, "evt_1", b"one");
    let first = watched(&store, "evt_2", b"two");
    assert_eq!(watched(&store, "evt_3", b"two").same_body_as, Some(first.event));
    assert_eq!(problems(&store), [""; 0]);
    let raw = Connection::open(folder.database()).expect("anybody can open it");
    raw.execute_batch(sql).expect("the edit is legal");
    assert!(raw.changes() > 0, "{sql} changed nothing");
    problems(&store)
}

fn an_entry_of_the_index_that_is_not_its_events_is_found() {
    for sql in [
        "UPDATE watched_bodies SET digest_prefix = zeroblob(16) WHERE seq = 1",
        "UPDATE watched_bodies SET digest_prefix = substr(digest_prefix, 1, 15) WHERE seq = 1",
        "UPDATE watched_bodies SET source = 2 WHERE seq = 1",
        "UPDATE watched_bodies SET seq = 9 WHERE seq = 1",
        "INSERT INTO watched_bodies VALUES (1, x'', 1)",
    ] {
        let found = problems_after(sql);
        assert_eq!(found.len(), 1, "{sql}: {found:?}");
        assert!(found[0].starts_with("the index of bodies has an entry for event "), "{sql}: {found:?}");
    }
}

fn a_mark_that_names_another_event_is_found() {
    for sql in [
        "UPDATE reused_bodies SET same_body_as = zeroblob(16)",
        "UPDATE reused_bodies SET same_body_as = (SELECT id FROM events WHERE seq = 1)",
        "UPDATE reused_bodies SET same_body_as = (SELECT id FROM events WHERE seq = 3)",
    ] {
        let found = problems_after(sql);
        assert_eq!(found, ["event 0003 is marked with the body of an event that never had it"], "{sql}");
    }
}

fn a_mark_of_no_event_is_found() {
    let found = problems_after("UPDATE reused_bodies SET seq = 9");
    assert_eq!(found, ["the marks of bodies and the events differ by 1 rows"]);
}

/// A store as the schema before the index left it, with one event.
fn from_before() -> Folder {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    accept(&store, "evt_1", b"one");
    store.close(OPENED_AT).expect("it closes");
    drop(store);
    let raw = Connection::open(folder.database()).expect("anybody can open it");
    raw.execute_batch(
        "DROP TABLE watched_bodies; DROP TABLE reused_bodies; DELETE FROM migrations WHERE name = 'body reuse'",
    )
    .expect("the edit is legal");
    folder
}

fn a_database_from_before_the_index_is_taken_over() {
    let folder = from_before();
    let store = folder.open().store;
    assert_eq!(accept(&store, "evt_1", b"one"), Outcome::Duplicate);
    let first = watched(&store, "evt_2", b"two");
    assert_eq!(watched(&store, "evt_3", b"two").same_body_as, Some(first.event));
    assert_eq!(problems(&store), [""; 0]);
}

fn what_was_stored_before_the_index_is_neither_found_nor_marked() {
    let folder = from_before();
    let store = folder.open().store;
    assert_eq!(find(&store, "evt_1").same_body_as, None);
    assert_eq!(watched(&store, "evt_2", b"one").same_body_as, None);
}

/// The bytes that come again under another id may be all that is left of them.
fn a_damaged_body_refuses_no_sound_one() {
    let folder = Folder::new();
    let raw = |sql| {
        let raw = Connection::open(folder.database()).expect("anybody can open it");
        assert_eq!(raw.execute(sql, []).expect("the edit is legal"), 1);
    };
    check_damaged(&folder.open().store, || {
        raw("UPDATE events SET body = CAST('the-signed-bodY' AS BLOB) WHERE seq = 1");
    });
    let dir = Dir::new();
    check_damaged(&dir.open().store, || damage_record(&dir.root()));
}

fn check_damaged(store: &Arc<dyn Store>, damage: impl FnOnce()) {
    const BODY: &[u8] = b"the-signed-body";
    register(store);
    let refusing = |id| ruled(store, id, BODY, BodyReuse::Refuse);
    let first = refusing("evt_1");
    let refused = refusing("evt_2");
    assert_eq!((refused.outcome, refused.event), (Outcome::BodyReused, first.event));
    damage();
    let kind = store.facts().kind;
    let second = refusing("evt_2");
    assert_eq!((second.outcome, second.same_body_as), (Outcome::Stored, Some(first.event)), "{kind}");
    let body = store.body(BodySelector::Event(second.event)).expect("it is sound");
    assert_eq!(body, Some(Body::Kept(BODY.into())), "{kind}");
    let refused = refusing("evt_3");
    assert_eq!((refused.outcome, refused.event), (Outcome::BodyReused, second.event), "{kind}");
}

/// Changes the last letter of the body in the one record of a folder, which has it in base64.
fn damage_record(root: &Path) {
    let folder = root.join("sources/shop/deliveries");
    let records =
        std::fs::read_dir(&folder).expect("it can be listed").map(|entry| entry.expect("it is there").path());
    let changed = records.filter(|path| {
        let Ok(text) = std::fs::read_to_string(path) else { return false };
        let damaged = text.replace("dGhlLXNpZ25lZC1ib2R5", "dGhlLXNpZ25lZC1ib2RZ");
        std::fs::write(path, &damaged).expect("it can be written");
        damaged != text
    });
    assert_eq!(changed.count(), 1);
}
