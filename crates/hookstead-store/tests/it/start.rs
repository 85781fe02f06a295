//! A start as a list of steps, and a look at a store that takes the same ones and changes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hookstead_core::Outcome;
use hookstead_store::fs::FileSystem;
use hookstead_store::{Finding, OpenError, OpenOptions, StartStep, Verdict, examine, open};
use rusqlite::Connection;

use crate::backend::{Folder, OPENED_AT, options};
use crate::case::cases;
use crate::faulty::Faulty;
use crate::scene::{accept, register};

cases!("start":
    a_start_takes_its_steps_in_their_order,
    a_volatile_file_system_is_warned_of_on_both_stores,
    what_refuses_a_start_is_found_by_a_look_in_the_same_step,
    a_look_at_no_store_makes_none,
    a_look_takes_the_steps_and_changes_nothing,
    a_look_beside_the_owner_changes_nothing_and_says_who_it_is,
    a_damaged_newest_event_is_found_by_a_look,
);

const KINDS: [(&str, &[StartStep]); 2] = [("sqlite", StartStep::SQLITE), ("files", StartStep::FILES)];

fn url(folder: &Folder, kind: &str) -> String {
    format!("{kind}:{}", folder.path("inbox").display())
}

fn names(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.name.as_str()).collect()
}

/// A closed store with one event.
fn made(kind: &str) -> Folder {
    let folder = Folder::new();
    let store = open(&url(&folder, kind), &options(), OPENED_AT).expect("it opens").store;
    register(&store);
    assert_eq!(accept(&store, "evt_1", b"the body of the first event"), Outcome::Stored);
    store.close(OPENED_AT).expect("it closes");
    folder
}

/// Every file and its bytes, but for the memory that SQLite shares.
fn bytes(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("it can be listed") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(bytes(&path));
        } else if !path.to_string_lossy().ends_with("-shm") {
            let content = std::fs::read(&path).expect("it can be read");
            // An empty log says the same as none.
            if !(content.is_empty() && path.to_string_lossy().ends_with("-wal")) {
                found.insert(path, content);
            }
        }
    }
    found
}

/// As those of every test here, wherever the temporary files lie: a start on a file system in memory is warned of.
fn local() -> OpenOptions {
    let fs = Arc::new(Faulty { poses_as: Some(FileSystem::Local), ..Faulty::default() });
    OpenOptions { fs, ..options() }
}

/// What a look finds, which has changed nothing.
fn look(folder: &Folder, kind: &str) -> Vec<Finding> {
    let root = folder.path("");
    let before = bytes(&root);
    let findings = examine(&url(folder, kind), &local());
    assert!(before == bytes(&root), "{kind}: a look changed the store: {findings:#?}");
    findings
}

fn a_start_takes_its_steps_in_their_order() {
    for (kind, steps) in KINDS {
        let folder = Folder::new();
        for round in ["new", "opened again"] {
            let opened = open(&url(&folder, kind), &options(), OPENED_AT).expect("it opens");
            let expected: Vec<_> = steps.iter().map(|step| step.as_str()).collect();
            assert_eq!(names(&opened.start), expected, "{kind}, {round}");
            let failed = opened.start.iter().filter(|finding| finding.verdict == Verdict::Failed);
            assert_eq!(failed.count(), 0, "{kind}, {round}: {:#?}", opened.start);
            assert!(opened.start.iter().all(|finding| !finding.words.is_empty()), "{:#?}", opened.start);
        }
    }
}

fn a_volatile_file_system_is_warned_of_on_both_stores() {
    for (kind, _) in KINDS {
        let folder = Folder::new();
        let fs = Arc::new(Faulty { poses_as: Some(FileSystem::Volatile("tmpfs")), ..Faulty::default() });
        let options = OpenOptions { fs, ..options() };
        let opened = open(&url(&folder, kind), &options, OPENED_AT).expect("it works");
        for findings in [opened.start, examine(&url(&folder, kind), &options)] {
            let warned: Vec<_> =
                findings.iter().filter(|finding| finding.verdict == Verdict::Warning).collect();
            assert_eq!(warned.len(), 1, "{kind}: {findings:#?}");
            assert_eq!(warned[0].name, "file-system", "{kind}");
            assert!(warned[0].words.contains("tmpfs") && !warned[0].fix.is_empty(), "{kind}: {warned:?}");
        }
    }
}

/// A way to spoil a store, and the step that then fails.
type Spoilt = (&'static str, &'static str, fn(&Folder), StartStep);

fn edit(folder: &Folder, sql: &str) {
    let raw = Connection::open(folder.path("inbox")).expect("anybody can open it");
    raw.execute_batch(sql).expect("the edit is legal");
}

const SPOILT: [Spoilt; 8] = [
    (
        "a newer database",
        "sqlite",
        |at| edit(at, "INSERT INTO migrations VALUES (99, 'later', 'x', 1)"),
        StartStep::Format,
    ),
    ("a foreign file", "sqlite", |at| write(at, "inbox", b"songs"), StartStep::Format),
    (
        "a database that was moved away",
        "sqlite",
        |at| std::fs::rename(at.path("inbox"), at.path("elsewhere")).expect("it is there"),
        StartStep::Format,
    ),
    (
        "a lock that cannot be opened",
        "sqlite",
        |at| {
            std::fs::remove_file(at.path("inbox.lock")).expect("it is there");
            std::fs::create_dir(at.path("inbox.lock")).expect("it can be made");
        },
        StartStep::Lock,
    ),
    (
        "a newer folder",
        "files",
        |at| {
            let text = std::fs::read_to_string(at.path("inbox/hookstead.json")).expect("it is there");
            write(at, "inbox/hookstead.json", text.replace("\"format\": 1", "\"format\": 99").as_bytes());
            assert!(
                std::fs::read_to_string(at.path("inbox/hookstead.json")).expect("it is there").contains("99")
            );
        },
        StartStep::Format,
    ),
    (
        "a foreign folder",
        "files",
        |at| {
            std::fs::remove_file(at.path("inbox/hookstead.json")).expect("it is there");
            write(at, "inbox/songs", b"");
        },
        StartStep::Format,
    ),
    (
        "a log that was moved away",
        "files",
        |at| std::fs::remove_file(at.path("inbox/work.log")).expect("it is there"),
        StartStep::Log,
    ),
    (
        "a log with other bytes",
        "files",
        |at| {
            let mut log = std::fs::read(at.path("inbox/work.log")).expect("it is there");
            log[2] ^= 1;
            write(at, "inbox/work.log", &log);
        },
        StartStep::Log,
    ),
];

fn write(folder: &Folder, name: &str, bytes: &[u8]) {
    std::fs::write(folder.path(name), bytes).expect("it can be written");
}

fn what_refuses_a_start_is_found_by_a_look_in_the_same_step() {
    for (what, kind, spoil, step) in SPOILT {
        let folder = made(kind);
        spoil(&folder);
        let findings = look(&folder, kind);
        let failed = findings.iter().find(|finding| finding.verdict == Verdict::Failed);
        let failed = failed.unwrap_or_else(|| panic!("{what}: {findings:#?}"));
        assert_eq!(failed.name, step.as_str(), "{what}: {findings:#?}");
        let refused = open(&url(&folder, kind), &options(), OPENED_AT).expect_err("it is refused");
        assert_eq!(refused.step(), Some(step), "{what}: {refused}");
        assert!(failed.words.starts_with(&refused.reason()), "{what}: {failed:?}, but {refused}");
        assert_eq!(failed.fix, refused.fix(), "{what}");
        assert!(!failed.fix.is_empty(), "{what}");
        assert_eq!(refused.to_string(), format!("{}; {}", refused.reason(), failed.fix), "{what}");
    }
}

fn a_look_at_no_store_makes_none() {
    for (kind, _) in KINDS {
        let folder = Folder::new();
        let findings = look(&folder, kind);
        assert!(findings.iter().all(|finding| finding.verdict == Verdict::Good), "{kind}: {findings:#?}");
        assert!(
            findings.iter().any(|finding| finding.words.contains("first start makes it")),
            "{findings:#?}"
        );
        assert_eq!(std::fs::read_dir(folder.path("")).expect("it is there").count(), 0, "{kind}");
    }
    assert_eq!(examine("nothing:x", &options())[0].verdict, Verdict::Failed);
}

fn a_look_takes_the_steps_and_changes_nothing() {
    for (kind, steps) in KINDS {
        let folder = made(kind);
        let findings = look(&folder, kind);
        let expected: Vec<_> = steps.iter().map(|step| step.as_str()).collect();
        assert_eq!(names(&findings), expected, "{kind}");
        assert!(findings.iter().all(|finding| finding.verdict <= Verdict::Skipped), "{kind}: {findings:#?}");
        open(&url(&folder, kind), &options(), OPENED_AT).expect("the lock was let go");
    }
}

fn a_look_beside_the_owner_changes_nothing_and_says_who_it_is() {
    for (kind, steps) in KINDS {
        let folder = made(kind);
        let opened = open(&url(&folder, kind), &options(), OPENED_AT).expect("it opens");
        let findings = look(&folder, kind);
        assert_eq!(findings.len(), steps.len(), "{kind}");
        assert!(findings.iter().all(|finding| finding.verdict <= Verdict::Skipped), "{kind}: {findings:#?}");
        let lock = findings.iter().find(|finding| finding.name == "lock").expect("the step is there");
        assert!(lock.words.contains(&std::process::id().to_string()), "{kind}: {lock:?}");
        assert_eq!(accept(&opened.store, "evt_2", b"later"), Outcome::Stored, "{kind}: it goes on");
    }
}

fn a_damaged_newest_event_is_found_by_a_look() {
    let folder = made("sqlite");
    edit(&folder, "UPDATE events SET body = CAST('the body of another event!!' AS BLOB)");
    let findings = look(&folder, "sqlite");
    let last = findings.last().expect("a look has findings");
    assert_eq!((last.name.as_str(), last.verdict), ("integrity", Verdict::Failed), "{findings:#?}");
    let refused = open(&url(&folder, "sqlite"), &options(), OPENED_AT).expect_err("it is refused");
    assert!(matches!(refused, OpenError::Damaged { step: Some(StartStep::Integrity), .. }), "{refused:?}");

    let folder = made("files");
    let records = bytes(&folder.path("inbox/sources"));
    let (record, mut content) = records.into_iter().next().expect("a record");
    let body = b"dGhlIGJvZHkg"; // How its body begins, in base64.
    let at = content.windows(body.len()).position(|window| window == body).expect("the body is in it");
    content[at..at + 2].copy_from_slice(b"AA");
    std::fs::write(&record, content).expect("it can be written");
    // A folder serves what is whole on, so that its start goes on as well, with a warning.
    let seen = look(&folder, "files");
    let started = open(&url(&folder, "files"), &options(), OPENED_AT).expect("it opens").start;
    for findings in [seen, started] {
        let integrity = findings.iter().find(|finding| finding.name == "integrity").expect("the step");
        assert_eq!(integrity.verdict, Verdict::Warning, "{findings:#?}");
        assert!(integrity.words.contains("damaged"), "{integrity:?}");
    }
}
