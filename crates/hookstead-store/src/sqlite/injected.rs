//! Tests of failures that are put into a store from within: a commit that fails, a disk without room, a
//! file that is exchanged.

use std::path::PathBuf;
use std::time::Duration;

use hookstead_core::{
    Acceptance, AcceptanceFacts, Claim, DestinationNumber, EventSelector, Identity, Lease, Outcome,
    ProviderEventId, Register, RetentionRule, RetryPolicy, Scope, Settle, Settled, Settlement, SourceNumber,
    Store, StoreError, Sweep, Swept, Timestamp, Verdict, Write, Written,
};
use rusqlite::Connection;

use super::effect::sqlite_effect;
use super::open::open_store;
use super::store::SqliteStore;
use super::sweep::EVENTS_LOOKED_AT_MAX;
use crate::open::{IdentityFlush, OpenOptions};
use crate::start::Steps;

pub(super) const NOW: Timestamp = Timestamp::from_secs(1_770_000_000);

pub(super) struct Fixture {
    pub(super) store: SqliteStore,
    pub(super) path: PathBuf,
    /// Removed last.
    pub(super) _folder: tempfile::TempDir,
}

pub(super) fn options() -> OpenOptions {
    OpenOptions {
        wal_bytes_max: 1024 * 1024,
        busy_timeout: Duration::from_millis(50),
        ..OpenOptions::default()
    }
}

/// An open store with one source, in which an event has been committed.
fn fixture() -> Fixture {
    fixture_with(&options())
}

pub(super) fn fixture_with(options: &OpenOptions) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.db");
    let store = open_store(&path, options, NOW, &mut Steps::default()).unwrap();
    let name = "shop".parse().unwrap();
    let register = Register::Source { name, identity_fingerprint: "id".into() };
    store.apply(&[Write::Register(register)], NOW).unwrap();
    accept(&store, "evt_0", 10).unwrap();
    Fixture { store, path, _folder: folder }
}

pub(super) fn acceptance(store: &SqliteStore, id: &str, body_bytes: usize) -> Write {
    let id = ProviderEventId::new(id.as_bytes()).unwrap();
    let identity = Identity { source: SourceNumber(1), scope: Scope::default(), id };
    let key = &store.facts().identity_key;
    let mut entropy = [0; 10];
    entropy.copy_from_slice(&key.hash(&identity, 0).0[..10]);
    let body = vec![b'x'; body_bytes];
    let facts = AcceptanceFacts { received_at: NOW, ..AcceptanceFacts::default() };
    Write::Accept(Box::new(Acceptance::new(key, identity, body.into(), facts, entropy)))
}

fn accept(store: &SqliteStore, id: &str, body_bytes: usize) -> Result<Outcome, StoreError> {
    let written = store.apply(&[acceptance(store, id, body_bytes)], NOW)?;
    match written.as_slice() {
        [Written::Accepted(receipt)] => Ok(receipt.outcome),
        other => panic!("an accept was answered {other:?}"),
    }
}

fn events(store: &SqliteStore) -> u64 {
    store.event(&EventSelector::Newest).unwrap().map_or(0, |event| event.seq.0)
}

/// What another connection reads.
fn number(path: &PathBuf, column: &str) -> i64 {
    let connection = Connection::open(path).unwrap();
    connection.query_row(&format!("SELECT {column} FROM store"), [], |row| row.get(0)).unwrap()
}

/// Does something to the connection that writes.
pub(super) fn with_writer(store: &SqliteStore, act: impl FnOnce(&mut Connection)) {
    let mut writer = store.writer.lock().unwrap();
    act(writer.connection_for_tests().expect("the writer has a connection"));
}

/// Lets the database grow no more.
pub(super) fn full(connection: &mut Connection) {
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    connection.pragma_update(None, "max_page_count", pages).unwrap();
}

fn has_connection(store: &SqliteStore) -> bool {
    store.writer.lock().unwrap().connection_for_tests().is_some()
}

#[test]
fn an_unknown_failure_of_a_commit_poisons_and_duplicates_are_refused_too() {
    let Fixture { store, path, _folder } = fixture();
    with_writer(&store, |connection| connection.commit_hook(Some(|| true)).unwrap());
    let failed = accept(&store, "evt_1", 10);
    assert!(matches!(failed, Err(StoreError::Poisoned { .. })), "{failed:?}");
    assert!(!has_connection(&store), "the connection is dropped after a failed commit");
    for id in ["evt_0", "evt_1", "evt_2"] {
        let refused = accept(&store, id, 10);
        assert!(matches!(refused, Err(StoreError::Poisoned { .. })), "{id}: {refused:?}");
    }
    assert!(matches!(store.probe(NOW), Err(StoreError::Poisoned { .. })), "poison stays");
    assert_eq!(events(&store), 1, "reads go on");
    drop(store);
    let again = open_store(&path, &options(), NOW, &mut Steps::default()).unwrap();
    assert_eq!(accept(&again, "evt_1", 10).unwrap(), Outcome::Stored, "the failed one was not kept");
}

#[test]
fn after_no_room_the_connection_is_dropped_and_a_probe_comes_before_the_next_write() {
    let Fixture { store, path, _folder } = fixture();
    let probes = number(&path, "probes");
    with_writer(&store, full);
    let failed = accept(&store, "evt_1", 200_000);
    assert!(matches!(failed, Err(StoreError::Full { .. })), "{failed:?}");
    assert!(!has_connection(&store));
    assert_eq!(number(&path, "probes"), probes, "nothing was probed yet");
    let barriers = number(&path, "barriers");
    assert_eq!(accept(&store, "evt_0", 10).unwrap(), Outcome::Duplicate);
    assert_eq!(number(&path, "probes"), probes + 1, "a probe was committed first");
    assert_eq!(number(&path, "barriers"), barriers + 1, "and the duplicate rests on a commit of its own");
    assert_eq!(accept(&store, "evt_1", 200_000).unwrap(), Outcome::Stored);
    assert_eq!(events(&store), 2);
}

#[test]
fn a_probe_that_cannot_be_committed_fails_and_may_be_tried_again() {
    let Fixture { store, path, _folder } = fixture();
    let foreign = Connection::open(&path).unwrap();
    foreign.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = store.probe(NOW);
    assert!(matches!(refused, Err(StoreError::Busy { .. })), "{refused:?}");
    assert!(matches!(accept(&store, "evt_1", 10), Err(StoreError::Busy { .. })), "no write without it");
    foreign.execute_batch("ROLLBACK").unwrap();
    store.probe(NOW).unwrap();
    assert_eq!(accept(&store, "evt_1", 10).unwrap(), Outcome::Stored);
}

#[test]
fn a_batch_that_fails_leaves_nothing_of_itself_in_memory() {
    let Fixture { store, path, _folder } = fixture();
    // A body that is damaged on disk makes the last write of the batch fail.
    let raw = Connection::open(&path).unwrap();
    raw.execute("UPDATE events SET body = x'00' WHERE seq = 1", []).unwrap();
    let (stats, registry) = (store.stats().unwrap(), store.registry().unwrap());
    let register = Register::Source { name: "mail".parse().unwrap(), identity_fingerprint: "id".into() };
    let batch = [Write::Register(register), acceptance(&store, "evt_1", 10), acceptance(&store, "evt_0", 10)];
    let failed = store.apply(&batch, NOW);
    assert!(matches!(failed, Err(StoreError::Corrupt { .. })), "{failed:?}");
    assert!(has_connection(&store), "a damaged record says nothing against the connection");
    assert_eq!((store.stats().unwrap(), store.registry().unwrap()), (stats, registry));
    assert_eq!(accept(&store, "evt_1", 10).unwrap(), Outcome::Stored);
    assert_eq!(events(&store), 2);
}

#[test]
fn after_an_event_that_would_get_another_number_nothing_is_taken() {
    for (elsewhere, number) in [("5", 6), ("0", 1)] {
        let Fixture { store, path, _folder } = fixture();
        let raw = Connection::open(&path).unwrap();
        raw.execute(&format!("UPDATE events SET seq = {elsewhere} WHERE seq = 1"), []).unwrap();
        let refused = accept(&store, "evt_1", 10).unwrap_err();
        let said = format!("the event to become number 2 became number {number}");
        assert!(matches!(&refused, StoreError::Poisoned { reason } if reason.contains(&said)), "{refused:?}");
        raw.execute(&format!("UPDATE events SET seq = 1 WHERE seq = {elsewhere}"), []).unwrap();
        assert!(matches!(accept(&store, "evt_2", 10), Err(StoreError::Poisoned { .. })));
        drop((store, raw));
        let store = open_store(&path, &options(), NOW, &mut Steps::default()).unwrap();
        assert_eq!(events(&store), 1, "nothing was kept");
        assert_eq!(accept(&store, "evt_1", 10).unwrap(), Outcome::Stored);
    }
}

#[test]
fn a_database_that_was_exchanged_takes_no_more_writes() {
    let Fixture { store, path, _folder } = fixture();
    accept(&store, "evt_1", 10).unwrap();
    let copy = path.with_extension("copy");
    std::fs::copy(&path, &copy).unwrap();
    std::fs::rename(&copy, &path).unwrap();
    let refused = accept(&store, "evt_0", 10);
    assert!(matches!(refused, Err(StoreError::Poisoned { .. })), "{refused:?}");
}

#[test]
fn a_log_that_was_deleted_takes_no_more_writes() {
    let Fixture { store, path, _folder } = fixture();
    std::fs::remove_file(super::files::wal_path(&path)).unwrap();
    let refused = accept(&store, "evt_1", 10);
    assert!(matches!(refused, Err(StoreError::Poisoned { .. })), "{refused:?}");
}

#[test]
fn counts_of_duplicates_are_bounded_in_memory() {
    let Fixture { store, path, _folder } = fixture();
    let ids: Vec<String> = (0..300).map(|n| format!("evt_{n}")).collect();
    let batch: Vec<Write> = ids.iter().map(|id| acceptance(&store, id, 10)).collect();
    store.apply(&batch, NOW).unwrap();
    let on_disk = || -> i64 {
        let raw = Connection::open(&path).unwrap();
        raw.query_row("SELECT count(*) FROM duplicates", [], |row| row.get(0)).unwrap()
    };
    let written_before = on_disk();
    store.apply(&batch[..100], NOW).unwrap();
    assert_eq!(on_disk(), written_before, "there is room in memory");
    store.writer.lock().unwrap().set_counted_max_for_tests(200);
    store.apply(&batch[100..], NOW).unwrap();
    // The first event's count was on the disk before: it may or may not be among those that rode along.
    assert!((256..=257).contains(&on_disk()), "as many as ride in one commit: {}", on_disk());
    drop(store);
    let store = open_store(&path, &options(), NOW, &mut Steps::default()).unwrap();
    let seen = |id: &String| {
        let id = ProviderEventId::new(id.as_bytes()).unwrap();
        let identity = Identity { source: SourceNumber(1), scope: Scope::default(), id };
        store.event(&EventSelector::Identity(identity)).unwrap().unwrap().duplicates.count
    };
    // The first event was stored with the fixture and came again with the batch that stored the others.
    assert_eq!(seen(&ids[0]), 2);
    assert!(ids[1..].iter().all(|id| seen(id) == 1));
}

/// Makes the destination number 1 known.
fn register_app(store: &SqliteStore) {
    let name = "app".parse().unwrap();
    let register = Register::Destination { name, fingerprint: "to".into(), retry: RetryPolicy::default() };
    store.apply(&[Write::Register(register)], NOW).unwrap();
}

/// The lease of a new event that is owed to it.
fn lease(store: &SqliteStore, id: &str) -> Lease {
    let Write::Accept(draft) = acceptance(store, id, 1) else { panic!("it is an accept") };
    let facts = AcceptanceFacts { destinations: vec![DestinationNumber(1)], ..draft.facts().clone() };
    let key = &store.facts().identity_key;
    let owed = Acceptance::new(key, draft.identity().clone(), "x".into(), facts, [1; 10]);
    let claim = Claim { destination: DestinationNumber(1), max: 1, lease_for: Duration::from_secs(9) };
    let written = store.apply(&[Write::Accept(Box::new(owed)), Write::Claim(claim)], NOW).unwrap();
    let Written::Claimed(leases) = &written[1] else { panic!("it is a claim") };
    leases[0].clone()
}

#[test]
fn an_effect_without_room_is_the_stores_failure_and_settles_nothing() {
    let Fixture { store, path, _folder } = fixture();
    register_app(&store);
    let Lease { delivery, token, .. } = lease(&store, "evt_1");
    for ignored in [false, true] {
        with_writer(&store, full);
        let effect = sqlite_effect(move |tx| {
            tx.execute("CREATE TABLE IF NOT EXISTS app (bytes)", ()).or_else(|error| pass(ignored, error))?;
            tx.execute("INSERT INTO app VALUES (zeroblob(200000))", ())
                .or_else(|error| pass(ignored, error))?;
            Ok(())
        });
        let settle = Settle { delivery, token, verdict: Verdict::DoneWith(effect), attempt: None };
        let settle = Write::Settle(Box::new(settle));
        let failed = store.apply(&[acceptance(&store, "evt_2", 1), settle.clone()], NOW);
        assert!(matches!(failed, Err(StoreError::Full { .. })), "{failed:?}");
        assert!(!has_connection(&store), "the connection is dropped");
        assert_eq!(events(&store), 2, "nothing of the batch was kept");
        store.probe(NOW).unwrap();
        if ignored {
            let done = Written::Settled(Settlement::Settled(Settled::Done));
            assert_eq!(store.apply(&[settle], NOW).unwrap(), [done], "it is still the holder's");
        }
    }
    let raw = Connection::open(&path).unwrap();
    let rows: i64 = raw.query_row("SELECT count(*) FROM app", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 1, "once, in the end");
}

fn pass(ignored: bool, error: rusqlite::Error) -> rusqlite::Result<usize> {
    if ignored { Ok(0) } else { Err(error) }
}

#[test]
fn a_search_for_what_may_be_erased_is_cut_and_goes_on() {
    let Fixture { store, _folder, .. } = fixture();
    register_app(&store);
    // Events that are owed to nobody are never finished; the one behind all of them is.
    let events = u64::from(EVENTS_LOOKED_AT_MAX) + 10;
    for first in (0..events).step_by(500) {
        let ids = first..events.min(first + 500);
        let batch: Vec<Write> = ids.map(|n| acceptance(&store, &format!("old_{n}"), 1)).collect();
        store.apply(&batch, NOW).unwrap();
    }
    let Lease { delivery, token, .. } = lease(&store, "finished");
    let settle = Settle { delivery, token, verdict: Verdict::Done, attempt: None };
    store.apply(&[Write::Settle(Box::new(settle))], NOW).unwrap();
    let rule = RetentionRule {
        source: SourceNumber(1),
        finished_before: Some(NOW.plus(Duration::from_secs(1))),
        unfinished_before: None,
    };
    let sweep =
        || match store.apply(&[Write::Sweep(Sweep { retention: vec![rule], max: 10 })], NOW).unwrap()[0] {
            Written::Swept(swept) => swept,
            ref other => panic!("a sweep was answered {other:?}"),
        };
    assert_eq!(sweep(), Swept { expired: 0, erased: 0, more: true }, "the first step did not get there");
    assert_eq!(sweep(), Swept { expired: 0, erased: 1, more: false });
    assert_eq!(sweep(), Swept { expired: 0, erased: 0, more: true }, "the next search begins anew");
}

/// How many identities are pending in memory.
fn pending(store: &SqliteStore) -> usize {
    store.writer.lock().unwrap().identities_for_tests().len()
}

/// A store that flushes everything with every fourth event.
fn flushing_every_fourth() -> Fixture {
    fixture_with(&OpenOptions { identity_flush: IdentityFlush { events: 4, ranges: 256 }, ..options() })
}

#[test]
fn a_batch_that_fails_takes_and_flushes_no_identity() {
    let Fixture { store, path, _folder } = flushing_every_fourth();
    accept(&store, "evt_1", 10).unwrap();
    let raw = Connection::open(&path).unwrap();
    raw.execute("UPDATE events SET body = x'00' WHERE seq = 1", []).unwrap();
    // The fourth event is in it, so that it would flush; its last write fails.
    let batch = ["evt_2", "evt_3", "evt_4", "evt_0"].map(|id| acceptance(&store, id, 10));
    let failed = store.apply(&batch, NOW);
    assert!(matches!(failed, Err(StoreError::Corrupt { .. })), "{failed:?}");
    assert_eq!(pending(&store), 2);
    for (id, pending_then) in [("evt_4", 3), ("evt_2", 0), ("evt_3", 1)] {
        assert_eq!(accept(&store, id, 10).unwrap(), Outcome::Stored);
        assert_eq!(pending(&store), pending_then, "{id}");
    }
    for id in ["evt_1", "evt_2", "evt_3", "evt_4"] {
        assert_eq!(accept(&store, id, 10).unwrap(), Outcome::Duplicate);
    }
}

#[test]
fn a_batch_that_an_effect_undid_takes_its_identities_once() {
    let Fixture { store, path, _folder } = flushing_every_fourth();
    register_app(&store);
    let Lease { delivery, token, .. } = lease(&store, "evt_1");
    let effect = sqlite_effect(|tx| {
        tx.execute_batch("CREATE TABLE app (n UNIQUE); INSERT INTO app VALUES (1)")?;
        tx.execute("INSERT OR ROLLBACK INTO app VALUES (1)", ()).map(drop).map_err(Into::into)
    });
    let settle = Settle { delivery, token, verdict: Verdict::DoneWith(effect), attempt: None };
    let [one, two] = ["evt_2", "evt_3"].map(|id| acceptance(&store, id, 10));
    let written = store.apply(&[one, Write::Settle(Box::new(settle)), two], NOW).unwrap();
    let stored = |written: &Written| matches!(written, Written::Accepted(receipt) if receipt.outcome == Outcome::Stored);
    assert!(stored(&written[0]) && stored(&written[2]), "{written:?}");
    assert_eq!(pending(&store), 0, "the fourth event is among them");
    let raw = Connection::open(&path).unwrap();
    let rows: i64 = raw.query_row("SELECT count(*) FROM identities", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 4);
    assert_eq!(accept(&store, "evt_2", 10).unwrap(), Outcome::Duplicate);
}

/// What is in memory may be wrong after a failure of which nobody knows what it left behind: here it is made wrong.
#[test]
fn a_new_connection_reads_the_pending_identities_from_the_database() {
    let Fixture { store, _folder, .. } = fixture();
    accept(&store, "evt_1", 10).unwrap();
    assert_eq!(pending(&store), 2);
    store.writer.lock().unwrap().identities_for_tests().lose_for_tests();
    assert_eq!(pending(&store), 0);
    with_writer(&store, full);
    let failed = accept(&store, "evt_2", 200_000);
    assert!(matches!(failed, Err(StoreError::Full { .. })), "{failed:?}");
    assert!(!has_connection(&store));
    assert_eq!(accept(&store, "evt_0", 10).unwrap(), Outcome::Duplicate);
    assert_eq!(accept(&store, "evt_1", 10).unwrap(), Outcome::Duplicate);
    assert_eq!(pending(&store), 2);
}

#[test]
fn a_flush_without_room_fails_its_batch_and_is_made_up_for() {
    let Fixture { store, path, _folder } = fixture_with(&OpenOptions {
        identity_flush: IdentityFlush { events: 1_000, ranges: 256 },
        ..options()
    });
    // So many that what is flushed needs pages that the database does not have.
    let batch: Vec<Write> = (1..999).map(|n| acceptance(&store, &format!("evt_{n}"), 10)).collect();
    store.apply(&batch, NOW).unwrap();
    with_writer(&store, full);
    let failed = accept(&store, "evt_999", 10);
    assert!(matches!(failed, Err(StoreError::Full { .. })), "{failed:?}");
    assert_eq!(accept(&store, "evt_7", 10).unwrap(), Outcome::Duplicate);
    assert_eq!(pending(&store), 999);
    assert_eq!(accept(&store, "evt_999", 10).unwrap(), Outcome::Stored);
    assert_eq!(pending(&store), 0);
    drop(store);
    let again = open_store(&path, &options(), NOW, &mut Steps::default()).unwrap();
    assert!((0..1_000).all(|n| accept(&again, &format!("evt_{n}"), 10).unwrap() == Outcome::Duplicate));
}
