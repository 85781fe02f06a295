//! Databases that somebody copied: with the log of another one beside them, cut short, or emptied. None is taken for
//! sound without a word, and none is written to before that is known.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hookstead_core::{Body, BodySelector, EventSelector, Outcome, Store};
use hookstead_store::{
    BackupError, OpenError, OpenOptions, StartStep, Verdict, backup, examine, open, open_read_only,
};
use rusqlite::Connection;

use crate::backend::{Folder, OPENED_AT, options};
use crate::case::cases;
use crate::damaged_log::on_disk;
use crate::fixtures::copy;
use crate::scene::{accept, events, identity, problems, register};

cases!("foreign_log":
    a_log_of_another_store_is_refused_and_not_touched,
    a_log_beside_another_copy_of_its_store_is_refused_and_not_touched,
    a_killed_store_is_never_taken_for_another_copy_of_itself,
    a_log_that_goes_with_its_database_is_taken_whatever_its_path,
    a_database_that_was_cut_short_is_refused_or_named,
);

const EVENTS: usize = 60;

/// More than the busiest disk takes.
const CHECKPOINT_TIME_MAX: Duration = Duration::from_secs(30);

fn body(n: usize) -> Vec<u8> {
    format!("{n} ").repeat(2_000).into_bytes()
}

/// Database and log of a store with these events, after a stop or a crash.
fn files(prefix: &str, stopped: bool) -> (Vec<u8>, Vec<u8>) {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    go_on(&folder, &store, prefix, EVENTS);
    if stopped {
        store.close(OPENED_AT).expect("it closes");
    }
    on_disk(&folder)
}

fn folder_of(database: &[u8], log: &[u8]) -> Folder {
    let folder = Folder::new();
    fs::write(folder.database(), database).expect("it can be written");
    fs::write(folder.path("events.db-wal"), log).expect("it can be written");
    folder
}

fn a_log_of_another_store_is_refused_and_not_touched() {
    for stopped in [true, false] {
        let ((database, _), (_, log)) = (files("ours", stopped), files("theirs", stopped));
        let refused = check_refused("theirs", &folder_of(&database, &log));
        assert!(matches!(refused, OpenError::ForeignLog { .. }), "{refused}");
    }
}

/// Expects that a start refuses the log, that a look, a check, a read and a backup say the same, and that none has
/// written to anything.
fn check_refused(what: &str, folder: &Folder) -> OpenError {
    let before = on_disk(folder);
    // Once without the lock file that a start makes, and once beside it.
    let read_before = refused_to_read(what, folder);
    let refused = match open(&folder.url(), &options(), OPENED_AT) {
        Ok(opened) => panic!("{what}: it opens, with {} events", events(&opened.store).len()),
        Err(refused) => refused,
    };
    assert!(refused.to_string().contains("events.db-wal"), "{what}: {refused}");
    let found = examine(&folder.url(), &options());
    let failed = found.iter().find(|finding| finding.verdict == Verdict::Failed);
    let told = failed.map(|finding| (finding.name.as_str(), finding.words.clone()));
    assert_eq!(
        told,
        Some((StartStep::Log.as_str(), refused.reason())),
        "{what}: a look finds it too: {found:?}"
    );
    for told in read_before.into_iter().chain(refused_to_read(what, folder)) {
        assert_eq!(told, refused.reason(), "{what}");
    }
    assert!(on_disk(folder) == before, "{what}: database or log was written to");
    refused
}

/// Why a read, a check and a backup are refused.
fn refused_to_read(what: &str, folder: &Folder) -> [String; 3] {
    let to_check = OpenOptions { spot_check_events: 0, ..options() };
    let [read, checked] = [&options(), &to_check].map(|options| {
        let refused = open_read_only(&folder.url(), options).err();
        refused.unwrap_or_else(|| panic!("{what}: it is read")).reason()
    });
    let to = folder.path("no backup");
    let copied = match backup(&folder.url(), &to, &options(), OPENED_AT, &mut |_| ()) {
        Err(BackupError::Open(refused)) => refused.reason(),
        other => panic!("{what}: a backup of it ended with {other:?}"),
    };
    assert!(!to.join("store/hookstead.db").exists() && !to.join("backup.json").exists(), "{what}: copied");
    fs::remove_dir_all(&to).expect("it is there");
    [read, checked, copied]
}

/// Accepts events; how many decides whether the log is still in the filling that it was in.
///
/// No event comes while a checkpoint is under way: the first commit of a filling that begins just then does not say which
/// filling it is, and one of the next ones does.
fn go_on(folder: &Folder, store: &Arc<dyn Store>, prefix: &str, count: usize) {
    let beside = Connection::open(folder.database()).expect("anybody can open it");
    for n in 0..count {
        assert_eq!(accept(store, &format!("{prefix}_{n}"), &body(n)), Outcome::Stored);
        let_a_checkpoint_end(&beside);
    }
}

/// Waits for the checkpoint that begins by itself when a quarter of the log is used.
fn let_a_checkpoint_end(beside: &Connection) {
    const FRAME_BYTES: u64 = 24 + 8192;
    let worth = i64::try_from(options().wal_bytes_max / FRAME_BYTES / 4).expect("a small log");
    let deadline = Instant::now() + CHECKPOINT_TIME_MAX;
    loop {
        let (frames, moved): (i64, i64) = beside
            .query_row("PRAGMA wal_checkpoint(NOOP)", (), |row| Ok((row.get(1)?, row.get(2)?)))
            .expect("it can be asked for");
        if frames < worth || moved == frames {
            return;
        }
        assert!(Instant::now() < deadline, "{moved} of {frames} frames are in the database");
        std::thread::yield_now();
    }
}

/// A log is put beside a copy: `copied` makes one of a store and leaves the store killed, after so many more events.
fn check_copy(what: &str, copied: impl Fn(&Folder, usize) -> (Vec<u8>, Folder)) {
    for events in [0, 1, 3, EVENTS] {
        let folder = Folder::new();
        let (copy, killed) = copied(&folder, events);
        let (_, log) = on_disk(&killed);
        let refused = check_refused(&format!("{what}, {events} events later"), &folder_of(&copy, &log));
        assert!(matches!(refused, OpenError::OtherCopy { .. }), "{what}: {refused}");
        // Each by itself is sound.
        assert_eq!(problems(&killed.open().store), [] as [&str; 0], "{what}: the store that was killed");
        assert_eq!(problems(&folder_of(&copy, &[]).open().store), [] as [&str; 0], "{what}: the copy");
    }
}

fn a_log_beside_another_copy_of_its_store_is_refused_and_not_touched() {
    for kept in ["events.db.schema-1", "events.db.before"] {
        check_copy(kept, |folder, events| {
            copy("sqlite-schema-1", &folder.path(""));
            fs::copy(folder.database(), folder.path("events.db.before")).expect("it can be copied");
            let store = folder.open().store;
            go_on(folder, &store, "later", events);
            (fs::read(folder.path(kept)).expect("it was kept"), folder.as_after_a_kill())
        });
    }
    check_copy("a backup's database", |folder, events| {
        let store = folder.open().store;
        register(&store);
        go_on(folder, &store, "before", 3);
        let to = folder.path("backup");
        backup(&folder.url(), &to, &options(), OPENED_AT, &mut |_| ()).expect("it is made");
        go_on(folder, &store, "later", events);
        (fs::read(to.join("store/hookstead.db")).expect("it is there"), folder.as_after_a_kill())
    });
    check_copy("a copy made at rest", |folder, events| {
        let store = folder.open().store;
        register(&store);
        go_on(folder, &store, "before", 3);
        store.close(OPENED_AT).expect("it closes");
        drop(store);
        let kept = fs::read(folder.database()).expect("it is there");
        let store = folder.open().store;
        go_on(folder, &store, "later", events);
        (kept, folder.as_after_a_kill())
    });
    check_copy("the database of a later start", |folder, events| {
        let store = folder.open().store;
        register(&store);
        go_on(folder, &store, "before", events);
        let killed = folder.as_after_a_kill();
        let later = killed.as_after_a_kill();
        later.open().store.close(OPENED_AT).expect("it closes");
        (fs::read(later.database()).expect("it is there"), killed)
    });
}

/// After every third event, over several fillings of the log, and again after each start from that.
fn a_killed_store_is_never_taken_for_another_copy_of_itself() {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    for n in 0..EVENTS {
        accept(&store, &format!("evt_{n}"), &body(n));
        if n % 3 > 0 {
            continue;
        }
        let killed = folder.as_after_a_kill();
        let reader = open_read_only(&killed.url(), &options()).expect("it opens to be read");
        assert_eq!(events(&reader).len(), n + 1, "what a read sees of a killed store");
        drop(reader);
        drop(killed.open());
        let again = killed.as_after_a_kill();
        assert_eq!(events(&again.open().store).len(), n + 1);
    }
}

fn a_log_that_goes_with_its_database_is_taken_whatever_its_path() {
    let (database, log) = files("ours", false);
    let folder = Folder::new();
    let odd = folder.path("100% #1? ä");
    fs::create_dir(&odd).expect("it can be made");
    fs::write(odd.join("events.db"), database).expect("it can be written");
    fs::write(odd.join("events.db-wal"), log).expect("it can be written");
    let url = format!("sqlite:{}", odd.join("events.db").display());
    let store = open(&url, &options(), OPENED_AT).expect("it opens").store;
    assert_eq!(events(&store).len(), EVENTS);
}

/// At any length: the start refuses it, or the check names what is missing; what is served is what came.
fn a_database_that_was_cut_short_is_refused_or_named() {
    let (database, log) = files("ours", true);
    let (mut refused, mut named) = (0, 0);
    for part in 0..24 {
        let length = database.len() * part / 24 + usize::from(part % 2 == 1) * 100;
        let folder = folder_of(&database[..length], &log);
        let to_check = OpenOptions { spot_check_events: 0, ..options() };
        let Ok(opened) = open(&folder.url(), &to_check, OPENED_AT) else {
            refused += 1;
            continue;
        };
        named += 1;
        match opened.store.check(&mut |_| ()) {
            Ok(_) => assert!(!problems(&opened.store).is_empty(), "{length} bytes pass for sound"),
            // Of what is left not even a list can be made.
            Err(error) => assert!(!error.to_string().is_empty(), "{length} bytes"),
        }
        serves_what_came(&opened.store, length);
    }
    assert!(refused > 0 && refused + named == 24, "{refused} refused, {named} named");
}

fn serves_what_came(store: &Arc<dyn Store>, length: usize) {
    for n in 0..EVENTS {
        let selector = EventSelector::Identity(identity(&format!("ours_{n}")));
        let Ok(Some(event)) = store.event(&selector) else { continue };
        let Ok(kept) = store.body(BodySelector::Event(event.id)) else { continue };
        assert_eq!(kept, Some(Body::Kept(body(n).into())), "{length} bytes: event {n}");
    }
}
