//! The write-ahead log: at its full size from the start, never larger, never smaller.

use std::time::Duration;

use hookstead_core::{Outcome, StoreError};
use hookstead_store::{OpenOptions, open};
use rusqlite::Connection;

use crate::backend::{Folder, OPENED_AT, options};
use crate::case::cases;
use crate::scene::{accept, accepting, events, register, try_accept};

cases!("wal":
    commits_stay_within_the_log_that_was_written_at_the_start,
    the_log_keeps_its_size_over_a_restart,
    a_log_that_somebody_removed_is_written_again,
    a_stuck_reader_makes_the_store_full_and_no_larger,
    a_batch_larger_than_the_log_is_stored_and_the_log_shrinks_back,
);

fn log_bytes(folder: &Folder) -> u64 {
    std::fs::metadata(folder.path("events.db-wal")).expect("it is there").len()
}

fn commits_stay_within_the_log_that_was_written_at_the_start() {
    let folder = Folder::new();
    let store = folder.open().store;
    let before = log_bytes(&folder);
    assert!(before <= options().wal_bytes_max && before > options().wal_bytes_max - 10_000, "{before}");
    register(&store);
    // Ten times what fits.
    for n in 0..640 {
        accept(&store, &format!("evt_{n}"), &[b'x'; 16 * 1024]);
        assert_eq!(log_bytes(&folder), before, "after event {n}");
    }
    store.close(OPENED_AT).expect("it closes");
    assert_eq!(log_bytes(&folder), before, "after the end");
}

fn the_log_keeps_its_size_over_a_restart() {
    let folder = Folder::new();
    drop(folder.open());
    let before = log_bytes(&folder);
    let larger = OpenOptions { wal_bytes_max: 2 * 1024 * 1024, ..options() };
    drop(folder.open());
    assert_eq!(log_bytes(&folder), before);
    drop(open(&folder.url(), &larger, OPENED_AT).expect("the store opens"));
    assert!(log_bytes(&folder) > before, "a larger cap is written at once");
}

fn a_log_that_somebody_removed_is_written_again() {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    accept(&store, "evt_1", b"{}");
    let before = log_bytes(&folder);
    drop(store);
    // What the command-line shell does when it closes the last connection.
    let shell = Connection::open(folder.database()).expect("anybody can open it");
    shell.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("nobody else has it open");
    drop(shell);
    let store = folder.open().store;
    assert_eq!(log_bytes(&folder), before);
    assert_eq!(accept(&store, "evt_1", b"{}"), Outcome::Duplicate);
}

fn a_stuck_reader_makes_the_store_full_and_no_larger() {
    let folder = Folder::new();
    let options = OpenOptions { busy_timeout: Duration::from_millis(20), ..options() };
    let store = open(&folder.url(), &options, OPENED_AT).expect("the store opens").store;
    let before = log_bytes(&folder);
    register(&store);
    let stuck = Connection::open(folder.database()).expect("anybody can open it");
    stuck.execute_batch("BEGIN; SELECT count(*) FROM events;").expect("it can be read");
    let mut stored = 0;
    let refused = loop {
        match try_accept(&store, &format!("evt_{stored}"), &[b'x'; 16 * 1024]) {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
        assert!(stored < 100, "the log has room for fewer");
    };
    assert!(matches!(refused, StoreError::Full { .. }), "{refused}");
    assert!(stored > 10, "most of the log was used: {stored}");
    assert_eq!(log_bytes(&folder), before);
    assert_eq!(events(&store).len(), stored, "what was accepted is there, the refused one is not");
    stuck.execute_batch("COMMIT").expect("it was open");
    assert_eq!(accept(&store, &format!("evt_{stored}"), b"{}"), Outcome::Stored, "it recovers by itself");
    assert_eq!(log_bytes(&folder), before);
}

fn a_batch_larger_than_the_log_is_stored_and_the_log_shrinks_back() {
    let folder = Folder::new();
    let store = folder.open().store;
    let before = log_bytes(&folder);
    register(&store);
    let batch: Vec<_> =
        (0..4).map(|n| accepting(&store, &format!("evt_{n}"), &[b'x'; 1024 * 1024])).collect();
    store.apply(&batch, OPENED_AT).expect("all are legal");
    assert!(log_bytes(&folder) > before);
    accept(&store, "evt_4", b"{}");
    accept(&store, "evt_5", b"{}");
    assert_eq!(log_bytes(&folder), before);
    assert_eq!(events(&store).len(), 6);
}
