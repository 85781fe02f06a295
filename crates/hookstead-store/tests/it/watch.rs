//! The files of a store that is open, replaced, deleted, moved or cut short by somebody else: nothing is acknowledged
//! any more, not even a duplicate, the reason names the file and the fix, and reads go on where they can.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hookstead_core::{Outcome, Store, StoreError};
use hookstead_store::open;
use libtest_mimic::Trial;

use crate::backend::{OPENED_AT, options};
use crate::scene::{accept, register, try_accept};

type Deed = fn(&Path);

/// What somebody does to a file, or to the folder that holds it.
const DEEDS: &[(&str, Deed)] = &[
    ("replaced", |file| {
        let bytes = fs::read(file).expect("it can be read");
        fs::remove_file(file).expect("it can be removed");
        fs::write(file, bytes).expect("it can be written");
    }),
    ("renamed_over", |file| {
        let copy = beside(file);
        fs::copy(file, &copy).expect("it can be copied");
        fs::rename(&copy, file).expect("it can be renamed");
    }),
    ("deleted", |file| fs::remove_file(file).expect("it can be removed")),
    ("moved", |file| fs::rename(file, beside(file)).expect("it can be renamed")),
    ("cut_short", |file| {
        let opened = File::options().write(true).open(file).expect("it can be opened");
        let bytes = opened.metadata().expect("it can be looked at").len();
        opened.set_len(bytes - 1).expect("it can be cut");
    }),
    ("emptied", |file| drop(File::create(file).expect("it can be emptied"))),
    ("folder_moved", |file| {
        let folder = file.parent().expect("it lies in a folder");
        fs::rename(folder, beside(folder)).expect("it can be renamed");
    }),
    ("folder_replaced", |file| {
        let folder = file.parent().expect("it lies in a folder");
        fs::rename(folder, beside(folder)).expect("it can be renamed");
        fs::create_dir(folder).expect("it can be made");
        fs::copy(beside(folder).join(file.file_name().expect("a name")), file).expect("it can be copied");
    }),
];

/// The files that are written to, by the kind of store.
const FILES: &[(&str, &str)] = &[
    ("sqlite", "events.db"),
    ("sqlite", "events.db-wal"),
    ("files", "work.log"),
    ("files", "journal-1.log"),
];

/// Each deed on each file.
pub(crate) fn trials() -> Vec<Trial> {
    let each = |(kind, file): &(&'static str, &'static str)| {
        let (kind, file) = (*kind, *file);
        DEEDS.iter().map(move |(name, deed)| {
            let deed = *deed;
            Trial::test(format!("watch::{kind}::{file}_{name}"), move || {
                run(kind, file, deed);
                Ok(())
            })
        })
    };
    FILES.iter().flat_map(each).collect()
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".elsewhere");
    name.into()
}

fn run(kind: &str, file: &str, deed: Deed) {
    let above = tempfile::tempdir().expect("there is a place for temporary files");
    let folder = above.path().join("store");
    let url = match kind {
        "sqlite" => format!("sqlite:{}/events.db", folder.display()),
        _ => format!("files:{}", folder.display()),
    };
    let store: Arc<dyn Store> = open(&url, &options(), OPENED_AT).expect("the store opens").store;
    register(&store);
    assert_eq!(accept(&store, "evt_1", b"1"), Outcome::Stored);
    let path = match folder.join(file) {
        path if path.exists() => path,
        _ => segment(&folder),
    };
    deed(&path);
    let reason = refused(&store, "evt_1");
    assert_eq!(refused(&store, "evt_2"), reason, "it stays");
    assert!(reason.contains("start again"), "{reason}");
    assert!(reason.contains(&folder.display().to_string()), "{reason}");
    assert!(store.probe(OPENED_AT).is_err(), "no probe brings it back");
}

/// The segment that is written to: its number is the store's own business.
fn segment(folder: &Path) -> PathBuf {
    let names = fs::read_dir(folder).expect("it can be listed").map(|entry| entry.expect("an entry").path());
    let is_segment =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("journal-"));
    names.filter(is_segment).max().expect("a store that is open has a journal")
}

fn refused(store: &Arc<dyn Store>, id: &str) -> String {
    match try_accept(store, id, b"1") {
        Err(StoreError::Poisoned { reason }) => reason,
        other => panic!("{id} was answered {other:?}"),
    }
}
