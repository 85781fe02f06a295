//! Redeliver: new deliveries from old events, step by step, once for each id.

use super::case::list;
use super::draft::Draft;
use super::scene::STATES;
use super::world::{SECOND, World, first_delivery, plan};
use crate::delivery::{Delivery, DeliveryState, StateName};
use crate::id::{DeliveryId, DestinationNumber, RedeliveryId, Seq};
use crate::lease::{Lease, Verdict};
use crate::query::{DeliveryFilter, EventFilter, Order, Page};
use crate::redelivery::{REDELIVERY_STEP_MAX, Redelivery, RedeliveryPlan, RedeliveryState};
use crate::store::{Resolved, Subject};

list!("redeliver":
    a_done_delivery_is_made_again_with_the_next_generation,
    the_earlier_delivery_stays_as_it_was,
    a_dead_delivery_is_made_again,
    an_event_that_was_never_owed_to_the_destination_gets_its_first_delivery,
    an_unfinished_delivery_is_passed_over_and_counted,
    an_unfinished_delivery_to_another_destination_is_no_reason_to_pass_over,
    an_erased_event_is_passed_over_and_counted,
    the_next_generation_follows_the_highest,
    the_idempotency_key_stays_the_same,
    a_fresh_key_is_one_that_no_earlier_delivery_had,
    a_redelivery_without_a_fresh_key_keeps_the_newest_key,
    keys_are_numbered_by_redeliveries_that_asked_for_a_fresh_one,
    only_events_of_the_filter_are_made_again,
    only_events_of_the_filters_times_are_made_again,
    of_one_event_nothing_else_is_made_again,
    of_an_event_that_is_not_there_nothing_is_made,
    redeliveries_are_listed_by_their_ids,
    a_step_looks_at_no_more_events_than_asked,
    a_step_looks_at_no_more_events_than_the_maximum,
    a_step_counts_events_that_the_filter_leaves_out,
    a_step_of_no_events_makes_the_redelivery_and_nothing_else,
    events_that_came_later_are_never_among_them,
    the_same_id_again_never_starts_over,
    only_the_id_counts_once_it_is_made,
    a_redelivery_of_nothing_is_complete_at_once,
    a_cancelled_redelivery_makes_no_more_and_keeps_what_was_made,
    only_a_running_redelivery_can_be_cancelled,
    a_redelivery_can_be_read_as_it_stands,
    a_redelivered_event_is_unfinished_again,
    a_redelivery_waits_while_its_destination_is_paused,
    a_redelivered_delivery_has_attempts_of_its_own,
);

const ALL: u32 = 1_000;

fn to(world: &World) -> DestinationNumber {
    world.destination("app")
}

/// The id of the `generation`-th delivery of the same event to the same destination.
fn again(id: DeliveryId, generation: u32) -> DeliveryId {
    DeliveryId { generation, ..id }
}

/// A done delivery of a new event.
fn done(world: &World, id: &str) -> DeliveryId {
    first_delivery(world.finished(id, to(world)).event, to(world))
}

/// How far a redelivery is: what it has looked at, made and passed over, and where it stands.
fn progress(redelivery: &Redelivery) -> (Seq, u64, u64, RedeliveryState) {
    (redelivery.cursor, redelivery.made, redelivery.skipped, redelivery.state)
}

fn a_done_delivery_is_made_again_with_the_next_generation(world: &mut World) {
    let id = done(world, "evt_1");
    world.advance(SECOND);
    let redelivery = world.redeliver(&plan(1, id.destination), ALL);
    let expected = Redelivery {
        plan: plan(1, id.destination),
        made_at: world.now(),
        cursor: Seq(1),
        until: Seq(1),
        made: 1,
        skipped: 0,
        state: RedeliveryState::Complete,
    };
    assert_eq!(redelivery, expected);
    let mut made = Delivery::new(again(id, 2), world.now(), world.now());
    made.redelivery = Some(RedeliveryId([1; 16]));
    assert_eq!(world.delivery(again(id, 2)), made);
    assert_eq!(world.claim_one(id.destination).delivery, again(id, 2));
}

fn the_earlier_delivery_stays_as_it_was(world: &mut World) {
    let id = done(world, "evt_1");
    let before = world.delivery(id);
    world.redeliver(&plan(1, id.destination), ALL);
    world.finish(id.destination);
    assert_eq!(world.delivery(id), before);
}

fn a_dead_delivery_is_made_again(world: &mut World) {
    let id = world.delivery_in(StateName::Dead, to(world));
    assert_eq!(world.redeliver(&plan(1, id.destination), ALL).made, 1);
    assert_eq!(world.delivery(again(id, 2)).state_name(), StateName::Waiting);
    assert_eq!(world.delivery(id).state_name(), StateName::Dead, "history stays");
}

fn an_event_that_was_never_owed_to_the_destination_gets_its_first_delivery(world: &mut World) {
    let nobody = world.accept_owed("evt_1", &[]).event;
    let late = world.destination("late");
    let other = world.owe("evt_2", to(world)).event;
    assert_eq!(world.redeliver(&plan(1, late), ALL).made, 2);
    for event in [nobody, other] {
        let mut made = Delivery::new(first_delivery(event, late), world.now(), world.now());
        made.redelivery = Some(RedeliveryId([1; 16]));
        assert_eq!(world.delivery(made.id), made);
    }
}

fn an_unfinished_delivery_is_passed_over_and_counted(world: &mut World) {
    let ids = STATES.map(|state| world.delivery_in(state, to(world)));
    let redelivery = world.redeliver(&plan(1, to(world)), ALL);
    assert_eq!(progress(&redelivery), (Seq(5), 2, 3, RedeliveryState::Complete));
    let all = world.deliveries(&DeliveryFilter::default());
    let made: Vec<_> = all.iter().map(|made| made.id).filter(|id| id.generation == 2).collect();
    assert_eq!(made, [again(ids[1], 2), again(ids[2], 2)], "those that were done and dead");
}

fn an_unfinished_delivery_to_another_destination_is_no_reason_to_pass_over(world: &mut World) {
    let billing = world.destination("billing");
    let event = world.accept_owed("evt_1", &[to(world), billing]).event;
    world.finish(billing);
    assert_eq!(world.redeliver(&plan(1, billing), ALL).made, 1);
    assert_eq!(world.event(event).deliveries.waiting, 2);
}

fn an_erased_event_is_passed_over_and_counted(world: &mut World) {
    world.erased("evt_1", to(world));
    let redelivery = world.redeliver(&plan(1, to(world)), ALL);
    assert_eq!(progress(&redelivery), (Seq(1), 0, 1, RedeliveryState::Complete));
    assert_eq!(world.claim(to(world), 10), []);
}

fn the_next_generation_follows_the_highest(world: &mut World) {
    let id = done(world, "evt_1");
    for generation in 2..=12 {
        let number = u8::try_from(generation).expect("a small number");
        assert_eq!(world.redeliver(&plan(number, id.destination), ALL).made, 1);
        let lease = world.claim_one(id.destination);
        assert_eq!(lease.delivery, again(id, generation));
        world.settle(&lease, Verdict::Done);
    }
}

/// Claims and finishes what a redelivery made of one event.
fn redelivered(world: &World, plan: &RedeliveryPlan) -> Lease {
    assert_eq!(world.redeliver(plan, ALL).made, 1);
    let lease = world.claim_one(plan.destination);
    world.settle(&lease, Verdict::Done);
    lease
}

fn the_idempotency_key_stays_the_same(world: &mut World) {
    world.accept_owed("evt_1", &[to(world)]);
    let first = world.claim_one(to(world));
    world.settle(&first, Verdict::Done);
    assert_eq!(redelivered(world, &plan(1, to(world))).idempotency_key, first.idempotency_key);
}

fn fresh(id: u8, destination: DestinationNumber) -> RedeliveryPlan {
    RedeliveryPlan { fresh_key: true, ..plan(id, destination) }
}

fn a_fresh_key_is_one_that_no_earlier_delivery_had(world: &mut World) {
    world.accept_owed("evt_1", &[to(world)]);
    let first = world.claim_one(to(world));
    world.settle(&first, Verdict::Done);
    let second = redelivered(world, &fresh(1, to(world)));
    let third = redelivered(world, &fresh(2, to(world)));
    assert_ne!(second.idempotency_key, first.idempotency_key);
    assert_ne!(third.idempotency_key, first.idempotency_key);
    assert_ne!(third.idempotency_key, second.idempotency_key);
    assert_eq!([second, third].map(|lease| world.delivery(lease.delivery).key_generation), [2, 3]);
}

fn a_redelivery_without_a_fresh_key_keeps_the_newest_key(world: &mut World) {
    done(world, "evt_1");
    let second = redelivered(world, &fresh(1, to(world)));
    let third = redelivered(world, &plan(2, to(world)));
    assert_eq!(third.idempotency_key, second.idempotency_key);
    assert_eq!(world.delivery(third.delivery).key_generation, 2);
}

fn keys_are_numbered_by_redeliveries_that_asked_for_a_fresh_one(world: &mut World) {
    done(world, "evt_1");
    redelivered(world, &plan(1, to(world)));
    redelivered(world, &plan(2, to(world)));
    let fourth = redelivered(world, &fresh(3, to(world)));
    let delivery = world.delivery(fourth.delivery);
    assert_eq!((delivery.id.generation, delivery.key_generation), (4, 2));
}

/// What is due for a destination, as provider event ids.
fn due(world: &World, destination: DestinationNumber) -> Vec<String> {
    let leases = world.claim(destination, 1_000);
    leases.iter().map(|lease| world.event(lease.delivery.event).identity.id.to_string()).collect()
}

fn only_events_of_the_filter_are_made_again(world: &mut World) {
    let (shop, bank) = (world.source("shop"), world.source("bank"));
    let drafts = [
        Draft::new(shop, "wanted", "1").typed("order.paid"),
        Draft::new(shop, "other type", "2").typed("user.paid"),
        Draft::new(shop, "no type", "3"),
        Draft::new(bank, "other source", "4").typed("order.paid"),
        Draft::new(shop, "wanted too", "5").typed("order."),
    ];
    drafts.iter().for_each(|draft| assert_eq!(world.accept(draft).outcome, crate::Outcome::Stored));
    let event_type = Some("order.*".parse().expect("a pattern"));
    let events = EventFilter { source: Some(shop), event_type, ..EventFilter::default() };
    let redelivery = world.redeliver(&RedeliveryPlan { events, ..plan(1, to(world)) }, ALL);
    assert_eq!(progress(&redelivery), (Seq(5), 2, 0, RedeliveryState::Complete));
    assert_eq!(due(world, to(world)), ["wanted", "wanted too"]);
}

fn only_events_of_the_filters_times_are_made_again(world: &mut World) {
    let from = world.now().plus(SECOND);
    for id in ["0", "1", "2", "3"] {
        world.accept_owed(id, &[]);
        world.advance(SECOND);
    }
    let before = Some(from.plus(SECOND * 2));
    let events =
        EventFilter { committed_from: Some(from), committed_before: before, ..EventFilter::default() };
    world.redeliver(&RedeliveryPlan { events, ..plan(1, to(world)) }, ALL);
    assert_eq!(due(world, to(world)), ["1", "2"]);
}

fn of_one_event_nothing_else_is_made_again(world: &mut World) {
    for id in ["1", "2", "3"] {
        world.accept_owed(id, &[]);
    }
    let redelivery = world.redeliver_only(&plan(1, to(world)), Some(Seq(2)), 1);
    assert_eq!(progress(&redelivery), (Seq(2), 1, 0, RedeliveryState::Complete));
    assert_eq!((redelivery.until, due(world, to(world))), (Seq(2), vec!["2".to_owned()]));
    let first = world.redeliver_only(&plan(2, to(world)), Some(Seq(1)), 5);
    assert_eq!(progress(&first), (Seq(1), 1, 0, RedeliveryState::Complete));
    // It counts only when the redelivery is made.
    let again = world.redeliver_only(&plan(1, to(world)), None, 9);
    assert_eq!(again, redelivery);
}

fn of_an_event_that_is_not_there_nothing_is_made(world: &mut World) {
    world.accept_owed("1", &[]);
    for (id, only) in [(1, Seq(0)), (2, Seq(2)), (3, Seq(9_000))] {
        let redelivery = world.redeliver_only(&plan(id, to(world)), Some(only), 5);
        assert_eq!((redelivery.made, redelivery.skipped), (0, 0), "{only:?}");
        assert_eq!(redelivery.state, RedeliveryState::Complete, "{only:?}");
    }
    world.accept_owed("2", &[]);
    assert_eq!(due(world, to(world)), [""; 0]);
}

fn redeliveries_are_listed_by_their_ids(world: &mut World) {
    for id in ["1", "2"] {
        world.accept_owed(id, &[]);
    }
    let made: Vec<_> =
        [(0x80, 1), (3, 9), (0x7f, 1)].map(|(id, step)| world.redeliver(&plan(id, to(world)), step)).into();
    let listed = |state, page: &Page| world.store().list_redeliveries(state, page).expect("a list");
    let all = listed(None, &Page::first(2, Order::OldestFirst));
    assert_eq!((all.items, all.more), (vec![made[1].clone(), made[2].clone()], true));
    let rest = Page::first(2, Order::OldestFirst).after(all.next.expect("a cursor"));
    assert_eq!(listed(None, &rest).items, [made[0].clone()]);
    let running = listed(Some(RedeliveryState::Running), &Page::first(9, Order::NewestFirst));
    assert_eq!((running.items, running.more), (vec![made[0].clone(), made[2].clone()], false));
    let none = listed(Some(RedeliveryState::Cancelled), &Page::first(9, Order::NewestFirst));
    assert_eq!((none.items, none.next), (vec![], None));
}

fn a_step_looks_at_no_more_events_than_asked(world: &mut World) {
    for id in ["1", "2", "3", "4", "5"] {
        world.accept_owed(id, &[]);
    }
    let step = |events_max| progress(&world.redeliver(&plan(1, to(world)), events_max));
    assert_eq!(step(2), (Seq(2), 2, 0, RedeliveryState::Running));
    assert_eq!(step(1), (Seq(3), 3, 0, RedeliveryState::Running));
    assert_eq!(step(2), (Seq(5), 5, 0, RedeliveryState::Complete));
    assert_eq!(due(world, to(world)), ["1", "2", "3", "4", "5"]);
}

fn a_step_looks_at_no_more_events_than_the_maximum(world: &mut World) {
    let source = world.source("shop");
    let accept = |n| world.accepting(&Draft::new(source, format!("evt_{n}"), "{}"));
    world.apply(&(0..=REDELIVERY_STEP_MAX).map(accept).collect::<Vec<_>>());
    let max = u64::from(REDELIVERY_STEP_MAX);
    let step = || progress(&world.redeliver(&plan(1, to(world)), u32::MAX));
    assert_eq!(step(), (Seq(max), max, 0, RedeliveryState::Running));
    assert_eq!(step(), (Seq(max + 1), max + 1, 0, RedeliveryState::Complete));
}

fn a_step_counts_events_that_the_filter_leaves_out(world: &mut World) {
    for id in ["1", "2"] {
        world.accept_owed(id, &[]);
    }
    world.accept(&Draft::new(world.source("bank"), "3", "3"));
    let events = EventFilter { source: Some(world.source("bank")), ..EventFilter::default() };
    let plan = RedeliveryPlan { events, ..plan(1, to(world)) };
    assert_eq!(progress(&world.redeliver(&plan, 2)), (Seq(2), 0, 0, RedeliveryState::Running));
    assert_eq!(progress(&world.redeliver(&plan, 2)), (Seq(3), 1, 0, RedeliveryState::Complete));
}

fn a_step_of_no_events_makes_the_redelivery_and_nothing_else(world: &mut World) {
    for id in ["1", "2"] {
        world.accept_owed(id, &[]);
    }
    let redelivery = world.redeliver(&plan(1, to(world)), 0);
    assert_eq!(progress(&redelivery), (Seq(0), 0, 0, RedeliveryState::Running));
    assert_eq!(redelivery.until, Seq(2));
    assert_eq!(world.claim(to(world), 10), []);
}

fn events_that_came_later_are_never_among_them(world: &mut World) {
    for id in ["1", "2"] {
        world.accept_owed(id, &[]);
    }
    world.redeliver(&plan(1, to(world)), 1);
    world.accept_owed("3", &[]);
    let redelivery = world.redeliver(&plan(1, to(world)), ALL);
    assert_eq!(progress(&redelivery), (Seq(2), 2, 0, RedeliveryState::Complete));
    assert_eq!(due(world, to(world)), ["1", "2"]);
}

fn the_same_id_again_never_starts_over(world: &mut World) {
    let id = done(world, "evt_1");
    let first = world.redeliver(&plan(1, id.destination), ALL);
    world.finish(id.destination);
    world.accept_owed("evt_2", &[]);
    world.advance(SECOND);
    assert_eq!(world.redeliver(&plan(1, id.destination), ALL), first);
    assert_eq!(world.claim(id.destination, 10), []);
    assert_eq!(world.redeliver(&plan(2, id.destination), ALL).made, 2, "another id is another redelivery");
}

fn only_the_id_counts_once_it_is_made(world: &mut World) {
    for id in ["1", "2"] {
        world.accept_owed(id, &[]);
    }
    let (app, billing) = (to(world), world.destination("billing"));
    let first = world.redeliver(&plan(1, app), 1);
    let bank = Some(world.source("bank"));
    let events = EventFilter { source: bank, ..EventFilter::default() };
    let other = RedeliveryPlan { by: "eve".into(), events, fresh_key: true, ..plan(1, billing) };
    let second = world.redeliver(&other, 1);
    assert_eq!((second.plan, second.made_at), (first.plan, first.made_at));
    assert_eq!((due(world, app).len(), due(world, billing).len()), (2, 0));
}

fn a_redelivery_of_nothing_is_complete_at_once(world: &mut World) {
    let redelivery = world.redeliver(&plan(1, to(world)), ALL);
    assert_eq!(progress(&redelivery), (Seq(0), 0, 0, RedeliveryState::Complete));
    world.accept_owed("evt_1", &[]);
    assert_eq!(world.redeliver(&plan(1, to(world)), ALL), redelivery);
}

fn a_cancelled_redelivery_makes_no_more_and_keeps_what_was_made(world: &mut World) {
    for id in ["1", "2", "3"] {
        world.accept_owed(id, &[]);
    }
    world.redeliver(&plan(1, to(world)), 1);
    assert_eq!(world.resolve(Subject::CancelRedelivery(RedeliveryId([1; 16]))), Resolved::Changed);
    let redelivery = world.redeliver(&plan(1, to(world)), ALL);
    assert_eq!(progress(&redelivery), (Seq(1), 1, 0, RedeliveryState::Cancelled));
    assert_eq!(due(world, to(world)), ["1"]);
}

fn only_a_running_redelivery_can_be_cancelled(world: &mut World) {
    for id in ["1", "2"] {
        world.accept_owed(id, &[]);
    }
    let cancel = |id| world.resolve(Subject::CancelRedelivery(RedeliveryId([id; 16])));
    world.redeliver(&plan(1, to(world)), 1);
    world.redeliver(&plan(2, world.destination("billing")), ALL);
    assert_eq!((cancel(1), cancel(1)), (Resolved::Changed, Resolved::Unchanged));
    assert_eq!((cancel(2), cancel(3)), (Resolved::Unchanged, Resolved::Unknown));
}

fn a_redelivery_can_be_read_as_it_stands(world: &mut World) {
    for id in ["1", "2"] {
        world.accept_owed(id, &[]);
    }
    let read = || world.store().redelivery(&RedeliveryId([1; 16])).expect("redeliveries can be read");
    assert_eq!(read(), None);
    let event_type = Some("**".parse().expect("a pattern"));
    let events = EventFilter {
        source: Some(world.source("shop")),
        event_type,
        committed_from: Some(world.now().minus(SECOND)),
        committed_before: Some(world.now().plus(SECOND)),
    };
    let plan = RedeliveryPlan { events, note: "\"n\0te\"".into(), ..fresh(1, to(world)) };
    for _ in 0..2 {
        let answered = world.redeliver(&plan, 1);
        assert_eq!(read(), Some(answered));
    }
    world.redeliver(&fresh(2, to(world)), 1);
    world.resolve(Subject::CancelRedelivery(RedeliveryId([2; 16])));
    let cancelled = world.store().redelivery(&RedeliveryId([2; 16])).expect("redeliveries can be read");
    assert_eq!(cancelled.map(|redelivery| redelivery.state), Some(RedeliveryState::Cancelled));
}

fn a_redelivered_event_is_unfinished_again(world: &mut World) {
    let id = done(world, "evt_1");
    world.redeliver(&plan(1, id.destination), ALL);
    assert!(!world.event(id.event).is_finished());
    assert_eq!(world.erase_finished(world.source("shop")).erased, 0);
    world.finish(id.destination);
    assert!(world.event(id.event).is_finished());
}

fn a_redelivery_waits_while_its_destination_is_paused(world: &mut World) {
    let id = done(world, "evt_1");
    world.resolve(Subject::PauseDestination(id.destination));
    assert_eq!(world.redeliver(&plan(1, id.destination), ALL).made, 1);
    assert_eq!(world.claim(id.destination, 10), []);
    assert_eq!(world.state(again(id, 2)), DeliveryState::Waiting { due: world.now() });
}

fn a_redelivered_delivery_has_attempts_of_its_own(world: &mut World) {
    let id = done(world, "evt_1");
    world.redeliver(&plan(1, id.destination), ALL);
    let lease = world.claim_one(id.destination);
    assert_eq!(lease.attempt, 1);
    let made = super::world::attempt(lease.token, 1, world.now());
    world.settle_as(&lease, Verdict::Done, Some(made.clone()));
    assert_eq!((world.attempts(id), world.attempts(again(id, 2))), (vec![], vec![made]));
}
