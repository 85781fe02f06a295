//! Power cuts and faults at every operation of a batch, on the simulated disk.

use std::sync::Arc;

use hookstead_core::{
    Body, BodySelector, Claim, DeliveryFilter, DeliveryId, Extend, LeaseToken, Order, Outcome, Page,
    RecordRun, RetentionRule, Store, StoreError, Sweep, Write, Written,
};
use hookstead_store::sim::{Fault, SimDisk, When};
use hookstead_store::{OpenError, Opened};

use super::cut::{open_on, open_short};
use crate::backend::OPENED_AT;
use crate::case::cases;
use crate::scene::{APP, SHOP, accept, accepting, events, find, problems, register, try_accept};

cases!("files::power":
    a_batch_is_all_there_or_not_at_all_wherever_the_power_goes,
    a_start_that_loses_power_loses_nothing,
    an_erasure_that_loses_power_leaves_a_tombstone_or_the_event,
    a_duplicate_rests_on_the_disk_and_not_on_the_cache,
    an_error_anywhere_is_no_acknowledgment_and_the_retry_is_right_after_a_restart,
    after_an_error_nothing_is_acknowledged_any_more_not_even_a_duplicate,
    no_space_anywhere_is_taken_back_and_tried_again,
    a_first_start_that_loses_power_leaves_a_store_or_none,
);

/// How a store is opened: without a checkpoint on its way, and with one in each batch.
type Open = fn(&SimDisk) -> Result<Opened, OpenError>;
const OPENS: [Open; 2] = [open_on, open_short];

/// Seeds for each place: what of the unsynced survives is drawn anew for each.
const SEEDS: u64 = 6;

/// A body that takes several sectors, so that it can be torn.
fn body(id: &str) -> Vec<u8> {
    format!("{id}:").repeat(400).into_bytes()
}

/// A store with two events, written by a process that is gone.
fn old_disk(open: Open, seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed);
    let store = open(&disk).expect("a new disk takes a store").store;
    register(&store);
    for id in ["old 1", "old 2"] {
        assert_eq!(accept(&store, id, &body(id)), Outcome::Stored);
    }
    store.close(OPENED_AT).expect("it closes");
    disk.power_cut(seed)
}

/// A batch that touches everything: new events, a duplicate, a conflict, leases, a run.
fn batch(store: &Arc<dyn Store>) -> Vec<Write> {
    let event = find(store, "old 1").id;
    let delivery = DeliveryId { event, destination: APP, generation: 1 };
    vec![
        accepting(store, "new 1", &body("new 1")),
        accepting(store, "old 1", &body("old 1")),
        accepting(store, "old 2", &body("other bytes")),
        Write::Claim(Claim { destination: APP, max: 1, lease_for: std::time::Duration::from_secs(60) }),
        Write::Extend(Extend {
            delivery,
            token: LeaseToken(1),
            lease_for: std::time::Duration::from_secs(90),
        }),
        Write::RecordRun(Box::new(RecordRun {
            event,
            run: "nightly".parse().expect("a legal name"),
            business_id: Some("order-42".to_owned()),
            payload: Some(b"{\"n\":1.0}".as_slice().into()),
        })),
        accepting(store, "new 2", &body("new 2")),
    ]
}

/// How many operations the batch takes.
fn operations_of_batch(open: Open) -> u64 {
    let disk = old_disk(open, 1);
    let store = open(&disk).expect("it opens").store;
    let before = disk.operations();
    store.apply(&batch(&store), OPENED_AT).expect("nothing goes wrong");
    disk.operations() - before
}

/// Whether the batch is there: all of it or, else, nothing of it. Panics if it is in between.
fn is_there(store: &Arc<dyn Store>) -> bool {
    let ids: Vec<String> = events(store).iter().map(|event| event.identity.id.to_string()).collect();
    let leased = store.list_deliveries(&DeliveryFilter::default(), &Page::first(10, Order::OldestFirst));
    let leased = leased.expect("deliveries can be listed").items;
    let leased = leased.iter().filter(|delivery| delivery.token == LeaseToken(1)).count();
    let runs = store.runs(&find(store, "old 1").id).expect("runs can be read").len();
    let conflicts = find(store, "old 2").conflicts;
    match (ids.len(), leased, runs, conflicts) {
        (2, 0, 0, 0) => false,
        (4, 1, 1, 1) => true,
        other => panic!("half a batch is there: {other:?} {ids:?}"),
    }
}

/// Everything that the store says is there is there, untorn and once.
fn assert_whole(store: &Arc<dyn Store>) {
    assert_eq!(problems(store), [""; 0]);
    for event in events(store) {
        let expected = Body::Kept(body(&event.identity.id.to_string()).into());
        let kept = store.body(BodySelector::Event(event.id)).expect("bodies can be read");
        assert_eq!(kept, Some(expected));
    }
    for id in ["old 1", "old 2"] {
        assert_eq!(accept(store, id, &body(id)), Outcome::Duplicate);
    }
}

/// The batch's accepts come again, as a provider sends them that got no answer.
fn retry(store: &Arc<dyn Store>, was_there: bool) {
    let expected = if was_there { Outcome::Duplicate } else { Outcome::Stored };
    for id in ["new 1", "new 2"] {
        assert_eq!(accept(store, id, &body(id)), expected, "{id}");
    }
    assert_eq!(accept(store, "old 2", &body("other bytes")), Outcome::Conflict { variant: Some(1) });
}

fn assert_all_there_after_another_cut(open: Open, disk: &SimDisk, seed: u64) {
    let disk = disk.power_cut(seed);
    let store = open(&disk).expect("it opens again").store;
    assert_eq!(events(&store).len(), 4);
    assert_whole(&store);
}

fn a_batch_is_all_there_or_not_at_all_wherever_the_power_goes() {
    OPENS.into_iter().for_each(a_batch_is_all_there_or_not_at_all_wherever_the_power_goes_with);
}

fn a_batch_is_all_there_or_not_at_all_wherever_the_power_goes_with(open: Open) {
    let mut outcomes = [0, 0];
    let count = operations_of_batch(open);
    for place in 0..=count {
        for seed in 0..SEEDS {
            let disk = old_disk(open, seed);
            let store = open(&disk).expect("it opens").store;
            disk.fail(Fault::PowerCut, When::Once(place));
            let acknowledged = store.apply(&batch(&store), OPENED_AT).is_ok();
            assert_eq!(acknowledged, place == count, "the plug is pulled within the batch");
            let disk = disk.power_cut(seed * 1_000 + place);
            let store = open(&disk).expect("it opens after the power cut").store;
            let there = is_there(&store);
            assert!(there || !acknowledged, "an acknowledged batch is gone");
            outcomes[usize::from(there)] += 1;
            assert_whole(&store);
            retry(&store, there);
            assert_all_there_after_another_cut(open, &disk, seed);
        }
    }
    assert!(outcomes.iter().all(|count| *count > 20), "both ends must be seen: {outcomes:?}");
}

fn a_start_that_loses_power_loses_nothing() {
    OPENS.into_iter().for_each(a_start_that_loses_power_loses_nothing_with);
}

fn a_start_that_loses_power_loses_nothing_with(open: Open) {
    let disk = old_disk(open, 3);
    let store = open(&disk).expect("it opens").store;
    store.apply(&batch(&store), OPENED_AT).expect("nothing goes wrong");
    let count = {
        let disk = disk_after(open, 3);
        let before = disk.operations();
        drop(open(&disk).expect("it opens"));
        disk.operations() - before
    };
    assert!(count > 20, "a start with links to make does something: {count}");
    for place in 0..count {
        for seed in 0..SEEDS {
            let disk = disk_after(open, seed);
            disk.fail(Fault::PowerCut, When::Once(place));
            drop(open(&disk));
            let disk = disk.power_cut(seed * 7 + place);
            let store = open(&disk).expect("it opens after the second power cut").store;
            assert!(is_there(&store), "an acknowledged batch is gone");
            assert_whole(&store);
        }
    }
}

/// A disk that lost its power just after the batch was acknowledged.
fn disk_after(open: Open, seed: u64) -> SimDisk {
    let disk = old_disk(open, seed);
    let store = open(&disk).expect("it opens").store;
    store.apply(&batch(&store), OPENED_AT).expect("nothing goes wrong");
    disk.power_cut(seed)
}

fn an_erasure_that_loses_power_leaves_a_tombstone_or_the_event() {
    OPENS.into_iter().for_each(an_erasure_that_loses_power_leaves_a_tombstone_or_the_event_with);
}

fn an_erasure_that_loses_power_leaves_a_tombstone_or_the_event_with(open: Open) {
    let before = Some(OPENED_AT.plus(std::time::Duration::from_secs(1)));
    let rule = RetentionRule { source: SHOP, finished_before: before, unfinished_before: before };
    let sweep = [Write::Sweep(Sweep { retention: vec![rule], max: 10 })];
    let mut erased = [0, 0];
    for place in 0..12 {
        for seed in 0..SEEDS {
            let disk = old_disk(open, seed);
            let store = open(&disk).expect("it opens").store;
            disk.fail(Fault::PowerCut, When::Once(place));
            let acknowledged = store.apply(&sweep, OPENED_AT).is_ok();
            let disk = disk.power_cut(seed * 31 + place);
            let store = open(&disk).expect("it opens after the power cut").store;
            let gone: Vec<bool> = events(&store).iter().map(|event| event.erased_at.is_some()).collect();
            assert!(gone == [true; 2] || (gone == [false; 2] && !acknowledged), "{gone:?}");
            assert_eq!(problems(&store), [""; 0], "no record outlives its erasure");
            erased[usize::from(gone[0])] += 1;
            for id in ["old 1", "old 2"] {
                assert_eq!(accept(&store, id, &body(id)), Outcome::Duplicate);
            }
        }
    }
    assert!(erased.iter().all(|count| *count > 0), "both ends must be seen: {erased:?}");
}

fn a_duplicate_rests_on_the_disk_and_not_on_the_cache() {
    OPENS.into_iter().for_each(a_duplicate_rests_on_the_disk_and_not_on_the_cache_with);
}

fn a_duplicate_rests_on_the_disk_and_not_on_the_cache_with(open: Open) {
    for seed in 0..SEEDS {
        let disk = disk_after(open, seed);
        let store = open(&disk).expect("it opens").store;
        let writes = || disk.operations();
        let before = writes();
        assert_eq!(accept(&store, "new 1", &body("new 1")), Outcome::Duplicate);
        assert!(writes() > before + 3, "the first duplicate after a start makes its record durable again");
        let before = writes();
        assert_eq!(accept(&store, "new 1", &body("new 1")), Outcome::Duplicate);
        assert_eq!(writes(), before, "a retry storm writes nothing");
    }
}

fn an_error_anywhere_is_no_acknowledgment_and_the_retry_is_right_after_a_restart() {
    OPENS
        .into_iter()
        .for_each(an_error_anywhere_is_no_acknowledgment_and_the_retry_is_right_after_a_restart_with);
}

fn an_error_anywhere_is_no_acknowledgment_and_the_retry_is_right_after_a_restart_with(open: Open) {
    for place in 0..operations_of_batch(open) {
        for seed in 0..SEEDS {
            let disk = old_disk(open, seed);
            let store = open(&disk).expect("it opens").store;
            disk.fail(Fault::Io, When::Once(place));
            let failed = store.apply(&batch(&store), OPENED_AT);
            assert!(matches!(failed, Err(StoreError::Poisoned { .. })), "{place}: {failed:?}");
            drop(store);
            // The process starts again, and the machine runs on: what the cache pretends is still there.
            let store = open(&disk).expect("it opens").store;
            let there = is_there(&store);
            retry(&store, there);
            drop(store);
            assert_all_there_after_another_cut(open, &disk, seed * 17 + place);
        }
    }
}

fn after_an_error_nothing_is_acknowledged_any_more_not_even_a_duplicate() {
    OPENS.into_iter().for_each(after_an_error_nothing_is_acknowledged_any_more_not_even_a_duplicate_with);
}

fn after_an_error_nothing_is_acknowledged_any_more_not_even_a_duplicate_with(open: Open) {
    for place in 0..operations_of_batch(open) {
        let disk = old_disk(open, place);
        let store = open(&disk).expect("it opens").store;
        assert_eq!(accept(&store, "old 1", &body("old 1")), Outcome::Duplicate);
        disk.fail(Fault::Io, When::Once(place));
        let failed = store.apply(&batch(&store), OPENED_AT);
        if failed.is_ok() {
            // The batch is shorter than it was: its duplicate had been made durable before.
            continue;
        }
        for id in ["old 1", "new 3"] {
            let again = try_accept(&store, id, &body(id));
            assert!(matches!(again, Err(StoreError::Poisoned { .. })), "{place}: {again:?}");
        }
        assert!(matches!(store.probe(OPENED_AT), Err(StoreError::Poisoned { .. })));
        assert_eq!(find(&store, "old 1").body_bytes, body("old 1").len() as u64, "reads go on");
    }
}

fn no_space_anywhere_is_taken_back_and_tried_again() {
    OPENS.into_iter().for_each(no_space_anywhere_is_taken_back_and_tried_again_with);
}

fn no_space_anywhere_is_taken_back_and_tried_again_with(open: Open) {
    let mut refused = 0;
    for place in 0..operations_of_batch(open) {
        for seed in 0..SEEDS {
            let disk = old_disk(open, seed);
            let store = open(&disk).expect("it opens").store;
            disk.fail(Fault::NoSpace, When::Once(place));
            match store.apply(&batch(&store), OPENED_AT) {
                // A sync that fails poisons, whatever it says. A link or a removal can wait for room.
                Err(StoreError::Poisoned { .. }) => continue,
                Ok(_) => {}
                Err(StoreError::Full { .. }) => {
                    refused += 1;
                    assert!(!is_there(&store), "what was refused is not to be seen");
                    store.probe(OPENED_AT).expect("there is room again");
                    store.apply(&batch(&store), OPENED_AT).expect("there is room again");
                }
                Err(other) => panic!("{place}: {other:?}"),
            }
            assert!(is_there(&store));
            assert_whole(&store);
            assert_all_there_after_another_cut(open, &disk, seed + place);
        }
    }
    assert!(refused > 20, "{refused}");
}

fn a_first_start_that_loses_power_leaves_a_store_or_none() {
    OPENS.into_iter().for_each(a_first_start_that_loses_power_leaves_a_store_or_none_with);
}

fn a_first_start_that_loses_power_leaves_a_store_or_none_with(open: Open) {
    let count = {
        let disk = SimDisk::new(1);
        drop(open(&disk).expect("it opens"));
        disk.operations()
    };
    for place in 0..count {
        for seed in 0..SEEDS {
            let disk = SimDisk::new(seed);
            disk.fail(Fault::PowerCut, When::Once(place));
            drop(open(&disk));
            let disk = disk.power_cut(seed + place * 13);
            let store = open(&disk).expect("it opens after the power cut").store;
            register(&store);
            assert_eq!(accept(&store, "old 1", b"1"), Outcome::Stored);
            let written = store.apply(&[accepting(&store, "old 1", b"1")], OPENED_AT).expect("it is there");
            assert!(matches!(written[0], Written::Accepted(_)));
        }
    }
}
