//! Damage of the write-ahead log: whatever byte of it changes, an acknowledged event is there as it was stored,
//! or the start says that the log is damaged. The exception is the last commit before a crash, whose damage
//! looks like what a power cut leaves.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use hookstead_core::{Body, BodySelector, EventSelector, Outcome, Store};
use hookstead_store::{OpenError, OpenOptions, open};
use rusqlite::Connection;

use crate::backend::{Folder, OPENED_AT, options};
use crate::case::cases;
use crate::scene::{accept, identity, problems, register};

cases!("damaged_log":
    a_damaged_log_never_drops_an_acknowledged_event_unnoticed,
    the_damage_is_named_with_its_file_and_a_way_out,
    a_log_in_use_that_is_damaged_is_a_problem_of_the_check,
    a_start_moves_the_log_into_the_database,
    a_stop_beside_a_reader_is_as_safe,
);

/// The measures of the log: header, head of a frame, frame.
const HEADER: usize = 32;
const HEAD: usize = 24;
const FRAME: usize = HEAD + 8192;

/// How many bytes are damaged in each situation, beside those of the header.
const PLACES: usize = 72;

/// A database and its log, as they are on the disk at one moment, and how many events were acknowledged.
struct Situation {
    name: &'static str,
    database: Vec<u8>,
    log: Vec<u8>,
    events: usize,
    /// Whether the last commit may be lost with its own frames.
    last_may_be_lost: bool,
}

fn id(n: usize) -> String {
    format!("evt_{n}")
}

/// Some have more bytes than a page, and none has what another one has.
fn body(n: usize) -> Vec<u8> {
    (0..n * 2_900 % 12_000 + 30).map(|at| (at * 7 + n * 13).to_le_bytes()[0]).collect()
}

fn accept_all(store: &Arc<dyn Store>, events: std::ops::Range<usize>) {
    events.for_each(|n| assert_eq!(accept(store, &id(n), &body(n)), Outcome::Stored));
}

/// Copies by another process: this one would take SQLite's locks away when it closes the files.
pub(crate) fn on_disk(folder: &Folder) -> (Vec<u8>, Vec<u8>) {
    let copy = Folder::new();
    let names = ["events.db", "events.db-wal"];
    let copied = Command::new("cp").args(names.map(|name| folder.path(name))).arg(copy.path("")).status();
    assert!(copied.expect("cp is everywhere").success());
    let [database, log] = names.map(|name| std::fs::read(copy.path(name)).expect("it was copied"));
    (database, log)
}

fn situation(name: &'static str, folder: &Folder, events: usize, last_may_be_lost: bool) -> Situation {
    let (database, log) = on_disk(folder);
    Situation { name, database, log, events, last_may_be_lost }
}

/// A log so large that no checkpoint begins by itself: a copy in the middle of one would be another situation.
fn opened() -> (Folder, Arc<dyn Store>) {
    let folder = Folder::new();
    let options = OpenOptions { wal_bytes_max: 3 * 1024 * 1024, ..options() };
    let store = open(&folder.url(), &options, OPENED_AT).expect("the store opens").store;
    (folder, store)
}

fn crashed() -> Situation {
    let (folder, store) = opened();
    register(&store);
    accept_all(&store, 0..6);
    situation("crashed", &folder, 6, true)
}

/// After a checkpoint that another connection made, so that the test knows when.
fn crashed_after_a_checkpoint() -> Situation {
    let (folder, store) = opened();
    register(&store);
    accept_all(&store, 0..6);
    checkpoint(&folder);
    situation("crashed after a checkpoint", &folder, 6, false)
}

fn checkpoint(folder: &Folder) {
    let raw = Connection::open(folder.database()).expect("anybody can open it");
    let done: (i64, i64, i64) = raw
        .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .expect("it can be asked for");
    assert!(
        done.0 == 0 && done.1 > 0 && done.1 == done.2,
        "nobody else did it, and nothing is left: {done:?}"
    );
}

fn crashed_with_old_frames_behind() -> Situation {
    let (folder, store) = opened();
    register(&store);
    accept_all(&store, 0..10);
    checkpoint(&folder);
    accept_all(&store, 10..14);
    situation("crashed with old frames behind", &folder, 14, true)
}

fn stopped() -> Situation {
    let (folder, store) = opened();
    register(&store);
    accept_all(&store, 0..6);
    store.close(OPENED_AT).expect("it closes");
    situation("stopped", &folder, 6, false)
}

fn stopped_beside_a_reader() -> Situation {
    let (folder, store) = opened();
    register(&store);
    accept_all(&store, 0..3);
    let stuck = Connection::open(folder.database()).expect("anybody can open it");
    stuck.execute_batch("BEGIN; SELECT count(*) FROM events;").expect("it can be read");
    accept_all(&store, 3..6);
    store.close(OPENED_AT).expect("it closes");
    situation("stopped beside a reader", &folder, 6, false)
}

/// What a start came to with one byte changed.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Refused,
    Everything,
    LastIsMissing,
}

/// Where in a log a transaction ends: the last one, or so many before it.
fn end(log: &[u8], back: usize) -> usize {
    let salts = &log[16..24];
    let live = log[HEADER..].chunks_exact(FRAME).take_while(|frame| &frame[8..16] == salts);
    let ends: Vec<usize> =
        (1..).zip(live).filter(|(_, frame)| frame[4..8] != [0; 4]).map(|(number, _)| number).collect();
    HEADER + FRAME * ends.iter().rev().nth(back).copied().unwrap_or(0)
}

/// Where in the file of a log a transaction begins: the last one, or so many before it.
pub(crate) fn start_of_transaction(log: &Path, back: usize) -> usize {
    end(&std::fs::read(log).expect("it is there"), back + 1)
}

impl Situation {
    /// The bytes of the log that hold its newest transactions, and of the last one.
    fn frames(&self) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        (HEADER..end(&self.log, 0), end(&self.log, 1)..end(&self.log, 0))
    }

    /// Places to damage: the header, heads of frames, pages, and some behind all of it.
    fn places(&self) -> Vec<usize> {
        let (live, _) = self.frames();
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut below = |max: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % max
        };
        let frames = live.len() / FRAME;
        let heads: Vec<usize> =
            (0..PLACES / 2).map(|_| HEADER + below(frames) * FRAME + below(HEAD)).collect();
        let pages: Vec<usize> = (0..PLACES / 3).map(|_| HEADER + below(live.len())).collect();
        let behind = (0..PLACES / 6).map(|_| live.end + below(self.log.len() - live.end));
        (0..HEADER).step_by(3).chain(heads).chain(pages).chain(behind).collect()
    }

    fn start_with_damage(&self, at: usize) -> Found {
        let mut log = self.log.clone();
        log[at] ^= 1 << (at % 8);
        let folder = Folder::new();
        std::fs::write(folder.database(), &self.database).expect("it can be written");
        std::fs::write(folder.path("events.db-wal"), &log).expect("it can be written");
        match open(&folder.url(), &options(), OPENED_AT) {
            Err(OpenError::Damaged { .. }) => Found::Refused,
            Err(other) => panic!("{}, byte {at}: {other:?}", self.name),
            Ok(opened) => self.compare(&opened.store, at),
        }
    }

    /// Damages one byte after the other.
    fn check(&self) {
        let (name, (live, last)) = (self.name, self.frames());
        let mut refused = 0;
        for at in self.places() {
            match self.start_with_damage(at) {
                Found::Refused => refused += 1,
                Found::Everything => {
                    let harmless = !live.contains(&at) || last.contains(&at);
                    assert!(harmless, "{name}: nobody saw byte {at}");
                }
                Found::LastIsMissing => {
                    assert!(self.last_may_be_lost && last.contains(&at), "{name}: byte {at}");
                }
            }
        }
        assert!(refused >= HEADER / 3, "{name}: {refused} were refused");
    }

    /// Everything that is served is as it was stored, and at most the last event is missing.
    fn compare(&self, store: &Arc<dyn Store>, at: usize) -> Found {
        let missing: Vec<usize> = (0..self.events).filter(|n| !is_whole(store, *n)).collect();
        assert_eq!(problems(store), [] as [&str; 0], "{}, byte {at}", self.name);
        match missing.as_slice() {
            [] => Found::Everything,
            [last] if last + 1 == self.events => Found::LastIsMissing,
            more => panic!("{}, byte {at}: events {more:?} are gone", self.name),
        }
    }
}

/// `false`: it is not there. Anything between is a failure.
fn is_whole(store: &Arc<dyn Store>, n: usize) -> bool {
    let selector = EventSelector::Identity(identity(&id(n)));
    let Some(event) = store.event(&selector).expect("events can be read") else { return false };
    let Some(Body::Kept(bytes)) = store.body(BodySelector::Event(event.id)).expect("bodies can be read")
    else {
        panic!("event {n} has no body");
    };
    assert!(*bytes == *body(n), "event {n} has other bytes");
    true
}

fn a_damaged_log_never_drops_an_acknowledged_event_unnoticed() {
    let situations = [
        crashed(),
        crashed_after_a_checkpoint(),
        crashed_with_old_frames_behind(),
        stopped(),
        stopped_beside_a_reader(),
    ];
    // A start waits for the disk most of the time.
    std::thread::scope(|scope| {
        for situation in &situations {
            scope.spawn(|| situation.check());
        }
    });
}

/// The refusal of a log with a byte of its third frame changed, which writes to neither file.
pub(crate) fn refused_start() -> (Folder, OpenError) {
    let situation = crashed();
    let folder = Folder::new();
    let mut log = situation.log.clone();
    log[HEADER + 2 * FRAME + 100] ^= 1;
    std::fs::write(folder.database(), &situation.database).expect("it can be written");
    std::fs::write(folder.path("events.db-wal"), &log).expect("it can be written");
    let to_check = OpenOptions { spot_check_events: 0, ..options() };
    let refused = open(&folder.url(), &to_check, OPENED_AT).expect_err("it is refused");
    assert!(std::fs::read(folder.database()).expect("it is there") == situation.database);
    assert!(std::fs::read(folder.path("events.db-wal")).expect("it is there") == log);
    (folder, refused)
}

fn the_damage_is_named_with_its_file_and_a_way_out() {
    let (folder, refused) = refused_start();
    assert!(matches!(&refused, OpenError::Damaged { path, .. } if *path == folder.path("events.db-wal")));
    let told = refused.to_string();
    for word in ["events.db-wal` is damaged: frame 3 ", "later transaction", "restore a backup"] {
        assert!(told.contains(word), "{word} is not in: {told}");
    }
}

fn a_log_in_use_that_is_damaged_is_a_problem_of_the_check() {
    let folder = Folder::new();
    let store = folder.open().store;
    register(&store);
    accept_all(&store, 0..6);
    assert_eq!(problems(&store), [] as [&str; 0]);
    // The salts of the last frame: SQLite does not look at them again before the next start.
    let (_, log) = on_disk(&folder);
    let salts = log[16..24].to_vec();
    let live = log[HEADER..].chunks_exact(FRAME).take_while(|frame| frame[8..16] == salts).count();
    flip(&folder.path("events.db-wal"), HEADER + (live - 1) * FRAME + 8);
    let found = problems(&store);
    assert!(found.iter().any(|what| what.contains("events.db-wal` is damaged")), "{found:?}");
}

pub(crate) fn flip(file: &Path, at: usize) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::options().read(true).write(true).open(file).expect("it can be written");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at as u64).expect("it is that long");
    file.write_all_at(&[byte[0] ^ 1], at as u64).expect("it can be written");
}

fn a_start_moves_the_log_into_the_database() {
    let situation = crashed();
    let folder = Folder::new();
    std::fs::write(folder.database(), &situation.database).expect("it can be written");
    std::fs::write(folder.path("events.db-wal"), &situation.log).expect("it can be written");
    let store = folder.open().store;
    let (database, log) = on_disk(&folder);
    drop(store);
    assert!(log[..HEADER] != situation.log[..HEADER], "a new filling was begun");
    // Without its log, as the most that damage can take.
    let alone = Folder::new();
    std::fs::write(alone.database(), database).expect("it can be written");
    let store = alone.open().store;
    assert!((0..situation.events).all(|n| is_whole(&store, n)));
    assert_eq!(problems(&store), [] as [&str; 0]);
}

fn a_stop_beside_a_reader_is_as_safe() {
    let situation = stopped_beside_a_reader();
    let (live, last) = situation.frames();
    assert!(live.len() > last.len(), "the reader kept the log from being emptied");
    for at in last.clone().step_by(last.len() / 20) {
        assert_eq!(situation.start_with_damage(at), Found::Everything, "the last commit carries nothing");
    }
}
