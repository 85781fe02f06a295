//! What a store's folder holds, who may open it, and which folders are refused.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use hookstead_core::{Outcome, StoreError};
use hookstead_store::{OpenError, OpenOptions, owner_record};

use super::backend::{Dir, url};
use crate::backend::OPENED_AT;
use crate::case::cases;
use crate::scene::{accept, events, find, problems, register, try_accept};

cases!("files::folder":
    files_are_the_owners_alone_whatever_the_umask,
    an_entry_is_what_the_seeds_loader_reads,
    a_second_opener_is_refused_and_starts_when_the_first_is_gone,
    a_folder_that_is_not_ours_is_refused_and_not_touched,
    a_newer_format_is_refused,
    a_folder_of_which_half_is_missing_is_refused,
    leftovers_are_swept,
    a_torn_last_line_of_the_log_is_cut,
    damage_inside_the_log_is_refused,
    a_start_writes_the_log_anew_and_keeps_everything,
    a_log_that_was_replaced_under_the_store_poisons_it,
    the_memory_of_a_lost_log_is_in_the_entries,
);

/// The path of an entry of the source `shop`.
pub(crate) fn entry(dir: &Dir, id: &str) -> PathBuf {
    let digest = hookstead_core::Digest::of(id.as_bytes());
    dir.root().join(format!("sources/shop/deliveries/{digest}.json"))
}

/// A store with two events, closed again.
fn two_events() -> Dir {
    let dir = Dir::new();
    let store = dir.open().store;
    register(&store);
    for id in ["evt_1", "evt_2"] {
        assert_eq!(accept(&store, id, id.as_bytes()), Outcome::Stored);
    }
    store.close(OPENED_AT).expect("it closes");
    dir
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("it can be listed") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            walk(&path, found);
        }
        found.push(path);
    }
}

/// The process's umask is shared by all tests, so each is set in a process of its own: `CHILD` is this test
/// program, told by the environment to make a store.
const CHILD: &str = "HOOKSTEAD_FILES_UMASK_CHILD";

/// Makes a store if this process was started for that.
pub(crate) fn child() -> bool {
    let Ok(folder) = std::env::var(CHILD) else { return false };
    let store = hookstead_store::open(&url(Path::new(&folder)), &OpenOptions::default(), OPENED_AT);
    let store = store.expect("it opens").store;
    register(&store);
    accept(&store, "evt_1", b"1");
    accept(&store, "evt_1", b"2");
    true
}

fn files_are_the_owners_alone_whatever_the_umask() {
    for umask in ["0000", "0077", "0022"] {
        let dir = Dir::new();
        let program = std::env::current_exe().expect("it has a path");
        let script = format!("umask {umask} && exec \"$0\"");
        let done = Command::new("sh").args(["-c", &script]).arg(program).env(CHILD, dir.root()).status();
        assert!(done.expect("sh runs").success());
        let mut found = Vec::new();
        walk(&dir.root(), &mut found);
        assert!(found.len() > 8, "{found:?}");
        for path in found {
            let expected = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode(&path), expected, "{} with umask {umask}", path.display());
        }
    }
}

/// Reads an entry as the seed's loader does, by nothing but Python's standard library.
const LOADER: &str = r#"
import base64, hashlib, json, os, sys
folder, asked, body = sys.argv[1], sys.argv[2], sys.argv[3].encode()
path = os.path.join(folder, "deliveries", hashlib.sha256(asked.encode()).hexdigest() + ".json")
raw = open(path, "rb").read()
assert not raw.endswith(b"\n"), "a final line feed"
pairs = json.loads(raw, object_pairs_hook=list)
names = [name for name, _ in pairs]
assert names == ["schemaVersion", "deliveryId", "body", "sha256", "acceptedAt", "hookstead"], names
record = json.loads(raw)
assert type(record["schemaVersion"]) is int and record["schemaVersion"] == 1
assert record["deliveryId"] == asked
decoded = base64.b64decode(record["body"], validate=True)
assert record["sha256"] == hashlib.sha256(decoded).hexdigest()
assert decoded == body
assert record["acceptedAt"] == "2026-02-02T02:40:00Z", record["acceptedAt"]
assert raw.startswith(b'{\n  "schemaVersion": 1,\n  "deliveryId": '), raw[:60]
"#;

fn an_entry_is_what_the_seeds_loader_reads() {
    let dir = Dir::new();
    let store = dir.open().store;
    register(&store);
    let ids = ["delivery-1", "A..b", "é", "x"];
    for id in ids {
        accept(&store, id, format!("body of {id}\u{feff}\n").as_bytes());
    }
    for id in ids {
        load_as_the_seed(&dir, id, &format!("body of {id}\u{feff}\n"));
    }
}

/// Reads an entry of the source `shop` as the seed's loader does; its body must be `body`.
pub(crate) fn load_as_the_seed(dir: &Dir, id: &str, body: &str) {
    let folder = dir.root().join("sources/shop");
    let read = Command::new("python3").args(["-c", LOADER]).arg(folder).args([id, body]).output();
    let read = read.expect("python3 runs");
    assert!(read.status.success(), "{id}: {}", String::from_utf8_lossy(&read.stderr));
}

fn a_second_opener_is_refused_and_starts_when_the_first_is_gone() {
    let dir = Dir::new();
    let first = dir.open();
    let Err(OpenError::Locked { owner: Some(owner), .. }) = dir.try_open() else {
        panic!("a folder was opened twice");
    };
    assert_eq!(owner.pid, std::process::id());
    let shown = owner_record(&url(&dir.root()), &OpenOptions::default()).expect("it can be read");
    assert_eq!(shown, Some(owner));
    drop(first);
    assert_eq!(owner_record(&url(&dir.root()), &OpenOptions::default()).expect("it can be read"), None);
    assert!(dir.try_open().is_ok());
}

fn a_folder_that_is_not_ours_is_refused_and_not_touched() {
    for foreign in ["notes.txt", "deliveries/notes.txt", "processed/a.json"] {
        let dir = Dir::new();
        let path = dir.root().join(foreign);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("it can be made");
        std::fs::write(&path, "mine").expect("it can be written");
        let Err(OpenError::ForeignFolder { what, .. }) = dir.try_open() else {
            panic!("{foreign}: a foreign folder was opened");
        };
        assert!(!what.is_empty());
        let mut found = Vec::new();
        walk(&dir.root(), &mut found);
        assert!(found.iter().all(|path| dir.root().join(foreign).starts_with(path)), "{found:?}");
    }
    let dir = Dir::new();
    std::fs::write(dir.root(), "a file").expect("it can be written");
    assert!(matches!(dir.try_open(), Err(OpenError::ForeignFolder { .. })));
}

fn a_newer_format_is_refused() {
    let dir = two_events();
    let marker = dir.root().join("hookstead.json");
    let text = std::fs::read_to_string(&marker).expect("it is there");
    std::fs::write(&marker, text.replace("\"format\": 1", "\"format\": 2")).expect("it can be written");
    assert!(matches!(dir.try_open(), Err(OpenError::Newer { found: 2, known: 1, .. })));
    std::fs::write(&marker, text).expect("it can be written");
    assert_eq!(events(&dir.open().store).len(), 2);
}

fn a_folder_of_which_half_is_missing_is_refused() {
    let dir = two_events();
    let (log, aside) = (dir.root().join("work.log"), dir.root().parent().expect("it has one").join("aside"));
    std::fs::rename(&log, &aside).expect("it can be moved");
    let Err(error @ OpenError::Damaged { .. }) = dir.try_open() else { panic!("no log was no damage") };
    assert!(error.to_string().contains("work.log"), "{error}");
    std::fs::rename(&aside, &log).expect("it can be moved");
    std::fs::remove_file(dir.root().join("hookstead.json")).expect("it is there");
    assert!(matches!(dir.try_open(), Err(OpenError::ForeignFolder { .. } | OpenError::Damaged { .. })));
}

fn leftovers_are_swept() {
    let dir = two_events();
    let leftovers = ["", "sources/", "sources/shop/", "sources/shop/deliveries/"];
    let paths = leftovers.map(|folder| dir.root().join(format!("{folder}.pending-left")));
    for path in &paths {
        std::fs::write(path, "half").expect("it can be written");
    }
    let store = dir.open().store;
    assert!(paths.iter().all(|path| !path.exists()));
    accept(&store, "evt_3", b"3");
    store.close(OPENED_AT).expect("it closes");
    let mut found = Vec::new();
    walk(&dir.root(), &mut found);
    let pending = |path: &&PathBuf| path.to_string_lossy().contains("/.pending-");
    assert_eq!(found.iter().filter(pending).count(), 0, "a closed store leaves none: {found:?}");
}

fn a_torn_last_line_of_the_log_is_cut() {
    let dir = two_events();
    let log = dir.root().join("work.log");
    let whole = std::fs::read(&log).expect("it is there");
    for tail in [&b"{\"sum\":\"00"[..], b"{}\n", b"\0\0\0\0", &whole[..whole.len() - 5]] {
        let torn = if tail.len() > 20 { tail[..40].to_vec() } else { tail.to_vec() };
        std::fs::write(&log, [&whole[..], &torn].concat()).expect("it can be written");
        let store = dir.open().store;
        assert_eq!(events(&store).len(), 2);
        assert_eq!(problems(&store), [""; 0]);
        assert_eq!(accept(&store, "evt_1", b"evt_1"), Outcome::Duplicate);
    }
}

fn damage_inside_the_log_is_refused() {
    let dir = two_events();
    let log = dir.root().join("work.log");
    let whole = std::fs::read(&log).expect("it is there");
    let first_line = whole.iter().position(|byte| *byte == b'\n').expect("it has lines");
    for at in [10, first_line / 2, first_line - 3] {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        std::fs::write(&log, damaged).expect("it can be written");
        let Err(OpenError::Damaged { what, .. }) = dir.try_open() else { panic!("{at}: it opened") };
        assert!(what.contains("line 1"), "{what}");
    }
    std::fs::write(&log, whole).expect("it can be written");
    assert_eq!(events(&dir.open().store).len(), 2);
}

fn a_start_writes_the_log_anew_and_keeps_everything() {
    let dir = Dir::new();
    let store = dir.open().store;
    register(&store);
    for number in 0..600 {
        accept(&store, &format!("evt_{}", number % 60), b"the same");
    }
    let before = events(&store);
    store.close(OPENED_AT).expect("it closes");
    let log = dir.root().join("work.log");
    let grown = std::fs::metadata(&log).expect("it is there").len();
    let store = dir.open().store;
    let compact = std::fs::metadata(&log).expect("it is there").len();
    assert!(compact < grown, "{compact} of {grown}");
    assert_eq!(events(&store), before);
    assert_eq!(before.iter().map(|event| event.duplicates.count).sum::<u64>(), 540);
    assert_eq!(problems(&store), [""; 0]);
}

fn a_log_that_was_replaced_under_the_store_poisons_it() {
    let dir = Dir::new();
    let store = dir.open().store;
    register(&store);
    accept(&store, "evt_1", b"1");
    let log = dir.root().join("work.log");
    let copy = std::fs::read(&log).expect("it is there");
    std::fs::remove_file(&log).expect("it can be removed");
    std::fs::write(&log, copy).expect("it can be written");
    for id in ["evt_1", "evt_2"] {
        assert!(matches!(try_accept(&store, id, b"1"), Err(StoreError::Poisoned { .. })), "{id}");
    }
    assert_eq!(find(&store, "evt_1").body_bytes, 1, "reads go on");
}

fn the_memory_of_a_lost_log_is_in_the_entries() {
    let dir = two_events();
    let before = events(&dir.open().store);
    std::fs::write(dir.root().join("work.log"), "").expect("it can be written");
    let store = dir.open().store;
    let after = events(&store);
    assert_eq!(after.len(), 2);
    for (one, two) in before.iter().zip(&after) {
        assert_eq!((one.id, &one.identity, one.digest), (two.id, &two.identity, two.digest));
    }
    register(&store);
    assert_eq!(accept(&store, "evt_1", b"evt_1"), Outcome::Duplicate);
    assert_eq!(problems(&store), [""; 0]);
}
