//! The ways in which a disk that fails once makes plain SQLite lose what it acknowledged (F1, F2, F4 and F5), each as a
//! test of the rule that answers it: taken out of the store, the rule is missed here. F3 is that of a folder of records,
//! which `files::power` shows on a simulated disk.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};

use hookstead_core::Outcome;
use hookstead_store::{OpenError, OpenOptions, open};
use libtest_mimic::Trial;
use rusqlite::Connection;

use crate::backend::{Folder, OPENED_AT, options, url};
use crate::case::cases;
use crate::faults::can_inject;
use crate::faulty::Faulty;
use crate::scene::{accept, events, problems, register, try_accept};

cases!("findings":
    f1_no_commit_ever_writes_to_a_block_of_the_log_that_was_not_written_before,
    f2_a_retry_after_a_failed_sync_and_a_restart_is_judged_by_the_disk_and_not_by_the_cache,
    f4_no_start_believes_that_a_folder_was_synced_that_was_not,
);

/// ext4 leaves a block unreadable of which the first write failed, and the next sync says that all is well.
fn f1_no_commit_ever_writes_to_a_block_of_the_log_that_was_not_written_before() {
    let folder = Folder::new();
    let log = || {
        let facts = fs::metadata(folder.path("events.db-wal")).expect("it is there");
        (facts.ino(), facts.len(), facts.blocks())
    };
    let store = folder.open().store;
    let (inode, bytes, blocks) = log();
    assert!(blocks * 512 >= bytes, "{blocks} blocks of 512 bytes were written, of {bytes} bytes");
    register(&store);
    for n in 0..200 {
        accept(&store, &format!("evt_{n}"), &[b'x'; 16 * 1024]);
        assert_eq!(log(), (inode, bytes, blocks), "after event {n}");
    }
    store.close(OPENED_AT).expect("it closes");
    drop(store);
    let store = folder.open().store;
    accept(&store, "evt_later", b"{}");
    assert_eq!(log(), (inode, bytes, blocks), "after another start");
}

/// A sync of the log fails: the page cache has the event, the disk has not, and the process ends as it must. After the
/// restart the provider sends the event again.
fn f2_a_retry_after_a_failed_sync_and_a_restart_is_judged_by_the_disk_and_not_by_the_cache() {
    let (folder, on_disk) = synced_and_then_only_cached();
    let fs = Arc::new(Faulty { on_disk: Mutex::new(on_disk), ..Faulty::default() });
    let store = open(&folder.url(), &OpenOptions { fs, ..options() }, OPENED_AT).expect("it opens").store;
    assert_eq!(accept(&store, "evt_synced", b"1"), Outcome::Duplicate);
    assert_eq!(accept(&store, "evt_cached", b"2"), Outcome::Stored, "the disk does not have it");
    assert_eq!(events(&store).len(), 2);
    assert_eq!(problems(&store), [] as [&str; 0]);
}

/// A crashed store of two events, and what the disk has of its log: one event.
fn synced_and_then_only_cached() -> (Folder, Vec<(PathBuf, Vec<u8>)>) {
    let source = Folder::new();
    let store = source.open().store;
    register(&store);
    let copied = |name: &str| fs::read(source.path(name)).expect("it can be read");
    // In a process that does not go on: reading SQLite's files takes its locks away.
    accept(&store, "evt_synced", b"1");
    let synced = copied("events.db-wal");
    accept(&store, "evt_cached", b"2");
    let (database, cached) = (copied("events.db"), copied("events.db-wal"));
    assert!(synced != cached);
    let folder = Folder::new();
    fs::write(folder.database(), database).expect("it can be written");
    fs::write(folder.path("events.db-wal"), cached).expect("it can be written");
    let log = folder.path("events.db-wal");
    (folder, vec![(log, synced)])
}

/// SQLite syncs the folder when it makes the log, and does not look at what comes of it.
fn f4_no_start_believes_that_a_folder_was_synced_that_was_not() {
    let folder = Folder::new();
    for start in ["the first", "a later"] {
        let fs = Arc::new(Faulty { sync_dir: true, ..Faulty::default() });
        let refused = open(&folder.url(), &OpenOptions { fs, ..options() }, OPENED_AT);
        let Err(OpenError::Io { doing, .. }) = refused else { panic!("{start} start: {refused:?}") };
        assert!(doing.contains("sync the folder"), "{start} start: {doing}");
        register(&folder.open().store);
    }
}

/// Names the database for the process that the errors are injected into.
const CHILD: &str = "HOOKSTEAD_STORE_TEST_MODE_CHILD";

/// More syncs than a start makes before the mode was changed.
const SYNCS: usize = 24;

pub(crate) fn trials() -> Vec<Trial> {
    let run = || {
        f5_a_change_to_wal_that_fails_is_never_taken_for_done();
        Ok(())
    };
    let name = "findings::f5_a_change_to_wal_that_fails_is_never_taken_for_done";
    vec![Trial::test(name, run).with_ignored_flag(!can_inject())]
}

/// The other process, if this is it: opens the database, and accepts an event if it was opened.
pub(crate) fn child() -> Option<ExitCode> {
    let database = std::env::var_os(CHILD)?;
    let opened = open(&url(Path::new(&database)), &options(), OPENED_AT);
    let accepted = opened.as_ref().is_ok_and(|opened| try_accept(&opened.store, "evt_1", b"{}").is_ok());
    // While the store is open: its close would move the log into the database.
    std::process::exit(if accepted { 0 } else { REFUSED })
}

const REFUSED: i32 = 3;

/// If a sync fails while SQLite changes the mode, the statement answers `wal`, the connection believes it, and writes in
/// another mode. Somebody's tool had left the database so. Two rules answer it: the log is there before any connection
/// is, so that there is nothing to change; and another connection reads the mode back after the first commit.
fn f5_a_change_to_wal_that_fails_is_never_taken_for_done() {
    let mut refused = 0;
    for failing in 1..=SYNCS {
        let folder = Folder::new();
        register(&folder.open().store);
        let raw = Connection::open(folder.database()).expect("anybody can open it");
        raw.pragma_update(None, "journal_mode", "DELETE").expect("nobody else has it open");
        drop(raw);
        let ended = accept_while_a_sync_fails(&folder, failing);
        assert!([0, REFUSED].contains(&ended), "sync {failing}: {ended}");
        refused += usize::from(ended == REFUSED);
        if ended == 0 {
            assert!(is_in_the_log(&folder), "sync {failing}: an event was accepted in another mode");
        }
        let again = accept(&folder.open().store, "evt_1", b"{}");
        assert!(again == Outcome::Duplicate || ended == REFUSED, "sync {failing}: the event is gone");
    }
    assert!(
        (1..SYNCS).contains(&refused),
        "{refused} of {SYNCS}: some syncs are of the start, some come after it"
    );
}

fn accept_while_a_sync_fails(folder: &Folder, failing: usize) -> i32 {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e"]);
    strace.arg(format!("inject=fsync,fdatasync:error=EIO:when={failing}"));
    strace.arg(std::env::current_exe().expect("this binary has a path")).env(CHILD, folder.database());
    let ended = strace.stderr(Stdio::null()).status().expect("strace was there a moment ago");
    ended.code().expect("nobody killed it")
}

/// Whether the event was committed to the log: then the database alone does not have it yet.
fn is_in_the_log(folder: &Folder) -> bool {
    let alone = Folder::new();
    fs::copy(folder.database(), alone.database()).expect("it can be copied");
    let raw = Connection::open(alone.database()).expect("anybody can open it");
    let events: i64 =
        raw.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).expect("it can be read");
    events == 0
}
