//! Opening: what is made, who is told from whom, and that a start is a start.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use hookstead_core::{Outcome, Timestamp};
use hookstead_store::{OpenError, OpenOptions, OsFs, open, owner_record};

use crate::backend::{Folder, OPENED_AT, options, url};
use crate::case::cases;
use crate::scene::{accept, register};

cases!("open":
    folders_and_files_are_made_for_their_owner_alone,
    a_second_opener_is_refused_while_the_first_lives,
    the_owner_says_where_it_listens,
    a_stale_owner_record_is_no_obstacle,
    the_memory_store_has_no_owner,
    the_log_is_written_to_the_default_cap_by_the_first_start,
    what_is_left_of_a_first_start_that_died_is_no_obstacle,
    an_empty_file_becomes_a_store,
    the_key_of_identities_stays,
);

fn folders_and_files_are_made_for_their_owner_alone() {
    let folder = Folder::new();
    let database = folder.path("a/b/events.db");
    let opened = open(&url(&database), &options(), OPENED_AT).expect("the store opens");
    let mode =
        |name: &str| std::fs::metadata(folder.path(name)).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode("a"), mode("a/b")), (0o700, 0o700));
    for name in ["a/b/events.db", "a/b/events.db-wal", "a/b/events.db-shm", "a/b/events.db.lock"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    opened.store.close(OPENED_AT).expect("it closes");
}

fn a_second_opener_is_refused_while_the_first_lives() {
    let folder = Folder::new();
    let first = folder.open();
    register(&first.store);
    let Err(OpenError::Locked { owner: Some(owner), .. }) = open(&folder.url(), &options(), OPENED_AT) else {
        panic!("a second one was let in");
    };
    assert_eq!((owner.pid, owner.started_at), (std::process::id(), OPENED_AT));
    assert_eq!(accept(&first.store, "evt_1", b"{}"), Outcome::Stored, "the first is unaffected");
    first.store.close(OPENED_AT).expect("it closes");
    let second = folder.open();
    assert_eq!(accept(&second.store, "evt_1", b"{}"), Outcome::Duplicate);
}

fn the_owner_says_where_it_listens() {
    let folder = Folder::new();
    let owner = || owner_record(&folder.url(), &options()).expect("the lock can be read");
    assert_eq!(owner(), None);
    let opened = folder.open();
    let addresses = vec![("admin".to_owned(), "127.0.0.1:4666".to_owned())];
    opened.lock.as_ref().expect("it has one").set_addresses(addresses).expect("it can be written");
    assert_eq!(owner().expect("somebody has it").address("admin"), Some("127.0.0.1:4666"));
    let refused = open(&folder.url(), &options(), OPENED_AT).expect_err("it is taken").to_string();
    assert!(refused.contains("127.0.0.1:4666"), "{refused}");
    opened.store.close(OPENED_AT).expect("it closes");
    assert_eq!(owner(), None);
}

fn a_stale_owner_record_is_no_obstacle() {
    let folder = Folder::new();
    drop(folder.open());
    std::fs::write(folder.path("events.db.lock"), "pid = 1\nstarted_at_us = 1\nadmin = 127.0.0.1:1\n")
        .expect("it can be written");
    assert_eq!(owner_record(&folder.url(), &options()).expect("it can be read"), None);
    folder.open();
}

fn the_memory_store_has_no_owner() {
    let opened = open("memory:", &OpenOptions::default(), OPENED_AT).expect("memory is there");
    assert_eq!(opened.store.facts().kind, "memory");
    assert!(opened.lock.is_none());
    assert_eq!(owner_record("memory:", &OpenOptions::default()).expect("nothing is read"), None);
}

fn the_log_is_written_to_the_default_cap_by_the_first_start() {
    let folder = Folder::new();
    let options = OpenOptions::default();
    let opened = open(&folder.url(), &options, OPENED_AT).expect("the store opens");
    let wal = std::fs::metadata(folder.path("events.db-wal")).expect("it is there").len();
    assert!(wal <= options.wal_bytes_max && wal > options.wal_bytes_max - 10_000, "{wal}");
    drop(opened);
}

fn what_is_left_of_a_first_start_that_died_is_no_obstacle() {
    let folder = Folder::new();
    for name in ["events.db.new", "events.db.new-journal", "events.db.new-wal"] {
        std::fs::write(folder.path(name), b"half a database").expect("it can be written");
    }
    let store = folder.open().store;
    register(&store);
    accept(&store, "evt_1", b"{}");
    assert!(!folder.path("events.db.new").exists());
}

fn an_empty_file_becomes_a_store() {
    let folder = Folder::new();
    std::fs::write(folder.database(), b"").expect("it can be written");
    register(&folder.open().store);
}

fn the_key_of_identities_stays() {
    let folder = Folder::new();
    let options = OpenOptions { identity_key: Some([9; 32]), fs: Arc::new(OsFs), ..options() };
    let hash = |options: &OpenOptions| {
        let store = open(&folder.url(), options, Timestamp::from_secs(1)).expect("the store opens").store;
        store.facts().identity_key.hash(&crate::scene::identity("evt_1"), 0)
    };
    let first = hash(&options);
    assert_eq!(hash(&OpenOptions { identity_key: Some([8; 32]), ..options.clone() }), first);
    assert_eq!(hash(&OpenOptions { identity_key: None, ..options }), first);
}
