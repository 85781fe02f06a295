//! Reading one thing: selectors, bodies, counts, the next due time, checks.

use std::time::Duration;

use super::case::list;
use super::draft::Draft;
use super::scene::{STATES, dead};
use super::world::{LEASE, SECOND, World};
use crate::delivery::DeliveryTally;
use crate::event::{Body, Event, Fetched};
use crate::id::{DestinationNumber, EventId, RedeliveryId, Seq};
use crate::lease::Verdict;
use crate::query::{BodySelector, EventSelector};
use crate::store::{CheckReport, Stats, Subject};

list!("read":
    an_event_is_found_by_each_of_its_names,
    the_newest_event_is_the_last_committed,
    an_unknown_event_is_none,
    an_unknown_body_is_none,
    events_are_fetched_with_their_bodies_in_the_order_of_their_ids,
    a_body_that_does_not_fit_is_not_fetched_and_the_others_are,
    an_erased_event_is_fetched_without_its_body,
    an_event_counts_its_deliveries_by_state,
    an_empty_store_counts_nothing,
    events_bodies_deliveries_and_open_conflicts_are_counted,
    a_revision_counts_as_an_event_and_its_conflict_is_no_longer_open,
    nothing_owed_is_nothing_due,
    the_next_due_time_is_the_earliest_wait,
    the_next_due_time_may_lie_in_the_past,
    the_next_due_time_is_the_destinations_own,
    the_next_due_time_is_the_earliest_end_of_a_lease,
    done_dead_and_held_deliveries_are_never_due,
    a_paused_destinations_waits_are_not_due_but_its_leases_are,
    a_healthy_store_passes_its_check,
    a_check_compares_each_body_that_is_kept,
    a_probe_changes_nothing_that_readers_see,
    the_change_mark_rests_while_nobody_writes,
);

fn an_event_is_found_by_each_of_its_names(world: &mut World) {
    world.accept_owed("evt_1", &[]);
    let receipt = world.accept_owed("evt_2", &[]);
    world.accept_owed("evt_3", &[]);
    let event = world.event(receipt.event);
    assert_eq!(event.id, receipt.event);
    assert_eq!(world.find(&EventSelector::Seq(receipt.seq)).as_ref(), Some(&event));
    assert_eq!(world.find(&EventSelector::Identity(event.identity.clone())), Some(event));
}

fn the_newest_event_is_the_last_committed(world: &mut World) {
    for id in ["z", "a", "m"] {
        let event = world.accept_owed(id, &[]).event;
        assert_eq!(world.find(&EventSelector::Newest).map(|newest| newest.id), Some(event));
    }
}

fn an_unknown_event_is_none(world: &mut World) {
    assert_eq!(world.find(&EventSelector::Newest), None);
    world.accept_owed("evt_1", &[]);
    let identity = Draft::new(world.source("bank"), "evt_1", "").identity;
    let strange = EventSelector::Id(EventId::from_bytes([0xee; 16]));
    let selectors =
        [EventSelector::Seq(Seq(0)), EventSelector::Seq(Seq(2)), EventSelector::Seq(Seq(u64::MAX))];
    for selector in selectors.iter().chain([&EventSelector::Identity(identity), &strange]) {
        assert_eq!(world.find(selector), None, "{selector:?}");
    }
}

fn an_unknown_body_is_none(world: &mut World) {
    let event = world.accept_owed("evt_1", &[]).event;
    world.accept(&Draft::new(world.source("shop"), "evt_1", "other"));
    let strange = EventId::from_bytes([0xee; 16]);
    for selector in [
        BodySelector::Event(strange),
        BodySelector::Variant(strange, 1),
        BodySelector::Variant(event, 0),
        BodySelector::Variant(event, 2),
    ] {
        let body = world.store().body(selector).expect("bodies can be read");
        assert_eq!(body, None, "{selector:?}");
    }
    assert_eq!(world.variant_body(event, 1), Some(Body::Kept("other".into())));
}

/// The store's answers, with every body wanted whose length is not `but`.
fn fetch(world: &World, ids: &[EventId], but: u64) -> Vec<Fetched> {
    let mut fits = |at: usize, bytes: u64| {
        assert!(at < ids.len(), "asked about {at} of {}", ids.len());
        bytes != but
    };
    world.store().fetch(ids, &mut fits).expect("events can be fetched")
}

fn whole(fetched: &Fetched) -> (&Event, &Body) {
    match fetched {
        Fetched::Whole(event, body) => (event, body),
        other => panic!("{other:?}"),
    }
}

fn events_are_fetched_with_their_bodies_in_the_order_of_their_ids(world: &mut World) {
    let (source, to) = (world.source("shop"), world.destination("app"));
    // One whose body is longer than what a store may read without asking.
    let bodies = ["1".to_owned(), "2".repeat(200_000), String::new()];
    let ids: Vec<EventId> = (0..)
        .zip(&bodies)
        .map(|(number, body)| {
            world.accept(&Draft::new(source, format!("evt_{number}"), body.as_str()).owed_to([to])).event
        })
        .collect();
    world.accept(&Draft::new(source, "evt_0", "other"));
    let strange = EventId::from_bytes([0xee; 16]);
    let asked = [ids[2], strange, ids[0], ids[1], ids[0]];
    let fetched = fetch(world, &asked, u64::MAX);
    assert_eq!(fetched.len(), asked.len());
    for (fetched, number) in [(0, 2), (2, 0), (3, 1), (4, 0)].map(|(at, number)| (&fetched[at], number)) {
        let (event, body) = whole(fetched);
        assert_eq!(*event, world.event(ids[number]).uncounted());
        assert_eq!(*body, Body::Kept(bodies[number].clone().into()));
    }
    assert!(matches!(fetched[1], Fetched::Unknown), "{:?}", fetched[1]);
    assert!(fetch(world, &[], u64::MAX).is_empty());
}

fn a_body_that_does_not_fit_is_not_fetched_and_the_others_are(world: &mut World) {
    let source = world.source("shop");
    for large in [7, 200_000] {
        let id = |which: &str| format!("{which}_{large}");
        let ids = [
            world.accept(&Draft::new(source, id("small"), "123456")).event,
            world.accept(&Draft::new(source, id("large"), "7".repeat(large).as_str())).event,
            world.accept(&Draft::new(source, id("empty"), "")).event,
        ];
        let fetched = fetch(world, &ids, large as u64);
        assert!(matches!(fetched[1], Fetched::TooLarge), "{:?}", fetched[1]);
        assert_eq!(whole(&fetched[0]).1, &Body::Kept("123456".into()));
        assert_eq!(whole(&fetched[2]).1, &Body::Kept("".into()));
    }
}

fn an_erased_event_is_fetched_without_its_body(world: &mut World) {
    let to = world.destination("app");
    let event = world.erased("gone", to).event;
    let fetched = fetch(world, &[event], u64::MAX);
    assert_eq!(whole(&fetched[0]), (&world.event(event).uncounted(), &Body::Erased));
}

fn an_event_counts_its_deliveries_by_state(world: &mut World) {
    let to = ["a", "b", "c", "d", "e", "f"].map(|name| world.destination(name));
    let event = world.accept_owed("evt_1", &to).event;
    world.claim_one(to[1]);
    world.settle(&world.claim_one(to[2]), Verdict::Done);
    world.settle(&world.claim_one(to[3]), dead());
    world.resolve(Subject::HoldDelivery(super::world::first_delivery(event, to[4])));
    world.settle(&world.claim_one(to[5]), Verdict::Done);
    let tally = DeliveryTally { waiting: 1, leased: 1, done: 2, dead: 1, held: 1 };
    assert_eq!(world.event(event).deliveries, tally);
}

fn stats(world: &World) -> Stats {
    world.store().stats().expect("the counts can be read")
}

fn an_empty_store_counts_nothing(world: &mut World) {
    assert_eq!(stats(world), Stats::default());
}

fn events_bodies_deliveries_and_open_conflicts_are_counted(world: &mut World) {
    let (source, to) = (world.source("shop"), world.destination("app"));
    world.erased("gone", to);
    for state in STATES {
        world.delivery_in(state, to);
    }
    let event = world.accept(&Draft::new(source, "evt_1", "12345")).event;
    for body in ["6", "7"] {
        world.accept(&Draft::new(source, "evt_1", body));
    }
    world.resolve(Subject::DismissConflict { event, variant: 1 });
    let names: usize = STATES.iter().map(|state| "evt_".len() + state.as_str().len()).sum();
    let expected = Stats {
        events: 7,
        erased: 1,
        body_bytes: names as u64 + 5,
        deliveries: DeliveryTally { waiting: 1, leased: 1, done: 2, dead: 1, held: 1 },
        conflicts_open: 1,
    };
    assert_eq!(stats(world), expected);
}

fn a_revision_counts_as_an_event_and_its_conflict_is_no_longer_open(world: &mut World) {
    let event = world.accept_owed("evt_1", &[]).event;
    world.accept(&Draft::new(world.source("shop"), "evt_1", "1234567890"));
    assert_eq!((stats(world).events, stats(world).body_bytes, stats(world).conflicts_open), (1, 5, 1));
    world.revise(event, 1, &[]);
    assert_eq!((stats(world).events, stats(world).body_bytes, stats(world).conflicts_open), (2, 15, 0));
}

fn nothing_owed_is_nothing_due(world: &mut World) {
    assert_eq!(world.next_due(), None);
    world.destination("app");
    world.accept_owed("evt_1", &[]);
    assert_eq!(world.next_due(), None);
}

fn the_next_due_time_is_the_earliest_wait(world: &mut World) {
    let to = world.destination("app");
    let start = world.now();
    for id in ["a", "b", "c"] {
        world.owe(id, to);
    }
    for (lease, wait) in world.claim(to, 3).iter().zip([3, 1, 2]) {
        world.settle(lease, Verdict::Retry { at: start.plus(SECOND * wait) });
    }
    assert_eq!(world.next_due(), Some(start.plus(SECOND)));
    world.advance(SECOND);
    world.claim_one(to);
    assert_eq!(world.next_due(), Some(start.plus(SECOND * 2)));
}

fn the_next_due_time_may_lie_in_the_past(world: &mut World) {
    let due = world.now();
    world.owe("evt_1", world.destination("app"));
    world.advance(Duration::from_hours(24));
    assert_eq!(world.next_due(), Some(due));
}

fn the_next_due_time_is_the_destinations_own(world: &mut World) {
    let (app, billing) = (world.destination("app"), world.destination("billing"));
    let start = world.now();
    world.owe("a", app);
    world.advance(SECOND);
    world.owe("b", billing);
    assert_eq!((world.next_due_to(app), world.next_due_to(billing)), (Some(start), Some(start.plus(SECOND))));
    assert_eq!(world.next_expiry(), None);
    world.claim_one(app);
    assert_eq!((world.next_due_to(app), world.next_due_to(billing)), (None, Some(start.plus(SECOND))));
    assert_eq!(world.next_expiry(), Some(world.now().plus(LEASE)));
    assert_eq!(world.next_due_to(DestinationNumber(99)), None);
}

fn the_next_due_time_is_the_earliest_end_of_a_lease(world: &mut World) {
    let to = world.destination("app");
    for id in ["a", "b"] {
        world.owe(id, to);
    }
    world.claim_for(to, 1, LEASE * 2);
    world.claim_for(to, 1, LEASE);
    assert_eq!(world.next_due(), Some(world.now().plus(LEASE)));
}

fn done_dead_and_held_deliveries_are_never_due(world: &mut World) {
    let to = world.destination("app");
    for state in [crate::StateName::Done, crate::StateName::Dead, crate::StateName::Held] {
        world.delivery_in(state, to);
        assert_eq!(world.next_due(), None, "{state:?}");
    }
}

fn a_paused_destinations_waits_are_not_due_but_its_leases_are(world: &mut World) {
    let (app, billing) = (world.destination("app"), world.destination("billing"));
    for id in ["a", "b"] {
        world.owe(id, app);
    }
    let start = world.now();
    world.claim(app, 1);
    world.resolve(Subject::PauseDestination(app));
    assert_eq!(world.next_due(), Some(start.plus(LEASE)));
    world.advance(SECOND);
    world.owe("c", billing);
    assert_eq!(world.next_due(), Some(start.plus(SECOND)));
    world.resolve(Subject::ResumeDestination(app));
    assert_eq!(world.next_due(), Some(start));
}

fn check(world: &World) -> CheckReport {
    let mut last = None;
    let report = world.store().check(&mut |progress| last = Some(progress)).expect("the check can be made");
    if let Some(progress) = last {
        assert!(progress.done <= report.events, "{progress:?}");
    }
    report
}

fn a_healthy_store_passes_its_check(world: &mut World) {
    assert_eq!(check(world), CheckReport::default());
    let to = world.destination("app");
    for state in STATES {
        world.delivery_in(state, to);
    }
    assert_eq!(check(world), CheckReport { events: 5, bodies: 5, ..CheckReport::default() });
}

fn a_check_compares_each_body_that_is_kept(world: &mut World) {
    let (source, to) = (world.source("shop"), world.destination("app"));
    world.accept_owed("gone", &[to]);
    world.accept(&Draft::new(source, "gone", "other"));
    world.finish(to);
    world.erase_finished(source);
    let event = world.accept(&Draft::new(source, "evt_1", "")).event;
    for body in ["1", "2"] {
        world.accept(&Draft::new(source, "evt_1", body));
    }
    world.revise(event, 1, &[]);
    assert_eq!(check(world), CheckReport { events: 3, bodies: 4, ..CheckReport::default() });
}

fn a_probe_changes_nothing_that_readers_see(world: &mut World) {
    let to = world.destination("app");
    for state in STATES {
        world.delivery_in(state, to);
    }
    let before = world.picture();
    world.advance(SECOND);
    world.store().probe(world.now()).expect("the store can commit");
    assert_eq!(world.picture(), before);
    assert_eq!(world.store().redelivery(&RedeliveryId([0; 16])).expect("redeliveries can be read"), None);
}

fn the_change_mark_rests_while_nobody_writes(world: &mut World) {
    world.accept_owed("evt_1", &[]);
    let changed = || world.store().changed().expect("the mark can be read");
    let first = changed();
    world.events();
    assert_eq!([changed(), changed(), changed()], [first; 3]);
}
