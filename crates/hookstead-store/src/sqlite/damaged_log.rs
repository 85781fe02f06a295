//! Tests of the scan: every damage of a byte in a log that SQLite wrote, and every kind of state that a power
//! cut can leave of one. The databases have small pages, so that all of it takes seconds.

use std::fs;
use std::path::PathBuf;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::files::wal_path;
use super::log_format::{FRAME_HEAD_BYTES, Frame, LOG_HEADER_BYTES, LogHeader};
use super::log_scan::{LogDamage, Scan, scan};
use crate::fs::Fs;
use crate::fs_os::OsFs;

const PAGE: usize = 512;
const FRAME: usize = FRAME_HEAD_BYTES + PAGE;
const SECTOR: usize = 512;

/// A database that is written to, and what of it is on the disk.
struct Scene {
    connection: Connection,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

/// The bytes of database and log at one moment.
#[derive(Clone)]
struct State {
    database: Vec<u8>,
    log: Vec<u8>,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let connection = Connection::open(&path).unwrap();
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
        connection
            .execute_batch(
                "PRAGMA page_size = 512; PRAGMA journal_mode = WAL; PRAGMA synchronous = EXTRA;
                 PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (n INTEGER PRIMARY KEY, bytes BLOB);",
            )
            .unwrap();
        Self { connection, path, _folder: folder }
    }

    /// One transaction.
    fn commit(&self, bytes: u32) {
        self.connection.execute("INSERT INTO t (bytes) VALUES (randomblob(?1))", [bytes]).unwrap();
    }

    fn checkpoint(&self, mode: &str) {
        self.connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(())).unwrap();
    }

    fn state(&self) -> State {
        State { database: fs::read(&self.path).unwrap(), log: fs::read(wal_path(&self.path)).unwrap() }
    }
}

/// Files that are changed and scanned.
struct Copy {
    database: PathBuf,
    log: PathBuf,
    _folder: tempfile::TempDir,
}

impl Copy {
    fn of(state: &State) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("b.db");
        fs::write(&database, &state.database).unwrap();
        Self { log: wal_path(&database), database, _folder: folder }
    }

    fn scan(&self, log: &[u8]) -> Scan {
        // Written over and not anew: some file systems sync a file that was cut and written again.
        let file = OsFs.open_or_create(&self.log).unwrap();
        file.write_all_at(log, 0).unwrap();
        file.set_len(log.len() as u64).unwrap();
        scan(&OsFs, &self.log, Some(&self.database)).unwrap()
    }
}

/// Where the transactions of a log end: the numbers of their last frames, oldest first.
fn ends(log: &[u8]) -> Vec<u32> {
    let header = LogHeader::parse(log[..LOG_HEADER_BYTES].try_into().unwrap()).unwrap();
    let frames = log[LOG_HEADER_BYTES..].chunks_exact(FRAME).map(Frame::new);
    let live = frames.take_while(|frame| frame.salts() == header.salts);
    let ends = (1..).zip(live).filter(|(_, frame)| frame.commit_mark() != 0);
    ends.map(|(number, _)| number).collect()
}

/// Flips a bit in every byte of header and heads and in every seventh of the pages, and compares what is found
/// with what must be.
fn check_every(state: &State, expected: impl Fn(u32, &Scan) -> bool) {
    let copy = Copy::of(state);
    let mut log = state.log.clone();
    let in_head = |at: usize| at.checked_sub(LOG_HEADER_BYTES).is_none_or(|at| at % FRAME < FRAME_HEAD_BYTES);
    for at in (0..log.len()).filter(|at| in_head(*at) || at % 7 == 0) {
        let bit = 1 << (at % 8);
        log[at] ^= bit;
        let found = copy.scan(&log);
        let frame = at.checked_sub(LOG_HEADER_BYTES).map_or(0, |at| at / FRAME + 1);
        assert!(expected(u32::try_from(frame).unwrap(), &found), "byte {at}, frame {frame}: {found:?}");
        log[at] ^= bit;
    }
    assert_eq!(copy.scan(&log).damage, None, "the whole one is sound");
}

#[test]
fn every_byte_before_the_last_transaction_is_missed() {
    let scene = Scene::new();
    for bytes in [10, 900, 1, 2_000, 10, 700, 300] {
        scene.commit(bytes);
    }
    let state = scene.state();
    let ends = ends(&state.log);
    let [.., last_but_one, last] = *ends.as_slice() else { panic!("there are several: {ends:?}") };
    check_every(&state, |frame, found| match frame {
        0 => found.damage == Some(LogDamage::Header { frame: 1 }),
        frame if frame <= last_but_one => {
            matches!(found.damage, Some(LogDamage::LaterTransaction { broken, .. }) if broken == frame)
        }
        // Here it looks like a torn write, unless a mark of a commit was made where none was.
        frame if frame <= last => found.committed == last_but_one,
        _ => panic!("this log has no other frames"),
    });
}

#[test]
fn frames_of_an_earlier_filling_are_not_missed() {
    let scene = Scene::new();
    (0..20).for_each(|_| scene.commit(600));
    scene.checkpoint("RESTART");
    (0..4).for_each(|_| scene.commit(600));
    let state = scene.state();
    let ends = ends(&state.log);
    let [.., last_but_one, last] = *ends.as_slice() else { panic!("there are several: {ends:?}") };
    assert!(state.log.len() > LOG_HEADER_BYTES + last as usize * FRAME * 2, "much of the log is old");
    check_every(&state, |frame, found| match frame {
        0 => found.damage == Some(LogDamage::Header { frame: 1 }),
        frame if frame <= last_but_one => found.damage.is_some(),
        frame if frame <= last => found.committed == last_but_one,
        _ => *found == Scan { committed: last, damage: None },
    });
}

#[test]
fn a_checkpointed_transaction_is_missed_although_it_is_the_last() {
    let scene = Scene::new();
    // More than a page of the usual size, by which frames are looked for where the header says nothing.
    for bytes in [10, 900, 9_000, 1, 300] {
        scene.commit(bytes);
    }
    scene.checkpoint("PASSIVE");
    let state = scene.state();
    let last = *ends(&state.log).last().unwrap();
    check_every(&state, |frame, found| frame <= last && found.damage.is_some());
}

#[test]
fn a_log_of_one_transaction_that_was_checkpointed_is_not_missed() {
    let scene = Scene::new();
    scene.commit(9_000);
    scene.checkpoint("RESTART");
    scene.commit(1);
    scene.checkpoint("PASSIVE");
    // The database has all of it, and the log hides nothing.
    check_every(&scene.state(), |frame, found| frame == 0 || found.damage.is_none());
}

/// Numbers in no order, the same ones each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Mixes the sectors of the logs before and after a transaction in many ways, and expects that each is taken
/// for what it is: the transaction is there or not, and nothing is damaged.
fn check_torn(database: &State, before: &[u8], after: &[u8], committed: [u32; 2]) {
    let copy = Copy::of(database);
    let mut old = before.to_vec();
    old.resize(after.len(), 0);
    let differ: Vec<usize> = (0..after.len())
        .step_by(SECTOR)
        .filter(|at| {
            let sector = *at..after.len().min(at + SECTOR);
            old[sector.clone()] != after[sector]
        })
        .collect();
    let mut random = Random(0x1234_5678_9abc_def1);
    for round in 0..300 {
        let mut log = old.clone();
        // Few, half or most of the sectors reached the disk; at the beginning exactly one did not.
        for (index, at) in differ.iter().enumerate() {
            let kept =
                if round < differ.len() { index != round } else { random.next() % 4 <= round as u64 % 4 };
            if kept {
                let sector = *at..after.len().min(at + SECTOR);
                log[sector.clone()].copy_from_slice(&after[sector]);
            }
        }
        let found = copy.scan(&log);
        assert!(found.damage.is_none() && committed.contains(&found.committed), "round {round}: {found:?}");
    }
}

#[test]
fn a_torn_transaction_is_no_damage() {
    let scene = Scene::new();
    // The first part is on top of nothing, the second on top of an earlier filling.
    for filling in 0..2 {
        (0..5).for_each(|_| scene.commit(700));
        let before = scene.state();
        scene.commit(3_000);
        let after = scene.state();
        let ends = ends(&after.log);
        let [.., last_but_one, last] = *ends.as_slice() else { panic!("there are several: {ends:?}") };
        check_torn(&after, &before.log, &after.log, [last_but_one, last]);
        if filling == 0 {
            scene.checkpoint("RESTART");
        }
    }
}

#[test]
fn a_torn_first_transaction_of_a_filling_is_no_damage() {
    let scene = Scene::new();
    (0..9).for_each(|_| scene.commit(700));
    scene.checkpoint("RESTART");
    let before = scene.state();
    scene.commit(2_000);
    let after = scene.state();
    let end = ends(&after.log)[0];
    // The header is synced before any frame is written.
    let mut with_header = before.log.clone();
    with_header[..LOG_HEADER_BYTES].copy_from_slice(&after.log[..LOG_HEADER_BYTES]);
    check_torn(&after, &with_header, &after.log, [0, end]);
    let copy = Copy::of(&before);
    assert_eq!(copy.scan(&before.log).damage, None, "the header may as well be the old one");
}

#[test]
fn what_a_rolled_back_transaction_left_behind_is_no_damage() {
    let scene = Scene::new();
    scene.connection.execute_batch("PRAGMA cache_size = 5; PRAGMA cache_spill = 5;").unwrap();
    (0..3).for_each(|_| scene.commit(100));
    let committed = *ends(&scene.state().log).last().unwrap();
    scene.connection.execute_batch("BEGIN").unwrap();
    (0..30).for_each(|_| scene.commit(600));
    scene.connection.execute_batch("ROLLBACK").unwrap();
    let before = scene.state();
    let left = (before.log.len() - LOG_HEADER_BYTES) / FRAME - committed as usize;
    assert!(left > 10, "the transaction was too large for its cache: {left} frames");
    scene.commit(900);
    let after = scene.state();
    check_torn(&after, &before.log, &after.log, [committed, *ends(&after.log).last().unwrap()]);
}

#[test]
fn a_log_without_frames_holds_nothing() {
    let state = Scene::new().state();
    let copy = Copy::of(&state);
    for log in [&[][..], &[0; 31], &[0; 32], &[0; 100_000], &state.log[..LOG_HEADER_BYTES + FRAME - 1]] {
        assert_eq!(copy.scan(log), Scan { committed: 0, damage: None });
    }
    let mut log = vec![0; 100_000];
    for at in (0..log.len()).step_by(61) {
        log[at] = 1;
        assert_eq!(copy.scan(&log), Scan { committed: 0, damage: None }, "byte {at}");
        log[at] = 0;
    }
}
