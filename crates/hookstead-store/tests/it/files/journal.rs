//! The journal: that it holds what the folders have lost, wherever the power goes, that it stays short, and what
//! is wrong with it is told.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hookstead_core::{
    Body, BodySelector, Outcome, RecordRun, RetentionRule, Store, StoreError, Sweep, Timestamp, Write,
};
use hookstead_store::fs::Fs as _;
use hookstead_store::sim::{Fault, SimDisk, When};
use hookstead_store::{Checkpoints, OpenError, OpenOptions, Opened};

use super::backend::Dir;
use super::cut::{ROOT, open_on, open_with};
use super::folder::{entry, load_as_the_seed};
use crate::backend::OPENED_AT;
use crate::case::cases;
use crate::scene::{SHOP, accept, accepting, events, find, problems, register, try_accept};

cases!("files::journal":
    nothing_is_lost_wherever_the_power_goes_in_many_batches,
    an_error_anywhere_in_many_batches_loses_nothing,
    a_close_that_loses_power_loses_nothing,
    a_start_from_several_segments_that_loses_power_loses_nothing,
    what_the_disk_lost_or_tore_is_written_again,
    what_has_no_room_is_served_and_written_when_there_is_some,
    a_journal_stays_short_and_goes_with_the_close,
    a_crashed_store_is_read_by_the_seeds_loader_after_a_start,
    damage_in_the_journal_is_refused,
    a_log_that_is_shorter_than_the_journal_says_is_refused,
    a_lost_log_leaves_the_records_of_the_journal,
    a_journal_that_was_replaced_under_the_store_poisons_it,
);

/// Seeds for each place: what of the unsynced survives is drawn anew for each.
const SEEDS: u64 = 3;

/// How many batches [`go_on`] has.
const BATCHES: usize = 6;

/// One that is erased by the last batch.
const ERASED: &str = "event 1";

/// Every length of a segment that matters: one batch, a few, all; and both kinds of checkpoints.
const JOURNALS: [(u64, Checkpoints); 4] = [
    (0, Checkpoints::InTheCall),
    (5_000, Checkpoints::InTheCall),
    (1 << 20, Checkpoints::InTheCall),
    (0, Checkpoints::Beside),
];

type Journal = (u64, Checkpoints);

fn open((journal_bytes_max, checkpoints): Journal, disk: &SimDisk) -> Result<Opened, OpenError> {
    open_with(disk, OpenOptions { journal_bytes_max, checkpoints, ..OpenOptions::default() })
}

/// A body that takes several sectors, so that it can be torn.
fn body(id: &str) -> Vec<u8> {
    format!("{id}:").repeat(300).into_bytes()
}

/// A registered store on a new disk.
fn new_store(journal: Journal, seed: u64) -> (SimDisk, Arc<dyn Store>) {
    let disk = SimDisk::new(seed);
    let store = open(journal, &disk).expect("a new disk takes a store").store;
    register(&store);
    (disk, store)
}

/// The batch with this number: two new events; the fourth also keeps a conflict and records a run; the last
/// one erases everything, but for what comes in it.
fn batch(store: &Arc<dyn Store>, number: usize) -> Vec<Write> {
    let ids = ids(number);
    let mut writes: Vec<Write> = ids.iter().map(|id| accepting(store, id, &body(id))).collect();
    if number == 3 {
        writes.push(accepting(store, "event 0", &body("other bytes")));
        writes.push(Write::RecordRun(Box::new(RecordRun {
            event: find(store, "event 0").id,
            run: "nightly".parse().expect("a legal name"),
            business_id: None,
            payload: Some(body("payload").into()),
        })));
    }
    if number == BATCHES - 1 {
        let before = Some(OPENED_AT);
        let rule = RetentionRule { source: SHOP, finished_before: before, unfinished_before: before };
        writes.push(Write::Sweep(Sweep { retention: vec![rule], max: 100 }));
    }
    writes
}

fn ids(batch: usize) -> [String; 2] {
    [format!("event {}", 2 * batch), format!("event {}", 2 * batch + 1)]
}

/// Batches are a second apart, so that the last one is after the others.
fn at(batch: usize) -> Timestamp {
    let before_the_last = batch + 1 < BATCHES;
    Timestamp::from_secs(OPENED_AT.as_micros() / 1_000_000 - i64::from(before_the_last))
}

/// Does all batches, up to the first that fails; says how many were acknowledged.
fn go_on(store: &Arc<dyn Store>) -> usize {
    (0..BATCHES).take_while(|number| store.apply(&batch(store, *number), at(*number)).is_ok()).count()
}

/// Opens what is left, and sees that every acknowledged batch is there, at most one more, and everything as it
/// was; what is missing is sent again.
fn assert_whole(disk: &SimDisk, acknowledged: usize) {
    let store = open_on(disk).expect("the store opens").store;
    let count = events(&store).len();
    assert!(count == 2 * acknowledged || count == 2 * acknowledged + 2, "{count} of {acknowledged} batches");
    assert_eq!(problems(&store), [""; 0]);
    for event in events(&store) {
        let id = event.identity.id.to_string();
        let kept =
            store.body(BodySelector::Event(event.id)).expect("bodies can be read").expect("it is there");
        let expected = match event.erased_at {
            Some(_) => Body::Erased,
            None => Body::Kept(body(&id).into()),
        };
        assert_eq!(kept, expected);
        assert_eq!(
            event.erased_at.is_some(),
            count == 2 * BATCHES && event.seq.0 <= 2 * (BATCHES as u64 - 1)
        );
    }
    if count > 6 {
        let event = find(&store, "event 0");
        assert_eq!((event.conflicts, store.runs(&event.id).expect("they can be read").len()), (1, 1));
    }
    for id in (0..BATCHES).flat_map(ids) {
        let expected = if number_of(&id) < count { Outcome::Duplicate } else { Outcome::Stored };
        assert_eq!(accept(&store, &id, &body(&id)), expected, "{id}");
    }
    drop(store);
    let store = open_on(&disk.power_cut(7)).expect("it opens again").store;
    assert_eq!((events(&store).len(), problems(&store)), (2 * BATCHES, Vec::new()));
}

fn number_of(id: &str) -> usize {
    id.strip_prefix("event ").and_then(|number| number.parse().ok()).expect("it is one of ours")
}

/// How many operations all batches take.
fn operations(journal: Journal) -> u64 {
    let (disk, store) = new_store(journal, 1);
    let before = disk.operations();
    assert_eq!(go_on(&store), BATCHES);
    disk.operations() - before
}

fn nothing_is_lost_wherever_the_power_goes_in_many_batches() {
    for journal in JOURNALS {
        let mut acknowledged_in_all = 0;
        for place in 0..operations(journal) {
            let (disk, store) = new_store(journal, place);
            disk.fail(Fault::PowerCut, When::Once(place));
            let acknowledged = go_on(&store);
            acknowledged_in_all += acknowledged;
            for seed in 0..SEEDS {
                assert_whole(&disk.power_cut(seed * 1_000 + place), acknowledged);
            }
        }
        assert!(acknowledged_in_all > 100, "{acknowledged_in_all}");
    }
}

/// Beside the writer the simulated disk would be too unkind: the failed sync of the whole also loses what was
/// written for a sync that is still to come, and that one succeeds. Linux reports it to both.
fn an_error_anywhere_in_many_batches_loses_nothing() {
    for journal in JOURNALS.into_iter().filter(|(_, when)| *when == Checkpoints::InTheCall) {
        for place in 0..operations(journal) {
            let (disk, store) = new_store(journal, place);
            disk.fail(Fault::Io, When::Once(place));
            let acknowledged = go_on(&store);
            assert!(acknowledged < BATCHES, "{place}: an error was swallowed");
            let again = try_accept(&store, "event 0", &body("event 0"));
            assert!(matches!(again, Err(StoreError::Poisoned { .. })), "{place}: {again:?}");
            drop(store);
            // The machine runs on: what the cache pretends is still there.
            disk.heal();
            assert_whole(&disk, acknowledged);
        }
    }
}

fn a_close_that_loses_power_loses_nothing() {
    for journal in JOURNALS {
        for place in 0..12 {
            for seed in 0..SEEDS {
                let (disk, store) = new_store(journal, seed);
                assert_eq!(go_on(&store), BATCHES);
                disk.fail(Fault::PowerCut, When::Once(place));
                drop(store.close(OPENED_AT));
                assert_whole(&disk.power_cut(seed * 100 + place), BATCHES);
            }
        }
    }
}

fn a_start_from_several_segments_that_loses_power_loses_nothing() {
    let crashed = |seed| {
        let (disk, store) = new_store((5_000, Checkpoints::InTheCall), seed);
        assert_eq!(go_on(&store), BATCHES);
        disk.power_cut(seed)
    };
    let count = {
        let disk = crashed(1);
        let before = disk.operations();
        drop(open_on(&disk).expect("it opens"));
        disk.operations() - before
    };
    for place in 0..count {
        for seed in 0..SEEDS {
            let disk = crashed(seed);
            disk.fail(Fault::PowerCut, When::Once(place));
            drop(open_on(&disk));
            assert_whole(&disk.power_cut(seed * 100 + place), BATCHES);
        }
    }
}

fn what_the_disk_lost_or_tore_is_written_again() {
    let (mut lost, mut torn, mut resurrected) = (0, 0, 0);
    for seed in 0..20 {
        let (disk, store) = new_store(JOURNALS[2], seed);
        assert_eq!(go_on(&store), BATCHES);
        let disk = disk.power_cut(seed);
        for id in (0..BATCHES - 1).flat_map(ids) {
            resurrected += u32::from(file(&disk, &id).is_some());
        }
        for id in ids(BATCHES - 1) {
            match file(&disk, &id) {
                None => lost += 1,
                Some(bytes) => torn += u32::from(bytes.len() < body(&id).len()),
            }
        }
        drop(open_on(&disk).expect("the store opens"));
        assert!(file(&disk, ERASED).is_none(), "what was erased does not come back");
        assert_whole(&disk, BATCHES);
    }
    assert!(lost > 2 && torn > 2 && resurrected > 2, "{lost} {torn} {resurrected}");
}

/// The entry of an event on a simulated disk.
fn file(disk: &SimDisk, id: &str) -> Option<Vec<u8>> {
    let digest = hookstead_core::Digest::of(id.as_bytes());
    let path = Path::new(ROOT).join(format!("sources/shop/deliveries/{digest}.json"));
    let bytes = disk.facts(&path).expect("it can be looked at")?.bytes;
    let mut content = vec![0; usize::try_from(bytes).expect("it is short")];
    disk.open_read(&path).and_then(|file| file.read_at(&mut content, 0)).expect("it can be read");
    Some(content)
}

fn what_has_no_room_is_served_and_written_when_there_is_some() {
    let mut late = 0;
    for place in 0..8 {
        let (disk, store) = new_store(JOURNALS[2], place);
        accept(&store, "event 2", &body("event 2"));
        disk.fail(Fault::NoSpace, When::From(place));
        let Ok(_) = store.apply(&batch(&store, 0), OPENED_AT) else { continue };
        let missing = ids(0).iter().filter(|id| file(&disk, id).is_none()).count();
        late += missing;
        assert_eq!(problems(&store), [""; 0], "all of it is served");
        assert_eq!(accept(&store, "event 0", &body("event 0")), Outcome::Duplicate);
        if missing > 0 {
            let refused = try_accept(&store, "event 3", &body("event 3"));
            assert!(matches!(refused, Err(StoreError::Full { .. })), "{refused:?}");
        }
        disk.heal();
        store.probe(OPENED_AT).expect("there is room again");
        assert_eq!(accept(&store, "event 3", &body("event 3")), Outcome::Stored);
        assert!(ids(0).iter().all(|id| file(&disk, id).is_some()), "what was late is written");
        assert_whole(&disk.power_cut(place), 2);
    }
    assert!(late > 2, "{late}");
}

/// The segments of the journal in a folder.
fn segments(dir: &Dir) -> Vec<PathBuf> {
    let names = std::fs::read_dir(dir.root()).expect("it can be listed");
    let paths = names.map(|name| name.expect("it can be read").path());
    paths.filter(|path| path.to_string_lossy().contains("journal-")).collect()
}

fn a_journal_stays_short_and_goes_with_the_close() {
    let dir = Dir::new();
    let options = OpenOptions { journal_bytes_max: 20_000, ..OpenOptions::default() };
    let store = dir.open_with(&options).expect("it opens").store;
    register(&store);
    for number in 0..100 {
        let id = format!("evt_{number}");
        assert_eq!(accept(&store, &id, &body(&id)), Outcome::Stored);
        let bytes: u64 =
            segments(&dir).iter().map(|path| std::fs::metadata(path).map_or(0, |it| it.len())).sum();
        assert!(segments(&dir).len() <= 2 && bytes < 60_000, "{bytes} bytes in {:?}", segments(&dir));
    }
    store.close(OPENED_AT).expect("it closes");
    assert!(segments(&dir).is_empty(), "{:?}", segments(&dir));
    let store = dir.open().store;
    assert_eq!((events(&store).len(), problems(&store)), (100, Vec::new()));
}

/// A copy of an open store's folder: what a crash leaves, if nothing is lost.
fn crashed(journal_bytes_max: u64) -> Dir {
    let dir = Dir::new();
    let store = dir.open_with(&OpenOptions { journal_bytes_max, ..OpenOptions::default() });
    let store = store.expect("it opens").store;
    register(&store);
    for id in ["evt_1", "evt_2", "evt_3"] {
        accept(&store, id, id.as_bytes());
    }
    crashed_copy(&dir)
}

fn crashed_copy(dir: &Dir) -> Dir {
    let copy = Dir::new();
    let copied = std::process::Command::new("cp").arg("-r").args([dir.root(), copy.root()]).status();
    assert!(copied.expect("cp runs").success());
    copy
}

fn a_crashed_store_is_read_by_the_seeds_loader_after_a_start() {
    let dir = crashed(1 << 20);
    std::fs::remove_file(entry(&dir, "evt_1")).expect("it is there");
    std::fs::write(entry(&dir, "evt_2"), "{\n  \"schema").expect("it can be written");
    std::fs::write(entry(&dir, "evt_3"), "longer than it was".repeat(1_000)).expect("it can be written");
    let store = dir.open().store;
    for id in ["evt_1", "evt_2", "evt_3"] {
        load_as_the_seed(&dir, id, id);
        assert_eq!(accept(&store, id, id.as_bytes()), Outcome::Duplicate);
    }
    assert_eq!(problems(&store), [""; 0]);
}

fn damaged(dir: &Dir) -> String {
    match dir.try_open() {
        Err(OpenError::Damaged { what, .. }) => what,
        other => panic!("a damaged store: {other:?}"),
    }
}

fn damage_in_the_journal_is_refused() {
    let dir = crashed(1 << 20);
    let [segment] = segments(&dir).try_into().expect("there is one segment");
    let whole = std::fs::read(&segment).expect("it is there");
    let text = String::from_utf8(whole.clone()).expect("it can be read with a text editor");
    let second = text.match_indices("{\"sum\":").nth(1).expect("it has batches").0;
    for place in [5, second + 9, second + 200] {
        let mut bad = whole.clone();
        bad[place] ^= 4;
        std::fs::write(&segment, &bad).expect("it can be written");
        assert!(damaged(&dir).contains("journal-"), "a bit at {place}");
        assert_eq!(std::fs::read(&segment).expect("it is there"), bad, "it is left alone");
    }
    std::fs::write(&segment, &whole[..whole.len() - 3]).expect("it can be written");
    let copy = crashed_copy(&dir);
    std::fs::remove_file(entry(&copy, "evt_3")).expect("it is there");
    assert_eq!(events(&copy.open().store).len(), 2, "a torn end was never acknowledged");
    std::fs::write(&segment, whole).expect("it can be written");
    assert_eq!(events(&dir.open().store).len(), 3);
}

fn a_log_that_is_shorter_than_the_journal_says_is_refused() {
    let dir = crashed(0);
    let log = dir.root().join("work.log");
    let whole = std::fs::read(&log).expect("it is there");
    let first = whole.iter().position(|byte| *byte == b'\n').expect("it has lines") + 1;
    std::fs::write(&log, &whole[..first]).expect("it can be written");
    assert!(damaged(&dir).contains("shorter"));
    std::fs::write(&log, &whole).expect("it can be written");
    assert_eq!(events(&dir.open().store).len(), 3);
}

fn a_lost_log_leaves_the_records_of_the_journal() {
    let dir = crashed(1 << 20);
    std::fs::write(dir.root().join("work.log"), "").expect("it can be written");
    std::fs::remove_file(entry(&dir, "evt_1")).expect("it is there");
    std::fs::write(entry(&dir, "evt_2"), "{\n  \"schema").expect("it can be written");
    let store = dir.open().store;
    register(&store);
    for id in ["evt_1", "evt_2", "evt_3"] {
        assert_eq!(accept(&store, id, id.as_bytes()), Outcome::Duplicate);
    }
    assert_eq!(problems(&store), [""; 0]);
}

fn a_journal_that_was_replaced_under_the_store_poisons_it() {
    let dir = Dir::new();
    let store = dir.open().store;
    register(&store);
    let [segment] = segments(&dir).try_into().expect("there is one segment");
    std::fs::remove_file(&segment).expect("it is there");
    std::fs::write(&segment, "").expect("it can be written");
    let refused = try_accept(&store, "evt_1", b"1");
    assert!(matches!(refused, Err(StoreError::Poisoned { .. })), "{refused:?}");
}
