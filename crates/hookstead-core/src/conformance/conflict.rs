//! Other bytes under an identity that is taken: evidence beside an untouched first event.

use super::case::list;
use super::draft::Draft;
use super::world::{SECOND, World};
use crate::event::{Body, ConflictState, Digest, Outcome, VARIANTS_MAX};
use crate::id::SourceNumber;
use crate::query::DeliveryFilter;
use crate::store::{Resolved, Subject};

list!("conflict":
    other_bytes_are_a_conflict_that_names_the_first_event,
    a_conflict_leaves_the_first_event_and_its_body_untouched,
    a_conflict_makes_no_delivery,
    bytes_are_compared_and_not_json,
    an_empty_body_conflicts_with_a_body,
    a_conflict_keeps_the_other_bytes_as_evidence,
    a_conflict_keeps_when_its_request_came_and_not_when_it_was_committed,
    the_same_other_bytes_are_kept_once,
    different_other_bytes_are_numbered_from_one,
    no_more_variants_are_kept_than_the_maximum,
    a_kept_variant_is_recognised_when_the_maximum_is_reached,
    the_first_bytes_are_a_duplicate_after_conflicts,
    dismissed_bytes_stay_a_conflict,
    bytes_that_were_accepted_are_a_duplicate_of_the_revision,
    the_first_bytes_are_a_duplicate_of_the_first_event_after_a_revision,
    third_bytes_are_a_conflict_with_the_first_event_after_a_revision,
    other_bytes_conflict_after_erasure,
);

fn conflict(variant: u16) -> Outcome {
    Outcome::Conflict { variant: Some(variant) }
}

fn draft(source: SourceNumber, body: &str) -> Draft {
    Draft::new(source, "evt_1", body)
}

fn other_bytes_are_a_conflict_that_names_the_first_event(world: &mut World) {
    let source = world.source("shop");
    let first = world.accept(&draft(source, "one"));
    world.advance(SECOND);
    let other = world.accept(&draft(source, "two"));
    assert_eq!(other.outcome, conflict(1));
    assert_eq!((other.event, other.seq), (first.event, first.seq));
    assert_eq!((other.digest, other.committed_at), (Digest::of(b"one"), first.committed_at));
}

fn a_conflict_leaves_the_first_event_and_its_body_untouched(world: &mut World) {
    let source = world.source("shop");
    let first = world.accept(&draft(source, "one").typed("a").with_header("x", b"1"));
    let before = world.event(first.event);
    world.advance(SECOND);
    world.accept(&draft(source, "two").typed("b").with_header("x", b"2"));
    let mut after = world.event(first.event);
    assert_eq!(after.conflicts, 1);
    after.conflicts = 0;
    assert_eq!(after, before);
    assert_eq!(world.body(first.event), Some(Body::Kept("one".into())));
    assert_eq!(world.events().len(), 1);
}

fn a_conflict_makes_no_delivery(world: &mut World) {
    let (source, to) = (world.source("shop"), world.destination("app"));
    world.accept(&draft(source, "one"));
    world.accept(&draft(source, "two").owed_to([to]));
    assert_eq!(world.deliveries(&DeliveryFilter::default()), []);
    assert_eq!(world.claim(to, 10), []);
}

fn bytes_are_compared_and_not_json(world: &mut World) {
    let source = world.source("shop");
    world.accept(&draft(source, "{\"a\":1}"));
    assert_eq!(world.accept(&draft(source, "{ \"a\": 1 }")).outcome, conflict(1));
    assert_eq!(world.accept(&draft(source, "{\"a\":1}\n")).outcome, conflict(2));
}

fn an_empty_body_conflicts_with_a_body(world: &mut World) {
    let source = world.source("shop");
    world.accept(&draft(source, "one"));
    assert_eq!(world.accept(&draft(source, "")).outcome, conflict(1));
    world.accept(&Draft::new(source, "evt_2", ""));
    assert_eq!(world.accept(&Draft::new(source, "evt_2", "\0")).outcome, conflict(1));
}

fn a_conflict_keeps_the_other_bytes_as_evidence(world: &mut World) {
    let source = world.source("shop");
    let first = world.accept(&draft(source, "one"));
    world.advance(SECOND);
    let other = draft(source, "\0two\u{fe}").with_header("x-from", b"elsewhere");
    world.accept(&other);
    let kept = world.conflicts(first.event).remove(0);
    assert_eq!((kept.event, kept.seq, kept.variant), (first.event, first.seq, 1));
    assert_eq!(kept.source.as_str(), "shop");
    assert_eq!((kept.digest, kept.body_bytes), (Digest::of(&other.body), other.body.len() as u64));
    assert_eq!((&kept.headers, kept.received_at), (&other.facts.headers, world.now()));
    assert_eq!(kept.state, ConflictState::Open);
    assert_eq!(world.variant_body(first.event, 1), Some(Body::Kept(other.body)));
}

fn a_conflict_keeps_when_its_request_came_and_not_when_it_was_committed(world: &mut World) {
    let source = world.source("shop");
    let first = world.accept(&draft(source, "one"));
    let (came_at, other) = (world.now(), world.accepting(&draft(source, "two")));
    world.advance(SECOND);
    world.write(other);
    assert_eq!(world.conflicts(first.event)[0].received_at, came_at);
}

fn the_same_other_bytes_are_kept_once(world: &mut World) {
    let source = world.source("shop");
    let first = world.accept(&draft(source, "one"));
    assert_eq!(world.accept(&draft(source, "two").with_header("x", b"1")).outcome, conflict(1));
    world.advance(SECOND);
    assert_eq!(world.accept(&draft(source, "two").with_header("x", b"2")).outcome, conflict(1));
    let kept = world.conflicts(first.event);
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].headers.value("x"), Some(&b"1"[..]), "those of the first request that brought them");
    assert_eq!(world.event(first.event).conflicts, 1);
}

fn different_other_bytes_are_numbered_from_one(world: &mut World) {
    let source = world.source("shop");
    let first = world.accept(&draft(source, "one"));
    for (variant, body) in (1..).zip(["two", "three", "four"]) {
        assert_eq!(world.accept(&draft(source, body)).outcome, conflict(variant));
    }
    let numbers: Vec<_> = world.conflicts(first.event).iter().map(|conflict| conflict.variant).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(world.event(first.event).conflicts, 3);
}

/// An event with as many variants as are kept, the first of which is `other 1`.
fn with_all_variants(world: &World, source: SourceNumber) -> crate::EventId {
    let event = world.accept(&draft(source, "one")).event;
    for number in 1..=VARIANTS_MAX {
        let receipt = world.accept(&draft(source, &format!("other {number}")));
        assert_eq!(receipt.outcome, conflict(number));
    }
    event
}

fn no_more_variants_are_kept_than_the_maximum(world: &mut World) {
    let source = world.source("shop");
    let event = with_all_variants(world, source);
    let beyond = world.accept(&draft(source, "one too many"));
    assert_eq!(beyond.outcome, Outcome::Conflict { variant: None });
    assert_eq!(beyond.event, event);
    assert_eq!(world.conflicts(event).len(), usize::from(VARIANTS_MAX));
    assert_eq!(world.event(event).conflicts, VARIANTS_MAX);
    assert_eq!(world.variant_body(event, VARIANTS_MAX + 1), None);
}

fn a_kept_variant_is_recognised_when_the_maximum_is_reached(world: &mut World) {
    let source = world.source("shop");
    with_all_variants(world, source);
    assert_eq!(world.accept(&draft(source, "other 4")).outcome, conflict(4));
    assert_eq!(world.accept(&draft(source, "one")).outcome, Outcome::Duplicate);
}

fn the_first_bytes_are_a_duplicate_after_conflicts(world: &mut World) {
    let source = world.source("shop");
    let first = world.accept(&draft(source, "one"));
    world.accept(&draft(source, "two"));
    let again = world.accept(&draft(source, "one"));
    assert_eq!((again.outcome, again.event), (Outcome::Duplicate, first.event));
}

fn dismissed_bytes_stay_a_conflict(world: &mut World) {
    let source = world.source("shop");
    let event = world.accept(&draft(source, "one")).event;
    world.accept(&draft(source, "two"));
    assert_eq!(world.resolve(Subject::DismissConflict { event, variant: 1 }), Resolved::Changed);
    assert_eq!(world.accept(&draft(source, "two")).outcome, conflict(1));
    let kept = world.conflicts(event);
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].state, ConflictState::Dismissed(world.decision()));
}

fn bytes_that_were_accepted_are_a_duplicate_of_the_revision(world: &mut World) {
    let source = world.source("shop");
    let first = world.accept(&draft(source, "one"));
    world.accept(&draft(source, "two"));
    world.advance(SECOND);
    let revision = world.revise(first.event, 1, &[]);
    let committed_at = world.now();
    world.advance(SECOND);
    let again = world.accept(&draft(source, "two"));
    assert_eq!((again.outcome, again.event), (Outcome::Duplicate, revision));
    assert_eq!((again.digest, again.committed_at), (Digest::of(b"two"), committed_at));
    assert!(again.seq > first.seq);
    assert_eq!(world.event(revision).duplicates.count, 1, "the revision came again");
    assert_eq!(world.event(first.event).duplicates.count, 0, "the first event did not");
}

fn the_first_bytes_are_a_duplicate_of_the_first_event_after_a_revision(world: &mut World) {
    let source = world.source("shop");
    let first = world.accept(&draft(source, "one"));
    world.accept(&draft(source, "two"));
    world.revise(first.event, 1, &[]);
    let again = world.accept(&draft(source, "one"));
    assert_eq!((again.outcome, again.event), (Outcome::Duplicate, first.event));
}

fn third_bytes_are_a_conflict_with_the_first_event_after_a_revision(world: &mut World) {
    let source = world.source("shop");
    let first = world.accept(&draft(source, "one"));
    world.accept(&draft(source, "two"));
    world.revise(first.event, 1, &[]);
    let third = world.accept(&draft(source, "three"));
    assert_eq!((third.outcome, third.event), (conflict(2), first.event));
    assert_eq!(third.digest, first.digest);
}

fn other_bytes_conflict_after_erasure(world: &mut World) {
    let (source, to) = (world.source("shop"), world.destination("app"));
    let first = world.accept(&draft(source, "one").owed_to([to]));
    world.finish(to);
    assert_eq!(world.erase_finished(source).erased, 1);
    let other = world.accept(&draft(source, "two"));
    assert!(matches!(other.outcome, Outcome::Conflict { .. }), "{other:?}");
    assert_eq!((other.event, other.digest), (first.event, first.digest));
    let same_length = world.accept(&draft(source, "eno"));
    assert!(matches!(same_length.outcome, Outcome::Conflict { .. }), "{same_length:?}");
}
