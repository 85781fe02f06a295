//! Settle: how the holder of a lease ends it, and who is too late.

use std::time::Duration;

use super::case::list;
use super::scene::{dead, refused};
use super::world::{LEASE, SECOND, World, first_delivery, policy};
use crate::delivery::{DeadReason, DeliveryState};
use crate::lease::{Lease, LeaseToken, Settled, Settlement, Verdict};
use crate::retry::RetryPolicy;

list!("settle":
    done_is_done,
    a_retry_waits_until_then,
    a_retry_may_lie_in_the_past,
    a_retry_lies_at_most_a_fortnight_ahead,
    dead_is_dead_for_the_reason_that_was_given,
    a_retry_of_the_last_attempt_is_dead,
    a_retry_of_a_delivery_that_is_too_old_is_dead,
    the_last_attempt_may_succeed,
    a_release_waits_now_and_its_attempt_is_not_counted,
    releases_use_no_attempts_up,
    a_settle_of_a_lease_that_a_sweep_took_away_is_refused,
    a_settle_with_an_old_token_is_refused,
    a_settle_with_a_token_that_was_never_given_out_is_refused,
    the_holder_settles_late_while_nobody_took_the_lease_away,
    the_same_settle_again_is_answered_the_same,
    the_same_settle_again_is_answered_the_same_after_the_next_claim,
    a_settle_of_an_unknown_delivery_is_unknown,
    a_delivery_that_was_never_claimed_cannot_be_settled,
    one_destination_being_done_leaves_the_others_waiting,
);

fn retry(at: crate::Timestamp) -> Verdict {
    Verdict::Retry { at }
}

fn done_is_done(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let lease = world.claim_one(to);
    world.advance(SECOND);
    assert_eq!(world.settle(&lease, Verdict::Done), Settlement::Settled(Settled::Done));
    let delivery = world.delivery(id);
    assert_eq!(delivery.state, DeliveryState::Done { at: world.now(), decision: None });
    assert_eq!((delivery.attempts, delivery.token), (1, lease.token));
    assert_eq!(delivery.last_settled, Some((lease.token, Settled::Done)));
    assert!(world.event(id.event).is_finished());
}

fn a_retry_waits_until_then(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let lease = world.claim_one(to);
    let due = world.now().plus(Duration::from_micros(7_000_001));
    let expected = Settled::Retry { due };
    assert_eq!(world.settle(&lease, retry(due)), Settlement::Settled(expected.clone()));
    let delivery = world.delivery(id);
    assert_eq!(delivery.state, DeliveryState::Waiting { due });
    assert_eq!((delivery.attempts, delivery.last_settled), (1, Some((lease.token, expected))));
}

fn a_retry_may_lie_in_the_past(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let due = world.now().minus(SECOND);
    world.settle(&world.claim_one(to), retry(due));
    assert_eq!(world.state(id), DeliveryState::Waiting { due });
    assert_eq!(world.claim_one(to).delivery, id);
}

fn a_retry_lies_at_most_a_fortnight_ahead(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let due = world.now().plus(Duration::from_hours(24 * 14));
    let settled = Settlement::Settled(Settled::Retry { due });
    assert_eq!(world.settle(&world.claim_one(to), retry(crate::Timestamp::MAX)), settled);
    assert_eq!(world.state(id), DeliveryState::Waiting { due });
}

fn dead_is_dead_for_the_reason_that_was_given(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let lease = world.claim_one(to);
    assert_eq!(world.settle(&lease, dead()), Settlement::Settled(Settled::Dead(refused())));
    let delivery = world.delivery(id);
    assert_eq!(delivery.state, DeliveryState::Dead { at: world.now(), reason: refused() });
    assert_eq!(delivery.attempts, 1);
    assert!(!world.event(id.event).is_finished());
}

fn a_retry_of_the_last_attempt_is_dead(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    for _ in 1..policy().attempts_max {
        let settled = world.settle(&world.claim_one(to), retry(world.now()));
        assert_eq!(settled, Settlement::Settled(Settled::Retry { due: world.now() }));
    }
    let used_up = Settlement::Settled(Settled::Dead(DeadReason::AttemptsUsedUp));
    assert_eq!(world.settle(&world.claim_one(to), retry(world.now())), used_up);
    let state = DeliveryState::Dead { at: world.now(), reason: DeadReason::AttemptsUsedUp };
    assert_eq!((world.state(id), world.delivery(id).attempts), (state, policy().attempts_max));
}

fn a_retry_of_a_delivery_that_is_too_old_is_dead(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    world.advance(Duration::from_secs(u64::from(policy().age_max_s)));
    let settled = world.settle(&world.claim_one(to), retry(world.now()));
    assert_eq!(settled, Settlement::Settled(Settled::Dead(DeadReason::AgeUsedUp)));
    assert_eq!(world.state(id), DeliveryState::Dead { at: world.now(), reason: DeadReason::AgeUsedUp });
}

fn the_last_attempt_may_succeed(world: &mut World) {
    let to = world.destination_with("app", RetryPolicy { attempts_max: 1, age_max_s: 0, ..policy() });
    world.owe("evt_1", to);
    assert_eq!(world.settle(&world.claim_one(to), Verdict::Done), Settlement::Settled(Settled::Done));
}

fn a_release_waits_now_and_its_attempt_is_not_counted(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let lease = world.claim_one(to);
    world.advance(SECOND);
    assert_eq!(world.settle(&lease, Verdict::Release), Settlement::Settled(Settled::Released));
    let delivery = world.delivery(id);
    assert_eq!(delivery.state, DeliveryState::Waiting { due: world.now() });
    assert_eq!((delivery.attempts, delivery.token), (0, lease.token));
    assert_eq!(world.claim_one(to).attempt, 1);
}

fn releases_use_no_attempts_up(world: &mut World) {
    let to = world.destination("app");
    world.owe("evt_1", to);
    for _ in 0..=policy().attempts_max {
        let settled = world.settle(&world.claim_one(to), Verdict::Release);
        assert_eq!(settled, Settlement::Settled(Settled::Released));
    }
}

fn a_settle_of_a_lease_that_a_sweep_took_away_is_refused(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let lease = world.claim_one(to);
    world.advance(LEASE);
    assert_eq!(world.sweep(10).expired, 1);
    let before = world.delivery(id);
    for verdict in [Verdict::Done, dead(), Verdict::Release, retry(world.now())] {
        assert_eq!(world.settle(&lease, verdict), Settlement::LeaseLost);
    }
    assert_eq!(world.delivery(id), before);
}

fn a_settle_with_an_old_token_is_refused(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let late = world.claim_one(to);
    world.advance(LEASE);
    world.sweep(10);
    world.advance(LEASE);
    let present = world.claim_one(to);
    let before = world.delivery(id);
    assert_eq!(world.settle(&late, Verdict::Done), Settlement::LeaseLost);
    assert_eq!(world.delivery(id), before);
    assert_eq!(world.settle(&present, Verdict::Done), Settlement::Settled(Settled::Done));
    assert_eq!(world.settle(&late, dead()), Settlement::LeaseLost, "also when the delivery is done");
}

fn a_settle_with_a_token_that_was_never_given_out_is_refused(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let lease = world.claim_one(to);
    let before = world.delivery(id);
    for token in [LeaseToken(0), lease.token.next(), LeaseToken(u32::MAX)] {
        let settled = world.settle(&Lease { token, ..lease.clone() }, Verdict::Done);
        assert_eq!(settled, Settlement::LeaseLost);
    }
    assert_eq!(world.delivery(id), before);
}

fn the_holder_settles_late_while_nobody_took_the_lease_away(world: &mut World) {
    let to = world.destination("app");
    world.owe("evt_1", to);
    let lease = world.claim_one(to);
    world.advance(LEASE * 2);
    assert_eq!(world.settle(&lease, Verdict::Done), Settlement::Settled(Settled::Done));
    assert_eq!(world.sweep(10).expired, 0);
}

fn the_same_settle_again_is_answered_the_same(world: &mut World) {
    let to = world.destination("app");
    let later = world.now().plus(LEASE);
    for (id, verdict) in [("a", Verdict::Done), ("b", dead()), ("c", retry(later)), ("d", Verdict::Release)] {
        let id = world.owe(id, to);
        let lease = world.claim_one(to);
        let first = world.settle(&lease, verdict.clone());
        let before = world.delivery(id);
        world.advance(SECOND);
        assert_eq!(world.settle(&lease, verdict), first);
        assert_eq!(world.settle(&lease, Verdict::Done), first, "whatever it says now");
        assert_eq!(world.delivery(id), before);
    }
}

fn the_same_settle_again_is_answered_the_same_after_the_next_claim(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let lease = world.claim_one(to);
    let first = world.settle(&lease, retry(world.now()));
    world.claim_one(to);
    let before = world.delivery(id);
    assert_eq!(world.settle(&lease, retry(world.now())), first);
    assert_eq!(world.delivery(id), before, "the lease of the next holder is untouched");
}

fn a_settle_of_an_unknown_delivery_is_unknown(world: &mut World) {
    let (to, other) = (world.destination("app"), world.destination("billing"));
    let id = world.owe("evt_1", to);
    let lease = world.claim_one(to);
    let before = world.delivery(id);
    let mut unknown = [lease.delivery; 3];
    unknown[0].event = crate::EventId::from_bytes([0xee; 16]);
    unknown[1] = first_delivery(lease.delivery.event, other);
    unknown[2].generation = 2;
    for delivery in unknown {
        let settled = world.settle(&Lease { delivery, ..lease.clone() }, Verdict::Done);
        assert_eq!(settled, Settlement::Unknown);
    }
    assert_eq!(world.delivery(id), before);
}

fn a_delivery_that_was_never_claimed_cannot_be_settled(world: &mut World) {
    let to = world.destination("app");
    let delivery = world.owe("evt_1", to);
    let before = world.delivery(delivery);
    let lease = Lease {
        delivery,
        token: before.token,
        expires_at: world.now().plus(LEASE),
        attempt: 1,
        idempotency_key: before.idempotency_key(),
    };
    assert_eq!(world.settle(&lease, Verdict::Done), Settlement::LeaseLost);
    assert_eq!(world.delivery(delivery), before);
}

fn one_destination_being_done_leaves_the_others_waiting(world: &mut World) {
    let (app, billing) = (world.destination("app"), world.destination("billing"));
    let event = world.accept_owed("evt_1", &[app, billing]).event;
    world.finish(app);
    assert!(!world.event(event).is_finished());
    world.finish(billing);
    assert!(world.event(event).is_finished());
}
