//! Attempts: the record of what was tried, which settles write.

use bytes::Bytes;

use super::case::list;
use super::scene::dead;
use super::world::{LEASE, SECOND, World, attempt, first_delivery, policy};
use crate::attempt::{ATTEMPT_EXCERPT_BYTES_MAX, ATTEMPTS_KEPT_MAX, Attempt};
use crate::lease::{Settlement, Verdict};
use crate::retry::RetryPolicy;

list!("attempts":
    an_attempt_comes_back_as_it_was_recorded,
    facts_of_an_attempt_that_are_not_known_stay_unknown,
    attempts_are_listed_the_oldest_first,
    a_settle_without_an_attempt_records_none,
    a_lost_settle_records_no_attempt,
    the_same_settle_again_records_no_second_attempt,
    no_more_attempts_are_kept_than_the_maximum_and_those_are_the_newest,
    attempts_belong_to_their_delivery,
    an_unknown_delivery_has_no_attempts,
);

fn an_attempt_comes_back_as_it_was_recorded(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let lease = world.claim_one(to);
    let mut made = attempt(lease.token, lease.attempt, world.now());
    made.excerpt = Bytes::from(vec![0xfe; ATTEMPT_EXCERPT_BYTES_MAX]);
    world.settle_as(&lease, dead(), Some(made.clone()));
    assert_eq!(world.attempts(id), [made]);
}

fn facts_of_an_attempt_that_are_not_known_stay_unknown(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let lease = world.claim_one(to);
    let known = attempt(lease.token, 1, world.now());
    let made = Attempt { took_us: 0, status: None, excerpt: Bytes::new(), error: None, rule: None, ..known };
    world.settle_as(&lease, Verdict::Done, Some(made.clone()));
    assert_eq!(world.attempts(id), [made]);
}

fn attempts_are_listed_the_oldest_first(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let mut made = Vec::new();
    for _ in 0..policy().attempts_max {
        let lease = world.claim_one(to);
        made.push(attempt(lease.token, lease.attempt, world.now()));
        world.advance(SECOND);
        world.settle_as(&lease, Verdict::Retry { at: world.now() }, made.last().cloned());
    }
    assert_eq!(world.attempts(id), made);
}

fn a_settle_without_an_attempt_records_none(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    world.settle(&world.claim_one(to), Verdict::Done);
    assert_eq!(world.attempts(id), []);
}

fn a_lost_settle_records_no_attempt(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let lease = world.claim_one(to);
    world.advance(LEASE);
    world.sweep(10);
    let late = attempt(lease.token, 1, world.now());
    assert_eq!(world.settle_as(&lease, Verdict::Done, Some(late)), Settlement::LeaseLost);
    assert_eq!(world.attempts(id), []);
}

fn the_same_settle_again_records_no_second_attempt(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let lease = world.claim_one(to);
    let made = attempt(lease.token, 1, world.now());
    let again = attempt(lease.token, 1, world.now().plus(SECOND));
    let retry = Verdict::Retry { at: world.now() };
    world.settle_as(&lease, retry.clone(), Some(made.clone()));
    world.settle_as(&lease, retry.clone(), Some(again.clone()));
    world.claim_one(to);
    world.settle_as(&lease, retry, Some(again));
    assert_eq!(world.attempts(id), [made]);
}

fn no_more_attempts_are_kept_than_the_maximum_and_those_are_the_newest(world: &mut World) {
    let to = world.destination_with("app", RetryPolicy { attempts_max: 1_000, ..policy() });
    let id = world.owe("evt_1", to);
    let total = u32::try_from(ATTEMPTS_KEPT_MAX).expect("the maximum is small") + 2;
    for number in 1..=total {
        let lease = world.claim_one(to);
        assert_eq!(lease.attempt, number);
        let made = attempt(lease.token, number, world.now());
        world.settle_as(&lease, Verdict::Retry { at: world.now() }, Some(made));
    }
    let kept: Vec<_> = world.attempts(id).iter().map(|attempt| attempt.number).collect();
    assert_eq!(kept, (3..=total).collect::<Vec<_>>());
}

fn attempts_belong_to_their_delivery(world: &mut World) {
    let (app, billing) = (world.destination("app"), world.destination("billing"));
    let event = world.accept_owed("evt_1", &[app, billing]).event;
    let lease = world.claim_one(billing);
    world.settle_as(&lease, Verdict::Done, Some(attempt(lease.token, 1, world.now())));
    assert_eq!(world.attempts(first_delivery(event, app)), []);
    assert_eq!(world.attempts(first_delivery(event, billing)).len(), 1);
}

fn an_unknown_delivery_has_no_attempts(world: &mut World) {
    let to = world.destination("app");
    let mut id = world.owe("evt_1", to);
    id.generation = 2;
    assert_eq!(world.attempts(id), []);
    assert_eq!(world.attempts(first_delivery(crate::EventId::from_bytes([0xee; 16]), to)), []);
}
