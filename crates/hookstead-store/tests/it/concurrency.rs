//! Several at once: threads, and a foreign process that holds the write lock.

use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use hookstead_core::{Outcome, StoreError};
use hookstead_store::{OpenOptions, open};

use crate::backend::{Folder, OPENED_AT, options};
use crate::case::cases;
use crate::scene::{accept, events, register, try_accept};

cases!("concurrency":
    eight_threads_with_the_same_ids_store_each_event_once,
    a_foreign_write_lock_is_waited_for_and_then_refused,
    a_reader_in_the_middle_does_not_keep_a_write_waiting,
);

fn eight_threads_with_the_same_ids_store_each_event_once() {
    const THREADS: usize = 8;
    const EVENTS: usize = 40;
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    let together = Barrier::new(THREADS);
    let stored: usize = std::thread::scope(|scope| {
        let work = || {
            together.wait();
            let outcome = |n: usize| accept(&store, &format!("evt_{n}"), format!("body {n}").as_bytes());
            (0..EVENTS).filter(|n| outcome(*n) == Outcome::Stored).count()
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).sum()
    });
    assert_eq!(stored, EVENTS, "each was stored by exactly one thread");
    let events = events(&store);
    assert_eq!(events.len(), EVENTS);
    assert!(events.iter().all(|event| event.duplicates.count == THREADS as u64 - 1));
    assert_eq!(crate::scene::problems(&store), [] as [&str; 0]);
}

fn a_foreign_write_lock_is_waited_for_and_then_refused() {
    let folder = Folder::new();
    let wait = Duration::from_millis(120);
    let options = OpenOptions { busy_timeout: wait, ..options() };
    let store = open(&folder.url(), &options, OPENED_AT).expect("the store opens").store;
    register(&store);
    let foreign = rusqlite::Connection::open(folder.database()).expect("anybody can open it");
    foreign.execute_batch("BEGIN IMMEDIATE").expect("nobody writes");
    let began = Instant::now();
    let refused = try_accept(&store, "evt_1", b"{}");
    assert!(matches!(refused, Err(StoreError::Busy { .. })), "{refused:?}");
    let waited = began.elapsed();
    assert!(waited >= wait && waited < Duration::from_secs(60), "it waited for a while: {waited:?}");
    assert!(events(&store).is_empty(), "nothing was stored");
    foreign.execute_batch("ROLLBACK").expect("it was open");
    assert_eq!(accept(&store, "evt_1", b"{}"), Outcome::Stored);
}

fn a_reader_in_the_middle_does_not_keep_a_write_waiting() {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    accept(&store, "evt_1", b"{}");
    let reader = rusqlite::Connection::open(folder.database()).expect("anybody can open it");
    let count = || -> i64 {
        reader.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).expect("it can be read")
    };
    reader.execute_batch("BEGIN").expect("nothing is open");
    assert_eq!(count(), 1);
    assert_eq!(accept(&store, "evt_2", b"{}"), Outcome::Stored);
    assert_eq!(count(), 1, "the reader keeps its state");
    let stored = Arc::clone(&store);
    assert_eq!(events(&stored).len(), 2, "and others see the new one");
}
