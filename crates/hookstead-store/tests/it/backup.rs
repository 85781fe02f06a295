//! Copies of a store: made while it is open and written to, put back elsewhere, and what is refused.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hookstead_core::{Body, BodySelector, Digest, Outcome, Store};
use hookstead_store::{BackupError, BackupReport, OpenError, OpenOptions, backup, open, restore};
use libtest_mimic::Trial;
use rusqlite::Connection;

use crate::backend::{OPENED_AT, options};
use crate::faulty::Faulty;
use crate::scene::{accept, events, find, problems, register};

type Case = fn(Kind);

const CASES: &[(&str, Case)] = &[
    ("a_copy_of_an_open_store_is_the_store", a_copy_of_an_open_store_is_the_store),
    ("what_was_accepted_before_is_in_a_copy_under_load", what_was_accepted_before_is_in_a_copy_under_load),
    ("nothing_is_written_over", nothing_is_written_over),
    ("a_changed_backup_is_refused_and_restores_nothing", a_changed_backup_is_refused_and_restores_nothing),
    ("damage_is_copied_and_named", damage_is_copied_and_named),
    ("a_restore_whose_last_check_fails_leaves_no_store", a_restore_whose_last_check_fails_leaves_no_store),
    (
        "what_a_restore_cannot_remove_does_not_say_how_it_went",
        what_a_restore_cannot_remove_does_not_say_how_it_went,
    ),
    ("an_unfinished_backup_is_none", an_unfinished_backup_is_none),
    ("a_store_is_made_by_no_backup", a_store_is_made_by_no_backup),
];

/// The most events of the load: each is looked at in each copy.
const LOAD_MAX: usize = 3_000;

/// Each case on each kind of store.
pub(crate) fn trials() -> Vec<Trial> {
    let trial = |(name, run): &(&str, Case), kind: Kind| {
        let (name, run) = (format!("backup::{}::{name}", kind.0), *run);
        Trial::test(name, move || {
            run(kind);
            Ok(())
        })
    };
    CASES.iter().flat_map(|case| [trial(case, Kind("sqlite")), trial(case, Kind("files"))]).collect()
}

#[derive(Clone, Copy)]
struct Kind(&'static str);

/// A folder with a store, its backup and what was restored from it.
struct Place {
    kind: Kind,
    folder: tempfile::TempDir,
}

impl Place {
    fn new(kind: Kind) -> Self {
        Self { kind, folder: tempfile::tempdir().expect("there is a place for temporary files") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn url(&self, name: &str) -> String {
        format!("{}:{}", self.kind.0, self.path(name).display())
    }

    fn open(&self, name: &str) -> Arc<dyn Store> {
        open(&self.url(name), &self.options(), OPENED_AT).expect("the store opens").store
    }

    /// A short journal, so that checkpoints come in the copy's way.
    fn options(&self) -> OpenOptions {
        OpenOptions { journal_bytes_max: 64 * 1024, ..options() }
    }

    fn backup(&self, to: &str) -> Result<BackupReport, BackupError> {
        backup(&self.url("store"), &self.path(to), &self.options(), OPENED_AT, &mut |_| ())
    }

    fn restore(&self, from: &str, to: &str) -> Result<BackupReport, BackupError> {
        restore(&self.path(from), &self.url(to), &self.options(), OPENED_AT, &mut |_| ())
    }

    /// The file of a backup that holds the event `evt_1` in it.
    fn record(&self, backup: &str) -> PathBuf {
        let store = self.path(backup).join("store");
        match self.kind.0 {
            "sqlite" => store.join("hookstead.db"),
            _ => entry(&store, "evt_1"),
        }
    }
}

/// A store with the event `evt_1`, open, and `backup` of it.
fn with_a_backup(kind: Kind) -> (Place, Arc<dyn Store>) {
    let place = Place::new(kind);
    let store = place.open("store");
    register(&store);
    accept(&store, "evt_1", b"{}");
    place.backup("backup").expect("it is made");
    (place, store)
}

fn entry(store: &Path, id: &str) -> PathBuf {
    let digest = Digest::of(id.as_bytes());
    store.join(format!("sources/shop/deliveries/{digest}.json"))
}

fn flip(file: &Path, needle: &[u8]) {
    let mut bytes = std::fs::read(file).expect("it can be read");
    let at = bytes.windows(needle.len()).position(|part| part == needle).expect("it holds the bytes");
    bytes[at] ^= 1;
    std::fs::write(file, bytes).expect("it can be written");
}

fn body(n: usize) -> Vec<u8> {
    format!("a body that is told from others: {n} {}", "x".repeat(n % 700)).into_bytes()
}

fn a_copy_of_an_open_store_is_the_store(kind: Kind) {
    let place = Place::new(kind);
    let store = place.open("store");
    register(&store);
    (0..50).for_each(|n| assert_eq!(accept(&store, &format!("evt_{n}"), &body(n)), Outcome::Stored));
    accept(&store, "evt_1", b"other bytes");
    let report = place.backup("backup").expect("it is made");
    assert_eq!((report.check.events, report.check.problem_count), (50, 0));
    assert!(report.files >= 1 && report.bytes > 0);
    let restored = place.restore("backup", "restored").expect("it is restored");
    assert_eq!(restored.check.problem_count, 0);
    let copy = place.open("restored");
    assert_eq!(events(&copy), events(&store));
    assert_eq!(copy.registry().expect("it reads"), store.registry().expect("it reads"));
    assert_eq!(copy.stats().expect("it reads"), store.stats().expect("it reads"));
    for n in 0..50 {
        let id = find(&copy, &format!("evt_{n}")).id;
        assert_eq!(copy.body(BodySelector::Event(id)).expect("it reads"), Some(Body::Kept(body(n).into())));
    }
    assert_eq!(problems(&copy), Vec::<String>::new());
    assert_eq!(accept(&copy, "evt_1", b"other bytes"), Outcome::Conflict { variant: Some(1) });
    assert_eq!(accept(&copy, "evt_new", b"{}"), Outcome::Stored);
}

fn what_was_accepted_before_is_in_a_copy_under_load(kind: Kind) {
    let place = Place::new(kind);
    let store = place.open("store");
    register(&store);
    let (stop, accepted) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0;
            while !stop.load(Ordering::Acquire) && n < LOAD_MAX {
                assert_eq!(accept(&store, &format!("evt_{n}"), &body(n)), Outcome::Stored);
                n += 1;
                accepted.store(n, Ordering::Release);
            }
        });
        let copies = || {
            for round in 0..4 {
                let before = some_more(&accepted);
                let (made, to) = (format!("backup-{round}"), format!("restored-{round}"));
                place.backup(&made).expect("it is made");
                let report = place.restore(&made, &to).expect("it is restored");
                assert_eq!(report.check.problem_count, 0, "{:?}", report.check.problems);
                let copy = place.open(&to);
                for n in 0..before {
                    let id = find(&copy, &format!("evt_{n}")).id;
                    let kept = copy.body(BodySelector::Event(id)).expect("it reads");
                    assert_eq!(kept, Some(Body::Kept(body(n).into())), "event {n}");
                }
                assert_eq!(accept(&copy, "evt_0", &body(0)), Outcome::Duplicate);
                assert_eq!(problems(&copy), Vec::<String>::new());
            }
        };
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(copies));
        stop.store(true, Ordering::Release);
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    assert!(accepted.load(Ordering::Acquire) > 0, "there was a load");
}

/// How many events the load has accepted, after it has accepted some more: a copy that is begun now has a past.
fn some_more(accepted: &AtomicUsize) -> usize {
    let before = accepted.load(Ordering::Acquire);
    loop {
        let now = accepted.load(Ordering::Acquire);
        if now >= LOAD_MAX || now > before + 20 {
            return now;
        }
        std::thread::yield_now();
    }
}

fn nothing_is_written_over(kind: Kind) {
    let (place, store) = with_a_backup(kind);
    let taken = |result| matches!(result, Err(BackupError::Taken { .. }));
    assert!(taken(place.backup("backup")));
    std::fs::write(place.path("file"), b"").expect("it can be written");
    assert!(taken(place.backup("file")));
    accept(&store, "evt_2", b"{}");
    assert!(taken(place.restore("backup", "store")));
    assert_eq!(events(&store).len(), 2);
    std::fs::create_dir(place.path("folder")).expect("it can be made");
    std::fs::write(place.path("folder/other"), b"mine").expect("it can be written");
    assert!(taken(place.restore("backup", "folder")));
    assert_eq!(std::fs::read(place.path("folder/other")).expect("it is there"), b"mine");
    let other = if kind.0 == "sqlite" { "files:x" } else { "sqlite:x" };
    let elsewhere = restore(&place.path("backup"), other, &place.options(), OPENED_AT, &mut |_| ());
    assert!(matches!(elsewhere, Err(BackupError::OtherKind { .. })), "{elsewhere:?}");
}

fn a_changed_backup_is_refused_and_restores_nothing(kind: Kind) {
    let place = Place::new(kind);
    let store = place.open("store");
    register(&store);
    accept(&store, "evt_1", b"a body to be found in the file");
    for (n, spoil) in [
        |place: &Place, backup: &str| {
            let bytes = std::fs::read(place.record(backup)).expect("it can be read");
            std::fs::write(place.record(backup), &bytes[..bytes.len() - 1]).expect("it can be written");
        },
        |place: &Place, backup: &str| std::fs::remove_file(place.record(backup)).expect("it is there"),
        |place: &Place, backup: &str| {
            std::fs::write(place.path(backup).join("store/more"), b"").expect("it can be written");
        },
        |place: &Place, backup: &str| flip(&place.path(backup).join("SHA256SUMS"), b"store/"),
    ]
    .into_iter()
    .enumerate()
    {
        let backup = format!("backup-{n}");
        place.backup(&backup).expect("it is made");
        spoil(&place, &backup);
        let refused = place.restore(&backup, "restored");
        assert!(matches!(refused, Err(BackupError::Damaged { .. })), "{n}: {refused:?}");
        assert!(!place.path("restored").exists(), "{n}");
    }
}

fn damage_is_copied_and_named(kind: Kind) {
    let place = Place::new(kind);
    let store = place.open("store");
    register(&store);
    accept(&store, "evt_1", b"a body to be found in the file");
    accept(&store, "evt_2", b"{}");
    store.close(OPENED_AT).expect("it closes");
    drop(store);
    match kind.0 {
        "sqlite" => flip(&place.path("store"), b"a body to be found"),
        _ => flip(&entry(&place.path("store"), "evt_1"), b"\"body\": \"YSBib2R5"),
    }
    // As `store check` opens it: a spot check would refuse such a database.
    let options = OpenOptions { spot_check_events: 0, ..place.options() };
    let made = backup(&place.url("store"), &place.path("backup"), &options, OPENED_AT, &mut |_| ());
    let made = made.expect("it is made");
    assert_eq!((made.check.events, made.check.problem_count), (2, 1), "{:?}", made.check.problems);
    let restored = place.restore("backup", "restored").expect("it is restored");
    assert_eq!(restored.check.problems, made.check.problems);
}

fn a_restore_whose_last_check_fails_leaves_no_store(kind: Kind) {
    let (place, _store) = with_a_backup(kind);
    back_up_for_a_newer_program(&place, "later");
    for _ in 0..2 {
        let refused = place.restore("later", "restored");
        assert!(matches!(refused, Err(BackupError::Open(OpenError::Newer { .. }))), "{refused:?}");
        // A folder without its marker is no store.
        for name in ["restored/hookstead.json", "restored.new", "restored.new-wal", "restored-wal"] {
            assert!(!place.path(name).exists(), "{name} is left");
        }
        assert!(!place.path("restored").is_file(), "there is a store");
    }
    let restored = place.restore("backup", "restored").expect("nothing is in its way");
    assert_eq!((restored.check.events, restored.check.problem_count), (1, 0));
}

/// The file in which a database is built beside its place stays there, for whatever reason.
fn what_a_restore_cannot_remove_does_not_say_how_it_went(kind: Kind) {
    let (place, _store) = with_a_backup(kind);
    back_up_for_a_newer_program(&place, "later");
    let fs = Arc::new(Faulty { keeps: Some(".new"), ..Faulty::default() });
    let options = OpenOptions { fs, ..place.options() };
    let restore = |from, to| restore(&place.path(from), &place.url(to), &options, OPENED_AT, &mut |_| ());
    let refused = restore("later", "refused");
    assert!(matches!(refused, Err(BackupError::Open(OpenError::Newer { .. }))), "{refused:?}");
    let restored = restore("backup", "restored").expect("it is restored");
    assert_eq!((restored.check.events, restored.check.problem_count), (1, 0));
    assert_eq!(events(&place.open("restored")).len(), 1);
}

/// A backup that a newer program made of its own format: all its digests are right.
fn back_up_for_a_newer_program(place: &Place, to: &str) {
    place.backup(to).expect("it is made");
    let file = match place.kind.0 {
        "sqlite" => {
            let database = place.path(to).join("store/hookstead.db");
            let raw = Connection::open(&database).expect("anybody can open it");
            raw.execute("INSERT INTO migrations VALUES (99, 'later', 'x', 1)", []).expect("it is legal");
            "store/hookstead.db"
        }
        _ => {
            let marker = place.path(to).join("store/hookstead.json");
            let text = std::fs::read_to_string(&marker).expect("it can be read");
            let newer =
                text.replace("\"format\": 1", "\"format\": 99").replace("\"format\":1", "\"format\":99");
            assert_ne!(newer, text);
            std::fs::write(marker, newer).expect("it can be written");
            "store/hookstead.json"
        }
    };
    sign_anew(&place.path(to), file);
}

/// The digests of a backup, after this file of it was changed.
fn sign_anew(backup: &Path, file: &str) {
    let digest = Digest::of(&std::fs::read(backup.join(file)).expect("it can be read")).to_string();
    let sums = std::fs::read_to_string(backup.join("SHA256SUMS")).expect("it can be read");
    let line =
        |line: &str| if line.ends_with(file) { format!("{digest}  {file}\n") } else { format!("{line}\n") };
    let anew: String = sums.lines().map(line).collect();
    std::fs::write(backup.join("SHA256SUMS"), &anew).expect("it can be written");
    let manifest = std::fs::read_to_string(backup.join("backup.json")).expect("it can be read");
    let [old, new] = [&sums, &anew].map(|sums| Digest::of(sums.as_bytes()).to_string());
    std::fs::write(backup.join("backup.json"), manifest.replace(&old, &new)).expect("it can be written");
}

fn an_unfinished_backup_is_none(kind: Kind) {
    let place = Place::new(kind);
    let store = place.open("store");
    register(&store);
    place.backup("backup").expect("it is made");
    std::fs::remove_file(place.path("backup/backup.json")).expect("it is there");
    let refused = place.restore("backup", "restored");
    assert!(matches!(refused, Err(BackupError::NoBackup { .. })), "{refused:?}");
    std::fs::write(place.path("backup/backup.json"), b"{\"format\": 2}").expect("it can be written");
    assert!(matches!(place.restore("backup", "restored"), Err(BackupError::NoBackup { .. })));
    assert!(!place.path("restored").exists());
}

fn a_store_is_made_by_no_backup(kind: Kind) {
    let place = Place::new(kind);
    let missing = place.backup("backup");
    assert!(matches!(missing, Err(BackupError::NoStore { .. })), "{missing:?}");
    assert!(!place.path("store").exists() && !place.path("backup").exists());
    if kind.0 == "files" {
        std::fs::create_dir(place.path("store")).expect("it can be made");
    } else {
        std::fs::write(place.path("store"), b"no database, but long enough to be looked at as if it were")
            .expect("it is written");
    }
    let foreign = place.backup("backup");
    assert!(
        matches!(
            foreign,
            Err(BackupError::Open(OpenError::Foreign { .. } | OpenError::ForeignFolder { .. }))
        ),
        "{foreign:?}"
    );
}
