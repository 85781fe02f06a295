//! The schema of an older database is changed: a copy of it as it was is there first, or nothing is changed.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use hookstead_core::{Digest, Outcome};
use hookstead_store::{
    BackupReport, OpenError, OpenOptions, StartStep, UpgradeCopy, Verdict, backup, examine, open, restore,
};
use rusqlite::Connection;

use crate::backend::{Folder, OPENED_AT, options};
use crate::case::cases;
use crate::faulty::Faulty;
use crate::fixtures::copy;
use crate::scene::{accept, events, problems, register};

cases!("upgrade":
    an_older_database_is_copied_before_its_schema_changes,
    the_program_of_before_can_go_on_with_the_copy,
    a_new_database_and_one_of_this_schema_are_not_copied,
    told_not_to_no_copy_is_kept,
    without_room_for_the_copy_nothing_is_changed,
    without_a_durable_copy_nothing_is_changed,
    a_damaged_database_is_not_brought_to_a_newer_schema,
    what_a_start_would_refuse_is_not_brought_to_a_newer_schema,
    a_look_finds_what_will_refuse_the_change_of_the_schema,
    an_older_database_is_backed_up_and_restored_as_it_is,
    damage_of_an_older_database_is_copied_and_named,
    what_is_left_of_a_copy_that_was_cut_short_is_no_obstacle,
    what_is_left_of_a_copy_is_room_for_the_next,
);

/// How many events the fixture has.
const EVENTS: i64 = 10;

/// A folder with a database of the first schema, `events.db`.
fn older() -> Folder {
    let folder = Folder::new();
    copy("sqlite-schema-1", &folder.path(""));
    folder
}

fn schema(database: &Path) -> i64 {
    let raw = Connection::open(database).expect("anybody can open it");
    raw.query_row("SELECT max(number) FROM migrations", [], |row| row.get(0)).expect("it can be read")
}

fn names(folder: &Folder) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path("")).expect("it can be listed");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("it can be listed").file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("schema"))
        .collect();
    names.sort();
    names
}

fn an_older_database_is_copied_before_its_schema_changes() {
    let folder = older();
    let before = std::fs::read(folder.database()).expect("it is there");
    let store = folder.open().store;
    assert_eq!(problems(&store), [] as [&str; 0]);
    store.close(OPENED_AT).expect("it closes");
    drop(store);
    assert!(schema(&folder.database()) > 1);
    assert_eq!(names(&folder), ["events.db.schema-1"]);
    let kept = folder.path("events.db.schema-1");
    assert_eq!(std::fs::metadata(&kept).expect("it is there").permissions().mode() & 0o777, 0o600);
    let raw = Connection::open(&kept).expect("anybody can open it");
    // Page 1 has counters of the file's own, and that of `store` the copy's mark; all others are the same bytes.
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'store'";
    let marked: u32 = raw.query_row(sql, [], |row| row.get(0)).expect("it reads");
    let copied = std::fs::read(&kept).expect("it is there");
    let pages = (1..).zip(copied.chunks(8192).zip(before.chunks(8192)));
    let other: Vec<_> =
        pages.filter(|(_, (copied, before))| copied != before).map(|(number, _)| number).collect();
    assert!(
        copied.len() == before.len() && other.iter().all(|number| [1, marked].contains(number)),
        "the copy is another database: {other:?}"
    );
    let count: i64 = raw.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).expect("it reads");
    assert_eq!((schema(&kept), count), (1, EVENTS));
}

/// Which program that is does not matter here: it can be opened, and is brought to the newer schema again.
fn the_program_of_before_can_go_on_with_the_copy() {
    let folder = older();
    folder.open().store.close(OPENED_AT).expect("it closes");
    let back = Folder::new();
    std::fs::copy(folder.path("events.db.schema-1"), back.database()).expect("it can be copied");
    let store = back.open().store;
    assert_eq!(i64::try_from(events(&store).len()).expect("they are few"), EVENTS);
    assert_eq!(accept(&store, "evt_done", b"{\"n\":1}"), Outcome::Duplicate);
}

fn a_new_database_and_one_of_this_schema_are_not_copied() {
    let folder = Folder::new();
    for _ in 0..2 {
        let store = folder.open().store;
        register(&store);
        store.close(OPENED_AT).expect("it closes");
    }
    assert_eq!(names(&folder), [] as [&str; 0]);
    let older = older();
    older.open().store.close(OPENED_AT).expect("it closes");
    std::fs::remove_file(older.path("events.db.schema-1")).expect("it is there");
    older.open().store.close(OPENED_AT).expect("it closes");
    assert_eq!(names(&older), [] as [&str; 0], "the second start changes nothing");
}

fn told_not_to_no_copy_is_kept() {
    let folder = older();
    let told = OpenOptions { upgrade_copy: UpgradeCopy::None, ..options() };
    let store = open(&folder.url(), &told, OPENED_AT).expect("the store opens").store;
    assert_eq!(accept(&store, "evt_done", b"{\"n\":1}"), Outcome::Duplicate);
    drop(store);
    assert!(schema(&folder.database()) > 1);
    assert_eq!(names(&folder), [] as [&str; 0]);
}

/// Expects that an open with this disk is refused, and that the database is the one that it was.
fn check_unchanged(folder: &Folder, options: &OpenOptions) -> OpenError {
    let before = std::fs::read(folder.database()).expect("it is there");
    let refused = open(&folder.url(), options, OPENED_AT).expect_err("it is refused");
    assert!(std::fs::read(folder.database()).expect("it is there") == before, "it was written to");
    assert_eq!(names(folder), [] as [&str; 0], "{refused}");
    refused
}

fn without_room_for_the_copy_nothing_is_changed() {
    let folder = older();
    let bytes = std::fs::metadata(folder.database()).expect("it is there").len();
    let with = |free: u64| {
        let fs = Arc::new(Faulty { free: Some(Arc::new(AtomicU64::new(free))), ..Faulty::default() });
        OpenOptions { fs, free_bytes_min: 1_000, ..options() }
    };
    let refused = check_unchanged(&folder, &with(bytes + 999));
    assert!(
        matches!(&refused, OpenError::NoRoomForCopy { needed, free, .. } if *needed == free + 1),
        "{refused:?}"
    );
    assert!(refused.to_string().contains("upgrade_copy = false"), "{refused}");
    assert_eq!(schema(&folder.database()), 1);
    open(&folder.url(), &with(bytes + 1_000), OPENED_AT).expect("there is room");
    assert_eq!(names(&folder), ["events.db.schema-1"]);
}

fn without_a_durable_copy_nothing_is_changed() {
    let folder = older();
    let fs = Arc::new(Faulty { rename: true, ..Faulty::default() });
    let refused = check_unchanged(&folder, &OpenOptions { fs, ..options() });
    assert!(refused.to_string().contains("events.db.schema-1"), "{refused}");
    assert_eq!(schema(&folder.database()), 1);
}

/// Each page of a table or an index has lost its kind, one after the other.
fn a_damaged_database_is_not_brought_to_a_newer_schema() {
    let folder = older();
    let sound = std::fs::read(folder.database()).expect("it is there");
    let is_tree = |page: &[u8]| [2, 5, 10, 13].contains(&page[0]);
    let pages: Vec<_> = (2..sound.len() / 8192).filter(|page| is_tree(&sound[page * 8192..])).collect();
    let mut named = 0;
    for page in &pages {
        let mut bytes = sound.clone();
        bytes[page * 8192] = 99;
        std::fs::write(folder.database(), bytes).expect("it can be written");
        let refused = check_unchanged(&folder, &options());
        named += usize::from(matches!(refused, OpenError::Damaged { .. }));
    }
    // Without the two that are read before, the key and the history of the schema, no copy is begun.
    assert!(pages.len() > 15 && named >= pages.len() - 2, "{named} of {}", pages.len());
}

/// The same database, brought to the second schema.
fn schema_2() -> Folder {
    let folder = older();
    let sql = include_str!("../../src/sqlite/migrations/0002_deferred_identities.sql");
    let raw = Connection::open(folder.database()).expect("anybody can open it");
    raw.execute_batch(sql).expect("it is legal");
    let applied = "INSERT INTO migrations VALUES (2, 'deferred identities', ?1, 1)";
    raw.execute(applied, [Digest::of(sql.as_bytes()).to_string()]).expect("it is legal");
    folder
}

/// Damage that SQLite's own check does not see.
fn what_a_start_would_refuse_is_not_brought_to_a_newer_schema() {
    const NEWEST: &str = "WHERE seq = (SELECT max(seq) FROM events)";
    type Older = fn() -> Folder;
    let damages: [(&str, Older, String); 6] = [
        ("a bit of the newest body", older, format!("UPDATE events SET body = x'7b226e223a387d' {NEWEST}")),
        ("its length", older, format!("UPDATE events SET body_bytes = body_bytes + 1 {NEWEST}")),
        ("its digest", schema_2, format!("UPDATE events SET digest = zeroblob(32) {NEWEST}")),
        ("the key of the identities", older, "UPDATE store SET identity_key = x'00'".to_owned()),
        ("a retry schedule", older, "UPDATE destinations SET retry_schedule_s = '1,x'".to_owned()),
        ("a mark of the identities", schema_2, "DELETE FROM identity_ranges WHERE number = 7".to_owned()),
    ];
    for (what, older, damage) in damages {
        for upgrade_copy in [UpgradeCopy::Beside, UpgradeCopy::None] {
            let folder = older();
            let raw = Connection::open(folder.database()).expect("anybody can open it");
            assert!(raw.execute(&damage, []).expect("it is legal") > 0, "{what}");
            // All of it in the database, as after a stop.
            raw.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("it is emptied");
            drop(raw);
            let before = schema(&folder.database());
            let refused = check_unchanged(&folder, &OpenOptions { upgrade_copy, ..options() });
            assert_eq!(schema(&folder.database()), before, "{what}: {refused}");
        }
    }
}

/// What a look says of the schema, or of the step that failed. It changes nothing.
fn look(folder: &Folder, options: &OpenOptions) -> (String, Verdict) {
    let before = std::fs::read(folder.database()).expect("it is there");
    let found = examine(&folder.url(), options);
    assert!(std::fs::read(folder.database()).expect("it is there") == before, "it was written to");
    let failed = found.iter().find(|finding| finding.verdict == Verdict::Failed);
    let format = found.iter().find(|finding| finding.name == StartStep::Format.as_str());
    let told = failed.or(format).expect("every look has this step");
    (told.words.clone(), told.verdict)
}

/// The start itself, on the same disk, agrees each time.
fn a_look_finds_what_will_refuse_the_change_of_the_schema() {
    let bytes = std::fs::metadata(older().database()).expect("it is there").len();
    let with = |free: u64, upgrade_copy| {
        let fs = Arc::new(Faulty { free: Some(Arc::new(AtomicU64::new(free))), ..Faulty::default() });
        OpenOptions { fs, free_bytes_min: 1_000, upgrade_copy, ..options() }
    };
    type Spoil = fn(&Folder);
    let nothing: Spoil = |_| ();
    let leftover: Spoil = |folder| {
        std::fs::write(folder.path("events.db.schema-1.new"), [1; 500]).expect("it can be written");
    };
    // SQLite's own check sees it, and no read of what a start needs.
    let index: Spoil = |folder| {
        let raw = Connection::open(folder.database()).expect("anybody can open it");
        let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'runs'";
        let page: u32 = raw.query_row(sql, [], |row| row.get(0)).expect("it reads");
        drop(raw);
        let mut bytes = std::fs::read(folder.database()).expect("it is there");
        bytes[(page as usize - 1) * 8192] = 99;
        std::fs::write(folder.database(), bytes).expect("it can be written");
    };
    let body: Spoil = |folder| {
        let raw = Connection::open(folder.database()).expect("anybody can open it");
        raw.execute("UPDATE events SET digest = zeroblob(32) WHERE seq = 10", []).expect("it is legal");
    };
    let (kept, none) = (UpgradeCopy::Beside, UpgradeCopy::None);
    for (what, spoil, options, refused) in [
        ("room for it", nothing, with(bytes + 1_000, kept), None),
        ("a byte too little", nothing, with(bytes + 999, kept), Some("bytes must be free")),
        ("a byte too little, and no copy", nothing, with(bytes + 999, none), None),
        ("too little, but for a leftover", leftover, with(bytes + 500, kept), None),
        ("too little, also with a leftover", leftover, with(bytes + 499, kept), Some("bytes must be free")),
        ("a damaged page", index, with(bytes + 1_000, kept), Some("does not hold")),
        ("a damaged event", body, with(bytes + 1_000, kept), Some("differs from its digest")),
        ("a damaged event, and no copy", body, with(bytes, none), Some("differs from its digest")),
    ] {
        let folder = older();
        spoil(&folder);
        let (told, verdict) = look(&folder, &options);
        let started = open(&folder.url(), &options, OPENED_AT);
        assert_eq!(started.is_err(), refused.is_some(), "{what}: {started:?}");
        match refused {
            Some(words) => assert!(verdict == Verdict::Failed && told.contains(words), "{what}: {told}"),
            None => assert!(verdict == Verdict::Good && told.contains("changes to"), "{what}: {told}"),
        }
    }
}

/// Backs it up and restores it elsewhere; what both say, and where it then is.
fn there_and_back(folder: &Folder) -> ([BackupReport; 2], Folder) {
    let (backup_at, restored) = (folder.path("backup"), Folder::new());
    let options = OpenOptions { spot_check_events: 0, ..options() };
    let made = backup(&folder.url(), &backup_at, &options, OPENED_AT, &mut |_| ()).expect("it is made");
    let back =
        restore(&backup_at, &restored.url(), &options, OPENED_AT, &mut |_| ()).expect("it is restored");
    ([made, back], restored)
}

/// From either schema, also of a store that was killed, by this program; a start then brings it to the newer one.
fn an_older_database_is_backed_up_and_restored_as_it_is() {
    for (schema_before, older) in [(1, older as fn() -> Folder), (2, schema_2)] {
        let folder = older();
        // Its newest word is in the log alone.
        let raw = Connection::open(folder.database()).expect("anybody can open it");
        raw.execute("UPDATE sources SET identity_fingerprint = 'id-v2'", []).expect("it is legal");
        let (reports, restored) = there_and_back(&folder);
        drop(raw);
        for report in &reports {
            let seen = (report.check.events, report.check.problem_count, report.older_schema);
            assert_eq!(seen, (10, 0, Some(schema_before)), "{:?}", report.check.problems);
        }
        assert_eq!(schema(&restored.database()), i64::from(schema_before), "it was put back as it is");
        let store = restored.open().store;
        assert_eq!(i64::try_from(events(&store).len()).expect("they are few"), EVENTS);
        assert_eq!(accept(&store, "evt_done", b"{\"n\":1}"), Outcome::Duplicate);
        assert_eq!(store.registry().expect("it reads").sources[0].identity_fingerprint, "id-v2");
        assert_eq!(problems(&store), [] as [&str; 0]);
        let ([made, _], _) = there_and_back(&restored);
        assert_eq!(made.older_schema, None, "the start has changed that");
    }
}

fn damage_of_an_older_database_is_copied_and_named() {
    for (damage, named) in [
        ("UPDATE events SET body = x'7b226e223a307d' WHERE seq = 2", "differs from its digest"),
        ("DELETE FROM events WHERE seq = 3", "event 0003 is missing"),
        ("DELETE FROM event_ids WHERE seq = 4", "is not in the index of ids"),
        ("UPDATE variants SET digest = zeroblob(32) WHERE variant = 1", "differs from its digest"),
    ] {
        let folder = older();
        let raw = Connection::open(folder.database()).expect("anybody can open it");
        assert!(raw.execute(damage, []).expect("it is legal") > 0, "{damage}");
        let (reports, _) = there_and_back(&folder);
        for report in reports {
            assert_eq!((report.check.events, report.check.problem_count), (10, 1), "{damage}: {report:?}");
            assert!(report.check.problems[0].what.contains(named), "{damage}: {report:?}");
        }
    }
}

fn what_is_left_of_a_copy_that_was_cut_short_is_no_obstacle() {
    let folder = older();
    for name in ["events.db.schema-1", "events.db.schema-1.new", "events.db.schema-1.new-wal"] {
        std::fs::write(folder.path(name), b"half a database").expect("it can be written");
    }
    folder.open().store.close(OPENED_AT).expect("it closes");
    assert_eq!(names(&folder), ["events.db.schema-1"]);
    assert_eq!(schema(&folder.path("events.db.schema-1")), 1);
}

/// A disk that is full of it: each of its files makes the room, whichever was left.
fn what_is_left_of_a_copy_is_room_for_the_next() {
    for left in ["events.db.schema-1.new", "events.db.schema-1.new-wal", "events.db.schema-1.new-journal"] {
        let folder = older();
        let bytes = std::fs::metadata(folder.database()).expect("it is there").len();
        std::fs::write(folder.path(left), vec![1; 50_000]).expect("it can be written");
        let free = Some(Arc::new(AtomicU64::new(bytes - 50_000)));
        let fs = Arc::new(Faulty { free, ..Faulty::default() });
        let full = OpenOptions { fs, free_bytes_min: 0, ..options() };
        open(&folder.url(), &full, OPENED_AT).expect("there is room when the leftover is gone");
        assert_eq!(names(&folder), ["events.db.schema-1"], "{left}");
    }
}
