//! What outlives the process, and what writes nothing.

use hookstead_core::{Duplicates, Outcome, Written};
use hookstead_store::{OpenOptions, open};
use rusqlite::Connection;

use crate::backend::{Folder, OPENED_AT};
use crate::case::cases;
use crate::scene::{accept, accepting, events, find, register};

cases!("durability":
    everything_is_there_after_it_was_closed_and_opened_again,
    counts_of_duplicates_are_written_down_at_the_end,
    counts_ride_with_the_next_commit_that_writes,
    a_closed_database_is_whole_without_its_log,
    the_first_batch_commits_even_if_it_holds_only_duplicates,
    batches_of_duplicates_write_nothing,
    a_store_that_was_dropped_was_closed,
    a_closed_store_refuses,
);

fn everything_is_there_after_it_was_closed_and_opened_again() {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    accept(&store, "evt_1", b"one");
    accept(&store, "evt_1", b"two");
    let (before, stats, registry) = (events(&store), store.stats(), store.registry());
    store.close(OPENED_AT).expect("it closes");
    drop(store);
    let store = folder.open().store;
    assert_eq!(events(&store), before);
    assert_eq!(store.stats().expect("it can be read"), stats.expect("it could be read"));
    assert_eq!(store.registry().expect("it can be read"), registry.expect("it could be read"));
    assert_eq!(accept(&store, "evt_1", b"one"), Outcome::Duplicate);
    assert_eq!(accept(&store, "evt_1", b"two"), Outcome::Conflict { variant: Some(1) });
    assert_eq!(accept(&store, "evt_2", b"one"), Outcome::Stored);
}

fn counts_of_duplicates_are_written_down_at_the_end() {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    for n in 0..600 {
        accept(&store, &format!("evt_{n}"), b"{}");
    }
    for n in 0..600 {
        accept(&store, &format!("evt_{n}"), b"{}");
    }
    store.close(OPENED_AT).expect("it closes");
    drop(store);
    let store = folder.open().store;
    let once = Duplicates { count: 1, last_at: Some(OPENED_AT) };
    assert!(events(&store).iter().all(|event| event.duplicates == once));
    accept(&store, "evt_5", b"{}");
    assert_eq!(find(&store, "evt_5").duplicates.count, 2, "counting goes on from there");
}

fn counts_ride_with_the_next_commit_that_writes() {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    accept(&store, "evt_1", b"{}");
    for _ in 0..3 {
        accept(&store, "evt_1", b"{}");
    }
    assert_eq!(counted_on_disk(&folder), None);
    assert_eq!(find(&store, "evt_1").duplicates.count, 3, "readers know it at once");
    accept(&store, "evt_2", b"{}");
    assert_eq!(counted_on_disk(&folder), Some(3));
    accept(&store, "evt_1", b"{}");
    assert_eq!(find(&store, "evt_1").duplicates.count, 4);
}

fn counted_on_disk(folder: &Folder) -> Option<i64> {
    let raw = Connection::open(folder.database()).expect("anybody can open it");
    raw.query_row("SELECT max(count) FROM duplicates", [], |row| row.get(0)).expect("it can be read")
}

fn a_closed_database_is_whole_without_its_log() {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    accept(&store, "evt_1", b"{}");
    store.close(OPENED_AT).expect("it closes");
    drop(store);
    let copy = Folder::new();
    std::fs::copy(folder.database(), copy.database()).expect("it can be copied");
    assert_eq!(accept(&copy.open().store, "evt_1", b"{}"), Outcome::Duplicate);
}

fn the_first_batch_commits_even_if_it_holds_only_duplicates() {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    accept(&store, "evt_1", b"{}");
    drop(store);
    let store = folder.open().store;
    let before = barriers(&folder);
    assert_eq!(accept(&store, "evt_1", b"{}"), Outcome::Duplicate);
    assert_eq!(barriers(&folder), before + 1);
    assert_eq!(accept(&store, "evt_1", b"{}"), Outcome::Duplicate);
    assert_eq!(barriers(&folder), before + 1, "once is enough");
}

fn barriers(folder: &Folder) -> i64 {
    let raw = Connection::open(folder.database()).expect("anybody can open it");
    raw.query_row("SELECT barriers FROM store", [], |row| row.get(0)).expect("it can be read")
}

fn batches_of_duplicates_write_nothing() {
    let folder = Folder::new();
    // A log with room enough, so that moving it into the database is not due meanwhile.
    let store = open(&folder.url(), &OpenOptions::default(), OPENED_AT).expect("the store opens").store;
    register(&store);
    let batch: Vec<_> = (0..100).map(|n| accepting(&store, &format!("evt_{n}"), b"{}")).collect();
    store.apply(&batch, OPENED_AT).expect("all are legal");
    let watcher = Connection::open(folder.database()).expect("anybody can open it");
    let version = || -> i64 {
        watcher.pragma_query_value(None, "data_version", |row| row.get(0)).expect("it can be read")
    };
    // Reading the files here would take SQLite's locks away: they belong to the process, not to the handle.
    let written = |name| {
        let facts = std::fs::metadata(folder.path(name)).expect("it is there");
        (facts.len(), facts.modified().expect("this system knows"))
    };
    let files = || ["events.db", "events.db-wal"].map(written);
    let before = (version(), files());
    for _ in 0..3 {
        let answers = store.apply(&batch, OPENED_AT).expect("all are legal");
        let duplicate = |answer: &Written| matches!(answer, Written::Accepted(receipt) if receipt.outcome == Outcome::Duplicate);
        assert!(answers.iter().all(duplicate));
    }
    assert_eq!((version(), files()), before, "no byte of database or log changed");
}

fn a_store_that_was_dropped_was_closed() {
    let folder = Folder::new();
    let opened = folder.open();
    register(&opened.store);
    accept(&opened.store, "evt_1", b"{}");
    accept(&opened.store, "evt_1", b"{}");
    drop(opened.store);
    let again = folder.open();
    assert_eq!(find(&again.store, "evt_1").duplicates.count, 1);
    // The handle of the first lock outlived its store and holds nothing any more.
    drop(opened.lock);
}

fn a_closed_store_refuses() {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    let write = accepting(&store, "evt_1", b"{}");
    store.close(OPENED_AT).expect("it closes");
    store.close(OPENED_AT).expect("closing it again changes nothing");
    assert!(store.apply(&[write], OPENED_AT).is_err());
    assert!(store.probe(OPENED_AT).is_err());
    assert!(store.stats().is_err());
}
