//! Expiry: leases whose holder was not heard of again, which a sweep takes away.

use std::time::Duration;

use super::case::list;
use super::world::{LEASE, SECOND, World, policy};
use crate::delivery::{DeadReason, DeliveryState, StateName};
use crate::retention::Swept;
use crate::retry::RetryPolicy;
use crate::store::Subject;

list!("expiry":
    an_expired_lease_becomes_a_wait_and_its_attempt_stays_counted,
    a_lease_is_over_at_its_end_and_not_before,
    the_lease_that_is_expired_the_longest_goes_first,
    an_expiry_of_the_last_attempt_is_dead,
    an_expiry_of_a_delivery_that_is_too_old_is_dead,
    an_expiry_waits_as_the_policy_says_that_is_in_force,
    an_expiry_waits_with_the_jitter_of_its_delivery,
    leases_of_a_paused_destination_expire_too,
    an_expired_delivery_is_claimed_again_when_its_wait_is_over,
    an_expiry_leaves_the_last_settle_on_record,
    nothing_but_leases_expires,
);

fn an_expired_lease_becomes_a_wait_and_its_attempt_stays_counted(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let lease = world.claim_one(to);
    world.advance(LEASE);
    assert_eq!(world.sweep(10), Swept { expired: 1, erased: 0, more: false });
    let delivery = world.delivery(id);
    let due = world.now().plus(SECOND * 10);
    assert_eq!(delivery.state, DeliveryState::Waiting { due });
    assert_eq!((delivery.attempts, delivery.token), (1, lease.token));
    assert_eq!(world.attempts(id), []);
}

fn a_lease_is_over_at_its_end_and_not_before(world: &mut World) {
    let to = world.destination("app");
    world.owe("evt_1", to);
    world.claim_one(to);
    world.advance(LEASE - Duration::from_micros(1));
    assert_eq!(world.sweep(10).expired, 0);
    world.advance(Duration::from_micros(1));
    assert_eq!(world.sweep(10).expired, 1);
    assert_eq!(world.sweep(10).expired, 0);
}

fn the_lease_that_is_expired_the_longest_goes_first(world: &mut World) {
    let to = world.destination("app");
    let (long, short) = (world.owe("evt_1", to), world.owe("evt_2", to));
    assert_eq!(world.claim_for(to, 1, LEASE * 2)[0].delivery, long);
    assert_eq!(world.claim_for(to, 1, LEASE)[0].delivery, short);
    world.advance(LEASE * 3);
    assert_eq!(world.sweep(1), Swept { expired: 1, erased: 0, more: true });
    assert_eq!(world.delivery(short).state_name(), StateName::Waiting);
    assert_eq!(world.delivery(long).state_name(), StateName::Leased);
}

fn an_expiry_of_the_last_attempt_is_dead(world: &mut World) {
    let to = world.destination_with("app", RetryPolicy { attempts_max: 1, ..policy() });
    let id = world.owe("evt_1", to);
    world.claim_one(to);
    world.advance(LEASE);
    assert_eq!(world.sweep(10).expired, 1);
    let reason = DeadReason::AttemptsUsedUp;
    assert_eq!(world.state(id), DeliveryState::Dead { at: world.now(), reason });
}

fn an_expiry_of_a_delivery_that_is_too_old_is_dead(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    world.claim_one(to);
    world.advance(Duration::from_secs(u64::from(policy().age_max_s)));
    assert_eq!(world.sweep(10).expired, 1);
    let reason = DeadReason::AgeUsedUp;
    assert_eq!(world.state(id), DeliveryState::Dead { at: world.now(), reason });
}

fn an_expiry_waits_as_the_policy_says_that_is_in_force(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    world.claim_one(to);
    let slower = RetryPolicy { schedule_s: vec![0, 1_000], ..policy() };
    assert_eq!(world.destination_with("app", slower), to);
    world.advance(LEASE);
    world.sweep(10);
    assert_eq!(world.state(id), DeliveryState::Waiting { due: world.now().plus(SECOND * 1_000) });
}

fn an_expiry_waits_with_the_jitter_of_its_delivery(world: &mut World) {
    let jittery = RetryPolicy { schedule_s: vec![0, 1_000], jitter_percent: 100, ..policy() };
    let to = world.destination_with("app", jittery.clone());
    let id = world.owe("evt_1", to);
    world.claim_one(to);
    world.advance(LEASE);
    world.sweep(10);
    assert_eq!(world.state(id), DeliveryState::Waiting { due: jittery.next_due(&id, 1, world.now()) });
}

fn leases_of_a_paused_destination_expire_too(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    world.claim_one(to);
    world.resolve(Subject::PauseDestination(to));
    world.advance(LEASE);
    assert_eq!(world.sweep(10).expired, 1);
    assert_eq!(world.delivery(id).state_name(), StateName::Waiting);
}

fn an_expired_delivery_is_claimed_again_when_its_wait_is_over(world: &mut World) {
    let to = world.destination("app");
    world.owe("evt_1", to);
    let first = world.claim_one(to);
    world.advance(LEASE);
    world.sweep(10);
    assert_eq!(world.claim(to, 10), []);
    world.advance(SECOND * 10);
    let second = world.claim_one(to);
    assert_eq!((second.attempt, second.delivery), (2, first.delivery));
    assert_eq!(second.idempotency_key, first.idempotency_key);
    assert!(second.token > first.token);
}

fn an_expiry_leaves_the_last_settle_on_record(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    world.settle(&world.claim_one(to), crate::Verdict::Release);
    let settled = world.delivery(id).last_settled;
    world.claim_one(to);
    world.advance(LEASE);
    assert_eq!(world.sweep(10).expired, 1);
    assert!(settled.is_some());
    assert_eq!(world.delivery(id).last_settled, settled);
}

fn nothing_but_leases_expires(world: &mut World) {
    let to = world.destination("app");
    let states = [StateName::Done, StateName::Dead, StateName::Held, StateName::Waiting];
    let ids = states.map(|state| world.delivery_in(state, to));
    let before = ids.map(|id| world.delivery(id));
    world.advance(Duration::from_hours(24 * 365));
    assert_eq!(world.sweep(10), Swept::default());
    assert_eq!(ids.map(|id| world.delivery(id)), before);
}
