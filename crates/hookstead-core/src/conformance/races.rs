//! Races: many threads at one store, each of which gets an answer that is true.

use std::collections::HashSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::case::list;
use super::draft::Draft;
use super::scene::dead;
use super::world::{LEASE, World, leases, plan, receipt, recording, settling};
use crate::event::{AcceptReceipt, Digest, Duplicates, Outcome};
use crate::id::{DestinationNumber, EventId, Seq};
use crate::lease::Verdict;
use crate::query::{DeliveryFilter, EventFilter, Order, Page};
use crate::run::RunOutcome;
use crate::store::{Claim, Redeliver, Register, Resolve, Resolved, Store, Write, Written};

list!("races":
    retries_of_one_event_at_once_store_it_once,
    other_bytes_under_one_identity_at_once_store_one_of_them,
    two_bodies_of_one_identity_at_once_are_an_event_and_a_conflict,
    events_accepted_at_once_all_get_a_number_of_their_own,
    claims_at_once_never_hand_out_one_delivery_twice,
    settles_of_one_lease_at_once_are_all_answered_as_the_first,
    one_run_at_once_leaves_one_receipt,
    one_name_registered_at_once_gets_one_number,
    a_conflict_decided_at_once_becomes_one_event,
    one_redelivery_asked_for_at_once_happens_once,
    a_reader_sees_a_batch_whole_or_not_at_all,
    a_follower_of_two_writers_sees_every_event_once_and_in_order,
);

const THREADS: usize = 8;

/// Applies each write in a thread of its own, all at once; the answers in the order of the writes.
fn at_once(world: &World, writes: Vec<Write>) -> Vec<Written> {
    let (store, now) = (world.store(), world.now());
    let start = Barrier::new(writes.len());
    let apply = |write: Write| {
        start.wait();
        store.apply(&[write], now).expect("the write is legal").remove(0)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = writes.into_iter().map(|write| scope.spawn(|| apply(write))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    })
}

/// Accepts one identity from [`THREADS`] threads at once, each with the body that `body` gives it.
fn accepted(world: &World, body: impl Fn(usize) -> String) -> Vec<AcceptReceipt> {
    let (source, to) = (world.source("shop"), world.destination("app"));
    let write = |thread| world.accepting(&Draft::new(source, "evt_1", body(thread)).owed_to([to]));
    at_once(world, (0..THREADS).map(write).collect()).iter().map(receipt).collect()
}

/// The one receipt that says stored; all receipts must speak of its event.
fn winner(receipts: &[AcceptReceipt]) -> AcceptReceipt {
    let stored: Vec<_> = receipts.iter().filter(|receipt| receipt.outcome == Outcome::Stored).collect();
    assert_eq!(stored.len(), 1, "{receipts:?}");
    let winner = *stored[0];
    for receipt in receipts {
        assert_eq!(AcceptReceipt { outcome: Outcome::Stored, ..*receipt }, winner);
    }
    winner
}

fn retries_of_one_event_at_once_store_it_once(world: &mut World) {
    let receipts = accepted(world, |_| "{}".into());
    let first = winner(&receipts);
    let duplicates = receipts.iter().filter(|receipt| receipt.outcome == Outcome::Duplicate).count();
    assert_eq!(duplicates, THREADS - 1);
    let events = world.events();
    let counted = Duplicates { count: duplicates as u64, last_at: Some(world.now()) };
    assert_eq!((events.len(), events[0].id, events[0].duplicates), (1, first.event, counted));
    assert_eq!(world.claim(world.destination("app"), 10).len(), 1);
}

fn other_bytes_under_one_identity_at_once_store_one_of_them(world: &mut World) {
    let receipts = accepted(world, |thread| format!("body {thread}"));
    let first = winner(&receipts);
    let place = receipts.iter().position(|receipt| receipt.outcome == Outcome::Stored);
    let body = format!("body {}", place.expect("one is stored"));
    assert_eq!(first.digest, Digest::of(body.as_bytes()));
    let variants: HashSet<_> = receipts
        .iter()
        .filter_map(|receipt| match receipt.outcome {
            Outcome::Conflict { variant } => variant,
            Outcome::Stored | Outcome::Duplicate | Outcome::BodyReused => None,
        })
        .collect();
    assert_eq!(variants, (1..8).collect());
    assert_eq!(world.body(first.event), Some(crate::Body::Kept(body.into())));
    assert_eq!((world.events().len(), world.conflicts(first.event).len()), (1, THREADS - 1));
}

fn two_bodies_of_one_identity_at_once_are_an_event_and_a_conflict(world: &mut World) {
    let receipts = accepted(world, |thread| format!("body {}", thread % 2));
    let first = winner(&receipts);
    let count = |outcome| receipts.iter().filter(|receipt| receipt.outcome == outcome).count();
    assert_eq!(count(Outcome::Duplicate), THREADS / 2 - 1);
    assert_eq!(count(Outcome::Conflict { variant: Some(1) }), THREADS / 2);
    assert_eq!(world.event(first.event).conflicts, 1);
}

fn events_accepted_at_once_all_get_a_number_of_their_own(world: &mut World) {
    let source = world.source("shop");
    let write = |thread| world.accepting(&Draft::new(source, format!("evt_{thread}"), "{}"));
    let receipts: Vec<_> = at_once(world, (0..THREADS).map(write).collect()).iter().map(receipt).collect();
    assert!(receipts.iter().all(|receipt| receipt.outcome == Outcome::Stored), "{receipts:?}");
    let mut numbers: Vec<_> = receipts.iter().map(|receipt| receipt.seq).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, world.events().iter().map(|event| event.seq).collect::<Vec<_>>());
}

/// Claims a few at a time until nothing is due.
fn claim_all(store: &dyn Store, destination: DestinationNumber, now: crate::Timestamp) -> Vec<crate::Lease> {
    let claim = Write::Claim(Claim { destination, max: 3, lease_for: LEASE });
    let mut all = Vec::new();
    loop {
        let written = store.apply(std::slice::from_ref(&claim), now).expect("the claim is legal");
        let some = leases(&written[0]);
        if some.is_empty() {
            return all;
        }
        all.extend(some);
    }
}

fn claims_at_once_never_hand_out_one_delivery_twice(world: &mut World) {
    let (source, to) = (world.source("shop"), world.destination("app"));
    let accept = |n| world.accepting(&Draft::new(source, format!("evt_{n}"), "{}").owed_to([to]));
    world.apply(&(0..64).map(accept).collect::<Vec<_>>());
    let (store, now, start) = (world.store(), world.now(), Barrier::new(THREADS));
    let claimed: Vec<_> = thread::scope(|scope| {
        let claim = || {
            start.wait();
            claim_all(&*store, to, now)
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(claim)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no thread panics")).collect()
    });
    let deliveries: HashSet<_> = claimed.iter().map(|lease| lease.delivery).collect();
    assert_eq!((claimed.len(), deliveries.len()), (64, 64));
    assert!(world.deliveries(&DeliveryFilter::default()).iter().all(|delivery| delivery.attempts == 1));
}

fn settles_of_one_lease_at_once_are_all_answered_as_the_first(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let lease = world.claim_one(to);
    let retry = Verdict::Retry { at: world.now().plus(LEASE) };
    let verdicts = [Verdict::Done, dead(), retry, Verdict::Release];
    let writes = verdicts.iter().cycle().take(THREADS).map(|verdict| settling(&lease, verdict.clone(), None));
    let written = at_once(world, writes.collect());
    let (_, settled) = world.delivery(id).last_settled.expect("one of them settled the lease");
    let expected = Written::Settled(crate::Settlement::Settled(settled));
    assert!(written.iter().all(|written| *written == expected), "{written:?}");
}

fn one_run_at_once_leaves_one_receipt(world: &mut World) {
    let event = world.accept_owed("evt_1", &[]).event;
    let payloads: [&[u8]; THREADS] = [b"0", b"1", b"2", b"3", b"4", b"5", b"6", b"7"];
    let writes = payloads.map(|payload| recording(event, "nightly", Some(payload)));
    let written = at_once(world, writes.to_vec());
    let receipts = world.store().runs(&event).expect("runs can be read");
    assert_eq!(receipts.len(), 1);
    let is_new = |written: &&Written| matches!(written, Written::RunRecorded(RunOutcome::New(_)));
    assert_eq!(written.iter().filter(is_new).count(), 1);
    for written in &written {
        let Written::RunRecorded(RunOutcome::New(receipt) | RunOutcome::Known(receipt)) = written else {
            panic!("a run was answered {written:?}")
        };
        assert_eq!(*receipt, receipts[0]);
    }
}

fn one_name_registered_at_once_gets_one_number(world: &mut World) {
    let name: crate::SourceName = "shop".parse().expect("a source name");
    let register = Register::Source { name, identity_fingerprint: "id-v1".into() };
    let written = at_once(world, vec![Write::Register(register); THREADS]);
    assert!(written.iter().all(|answer| *answer == written[0]), "{written:?}");
    assert_eq!(world.store().registry().expect("the registry can be read").sources.len(), 1);
}

fn a_conflict_decided_at_once_becomes_one_event(world: &mut World) {
    let to = world.destination("app");
    let event = world.accept_owed("evt_1", &[]).event;
    world.accept(&Draft::new(world.source("shop"), "evt_1", "other"));
    let decide = |_| {
        let subject = world.revising(event, 1, &[to]);
        Write::Resolve(Box::new(Resolve { subject, decision: world.decision() }))
    };
    let written = at_once(world, (0..THREADS).map(decide).collect());
    let unchanged = written.iter().filter(|answer| **answer == Written::Resolved(Resolved::Unchanged));
    assert_eq!(unchanged.count(), THREADS - 1, "{written:?}");
    assert_eq!((world.events().len(), world.claim(to, 10).len()), (2, 1));
}

fn one_redelivery_asked_for_at_once_happens_once(world: &mut World) {
    let to = world.destination("app");
    for id in ["a", "b", "c"] {
        world.accept_owed(id, &[]);
    }
    let step = Redeliver { plan: plan(1, to), only: None, events_max: 1 };
    let written = at_once(world, vec![Write::Redeliver(Box::new(step)); THREADS]);
    let cursors: HashSet<_> = written
        .iter()
        .map(|written| match written {
            Written::Redelivered(redelivery) => redelivery.cursor,
            other => panic!("a redelivery was answered {other:?}"),
        })
        .collect();
    assert_eq!(cursors, [1, 2, 3].map(Seq).into());
    assert_eq!(world.claim(to, 10).len(), 3);
}

/// Runs `writers` until they are done, and `read` all the while: once more after the last write.
fn while_writing(writers: Vec<Vec<Vec<Write>>>, world: &World, mut read: impl FnMut()) {
    let (store, now) = (world.store(), world.now());
    let start = Barrier::new(writers.len() + 1);
    let write = |batches: Vec<Vec<Write>>| {
        start.wait();
        for batch in batches {
            store.apply(&batch, now).expect("the batch is legal");
        }
    };
    let stopped = AtomicBool::new(false);
    thread::scope(|scope| {
        let threads: Vec<_> = writers.into_iter().map(|batches| scope.spawn(|| write(batches))).collect();
        scope.spawn(|| {
            let ended: Vec<_> = threads.into_iter().map(thread::ScopedJoinHandle::join).collect();
            stopped.store(true, Ordering::SeqCst);
            assert!(ended.iter().all(Result::is_ok), "no writer panics");
        });
        start.wait();
        loop {
            let was_stopped = stopped.load(Ordering::SeqCst);
            read();
            if was_stopped {
                return;
            }
        }
    });
}

/// The batches of one writer: `count` of them, of `size` events each.
fn batches(world: &World, writer: &str, count: usize, size: usize) -> Vec<Vec<Write>> {
    let source = world.source("shop");
    let accept = |batch: usize, place: usize| {
        world.accepting(&Draft::new(source, format!("{writer}/{batch}/{place}"), "{}"))
    };
    (0..count).map(|batch| (0..size).map(|place| accept(batch, place)).collect()).collect()
}

fn a_reader_sees_a_batch_whole_or_not_at_all(world: &mut World) {
    let writers = vec![batches(world, "a", 20, 4), batches(world, "b", 20, 4)];
    while_writing(writers, world, || {
        let list = world.list_events(&EventFilter::default(), &Page::first(1_000, Order::OldestFirst));
        assert_eq!(list.items.len() % 4, 0);
    });
    assert_eq!(world.events().len(), 160);
}

fn a_follower_of_two_writers_sees_every_event_once_and_in_order(world: &mut World) {
    let writers = vec![batches(world, "a", 40, 2), batches(world, "b", 80, 1)];
    let mut page = Page::first(3, Order::OldestFirst);
    let mut seen: Vec<EventId> = Vec::new();
    while_writing(writers, world, || {
        let mut more = true;
        while more {
            let list = world.list_events(&EventFilter::default(), &page);
            seen.extend(list.items.iter().map(|event| event.id));
            more = list.more;
            page.after = list.next.or(page.after.take());
        }
    });
    let all: Vec<_> = world.events().iter().map(|event| event.id).collect();
    assert_eq!((seen.len(), seen), (160, all));
}
