//! What is refused at the start, in words that help, and that nothing of it is written to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hookstead_core::{Outcome, StoreError, Sweep, Write};
use hookstead_store::fs::FileSystem;
use hookstead_store::{OpenError, OpenOptions, open};
use rusqlite::Connection;

use crate::backend::{Folder, OPENED_AT, options};
use crate::case::cases;
use crate::faulty::Faulty;
use crate::scene::{accept, register, try_accept};

cases!("refusal":
    an_unknown_scheme_is_answered_with_the_known_ones,
    a_newer_database_is_refused_and_not_touched,
    a_changed_migration_is_refused_and_not_touched,
    a_database_of_another_program_is_refused_and_not_touched,
    a_file_that_is_no_database_is_refused_and_not_touched,
    a_folder_in_the_place_of_the_database_is_refused,
    a_log_without_its_database_is_refused,
    a_network_file_system_is_refused_before_anything_is_made,
    a_folder_that_cannot_be_synced_is_refused,
    a_log_that_cannot_be_evicted_is_refused,
    with_too_little_free_space_events_are_refused_until_there_is_more,
);

fn refusal(folder: &Folder) -> OpenError {
    open(&folder.url(), &options(), OPENED_AT).expect_err("it is refused")
}

/// A database of ours with an event, closed, and then changed by `sql`.
fn changed(sql: &str) -> Folder {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    accept(&store, "evt_1", b"{}");
    store.close(OPENED_AT).expect("it closes");
    drop(store);
    let raw = Connection::open(folder.database()).expect("anybody can open it");
    raw.execute_batch(sql).expect("the edit is legal");
    folder
}

/// Expects that the refused open changed no byte of database and log. (SQLite makes an empty log where there
/// was none, also to read.)
fn check_untouched(folder: &Folder) -> OpenError {
    let bytes =
        || ["events.db", "events.db-wal"].map(|name| std::fs::read(folder.path(name)).unwrap_or_default());
    let before = bytes();
    let error = refusal(folder);
    assert!(before == bytes(), "the refused database was written to");
    error
}

fn an_unknown_scheme_is_answered_with_the_known_ones() {
    for url in ["postgres://x", "events.db", "", "SQLITE:x", "memory:x"] {
        let refused = open(url, &options(), OPENED_AT).expect_err("it is refused").to_string();
        assert!(refused.contains("`memory:`") && refused.contains("`sqlite:PATH`"), "{refused}");
    }
    for url in ["sqlite:", "sqlite:/tmp/"] {
        let refused = open(url, &options(), OPENED_AT).expect_err("it is refused");
        assert!(matches!(refused, OpenError::NoPath { .. }), "{refused}");
    }
}

fn a_newer_database_is_refused_and_not_touched() {
    let folder = changed("INSERT INTO migrations VALUES (1000, 'later', 'x', 1)");
    let refused = check_untouched(&folder);
    assert!(matches!(refused, OpenError::Newer { found: 1000, known: 1..1000, .. }), "{refused}");
}

fn a_changed_migration_is_refused_and_not_touched() {
    let folder = changed("UPDATE migrations SET checksum = 'x'");
    let refused = check_untouched(&folder);
    assert!(matches!(refused, OpenError::Changed { number: 1, .. }), "{refused}");
}

fn a_database_of_another_program_is_refused_and_not_touched() {
    let folder = Folder::new();
    let raw = Connection::open(folder.database()).expect("it can be made");
    raw.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE songs (title)").expect("it is legal");
    drop(raw);
    let refused = check_untouched(&folder);
    assert!(matches!(refused, OpenError::Foreign { .. }), "{refused}");
    assert!(!folder.path("events.db-wal").exists(), "no file was made beside it");
    let stripped = changed("DROP TABLE migrations");
    assert!(matches!(check_untouched(&stripped), OpenError::Foreign { .. }));
}

fn a_file_that_is_no_database_is_refused_and_not_touched() {
    for bytes in [&b"x"[..], &[0; 4096]] {
        let folder = Folder::new();
        std::fs::write(folder.database(), bytes).expect("it can be written");
        let refused = check_untouched(&folder);
        assert!(matches!(refused, OpenError::Foreign { .. }), "{refused}");
    }
}

fn a_folder_in_the_place_of_the_database_is_refused() {
    let folder = Folder::new();
    std::fs::create_dir(folder.database()).expect("it can be made");
    assert!(matches!(refusal(&folder), OpenError::Foreign { .. }));
}

fn a_log_without_its_database_is_refused() {
    let folder = Folder::new();
    drop(folder.open());
    std::fs::remove_file(folder.database()).expect("it is there");
    let refused = check_untouched(&folder);
    assert!(matches!(refused, OpenError::OrphanedLog { .. }), "{refused}");
}

fn open_on(folder: &Folder, fs: Faulty) -> OpenError {
    let options = OpenOptions { fs: Arc::new(fs), ..options() };
    let url = format!("sqlite:{}", folder.path("new/events.db").display());
    open(&url, &options, OPENED_AT).expect_err("it is refused")
}

fn with_too_little_free_space_events_are_refused_until_there_is_more() {
    let folder = Folder::new();
    for (kind, name) in [("sqlite", "events.db"), ("files", "events")] {
        let free = Arc::new(AtomicU64::new(1000));
        let fs = Arc::new(Faulty { free: Some(Arc::clone(&free)), ..Faulty::default() });
        let options = OpenOptions { fs, free_bytes_min: 1000, ..options() };
        let url = format!("{kind}:{}", folder.path(name).display());
        let store = open(&url, &options, OPENED_AT).expect("it opens").store;
        register(&store);
        assert_eq!(accept(&store, "evt_1", b"{}"), Outcome::Stored);

        free.store(999, Ordering::SeqCst);
        for id in ["evt_1", "evt_2"] {
            let refused = try_accept(&store, id, b"{}");
            assert!(matches!(refused, Err(StoreError::Full { .. })), "{kind} {id}: {refused:?}");
        }
        assert!(matches!(store.probe(OPENED_AT), Err(StoreError::Full { .. })), "{kind}");
        let sweep = Sweep { retention: Vec::new(), max: 1 };
        assert!(store.apply(&[Write::Sweep(sweep)], OPENED_AT).is_ok(), "{kind}: what frees space goes on");

        free.store(1000, Ordering::SeqCst);
        store.probe(OPENED_AT).expect("there is room again");
        assert_eq!(accept(&store, "evt_1", b"{}"), Outcome::Duplicate);
        assert_eq!(accept(&store, "evt_2", b"{}"), Outcome::Stored);
    }
}

fn a_network_file_system_is_refused_before_anything_is_made() {
    let folder = Folder::new();
    let refused =
        open_on(&folder, Faulty { poses_as: Some(FileSystem::Network("NFS")), ..Faulty::default() });
    assert!(matches!(refused, OpenError::NetworkFileSystem { kind: "NFS", .. }), "{refused}");
    assert!(!folder.path("new").exists());
}

fn a_folder_that_cannot_be_synced_is_refused() {
    let folder = Folder::new();
    let refused = open_on(&folder, Faulty { sync_dir: true, ..Faulty::default() });
    assert!(
        matches!(refused, OpenError::Io { .. }) && refused.to_string().contains("sync the folder"),
        "{refused}"
    );
    let url = format!("sqlite:{}", folder.path("new/events.db").display());
    open(&url, &options(), OPENED_AT).expect("the next start may succeed");
}

fn a_log_that_cannot_be_evicted_is_refused() {
    let folder = Folder::new();
    let refused = open_on(&folder, Faulty { evict: true, ..Faulty::default() });
    assert!(refused.to_string().contains("sync and evict"), "{refused}");
}
