//! What people decide about deliveries and destinations. Conflicts have a list of their own.

use std::time::Duration;

use super::case::list;
use super::scene::STATES;
use super::world::{SECOND, World, first_delivery};
use crate::delivery::{Delivery, DeliveryState, StateName};
use crate::event::Decision;
use crate::id::{DeliveryId, DestinationNumber};
use crate::lease::{Extension, Settled, Settlement, Verdict};
use crate::store::{Resolve, Resolved, Subject, Write, Written};

list!("people":
    a_waiting_delivery_can_be_held,
    a_delivery_that_waits_for_a_later_time_can_be_held,
    only_a_waiting_delivery_can_be_held,
    a_held_delivery_can_be_let_go_and_is_due_now,
    only_a_held_delivery_can_be_let_go,
    dead_held_and_waiting_deliveries_can_be_marked_done,
    leased_and_done_deliveries_cannot_be_marked_done,
    a_delivery_that_was_marked_done_finishes_its_event,
    attempts_stay_counted_while_a_delivery_is_held,
    a_decision_is_kept_word_for_word,
    a_decision_about_an_unknown_delivery_is_unknown,
    a_destination_is_paused_and_resumed_once,
    a_pause_is_seen_in_the_registry,
    a_pause_leaves_the_leases_that_were_given_out,
    an_unknown_destination_can_be_neither_paused_nor_resumed,
);

fn a_waiting_delivery_can_be_held(world: &mut World) {
    let id = world.owe("evt_1", world.destination("app"));
    world.advance(SECOND);
    assert_eq!(world.resolve(Subject::HoldDelivery(id)), Resolved::Changed);
    assert_eq!(world.state(id), DeliveryState::Held { decision: world.decision() });
}

fn a_delivery_that_waits_for_a_later_time_can_be_held(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    world.settle(&world.claim_one(to), Verdict::Retry { at: world.now().plus(SECOND) });
    assert_eq!(world.resolve(Subject::HoldDelivery(id)), Resolved::Changed);
    world.advance(SECOND);
    assert_eq!(world.claim(to, 10), []);
    assert_eq!(world.next_due(), None);
}

/// Carries a decision out on a delivery in each state, and says which it changed; the others must be as they
/// were, and so must everything but the state of the changed ones.
fn changed(world: &World, to: DestinationNumber, subject: impl Fn(DeliveryId) -> Subject) -> Vec<StateName> {
    let ids = STATES.map(|state| world.delivery_in(state, to));
    let mut changed = Vec::new();
    for (state, id) in STATES.into_iter().zip(ids) {
        let before = world.delivery(id);
        let resolved = world.resolve(subject(id));
        let after = world.delivery(id);
        match resolved {
            Resolved::Changed => changed.push(state),
            other => assert_eq!((other, &after), (Resolved::Unchanged, &before)),
        }
        assert_eq!(Delivery { state: before.state.clone(), ..after }, before);
    }
    changed
}

fn only_a_waiting_delivery_can_be_held(world: &mut World) {
    let to = world.destination("app");
    assert_eq!(changed(world, to, Subject::HoldDelivery), [StateName::Waiting]);
}

fn a_held_delivery_can_be_let_go_and_is_due_now(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    world.resolve(Subject::HoldDelivery(id));
    world.advance(SECOND);
    assert_eq!(world.resolve(Subject::LetDeliveryGo(id)), Resolved::Changed);
    assert_eq!(world.state(id), DeliveryState::Waiting { due: world.now() });
    assert_eq!(world.claim_one(to).delivery, id);
}

fn only_a_held_delivery_can_be_let_go(world: &mut World) {
    let to = world.destination("app");
    assert_eq!(changed(world, to, Subject::LetDeliveryGo), [StateName::Held]);
}

fn dead_held_and_waiting_deliveries_can_be_marked_done(world: &mut World) {
    let to = world.destination("app");
    for state in [StateName::Dead, StateName::Held, StateName::Waiting] {
        let id = world.delivery_in(state, to);
        world.advance(SECOND);
        assert_eq!(world.resolve(Subject::MarkDeliveryDone(id)), Resolved::Changed);
        let decision = world.decision();
        assert_eq!(world.state(id), DeliveryState::Done { at: world.now(), decision: Some(decision) });
    }
    assert_eq!(world.claim(to, 10), []);
}

fn leased_and_done_deliveries_cannot_be_marked_done(world: &mut World) {
    let to = world.destination("app");
    let changed = changed(world, to, Subject::MarkDeliveryDone);
    assert_eq!(changed, [StateName::Dead, StateName::Held, StateName::Waiting]);
}

fn a_delivery_that_was_marked_done_finishes_its_event(world: &mut World) {
    let id = world.delivery_in(StateName::Dead, world.destination("app"));
    assert!(!world.event(id.event).is_finished());
    world.resolve(Subject::MarkDeliveryDone(id));
    assert!(world.event(id.event).is_finished());
}

fn attempts_stay_counted_while_a_delivery_is_held(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    world.settle(&world.claim_one(to), Verdict::Retry { at: world.now() });
    world.resolve(Subject::HoldDelivery(id));
    world.resolve(Subject::LetDeliveryGo(id));
    assert_eq!(world.claim_one(to).attempt, 2);
}

fn a_decision_is_kept_word_for_word(world: &mut World) {
    let id = world.owe("evt_1", world.destination("app"));
    let at = world.now().minus(Duration::from_micros(1));
    let note = "seen on \"Tuesday\";\n\0 it's e\u{301} \u{1f600}".to_owned();
    let decision = Decision { by: "Zoë <zoe@example.com>".into(), note, at };
    let resolve = Resolve { subject: Subject::HoldDelivery(id), decision: decision.clone() };
    assert_eq!(world.write(Write::Resolve(Box::new(resolve))), Written::Resolved(Resolved::Changed));
    assert_eq!(world.state(id), DeliveryState::Held { decision });
}

fn a_decision_about_an_unknown_delivery_is_unknown(world: &mut World) {
    let (to, other) = (world.destination("app"), world.destination("billing"));
    let known = world.owe("evt_1", to);
    let mut unknown = [known; 3];
    unknown[0].event = crate::EventId::from_bytes([0xee; 16]);
    unknown[1] = first_delivery(known.event, other);
    unknown[2].generation = 0;
    for id in unknown {
        for subject in [Subject::HoldDelivery(id), Subject::LetDeliveryGo(id), Subject::MarkDeliveryDone(id)]
        {
            assert_eq!(world.resolve(subject), Resolved::Unknown);
        }
    }
    assert_eq!(world.delivery(known).state_name(), StateName::Waiting);
}

fn a_destination_is_paused_and_resumed_once(world: &mut World) {
    let to = world.destination("app");
    assert_eq!(world.resolve(Subject::ResumeDestination(to)), Resolved::Unchanged);
    assert_eq!(world.resolve(Subject::PauseDestination(to)), Resolved::Changed);
    assert_eq!(world.resolve(Subject::PauseDestination(to)), Resolved::Unchanged);
    assert_eq!(world.resolve(Subject::ResumeDestination(to)), Resolved::Changed);
    assert_eq!(world.resolve(Subject::ResumeDestination(to)), Resolved::Unchanged);
}

fn a_pause_is_seen_in_the_registry(world: &mut World) {
    let to = world.destination("app");
    world.destination("billing");
    let paused = || {
        let registry = world.store().registry().expect("the registry can be read");
        registry.destinations.iter().map(|row| row.paused).collect::<Vec<_>>()
    };
    world.resolve(Subject::PauseDestination(to));
    assert_eq!(paused(), [true, false]);
    world.resolve(Subject::ResumeDestination(to));
    assert_eq!(paused(), [false, false]);
}

fn a_pause_leaves_the_leases_that_were_given_out(world: &mut World) {
    let to = world.destination("app");
    world.owe("evt_1", to);
    let lease = world.claim_one(to);
    world.resolve(Subject::PauseDestination(to));
    let expires_at = world.now().plus(SECOND);
    assert_eq!(world.extend(&lease, SECOND), Extension::Extended { expires_at });
    assert_eq!(world.settle(&lease, Verdict::Done), Settlement::Settled(Settled::Done));
}

fn an_unknown_destination_can_be_neither_paused_nor_resumed(world: &mut World) {
    let unknown = DestinationNumber(world.destination("app").0 + 1);
    assert_eq!(world.resolve(Subject::PauseDestination(unknown)), Resolved::Unknown);
    assert_eq!(world.resolve(Subject::ResumeDestination(unknown)), Resolved::Unknown);
}
