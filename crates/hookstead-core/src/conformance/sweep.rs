//! Sweep: what retention erases, what stays of it, and how much one step does.

use super::case::list;
use super::draft::Draft;
use super::scene::STATES;
use super::world::{LEASE, SECOND, World, attempt, first_delivery};
use crate::event::{Body, Event};
use crate::id::{EventId, SourceNumber};
use crate::lease::Verdict;
use crate::query::{DeliveryFilter, EventSelector};
use crate::request::RawHeaders;
use crate::retention::{RetentionRule, SWEEP_STEP_MAX, Swept};
use crate::time::Timestamp;

list!("sweep":
    a_finished_event_loses_its_body_and_headers_and_nothing_else,
    an_event_is_erased_when_it_was_committed_before_the_rules_instant,
    unfinished_events_keep_their_bodies,
    unfinished_events_go_where_the_rule_says_so,
    a_rule_for_unfinished_events_keeps_finished_ones,
    one_unfinished_delivery_keeps_the_body,
    a_rule_applies_to_its_source_alone,
    a_rule_without_instants_erases_nothing,
    variants_lose_their_bodies_with_their_event,
    a_revision_is_kept_and_erased_by_itself,
    deliveries_and_attempts_outlive_the_body,
    the_deliveries_of_an_erased_event_can_still_be_worked,
    an_event_is_erased_once,
    an_event_from_a_clock_that_was_ahead_keeps_no_other,
    the_oldest_events_go_first,
    rules_are_followed_in_their_order,
    expired_leases_count_before_events,
    there_is_more_exactly_when_the_budget_was_used_up,
    a_step_touches_no_more_than_the_maximum,
);

fn rule(source: SourceNumber, finished: Option<Timestamp>, unfinished: Option<Timestamp>) -> RetentionRule {
    RetentionRule { source, finished_before: finished, unfinished_before: unfinished }
}

fn later(world: &World) -> Option<Timestamp> {
    Some(world.now().plus(SECOND))
}

fn is_erased(world: &World, event: EventId) -> bool {
    world.body(event) == Some(Body::Erased)
}

fn a_finished_event_loses_its_body_and_headers_and_nothing_else(world: &mut World) {
    let (source, to) = (world.source("shop"), world.destination("app"));
    let draft = Draft::new(source, "evt_1", "{}").scoped("acct_1").typed("order.paid").owed_to([to]);
    let mut draft = draft.with_header("content-type", b"application/json");
    draft.facts.account = Some("acct_1".into());
    draft.facts.received_from = Some("192.0.2.7:55123".into());
    draft.facts.verified_by = Some("hmac".into());
    let event = world.accept(&draft).event;
    world.accept(&draft);
    world.finish(to);
    let before = world.event(event);
    world.advance(SECOND);
    assert_eq!(world.erase_finished(source), Swept { expired: 0, erased: 1, more: false });
    let tombstone = Event { erased_at: Some(world.now()), headers: RawHeaders::default(), ..before };
    assert_eq!(world.event(event), tombstone);
    assert_eq!(world.body(event), Some(Body::Erased));
    assert_eq!(world.events(), std::slice::from_ref(&tombstone));
    assert_eq!(world.find(&EventSelector::Identity(draft.identity)), Some(tombstone));
}

fn an_event_is_erased_when_it_was_committed_before_the_rules_instant(world: &mut World) {
    let (source, to) = (world.source("shop"), world.destination("app"));
    let old = world.finished("evt_1", to).event;
    let instant = world.now().plus(std::time::Duration::from_micros(1));
    world.advance(std::time::Duration::from_micros(1));
    let young = world.finished("evt_2", to).event;
    assert_eq!(world.sweep_by(vec![rule(source, Some(instant), None)], 10).erased, 1);
    assert_eq!((is_erased(world, old), is_erased(world, young)), (true, false));
}

/// An event in each way of being unfinished: to nobody, and to somebody in each state but done.
fn unfinished(world: &World) -> Vec<EventId> {
    let to = world.destination("app");
    let states = STATES.into_iter().filter(|state| *state != crate::StateName::Done);
    let mut events: Vec<_> = states.map(|state| world.delivery_in(state, to).event).collect();
    events.push(world.accept_owed("evt_nobody", &[]).event);
    events
}

fn unfinished_events_keep_their_bodies(world: &mut World) {
    let events = unfinished(world);
    assert_eq!(world.erase_finished(world.source("shop")), Swept::default());
    assert!(events.iter().all(|event| !is_erased(world, *event)));
}

fn unfinished_events_go_where_the_rule_says_so(world: &mut World) {
    let events = unfinished(world);
    let swept = world.sweep_by(vec![rule(world.source("shop"), None, later(world))], 100);
    assert_eq!(swept.erased, 5);
    assert!(events.iter().all(|event| is_erased(world, *event)));
}

fn a_rule_for_unfinished_events_keeps_finished_ones(world: &mut World) {
    let event = world.finished("evt_1", world.destination("app")).event;
    world.sweep_by(vec![rule(world.source("shop"), None, later(world))], 10);
    assert!(!is_erased(world, event));
}

fn one_unfinished_delivery_keeps_the_body(world: &mut World) {
    let (app, billing) = (world.destination("app"), world.destination("billing"));
    let event = world.accept_owed("evt_1", &[app, billing]).event;
    world.finish(app);
    assert_eq!(world.erase_finished(world.source("shop")).erased, 0);
    world.finish(billing);
    assert_eq!(world.erase_finished(world.source("shop")).erased, 1);
    assert!(is_erased(world, event));
}

fn a_rule_applies_to_its_source_alone(world: &mut World) {
    let to = world.destination("app");
    let event = world.finished("evt_1", to).event;
    assert_eq!(world.erase_finished(world.source("bank")).erased, 0);
    assert!(!is_erased(world, event));
}

fn a_rule_without_instants_erases_nothing(world: &mut World) {
    let source = world.source("shop");
    let event = world.finished("evt_1", world.destination("app")).event;
    world.accept_owed("evt_2", &[]);
    assert_eq!(world.sweep_by(vec![rule(source, None, None)], 10), Swept::default());
    assert_eq!(world.sweep_by(vec![], 10), Swept::default());
    assert!(!is_erased(world, event));
}

fn variants_lose_their_bodies_with_their_event(world: &mut World) {
    let source = world.source("shop");
    let event = world.finished("evt_1", world.destination("app")).event;
    world.accept(&Draft::new(source, "evt_1", "other").with_header("x", b"1"));
    let mut expected = world.conflicts(event);
    world.erase_finished(source);
    assert_eq!(world.variant_body(event, 1), Some(Body::Erased));
    expected[0].headers = RawHeaders::default();
    assert_eq!(world.conflicts(event), expected);
    let again = world.accept(&Draft::new(source, "evt_1", "other"));
    assert_eq!(again.outcome, crate::Outcome::Conflict { variant: Some(1) }, "still recognised");
}

fn a_revision_is_kept_and_erased_by_itself(world: &mut World) {
    let (source, to) = (world.source("shop"), world.destination("app"));
    let first = world.finished("evt_1", to).event;
    world.accept(&Draft::new(source, "evt_1", "other"));
    let revision = world.revise(first, 1, &[to]);
    assert_eq!(world.erase_finished(source).erased, 1);
    assert_eq!(world.body(revision), Some(Body::Kept("other".into())));
    world.finish(to);
    assert_eq!(world.erase_finished(source).erased, 1);
    assert!(is_erased(world, revision));
    let again = world.accept(&Draft::new(source, "evt_1", "other"));
    assert_eq!((again.outcome, again.event), (crate::Outcome::Duplicate, revision));
}

fn deliveries_and_attempts_outlive_the_body(world: &mut World) {
    let to = world.destination("app");
    let id = world.owe("evt_1", to);
    let lease = world.claim_one(to);
    world.settle_as(&lease, Verdict::Done, Some(attempt(lease.token, 1, world.now())));
    let before = (world.deliveries(&DeliveryFilter::default()), world.attempts(id));
    assert_eq!(world.erase_finished(world.source("shop")).erased, 1);
    assert_eq!((world.deliveries(&DeliveryFilter::default()), world.attempts(id)), before);
}

fn the_deliveries_of_an_erased_event_can_still_be_worked(world: &mut World) {
    let to = world.destination("app");
    let event = world.accept_owed("evt_1", &[to]).event;
    world.sweep_by(vec![rule(world.source("shop"), None, later(world))], 10);
    assert!(is_erased(world, event));
    let lease = world.claim_one(to);
    assert_eq!(lease.delivery, first_delivery(event, to));
    world.settle(&lease, Verdict::Done);
    assert!(world.event(event).is_finished());
}

fn an_event_is_erased_once(world: &mut World) {
    let event = world.erased("evt_1", world.destination("app")).event;
    let before = world.event(event);
    world.advance(SECOND);
    assert_eq!(world.erase_finished(world.source("shop")).erased, 0);
    assert_eq!(world.event(event), before);
}

/// It goes itself when its time has come, by whatever clock; until then, what follows it goes all the same.
fn an_event_from_a_clock_that_was_ahead_keeps_no_other(world: &mut World) {
    const DAY: std::time::Duration = std::time::Duration::from_hours(24);
    let source = world.source("shop");
    for (id, days) in [("years", 3_650), ("days", 10)] {
        let accept = world.accepting(&Draft::new(source, id, "{}"));
        world.store().apply(&[accept], world.now().plus(DAY * days)).expect("any time is legal");
    }
    let sweep = |days| {
        let before = world.now().minus(DAY * days);
        world.sweep_by(vec![rule(source, None, Some(before))], 10).erased
    };
    let first = world.accept(&Draft::new(source, "first", "{}")).event;
    world.advance(DAY * 5);
    let second = world.accept(&Draft::new(source, "second", "{}")).event;
    assert_eq!((sweep(3), is_erased(world, first)), (1, true), "both lie ahead");
    world.advance(DAY * 6);
    assert_eq!((sweep(4), is_erased(world, second)), (1, true), "one lies ahead");
    world.advance(DAY * 5);
    assert_eq!((sweep(4), sweep(4)), (1, 0), "its time has come");
}

fn the_oldest_events_go_first(world: &mut World) {
    let (source, to) = (world.source("shop"), world.destination("app"));
    let events = ["b", "c", "a"].map(|id| world.finished(id, to).event);
    for erased in 1..=3 {
        assert_eq!(world.sweep_by(vec![rule(source, later(world), None)], 1).erased, 1);
        let gone: Vec<_> = events.iter().map(|event| is_erased(world, *event)).collect();
        assert_eq!(gone, [0, 1, 2].map(|place| place < erased));
    }
}

fn rules_are_followed_in_their_order(world: &mut World) {
    let (shop, bank) = (world.source("shop"), world.source("bank"));
    let older = world.accept(&Draft::new(shop, "evt_1", "1")).event;
    let newer = world.accept(&Draft::new(bank, "evt_1", "1")).event;
    let rules = vec![rule(bank, None, later(world)), rule(shop, None, later(world))];
    assert_eq!(world.sweep_by(rules.clone(), 1).erased, 1);
    assert_eq!((is_erased(world, older), is_erased(world, newer)), (false, true));
    assert_eq!(world.sweep_by(rules, 1).erased, 1);
    assert!(is_erased(world, older));
}

fn expired_leases_count_before_events(world: &mut World) {
    let (source, to) = (world.source("shop"), world.destination("app"));
    for id in ["a", "b"] {
        world.finished(id, to);
    }
    for id in ["c", "d"] {
        world.owe(id, to);
    }
    assert_eq!(world.claim(to, 2).len(), 2);
    world.advance(LEASE);
    let sweep = |max| world.sweep_by(vec![rule(source, later(world), None)], max);
    assert_eq!(sweep(1), Swept { expired: 1, erased: 0, more: true });
    assert_eq!(sweep(2), Swept { expired: 1, erased: 1, more: true });
    assert_eq!(sweep(2), Swept { expired: 0, erased: 1, more: false });
}

fn there_is_more_exactly_when_the_budget_was_used_up(world: &mut World) {
    let (source, to) = (world.source("shop"), world.destination("app"));
    for id in ["a", "b"] {
        world.finished(id, to);
    }
    let sweep = |max| world.sweep_by(vec![rule(source, later(world), None)], max);
    assert_eq!(sweep(0), Swept { expired: 0, erased: 0, more: true });
    assert_eq!(sweep(2), Swept { expired: 0, erased: 2, more: true });
    assert_eq!(sweep(2), Swept { expired: 0, erased: 0, more: false });
}

fn a_step_touches_no_more_than_the_maximum(world: &mut World) {
    let source = world.source("shop");
    let accept = |n| world.accepting(&Draft::new(source, format!("evt_{n}"), "{}"));
    world.apply(&(0..=SWEEP_STEP_MAX).map(accept).collect::<Vec<_>>());
    let sweep = || world.sweep_by(vec![rule(source, None, later(world))], u32::MAX);
    assert_eq!(sweep(), Swept { expired: 0, erased: SWEEP_STEP_MAX, more: true });
    assert_eq!(sweep(), Swept { expired: 0, erased: 1, more: false });
}
