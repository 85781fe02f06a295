//! Claim: who gets a lease of what, and in which order.

use std::collections::HashSet;
use std::time::Duration;

use super::case::list;
use super::draft::Draft;
use super::scene::STATES;
use super::world::{LEASE, SECOND, World, first_delivery, policy};
use crate::delivery::{DeliveryState, StateName};
use crate::lease::{CLAIM_MAX, LEASE_MAX, Lease, LeaseToken, Settled, Settlement, Verdict};
use crate::retention::Swept;
use crate::retry::RetryPolicy;
use crate::store::{Claim, Resolved, Subject, Sweep, Write, Written};

list!("claim":
    a_due_delivery_is_leased_and_its_attempt_counted,
    a_lease_lasts_as_long_as_was_asked,
    a_lease_lasts_no_longer_than_the_maximum,
    nothing_due_gives_no_lease,
    a_delivery_is_claimed_from_its_due_time_on,
    deliveries_are_claimed_in_the_order_of_their_due_times,
    deliveries_due_at_one_instant_are_claimed_in_the_order_of_their_events,
    no_more_than_asked_are_claimed,
    no_more_than_the_maximum_are_claimed,
    a_claim_takes_only_what_is_owed_to_its_destination,
    only_waiting_deliveries_are_claimed,
    an_expired_lease_is_not_claimed_before_a_sweep_took_it_away,
    a_clock_that_goes_back_takes_no_lease_away_and_gives_none_twice,
    a_paused_destination_gets_no_lease,
    tokens_grow_with_every_claim,
    the_idempotency_key_is_the_same_on_every_attempt,
    each_delivery_has_an_idempotency_key_of_its_own,
);

fn a_due_delivery_is_leased_and_its_attempt_counted(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let lease = world.claim_one(to);
    let delivery = world.delivery(id);
    let expected = Lease {
        delivery: id,
        token: LeaseToken(1),
        expires_at: world.now().plus(LEASE),
        attempt: 1,
        idempotency_key: delivery.idempotency_key(),
    };
    assert_eq!(lease, expected);
    assert_eq!(delivery.state, DeliveryState::Leased { expires_at: lease.expires_at });
    assert_eq!((delivery.attempts, delivery.token, delivery.last_settled), (1, lease.token, None));
}

fn a_lease_lasts_as_long_as_was_asked(world: &mut World) {
    let to = world.destination("app");
    world.owe("evt_1", to);
    let lease_for = Duration::from_micros(1_234_567);
    let leases = world.claim_for(to, 1, lease_for);
    assert_eq!(leases[0].expires_at, world.now().plus(lease_for));
}

fn a_lease_lasts_no_longer_than_the_maximum(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let end = world.now().plus(LEASE_MAX);
    assert_eq!(world.claim_for(to, 1, Duration::MAX)[0].expires_at, end);
    assert_eq!(world.state(id), DeliveryState::Leased { expires_at: end });
}

fn nothing_due_gives_no_lease(world: &mut World) {
    let to = world.destination("app");
    assert_eq!(world.claim(to, 10), []);
    world.owe("evt_1", to);
    assert_eq!(world.claim(to, 0), []);
}

fn a_delivery_is_claimed_from_its_due_time_on(world: &mut World) {
    let to = world.destination("app");
    world.owe("evt_1", to);
    let at = world.now().plus(SECOND);
    world.settle(&world.claim_one(to), Verdict::Retry { at });
    world.advance(SECOND - Duration::from_micros(1));
    assert_eq!(world.claim(to, 10), []);
    world.advance(Duration::from_micros(1));
    assert_eq!(world.claim(to, 10).len(), 1);
}

fn deliveries_are_claimed_in_the_order_of_their_due_times(world: &mut World) {
    let to = world.destination("app");
    let ids = ["evt_1", "evt_2", "evt_3"].map(|id| world.owe(id, to));
    let waits = [SECOND * 3, SECOND * 2, SECOND];
    for (lease, wait) in world.claim(to, 3).iter().zip(waits) {
        world.settle(lease, Verdict::Retry { at: world.now().plus(wait) });
    }
    world.advance(SECOND * 5);
    let claimed: Vec<_> = world.claim(to, 3).iter().map(|lease| lease.delivery).collect();
    assert_eq!(claimed, [ids[2], ids[1], ids[0]]);
}

fn deliveries_due_at_one_instant_are_claimed_in_the_order_of_their_events(world: &mut World) {
    let to = world.destination("app");
    // In one batch, so that nothing but the order of the writes can decide.
    let source = world.source("shop");
    let ids = ["z", "a", "m", "B"];
    let drafts = ids.map(|id| Draft::new(source, id, id).owed_to([to]));
    let written = world.apply(&drafts.map(|draft| world.accepting(&draft)));
    let expected: Vec<_> =
        written.iter().map(|written| first_delivery(super::world::receipt(written).event, to)).collect();
    let claimed: Vec<_> = world.claim(to, 10).iter().map(|lease| lease.delivery).collect();
    assert_eq!(claimed, expected);
}

fn no_more_than_asked_are_claimed(world: &mut World) {
    let to = world.destination("app");
    let ids = ["evt_1", "evt_2", "evt_3"].map(|id| world.owe(id, to));
    let claim = |max| world.claim(to, max).iter().map(|lease| lease.delivery).collect::<Vec<_>>();
    assert_eq!(claim(2), ids[..2]);
    assert_eq!(claim(2), ids[2..]);
    assert_eq!(claim(2), []);
}

fn no_more_than_the_maximum_are_claimed(world: &mut World) {
    let to = world.destination("app");
    let source = world.source("shop");
    let accept = |n| world.accepting(&Draft::new(source, format!("evt_{n}"), "{}").owed_to([to]));
    world.apply(&(0..=CLAIM_MAX).map(accept).collect::<Vec<_>>());
    assert_eq!(world.claim(to, u16::MAX).len(), usize::from(CLAIM_MAX));
    assert_eq!(world.claim(to, u16::MAX).len(), 1);
}

fn a_claim_takes_only_what_is_owed_to_its_destination(world: &mut World) {
    let (app, billing) = (world.destination("app"), world.destination("billing"));
    let event = world.accept_owed("evt_1", &[app, billing]).event;
    assert_eq!(world.claim_one(billing).delivery, first_delivery(event, billing));
    assert_eq!(world.delivery(first_delivery(event, app)).state_name(), StateName::Waiting);
    assert_eq!(world.claim(billing, 10), []);
    assert_eq!(world.claim_one(app).delivery, first_delivery(event, app));
}

fn only_waiting_deliveries_are_claimed(world: &mut World) {
    let to = world.destination("app");
    let ids = STATES.map(|state| world.delivery_in(state, to));
    let before = ids[..4].iter().map(|id| world.delivery(*id)).collect::<Vec<_>>();
    assert_eq!(world.claim_one(to).delivery, ids[4], "{STATES:?}");
    assert_eq!(ids[..4].iter().map(|id| world.delivery(*id)).collect::<Vec<_>>(), before);
}

fn an_expired_lease_is_not_claimed_before_a_sweep_took_it_away(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let lease = world.claim_one(to);
    world.advance(LEASE * 100);
    assert_eq!(world.claim(to, 10), []);
    assert_eq!(world.state(id), DeliveryState::Leased { expires_at: lease.expires_at });
}

fn a_clock_that_goes_back_takes_no_lease_away_and_gives_none_twice(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let lease = world.claim_one(to);
    let before = world.delivery(id);
    let earlier = world.now().minus(Duration::from_hours(1));
    let claim = Write::Claim(Claim { destination: to, max: 10, lease_for: LEASE });
    let sweep = Write::Sweep(Sweep { retention: vec![], max: 10 });
    let written = world.store().apply(&[claim, sweep], earlier).expect("any instant is legal");
    assert_eq!(written, [Written::Claimed(vec![]), Written::Swept(Swept::default())]);
    assert_eq!(world.delivery(id), before);
    assert_eq!(world.settle(&lease, Verdict::Done), Settlement::Settled(Settled::Done));
}

fn a_paused_destination_gets_no_lease(world: &mut World) {
    let (app, billing) = (world.destination("app"), world.destination("billing"));
    let id = world.owe("evt_1", app);
    world.owe("evt_2", billing);
    assert_eq!(world.resolve(Subject::PauseDestination(app)), Resolved::Changed);
    assert_eq!(world.claim(app, 10), []);
    assert_eq!(world.state(id), DeliveryState::Waiting { due: world.now() });
    assert_eq!(world.claim(billing, 10).len(), 1, "another destination goes on");
    assert_eq!(world.resolve(Subject::ResumeDestination(app)), Resolved::Changed);
    assert_eq!(world.claim_one(app).delivery, id);
}

fn tokens_grow_with_every_claim(world: &mut World) {
    let patient = RetryPolicy { attempts_max: 100, ..policy() };
    let to = world.destination_with("app", patient);
    world.owe("evt_1", to);
    let verdicts = [Verdict::Release, Verdict::Retry { at: world.now() }, Verdict::Release];
    let mut tokens = vec![LeaseToken(0)];
    for verdict in verdicts {
        let lease = world.claim_one(to);
        tokens.push(lease.token);
        world.settle(&lease, verdict);
    }
    tokens.push(world.claim_one(to).token);
    assert!(tokens.is_sorted_by(|earlier, later| earlier < later), "{tokens:?}");
}

fn the_idempotency_key_is_the_same_on_every_attempt(world: &mut World) {
    let to = world.destination("app");
    world.owe("evt_1", to);
    let first = world.claim_one(to);
    world.settle(&first, Verdict::Retry { at: world.now() });
    let second = world.claim_one(to);
    assert_eq!((first.attempt, second.attempt), (1, 2));
    assert_eq!(first.idempotency_key, second.idempotency_key);
}

fn each_delivery_has_an_idempotency_key_of_its_own(world: &mut World) {
    let destinations = [world.destination("app"), world.destination("billing")];
    world.accept_owed("evt_1", &destinations);
    world.accept_owed("evt_2", &destinations);
    let leases = destinations.map(|to| world.claim(to, 10)).concat();
    let keys: HashSet<_> = leases.iter().map(|lease| lease.idempotency_key.as_str()).collect();
    assert_eq!(keys.len(), 4, "{leases:?}");
}
