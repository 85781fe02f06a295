//! What people make of conflicts: a new event of the other bytes, or nothing.

use super::case::list;
use super::draft::Draft;
use super::world::{SECOND, World, first_delivery};
use crate::delivery::Delivery;
use crate::event::{Body, ConflictState, Digest, Duplicates, Event};
use crate::id::EventId;
use crate::query::{DeliveryFilter, EventSelector};
use crate::store::{Resolved, Subject};

list!("revision":
    an_accepted_conflict_becomes_an_event_that_revises_the_first,
    a_revision_has_the_bytes_and_headers_of_the_conflict,
    a_revision_is_owed_to_the_destinations_that_were_given,
    the_conflict_names_its_revision_and_who_decided,
    the_first_event_stays_as_it_was,
    the_identity_still_names_the_first_event,
    a_conflict_can_be_dismissed,
    a_conflict_is_decided_once,
    a_conflict_whose_body_was_erased_cannot_be_accepted_but_dismissed,
    a_decision_about_an_unknown_conflict_is_unknown,
);

/// An event of the source `shop` with one conflict, made a second ago.
fn conflicting(world: &World) -> EventId {
    let source = world.source("shop");
    let first = Draft::new(source, "evt_1", "one").scoped("acct_1").typed("order.paid");
    let event = world.accept(&first.with_header("x", b"1")).event;
    let other = Draft::new(source, "evt_1", "other").scoped("acct_1").typed("order.void");
    world.advance(SECOND);
    world.accept(&other.with_header("x", b"2"));
    world.advance(SECOND);
    event
}

fn an_accepted_conflict_becomes_an_event_that_revises_the_first(world: &mut World) {
    let first = conflicting(world);
    let before = world.event(first);
    let subject = world.revising(first, 1, &[]);
    let Subject::AcceptConflict { revision, .. } = &subject else { panic!("a decision about a conflict") };
    let Resolved::Revised { event, seq } = world.resolve(subject.clone()) else { panic!("it is open") };
    assert_eq!(event, *revision);
    let made = world.event(event);
    assert_eq!((made.seq, made.revises, made.committed_at), (seq, Some(first), world.now()));
    assert_eq!((&made.identity, &made.source), (&before.identity, &before.source));
    assert_eq!((made.duplicates, made.conflicts, made.erased_at), (Duplicates::default(), 0, None));
    assert!(made.seq > before.seq);
    assert_eq!(world.find(&EventSelector::Newest).map(|newest| newest.id), Some(event));
}

fn a_revision_has_the_bytes_and_headers_of_the_conflict(world: &mut World) {
    let first = conflicting(world);
    let conflict = world.conflicts(first).remove(0);
    let revision = world.revise(first, 1, &[]);
    let made = world.event(revision);
    assert_eq!((made.digest, made.body_bytes), (Digest::of(b"other"), 5));
    assert_eq!((made.headers, made.received_at), (conflict.headers, conflict.received_at));
    assert_eq!(world.body(revision), Some(Body::Kept("other".into())));
}

fn a_revision_is_owed_to_the_destinations_that_were_given(world: &mut World) {
    let (app, billing) = (world.destination("app"), world.destination("billing"));
    let revision = world.revise(conflicting(world), 1, &[billing]);
    let made = Delivery::new(first_delivery(revision, billing), world.now(), world.now());
    assert_eq!(world.deliveries(&DeliveryFilter::default()), [made]);
    assert_eq!(world.claim(app, 10), []);
    assert_eq!(world.claim_one(billing).delivery.event, revision);
}

fn the_conflict_names_its_revision_and_who_decided(world: &mut World) {
    let first = conflicting(world);
    let revision = world.revise(first, 1, &[]);
    let accepted = ConflictState::Accepted { revision, decision: world.decision() };
    assert_eq!(world.conflicts(first)[0].state, accepted);
    assert_eq!(world.variant_body(first, 1), Some(Body::Kept("other".into())), "it stays evidence");
}

fn the_first_event_stays_as_it_was(world: &mut World) {
    let to = world.destination("app");
    let first = conflicting(world);
    let before: Event = world.event(first);
    world.revise(first, 1, &[to]);
    assert_eq!(world.event(first), before);
    assert_eq!(world.body(first), Some(Body::Kept("one".into())));
}

fn the_identity_still_names_the_first_event(world: &mut World) {
    let first = conflicting(world);
    let identity = world.event(first).identity;
    world.revise(first, 1, &[]);
    assert_eq!(world.find(&EventSelector::Identity(identity)).map(|event| event.id), Some(first));
}

fn a_conflict_can_be_dismissed(world: &mut World) {
    let event = conflicting(world);
    assert_eq!(world.resolve(Subject::DismissConflict { event, variant: 1 }), Resolved::Changed);
    assert_eq!(world.conflicts(event)[0].state, ConflictState::Dismissed(world.decision()));
    assert_eq!(world.variant_body(event, 1), Some(Body::Kept("other".into())), "it stays evidence");
    assert_eq!((world.events().len(), world.event(event).conflicts), (1, 1));
}

fn a_conflict_is_decided_once(world: &mut World) {
    let event = conflicting(world);
    world.accept(&Draft::new(world.source("shop"), "evt_1", "third").scoped("acct_1"));
    world.revise(event, 1, &[]);
    world.resolve(Subject::DismissConflict { event, variant: 2 });
    let (before, events) = (world.conflicts(event), world.events());
    world.advance(SECOND);
    for variant in [1, 2] {
        assert_eq!(world.resolve(Subject::DismissConflict { event, variant }), Resolved::Unchanged);
        assert_eq!(world.resolve(world.revising(event, variant, &[])), Resolved::Unchanged);
    }
    assert_eq!((world.conflicts(event), world.events()), (before, events));
}

fn a_conflict_whose_body_was_erased_cannot_be_accepted_but_dismissed(world: &mut World) {
    let to = world.destination("app");
    let event = world.finished("evt_1", to).event;
    world.accept(&Draft::new(world.source("shop"), "evt_1", "other"));
    assert_eq!(world.erase_finished(world.source("shop")).erased, 1);
    assert_eq!(world.resolve(world.revising(event, 1, &[to])), Resolved::Unchanged);
    assert_eq!((world.events().len(), world.conflicts(event)[0].state.clone()), (1, ConflictState::Open));
    assert_eq!(world.resolve(Subject::DismissConflict { event, variant: 1 }), Resolved::Changed);
}

fn a_decision_about_an_unknown_conflict_is_unknown(world: &mut World) {
    let known = conflicting(world);
    let strange = EventId::from_bytes([0xee; 16]);
    for (event, variant) in [(known, 0), (known, 2), (known, u16::MAX), (strange, 1)] {
        assert_eq!(world.resolve(Subject::DismissConflict { event, variant }), Resolved::Unknown);
        assert_eq!(world.resolve(world.revising(event, variant, &[])), Resolved::Unknown);
    }
    assert_eq!((world.events().len(), world.conflicts(known)[0].state.clone()), (1, ConflictState::Open));
}
