//! Reopen: everything that was acknowledged is there when the store is opened again.

use super::case::list;
use super::draft::Draft;
use super::scene::STATES;
use super::world::{LEASE, SECOND, World, attempt, first_delivery, plan, policy};
use crate::event::{Body, Outcome};
use crate::lease::{Settled, Settlement, Verdict};
use crate::query::{EventFilter, EventSelector, Order, Page};
use crate::redelivery::RedeliveryState;
use crate::retry::RetryPolicy;
use crate::run::RunOutcome;
use crate::store::{Register, Registered, Subject};

list!("reopen":
    all_that_readers_see_is_there_again,
    a_new_store_can_be_opened_again_at_once,
    a_retry_is_a_duplicate_after_reopening,
    other_bytes_are_a_conflict_after_reopening,
    volatile_values_may_differ_after_reopening,
    duplicates_stay_counted,
    sequence_numbers_go_on,
    identities_have_the_same_hash,
    identities_with_one_hash_are_told_apart_after_reopening,
    a_waiting_delivery_is_claimed_after_reopening,
    the_holder_of_a_lease_settles_after_reopening,
    a_lease_expires_after_reopening,
    the_same_settle_again_is_answered_the_same_after_reopening,
    a_run_is_known_after_reopening,
    a_redelivery_goes_on_where_it_was,
    a_cancelled_redelivery_stays_cancelled,
    names_keep_their_numbers_and_fingerprints,
    a_pause_lasts,
    a_policy_lasts,
    a_follower_goes_on_with_its_cursor,
    erased_bodies_stay_erased,
    writes_fail_after_the_store_was_closed,
);

fn all_that_readers_see_is_there_again(world: &mut World) {
    let (source, to) = (world.source("shop"), world.destination("app"));
    world.erased("gone", to);
    for state in STATES {
        world.delivery_in(state, to);
    }
    let lease = world.claim_one(to);
    world.settle_as(&lease, Verdict::Release, Some(attempt(lease.token, 1, world.now())));
    let mut draft = Draft::new(source, "evt_\0\u{e9}", [0, 0xff, 0]).scoped("acct").typed("order.paid");
    draft = draft.with_header("x-raw", b"\xff\0");
    let event = world.accept(&draft).event;
    for body in ["a", "b", "c"] {
        world.accept(&Draft { body: body.into(), ..draft.clone() });
    }
    world.resolve(Subject::DismissConflict { event, variant: 1 });
    world.revise(event, 2, &[to]);
    world.run(event, "nightly", Some(b"\0"));
    let before = world.picture();
    world.reopen();
    assert_eq!(world.picture().differences(&before), [""; 0]);
    world.reopen();
    assert_eq!(world.picture(), before);
}

fn a_new_store_can_be_opened_again_at_once(world: &mut World) {
    let before = world.picture();
    world.reopen();
    assert_eq!(world.picture(), before);
    assert_eq!(world.accept_owed("evt_1", &[]).outcome, Outcome::Stored);
}

fn a_retry_is_a_duplicate_after_reopening(world: &mut World) {
    let first = world.accept_owed("evt_1", &[]);
    world.reopen();
    assert_eq!(world.body(first.event), Some(Body::Kept("evt_1".into())));
    let again = world.accept_owed("evt_1", &[]);
    assert_eq!((again.outcome, again.event, again.seq), (Outcome::Duplicate, first.event, first.seq));
}

fn other_bytes_are_a_conflict_after_reopening(world: &mut World) {
    let source = world.source("shop");
    let first = world.accept_owed("evt_1", &[]);
    world.accept(&Draft::new(source, "evt_1", "a"));
    world.reopen();
    for (variant, body) in [(2, "b"), (1, "a")] {
        let other = world.accept(&Draft::new(source, "evt_1", body));
        assert_eq!((other.outcome, other.event), (Outcome::Conflict { variant: Some(variant) }, first.event));
    }
}

fn volatile_values_may_differ_after_reopening(world: &mut World) {
    let source = world.source("shop");
    world.accept(&Draft::new(source, "evt_1", "{\"try\":1}").compared(3, "n=1"));
    world.reopen();
    let again = world.accept(&Draft::new(source, "evt_1", "{\"try\":2}").compared(3, "n=1"));
    assert_eq!(again.outcome, Outcome::Duplicate);
    let other = world.accept(&Draft::new(source, "evt_1", "{\"try\":1}").compared(3, "n=2"));
    assert_eq!(other.outcome, Outcome::Conflict { variant: Some(1) });
}

fn duplicates_stay_counted(world: &mut World) {
    let event = world.accept_owed("evt_1", &[]).event;
    world.advance(SECOND);
    world.accept_owed("evt_1", &[]);
    world.reopen();
    world.advance(SECOND);
    world.accept_owed("evt_1", &[]);
    let duplicates = world.event(event).duplicates;
    assert_eq!((duplicates.count, duplicates.last_at), (2, Some(world.now())));
}

fn sequence_numbers_go_on(world: &mut World) {
    let first = world.accept_owed("evt_1", &[]).seq;
    world.reopen();
    let second = world.accept_owed("evt_2", &[]).seq;
    world.reopen();
    let third = world.accept_owed("evt_3", &[]).seq;
    assert!(first < second && second < third);
    let newest = world.find(&EventSelector::Newest).map(|event| event.seq);
    assert_eq!(newest, Some(third));
}

fn identities_have_the_same_hash(world: &mut World) {
    let identity = Draft::new(world.source("shop"), "evt_1", "").identity;
    let before = world.store().facts().identity_key.hash(&identity, 0);
    world.reopen();
    assert_eq!(world.store().facts().identity_key.hash(&identity, 0), before);
}

fn identities_with_one_hash_are_told_apart_after_reopening(world: &mut World) {
    let source = world.source("shop");
    let hash = crate::IdentityHash([0x5a; 16]);
    let drafts = ["a", "b"].map(|id| Draft::new(source, id, id).hashed(hash));
    let events = drafts.each_ref().map(|draft| world.accept(draft).event);
    world.reopen();
    for (draft, event) in drafts.iter().zip(events) {
        let again = world.accept(draft);
        assert_eq!((again.outcome, again.event), (Outcome::Duplicate, event));
    }
}

fn a_waiting_delivery_is_claimed_after_reopening(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    world.reopen();
    assert_eq!(world.claim_one(to).delivery, id);
}

fn the_holder_of_a_lease_settles_after_reopening(world: &mut World) {
    let to = world.destination("app");
    world.owe("evt_1", to);
    let lease = world.claim_one(to);
    world.reopen();
    assert_eq!(world.claim(to, 10), []);
    assert_eq!(world.settle(&lease, Verdict::Done), Settlement::Settled(Settled::Done));
}

fn a_lease_expires_after_reopening(world: &mut World) {
    let to = world.destination("app");
    world.owe("evt_1", to);
    let lease = world.claim_one(to);
    world.reopen();
    assert_eq!(world.next_due(), Some(lease.expires_at));
    world.advance(LEASE);
    assert_eq!(world.sweep(10).expired, 1);
    world.advance(LEASE);
    let next = world.claim_one(to);
    assert!(next.token > lease.token);
    assert_eq!((next.attempt, next.idempotency_key), (2, lease.idempotency_key));
}

fn the_same_settle_again_is_answered_the_same_after_reopening(world: &mut World) {
    let to = world.destination("app");
    let at = world.now().plus(LEASE);
    for verdict in [Verdict::Done, super::scene::dead(), Verdict::Retry { at }, Verdict::Release] {
        world.owe(&format!("{verdict:?}"), to);
        let lease = world.claim_one(to);
        let first = world.settle(&lease, verdict);
        world.reopen();
        assert_eq!(world.settle(&lease, Verdict::Done), first);
    }
}

fn a_run_is_known_after_reopening(world: &mut World) {
    let event = world.accept_owed("evt_1", &[]).event;
    let RunOutcome::New(receipt) = world.run(event, "nightly", Some(b"1")) else { panic!("the run is new") };
    world.reopen();
    world.advance(SECOND);
    assert_eq!(world.run(event, "nightly", Some(b"2")), RunOutcome::Known(receipt));
}

fn a_redelivery_goes_on_where_it_was(world: &mut World) {
    let to = world.destination("app");
    for id in ["a", "b", "c"] {
        world.accept_owed(id, &[]);
    }
    let first = world.redeliver(&plan(1, to), 1);
    world.reopen();
    world.accept_owed("later", &[]);
    world.advance(SECOND);
    let second = world.redeliver(&plan(1, to), 100);
    assert_eq!((second.made, second.state), (3, RedeliveryState::Complete));
    assert_eq!((second.made_at, second.until), (first.made_at, first.until));
}

fn a_cancelled_redelivery_stays_cancelled(world: &mut World) {
    let to = world.destination("app");
    for id in ["a", "b"] {
        world.accept_owed(id, &[]);
    }
    let id = world.redeliver(&plan(1, to), 1).plan.id;
    world.resolve(Subject::CancelRedelivery(id));
    world.reopen();
    let redelivery = world.redeliver(&plan(1, to), 100);
    assert_eq!((redelivery.made, redelivery.state), (1, RedeliveryState::Cancelled));
}

fn names_keep_their_numbers_and_fingerprints(world: &mut World) {
    let before = ["b", "a"].map(|name| (world.source(name), world.destination(name)));
    world.reopen();
    assert_eq!(["b", "a"].map(|name| (world.source(name), world.destination(name))), before);
    let name = "a".parse().expect("a source name");
    let registered = world.register(Register::Source { name, identity_fingerprint: "id-v2".into() });
    let Registered::Source { row, previous_fingerprint } = registered else { panic!("a source") };
    assert_eq!((row.generation, previous_fingerprint.as_deref()), (2, Some("id-v1")));
    assert_eq!(world.source("c").0, 3);
}

fn a_pause_lasts(world: &mut World) {
    let to = world.destination("app");
    world.owe("evt_1", to);
    world.resolve(Subject::PauseDestination(to));
    world.reopen();
    assert_eq!((world.claim(to, 10), world.next_due()), (vec![], None));
}

fn a_policy_lasts(world: &mut World) {
    let to = world.destination_with("app", RetryPolicy { attempts_max: 1, ..policy() });
    world.owe("evt_1", to);
    let lease = world.claim_one(to);
    world.reopen();
    let dead = Settled::Dead(crate::DeadReason::AttemptsUsedUp);
    assert_eq!(world.settle(&lease, Verdict::Retry { at: world.now() }), Settlement::Settled(dead));
}

fn a_follower_goes_on_with_its_cursor(world: &mut World) {
    for id in ["a", "b"] {
        world.accept_owed(id, &[]);
    }
    let page = Page::first(1, Order::OldestFirst);
    let list = world.list_events(&EventFilter::default(), &page);
    world.reopen();
    world.accept_owed("c", &[]);
    let page = Page { items_max: 10, ..page.after(list.next.expect("the page ended somewhere")) };
    let rest = world.list_events(&EventFilter::default(), &page).items;
    assert_eq!(rest.iter().map(|event| event.identity.id.to_string()).collect::<Vec<_>>(), ["b", "c"]);
}

fn erased_bodies_stay_erased(world: &mut World) {
    let to = world.destination("app");
    let first = world.erased("evt_1", to);
    world.reopen();
    assert_eq!(world.body(first.event), Some(Body::Erased));
    assert_eq!(world.accept_owed("evt_1", &[to]).outcome, Outcome::Duplicate);
    let other = world.accept(&Draft::new(world.source("shop"), "evt_1", "other"));
    assert_eq!((other.outcome, other.event), (Outcome::Conflict { variant: Some(1) }, first.event));
    assert_eq!(world.delivery(first_delivery(first.event, to)).state_name(), crate::StateName::Done);
}

fn writes_fail_after_the_store_was_closed(world: &mut World) {
    let write = world.accepting(&Draft::new(world.source("shop"), "evt_1", "{}"));
    world.store().close(world.now()).expect("the store can be closed");
    world.try_apply(&[write]).expect_err("the store is closed");
}
