//! Extend: moving the end of a lease.

use std::time::Duration;

use super::case::list;
use super::world::{LEASE, SECOND, World, first_delivery};
use crate::delivery::DeliveryState;
use crate::lease::{Extension, LEASE_MAX, Lease, LeaseToken, Settled, Settlement, Verdict};

list!("extend":
    an_extension_moves_the_end_of_a_lease,
    an_extension_may_bring_the_end_nearer,
    a_lease_is_extended_no_further_than_the_maximum,
    an_extended_lease_is_kept_beyond_its_first_end,
    the_holder_extends_late_while_nobody_took_the_lease_away,
    an_extension_after_a_sweep_is_refused,
    an_extension_with_an_old_token_is_refused,
    an_extension_with_a_token_that_was_never_given_out_is_refused,
    a_settled_lease_is_not_extended,
    an_extension_of_an_unknown_delivery_is_unknown,
);

fn an_extension_moves_the_end_of_a_lease(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let lease = world.claim_one(to);
    world.advance(SECOND);
    let expires_at = world.now().plus(LEASE);
    assert_eq!(world.extend(&lease, LEASE), Extension::Extended { expires_at });
    let delivery = world.delivery(id);
    assert_eq!(delivery.state, DeliveryState::Leased { expires_at });
    assert_eq!((delivery.attempts, delivery.token), (1, lease.token));
}

fn an_extension_may_bring_the_end_nearer(world: &mut World) {
    let to = world.destination("app");
    world.owe("evt_1", to);
    let lease = world.claim_one(to);
    let expires_at = world.now().plus(SECOND);
    assert_eq!(world.extend(&lease, SECOND), Extension::Extended { expires_at });
    assert_eq!(world.next_due(), Some(expires_at));
}

fn a_lease_is_extended_no_further_than_the_maximum(world: &mut World) {
    let to = world.destination("app");
    world.owe("evt_1", to);
    let lease = world.claim_one(to);
    let expires_at = world.now().plus(LEASE_MAX);
    assert_eq!(world.extend(&lease, Duration::MAX), Extension::Extended { expires_at });
}

fn an_extended_lease_is_kept_beyond_its_first_end(world: &mut World) {
    let to = world.destination("app");
    world.owe("evt_1", to);
    let lease = world.claim_one(to);
    world.extend(&lease, LEASE * 2);
    world.advance(LEASE);
    assert_eq!(world.sweep(10).expired, 0);
    assert_eq!(world.settle(&lease, Verdict::Done), Settlement::Settled(Settled::Done));
}

fn the_holder_extends_late_while_nobody_took_the_lease_away(world: &mut World) {
    let to = world.destination("app");
    world.owe("evt_1", to);
    let lease = world.claim_one(to);
    world.advance(LEASE * 2);
    let expires_at = world.now().plus(LEASE);
    assert_eq!(world.extend(&lease, LEASE), Extension::Extended { expires_at });
    assert_eq!(world.sweep(10).expired, 0);
}

fn an_extension_after_a_sweep_is_refused(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let lease = world.claim_one(to);
    world.advance(LEASE);
    world.sweep(10);
    let before = world.delivery(id);
    assert_eq!(world.extend(&lease, LEASE), Extension::LeaseLost);
    assert_eq!(world.delivery(id), before);
}

fn an_extension_with_an_old_token_is_refused(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let old = world.claim_one(to);
    world.settle(&old, Verdict::Release);
    world.claim_one(to);
    let before = world.delivery(id);
    world.advance(SECOND);
    assert_eq!(world.extend(&old, LEASE * 9), Extension::LeaseLost);
    assert_eq!(world.delivery(id), before);
}

fn an_extension_with_a_token_that_was_never_given_out_is_refused(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let lease = world.claim_one(to);
    let before = world.delivery(id);
    for token in [LeaseToken(0), lease.token.next(), LeaseToken(u32::MAX)] {
        assert_eq!(world.extend(&Lease { token, ..lease.clone() }, LEASE * 9), Extension::LeaseLost);
    }
    assert_eq!(world.delivery(id), before);
}

fn a_settled_lease_is_not_extended(world: &mut World) {
    let to = world.destination("app");
    for (id, verdict) in [("a", Verdict::Done), ("b", super::scene::dead()), ("c", Verdict::Release)] {
        let id = world.owe(id, to);
        let lease = world.claim_one(to);
        world.settle(&lease, verdict);
        let before = world.delivery(id);
        assert_eq!(world.extend(&lease, LEASE), Extension::LeaseLost);
        assert_eq!(world.delivery(id), before);
    }
}

fn an_extension_of_an_unknown_delivery_is_unknown(world: &mut World) {
    let (to, other) = (world.destination("app"), world.destination("billing"));
    world.owe("evt_1", to);
    let lease = world.claim_one(to);
    let mut unknown = [lease.delivery; 3];
    unknown[0].event = crate::EventId::from_bytes([0xee; 16]);
    unknown[1] = first_delivery(lease.delivery.event, other);
    unknown[2].generation = 2;
    for delivery in unknown {
        assert_eq!(world.extend(&Lease { delivery, ..lease.clone() }, LEASE), Extension::Unknown);
    }
}
