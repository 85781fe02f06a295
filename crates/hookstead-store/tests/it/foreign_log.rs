//! Databases that somebody copied: with the log of another one beside them, cut short, or emptied. None is taken for
//! sound without a word, and none is written to before that is known.

use std::fs;
use std::sync::Arc;

use hookstead_core::{Body, BodySelector, EventSelector, Store};
use hookstead_store::{OpenError, OpenOptions, StartStep, Verdict, examine, open};

use crate::backend::{Folder, OPENED_AT, options};
use crate::case::cases;
use crate::damaged_log::on_disk;
use crate::scene::{accept, events, identity, problems, register};

cases!("foreign_log":
    a_log_of_another_store_is_refused_and_not_touched,
    a_log_that_goes_with_its_database_is_taken_whatever_its_path,
    a_database_that_was_cut_short_is_refused_or_named,
);

const EVENTS: usize = 60;

fn body(n: usize) -> Vec<u8> {
    format!("{n} ").repeat(2_000).into_bytes()
}

/// Database and log of a store with these events, after a stop or a crash.
fn files(prefix: &str, stopped: bool) -> (Vec<u8>, Vec<u8>) {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    for n in 0..EVENTS {
        accept(&store, &format!("{prefix}_{n}"), &body(n));
    }
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
        let folder = folder_of(&database, &log);
        let refused = open(&folder.url(), &options(), OPENED_AT).expect_err("it is refused");
        assert!(matches!(refused, OpenError::ForeignLog { .. }), "{refused}");
        assert!(refused.to_string().contains("events.db-wal"), "{refused}");
        let found = examine(&folder.url(), &options());
        let failed = found.iter().find(|finding| finding.verdict == Verdict::Failed);
        let told = failed.map(|finding| (finding.name.as_str(), finding.words.clone()));
        assert_eq!(told, Some((StartStep::Log.as_str(), refused.reason())), "a look finds it too: {found:?}");
        assert!(on_disk(&folder) == (database, log), "database or log was written to");
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
