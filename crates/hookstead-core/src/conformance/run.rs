//! Runs: processing under a chosen name, with a receipt that never changes.

use bytes::Bytes;

use super::case::list;
use super::world::{SECOND, World, recording};
use crate::event::Digest;
use crate::id::EventId;
use crate::run::{RunOutcome, RunReceipt};
use crate::store::{RecordRun, Write, Written};

list!("run":
    a_new_run_leaves_a_receipt,
    the_same_run_again_returns_the_first_receipt_unchanged,
    another_run_of_an_event_leaves_a_receipt_of_its_own,
    one_run_of_two_events_leaves_two_receipts,
    run_names_are_compared_byte_by_byte,
    a_run_of_an_unknown_event_writes_nothing,
    receipts_are_listed_by_run_name,
    an_absent_payload_is_not_an_empty_one,
    facts_of_a_run_come_back_exactly,
    an_erased_event_can_be_run_and_its_receipt_has_its_digest,
    a_run_changes_nothing_of_its_event,
);

fn runs(world: &World, event: EventId) -> Vec<RunReceipt> {
    world.store().runs(&event).expect("runs can be read")
}

fn a_new_run_leaves_a_receipt(world: &mut World) {
    let event = world.accept_owed("evt_1", &[]).event;
    world.advance(SECOND);
    let receipt = RunReceipt {
        event,
        run: "nightly".parse().expect("a run name"),
        digest: Digest::of(b"evt_1"),
        processed_at: world.now(),
        business_id: Some("order-42".into()),
        payload: Some(Bytes::from_static(b"{\"n\": 1.0}")),
    };
    assert_eq!(world.run(event, "nightly", Some(b"{\"n\": 1.0}")), RunOutcome::New(receipt.clone()));
    assert_eq!(runs(world, event), [receipt]);
}

fn the_same_run_again_returns_the_first_receipt_unchanged(world: &mut World) {
    let event = world.accept_owed("evt_1", &[]).event;
    let RunOutcome::New(first) = world.run(event, "nightly", Some(b"1")) else { panic!("the run is new") };
    world.advance(SECOND);
    assert_eq!(world.run(event, "nightly", Some(b"2")), RunOutcome::Known(first.clone()));
    assert_eq!(runs(world, event), [first]);
}

fn another_run_of_an_event_leaves_a_receipt_of_its_own(world: &mut World) {
    let event = world.accept_owed("evt_1", &[]).event;
    world.run(event, "first", Some(b"1"));
    world.advance(SECOND);
    let RunOutcome::New(second) = world.run(event, "second", Some(b"1")) else { panic!("the run is new") };
    assert_eq!(second.processed_at, world.now());
    assert_eq!(runs(world, event).len(), 2);
}

fn one_run_of_two_events_leaves_two_receipts(world: &mut World) {
    let events = ["evt_1", "evt_2"].map(|id| world.accept_owed(id, &[]).event);
    for event in events {
        assert!(matches!(world.run(event, "nightly", None), RunOutcome::New(_)));
    }
    for event in events {
        assert_eq!(runs(world, event).iter().map(|receipt| receipt.event).collect::<Vec<_>>(), [event]);
    }
}

fn run_names_are_compared_byte_by_byte(world: &mut World) {
    let event = world.accept_owed("evt_1", &[]).event;
    for name in ["a", "A", "a.", "a_", "a-", "0", "00"] {
        assert!(matches!(world.run(event, name, None), RunOutcome::New(_)), "{name}");
    }
}

fn a_run_of_an_unknown_event_writes_nothing(world: &mut World) {
    world.accept_owed("evt_1", &[]);
    let unknown = EventId::from_bytes([0xee; 16]);
    assert_eq!(world.run(unknown, "nightly", None), RunOutcome::UnknownEvent);
    assert_eq!(runs(world, unknown), []);
}

fn receipts_are_listed_by_run_name(world: &mut World) {
    let event = world.accept_owed("evt_1", &[]).event;
    for name in ["r2", "r10", "a", "B", "r1", "Z"] {
        world.run(event, name, None);
    }
    let receipts = runs(world, event);
    let names: Vec<_> = receipts.iter().map(|receipt| receipt.run.as_str()).collect();
    assert_eq!(names, ["B", "Z", "a", "r1", "r10", "r2"]);
}

fn an_absent_payload_is_not_an_empty_one(world: &mut World) {
    let event = world.accept_owed("evt_1", &[]).event;
    world.run(event, "absent", None);
    world.run(event, "empty", Some(b""));
    let payloads: Vec<_> = runs(world, event).into_iter().map(|receipt| receipt.payload).collect();
    assert_eq!(payloads, [None, Some(Bytes::new())]);
}

fn facts_of_a_run_come_back_exactly(world: &mut World) {
    let event = world.accept_owed("evt_1", &[]).event;
    let payload: Vec<u8> = (0..=u8::MAX).collect();
    let cases = [("a", None), ("b", Some("")), ("c", Some("e\u{301}\0'\"%"))];
    for (name, business_id) in cases {
        let write = RecordRun {
            event,
            run: name.parse().expect("a run name"),
            business_id: business_id.map(str::to_owned),
            payload: Some(payload.clone().into()),
        };
        let Written::RunRecorded(RunOutcome::New(_)) = world.write(Write::RecordRun(Box::new(write))) else {
            panic!("the run is new")
        };
    }
    for (receipt, (_, business_id)) in runs(world, event).iter().zip(cases) {
        assert_eq!(receipt.business_id.as_deref(), business_id);
        assert_eq!(receipt.payload.as_deref(), Some(&payload[..]));
    }
}

fn an_erased_event_can_be_run_and_its_receipt_has_its_digest(world: &mut World) {
    let to = world.destination("app");
    let event = world.finished("evt_1", to).event;
    world.run(event, "before", Some(b"1"));
    world.erase_finished(world.source("shop"));
    let RunOutcome::New(receipt) = world.run(event, "later", None) else { panic!("the run is new") };
    assert_eq!(receipt.digest, Digest::of(b"evt_1"));
    let payloads: Vec<_> = runs(world, event).into_iter().map(|receipt| receipt.payload).collect();
    assert_eq!(payloads, [Some(Bytes::from_static(b"1")), None], "receipts outlive bodies");
}

fn a_run_changes_nothing_of_its_event(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let before = (world.event(id.event), world.delivery(id));
    world.write(recording(id.event, "nightly", None));
    assert_eq!((world.event(id.event), world.delivery(id)), before);
}
