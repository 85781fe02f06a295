//! Every byte of a small store flipped, one at a time: no event is ever served with other bytes, no retry is called a
//! duplicate of bytes that are not the stored ones, and what is wrong with a body is found by the check, with the event's
//! name.
//!
//! `HOOKSTEAD_FLIPS` says how many bytes of each store (300; `cargo xtask evidence` takes 20,000). They are spread over
//! the files evenly, and each run flips the same ones.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use hookstead_core::{Body, BodySelector, CheckProblem, EventSelector, Outcome, Store, StoreError};
use hookstead_store::fs::Fs;
use hookstead_store::sim::SimDisk;
use hookstead_store::{OpenOptions, open};

use crate::backend::{OPENED_AT, options, url};
use crate::case::cases;
use crate::files::cut::{ROOT, open_on, open_with};
use crate::scene::{accept, identity, register, try_accept};

cases!("flips":
    no_flipped_byte_of_a_database_is_served_or_compared,
    no_flipped_byte_of_a_folder_of_records_is_served_or_compared,
);

/// How many events the store has, and the bytes of each.
const EVENTS: usize = 6;
const BODY_BYTES: usize = 700;

/// What became of the flips of one store.
#[derive(Default)]
struct Figures {
    flips: usize,
    /// In the bytes of a body.
    in_bodies: usize,
    /// The start was refused, and said why.
    refused: usize,
    /// The store opened, and an event was not served.
    withheld: usize,
}

fn id(number: usize) -> String {
    format!("evt_{number}")
}

/// Found nowhere else in the files.
fn body(number: usize) -> Vec<u8> {
    (0..BODY_BYTES)
        .map(|at| b'0' + u8::try_from((at * at + at / 7 * number + number) % 64).expect("below 64"))
        .collect()
}

fn fill(store: &Arc<dyn Store>) {
    register(store);
    (0..EVENTS).for_each(|number| assert_eq!(accept(store, &id(number), &body(number)), Outcome::Stored));
    store.close(OPENED_AT).expect("it closes");
}

fn no_flipped_byte_of_a_database_is_served_or_compared() {
    let folder = memory();
    let path = folder.path().join("events.db");
    let open_at = |path: &Path, options: &OpenOptions| open(&url(path), options, OPENED_AT);
    // No random key: each run flips the same bytes.
    let keyed = OpenOptions { identity_key: Some([7; 32]), ..options() };
    fill(&open_at(&path, &keyed).expect("it opens").store);
    let sound = std::fs::read(&path).expect("the database");
    let begun = Instant::now();
    let mut figures = Figures::default();
    let bodies = bodies_in(&sound);
    let in_bodies: Vec<usize> = bodies.iter().cloned().flatten().collect();
    // A quarter of them in the bodies, which are a small part of the file.
    let places = evenly(in_bodies.len(), flips() / 4)
        .map(|at| in_bodies[at])
        .chain(evenly(sound.len(), flips() * 3 / 4));
    for place in places {
        let copy = memory();
        let path = copy.path().join("events.db");
        std::fs::write(&path, flipped(&sound, place)).expect("there is room");
        let hit = bodies.iter().position(|body| body.contains(&place));
        // A start that looks at no event is how a damaged store is opened to be checked.
        let to_check = OpenOptions { spot_check_events: 0, ..options() };
        figures.add(place, hit, open_at(&path, &to_check).map(|opened| opened.store));
    }
    figures.finish("flips-sqlite", "sqlite", folder.path(), begun);
}

fn no_flipped_byte_of_a_folder_of_records_is_served_or_compared() {
    let disk = SimDisk::new(1);
    fill(&open_on(&disk).expect("it opens").store);
    let files = files_below(&disk, Path::new(ROOT));
    let lengths: Vec<usize> = files.iter().map(|(_, bytes)| bytes.len()).collect();
    let begun = Instant::now();
    let mut figures = Figures::default();
    for mut place in evenly(lengths.iter().sum(), flips()) {
        let name = place;
        let at = lengths.iter().position(|length| {
            if place < *length {
                true
            } else {
                place -= length;
                false
            }
        });
        let (path, sound) = &files[at.expect("the place is below the sum of the lengths")];
        let copy = disk.power_cut(1);
        let file = copy.open_or_create(path).expect("it is there");
        file.write_all_at(&flipped(sound, place), 0).and_then(|()| file.sync()).expect("the disk works");
        drop(file);
        let to_check = OpenOptions { spot_check_events: 0, ..OpenOptions::default() };
        figures.add(name, None, open_with(&copy, to_check).map(|opened| opened.store));
    }
    figures.finish("flips-files", "files", Path::new("/"), begun);
}

/// A folder in memory where one can be made: thousands of starts would only wait for a disk.
fn memory() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    folder.expect("there is a place for temporary files")
}

/// How many bytes are flipped in each store.
fn flips() -> usize {
    std::env::var("HOOKSTEAD_FLIPS").map_or(300, |flips| flips.parse().expect("HOOKSTEAD_FLIPS is a number"))
}

/// So many of the numbers below `bound`, evenly spread; all of them if there are no more.
fn evenly(bound: usize, count: usize) -> impl Iterator<Item = usize> {
    let count = count.min(bound);
    (0..count).map(move |number| number * bound / count)
}

fn flipped(sound: &[u8], place: usize) -> Vec<u8> {
    let mut bytes = sound.to_vec();
    // Another bit in each byte, so that all eight are met.
    bytes[place] ^= 1 << (place % 8);
    bytes
}

/// Where in the database the bodies lie, in the order of the events.
fn bodies_in(database: &[u8]) -> Vec<Range<usize>> {
    let place = |number| {
        let body = body(number);
        let at = database.windows(body.len()).position(|window| window == body);
        let at = at.unwrap_or_else(|| panic!("the body of event {number} is not in the database"));
        at..at + body.len()
    };
    (0..EVENTS).map(place).collect()
}

fn files_below(disk: &SimDisk, folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for name in disk.list(folder).expect("it is a folder") {
        let path = folder.join(name);
        let facts = disk.facts(&path).expect("the disk works").expect("it is there");
        if facts.is_dir {
            files.extend(files_below(disk, &path));
        } else {
            let mut bytes = vec![0; usize::try_from(facts.bytes).expect("a small file")];
            disk.open_read(&path).and_then(|file| file.read_at(&mut bytes, 0)).expect("it can be read");
            files.push((path, bytes));
        }
    }
    files.sort();
    files
}

impl Figures {
    fn add<E: std::fmt::Display>(
        &mut self,
        place: usize,
        hit: Option<usize>,
        opened: Result<Arc<dyn Store>, E>,
    ) {
        self.flips += 1;
        self.in_bodies += usize::from(hit.is_some());
        let store = match opened {
            Ok(store) => store,
            Err(error) => {
                assert!(!error.to_string().is_empty(), "byte {place}: refused without a reason");
                self.refused += 1;
                return;
            }
        };
        let problems = match store.check(&mut |_| ()) {
            Ok(report) => report.problems,
            // A database so broken that no read of it ends: the check says that, and can look at nothing.
            Err(StoreError::Corrupt { what }) => vec![CheckProblem { event: None, what }],
            Err(error) => panic!("byte {place}: the check failed: {error}"),
        };
        for number in 0..EVENTS {
            let served = served(&store, number, place);
            self.withheld += usize::from(served.is_err());
            if let (Err(why), []) = (&served, problems.as_slice()) {
                panic!("byte {place}: event {number} is withheld and the check says nothing: {why}");
            }
            if hit == Some(number) {
                assert!(served.is_err(), "byte {place}: a damaged body was served");
                let event = store.event(&EventSelector::Identity(identity(&id(number))));
                let named = event.is_ok_and(|event| {
                    event.is_some_and(|event| problems.iter().any(|problem| problem.event == Some(event.id)))
                });
                assert!(named, "byte {place}: the check does not name event {number}: {problems:?}");
            }
            compares_right(&store, number, place, hit == Some(number));
        }
    }

    /// Writes it down for `cargo xtask evidence`.
    fn finish(&self, name: &str, store: &str, folder: &Path, begun: Instant) {
        let Self { flips, in_bodies, refused, withheld } = self;
        let figures = format!(
            "{{\"flips\":{flips},\"in_bodies\":{in_bodies},\"starts_refused\":{refused},\"events_withheld\":{withheld},\"served_damaged\":0}}"
        );
        assert!(refused + withheld > 0, "no flip was noticed at all");
        let Some(into) = std::env::var_os("HOOKSTEAD_EVIDENCE") else { return };
        let file_system = if folder.starts_with("/dev/shm") { "tmpfs" } else { "simulated" };
        let ms = begun.elapsed().as_millis();
        let record = format!(
            "{{\"check\":\"flipped-bytes\",\"store\":\"{store}\",\"ms\":{ms},\"file_system\":\"{file_system}\",\"figures\":{figures}}}"
        );
        std::fs::write(Path::new(&into).join(format!("{name}.json")), record)
            .expect("the folder of the evidence");
    }
}

/// Serves the event's body, which is the right one; or why it is withheld.
fn served(store: &Arc<dyn Store>, number: usize, place: usize) -> Result<(), String> {
    let event =
        store.event(&EventSelector::Identity(identity(&id(number)))).map_err(|error| error.to_string())?;
    let event = event.ok_or("no such event")?;
    match store.body(BodySelector::Event(event.id)).map_err(|error| error.to_string())? {
        Some(Body::Kept(bytes)) if bytes == body(number) => Ok(()),
        Some(Body::Kept(_)) => panic!("byte {place}: event {number} was served with other bytes"),
        other => Err(format!("no body: {other:?}")),
    }
}

/// A retry is a duplicate only of the same bytes, and no conflict with them.
fn compares_right(store: &Arc<dyn Store>, number: usize, place: usize, damaged: bool) {
    match try_accept(store, &id(number), &body(number)) {
        Ok(receipt) => {
            assert!(!damaged, "byte {place}: a retry was compared with a damaged body: {receipt:?}");
            assert!(
                !matches!(receipt.outcome, Outcome::Conflict { .. }),
                "byte {place}: a retry of event {number} is a conflict"
            );
        }
        // A page whose form SQLite itself does not know any more, met by a write, stops the store by rule.
        Err(StoreError::Poisoned { reason }) => assert!(
            reason.contains("malformed"),
            "byte {place}: damage of a record is no reason to stop: {reason}"
        ),
        Err(_) => {}
    }
}
