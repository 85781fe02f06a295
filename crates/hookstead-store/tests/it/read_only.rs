//! Opening to read: beside the owner, without one, and that nothing is written.

use std::sync::Arc;

use hookstead_core::{Body, BodySelector, Outcome, Store};
use hookstead_store::{OpenError, OpenOptions, open_read_only};
use rusqlite::Connection;

use crate::backend::{Folder, OPENED_AT, options, url};
use crate::case::cases;
use crate::damaged_log::{flip, on_disk, refused_start, start_of_transaction};
use crate::scene::{accept, accepting, events, find, problems, register};

cases!("read_only":
    it_reads_beside_the_owner_and_sees_what_comes,
    it_writes_nothing,
    it_reads_what_only_the_log_holds,
    it_keeps_nobody_from_starting,
    it_is_never_made,
    a_damaged_log_is_refused_and_named_by_a_check,
    a_damaged_log_that_leaves_nothing_to_read_is_named_all_the_same,
    a_damaged_event_is_refused_and_named_by_a_check,
    what_it_cannot_read_it_says,
    a_closed_one_refuses,
);

fn read(folder: &Folder) -> Arc<dyn Store> {
    open_read_only(&folder.url(), &options()).expect("it opens to be read")
}

fn check(folder: &Folder) -> Arc<dyn Store> {
    let to_check = OpenOptions { spot_check_events: 0, ..options() };
    open_read_only(&folder.url(), &to_check).expect("it opens to be checked")
}

fn filled(events: usize) -> (Folder, Arc<dyn Store>) {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    (0..events).for_each(|n| assert_eq!(accept(&store, &format!("evt_{n}"), b"{}"), Outcome::Stored));
    (folder, store)
}

fn it_reads_beside_the_owner_and_sees_what_comes() {
    let (folder, owner) = filled(2);
    let reader = read(&folder);
    assert_eq!(events(&reader), events(&owner));
    assert_eq!(reader.registry().expect("it can be read"), owner.registry().expect("it can be read"));
    assert_eq!(reader.stats().expect("it can be read"), owner.stats().expect("it can be read"));
    let mark = reader.changed().expect("it can be asked");
    assert_eq!(reader.changed().expect("it can be asked"), mark, "nothing came");
    accept(&owner, "evt_2", b"later");
    assert_ne!(reader.changed().expect("it can be asked"), mark);
    let event = find(&reader, "evt_2");
    let body = reader.body(BodySelector::Event(event.id)).expect("it can be read");
    assert_eq!(body, Some(Body::Kept(b"later".as_slice().into())));
    let report = reader.check(&mut |_| ()).expect("the check runs to its end");
    assert_eq!((report.events, report.bodies, report.problem_count), (3, 3, 0));
    reader.close(OPENED_AT).expect("it closes");
    assert_eq!(accept(&owner, "evt_3", b"{}"), Outcome::Stored, "the owner goes on");
}

fn it_writes_nothing() {
    let (folder, owner) = filled(3);
    let write = accepting(&owner, "evt_9", b"{}");
    owner.close(OPENED_AT).expect("it closes");
    drop(owner);
    let before = on_disk(&folder);
    let reader = read(&folder);
    for refused in [reader.apply(&[write], OPENED_AT).map(drop), reader.probe(OPENED_AT)] {
        let told = refused.expect_err("it is refused");
        let cause = std::error::Error::source(&told).map(ToString::to_string).unwrap_or_default();
        assert!(format!("{told} {cause}").contains("opened to be read"), "{told:?}");
    }
    assert_eq!(problems(&reader), [] as [&str; 0]);
    drop(reader);
    assert!(on_disk(&folder) == before, "database or log was written to");
}

/// The files of a store whose process died.
fn crashed(events: usize) -> Folder {
    let (folder, _owner) = filled(events);
    let (database, log) = on_disk(&folder);
    let copy = Folder::new();
    std::fs::write(copy.database(), database).expect("it can be written");
    std::fs::write(copy.path("events.db-wal"), log).expect("it can be written");
    copy
}

fn it_reads_what_only_the_log_holds() {
    let folder = crashed(3);
    let before = on_disk(&folder);
    let reader = read(&folder);
    assert_eq!(events(&reader).len(), 3);
    drop(reader);
    assert!(on_disk(&folder) == before, "database or log was written to");
    assert!(!folder.path("events.db.lock").exists(), "no lock was made");
}

fn it_keeps_nobody_from_starting() {
    let folder = crashed(2);
    drop(folder.open());
    let reader = read(&folder);
    let owner = folder.open().store;
    accept(&owner, "evt_2", b"{}");
    assert_eq!(events(&reader).len(), 3);
}

fn it_is_never_made() {
    let folder = Folder::new();
    let refused = open_read_only(&folder.url(), &options()).err().expect("it is refused");
    assert!(
        matches!(&refused, OpenError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
    );
    std::fs::write(folder.database(), b"").expect("it can be written");
    let refused = open_read_only(&folder.url(), &options()).err().expect("it is refused");
    assert!(matches!(refused, OpenError::Foreign { .. }), "{refused}");
    let names = std::fs::read_dir(folder.path("")).expect("it is there").count();
    assert_eq!(names, 1, "no file was made");
}

fn a_damaged_log_is_refused_and_named_by_a_check() {
    let (folder, _) = refused_start();
    let refused = open_read_only(&folder.url(), &options()).err().expect("it is refused");
    assert!(matches!(&refused, OpenError::Damaged { path, .. } if *path == folder.path("events.db-wal")));
    let folder = crashed(4);
    let log = folder.path("events.db-wal");
    flip(&log, start_of_transaction(&log, 1) + 100);
    let found = problems(&check(&folder));
    assert!(found.iter().any(|what| what.contains("events.db-wal` is damaged: frame ")), "{found:?}");
}

/// The database has lost its end as well, so that SQLite cannot make sense of what is left.
fn a_damaged_log_that_leaves_nothing_to_read_is_named_all_the_same() {
    let folder = crashed(4);
    let (database, mut log) = on_disk(&folder);
    let left = Folder::new();
    std::fs::write(left.database(), &database[..8192]).expect("it can be written");
    log[32 + 2 * (24 + 8192) + 100] ^= 1;
    std::fs::write(left.path("events.db-wal"), log).expect("it can be written");
    let to_check = OpenOptions { spot_check_events: 0, ..options() };
    let refused = open_read_only(&left.url(), &to_check).err().expect("it is refused");
    assert!(matches!(&refused, OpenError::Damaged { path, .. } if *path == left.path("events.db-wal")));
}

fn a_damaged_event_is_refused_and_named_by_a_check() {
    let (folder, owner) = filled(1);
    drop(owner);
    let raw = Connection::open(folder.database()).expect("anybody can open it");
    raw.execute("UPDATE events SET body = CAST('[]' AS BLOB)", []).expect("the edit is legal");
    drop(raw);
    let refused = open_read_only(&folder.url(), &options()).err().expect("it is refused");
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
    assert_eq!(problems(&check(&folder)), ["the body of event 0001 differs from its digest"]);
}

fn what_it_cannot_read_it_says() {
    let folder = crashed(1);
    std::os::unix::fs::symlink(folder.path("nowhere/shm"), folder.path("events.db-shm"))
        .expect("it can be made");
    for place in [folder.url(), "memory:".to_owned(), format!("files:{}", folder.path("records").display())] {
        let refused = open_read_only(&place, &options()).err().expect("it is refused");
        assert!(matches!(refused, OpenError::NotReadable { .. }), "{place}: {refused:?}");
    }
    let newer = crashed(1);
    let raw = Connection::open(newer.database()).expect("anybody can open it");
    raw.execute("INSERT INTO migrations VALUES (9, 'later', 'x', 1)", []).expect("the edit is legal");
    drop(raw);
    let refused = open_read_only(&newer.url(), &options()).err().expect("it is refused");
    assert!(matches!(refused, OpenError::Newer { found: 9, .. }), "{refused}");
    let refused = open_read_only(&url(&newer.path("")), &options()).err().expect("it is refused");
    assert!(matches!(refused, OpenError::NoPath { .. }), "{refused}");
}

fn a_closed_one_refuses() {
    let (folder, _owner) = filled(1);
    let reader = read(&folder);
    reader.close(OPENED_AT).expect("it closes");
    reader.close(OPENED_AT).expect("closing it again changes nothing");
    assert!(reader.stats().is_err() && reader.changed().is_err());
}
