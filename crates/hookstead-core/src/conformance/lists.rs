//! Lists: orders, filters, pages, and readers that follow a cursor.

use super::case::list;
use super::draft::Draft;
use super::scene::STATES;
use super::world::{SECOND, World, first_delivery, plan};
use crate::error::StoreError;
use crate::event::Event;
use crate::id::{EventId, SourceNumber};
use crate::query::{ConflictFilter, Cursor, DeliveryFilter, EventFilter, List, Order, PAGE_MAX, Page};
use crate::store::Subject;

list!("lists":
    events_are_listed_in_the_order_of_their_commits_or_against_it,
    pages_of_events_follow_each_other_without_gap_or_overlap,
    pages_of_deliveries_follow_each_other_without_gap_or_overlap,
    pages_of_conflicts_follow_each_other_without_gap_or_overlap,
    a_page_has_at_least_one_item_and_no_more_than_the_maximum,
    there_is_more_exactly_when_there_are_items_beyond_the_page,
    an_empty_list_has_no_cursor,
    an_empty_page_keeps_the_cursor_of_a_follower,
    a_follower_sees_what_is_committed_later,
    a_follower_with_a_filter_sees_what_is_committed_later,
    a_reader_that_goes_back_sees_nothing_newer,
    a_cursor_is_a_place_for_both_orders,
    few_among_many_are_each_found_once,
    a_text_that_is_no_cursor_is_refused,
    events_are_filtered_by_source,
    events_are_filtered_by_type,
    events_are_filtered_by_the_time_of_their_commit,
    all_parts_of_a_filter_must_hold,
    listed_events_are_as_they_are_read_one_by_one,
    deliveries_are_listed_by_event_destination_and_generation,
    deliveries_are_filtered_by_event_destination_and_state,
    conflicts_are_listed_by_event_and_variant,
    conflicts_are_filtered_by_event_and_by_being_open,
    what_does_not_exist_is_an_empty_list,
);

/// Accepts events of these ids, a second apart.
fn accepted(world: &World, source: SourceNumber, ids: &[&str]) -> Vec<EventId> {
    let accept = |id: &&str| {
        world.advance(SECOND);
        world.accept(&Draft::new(source, id, id)).event
    };
    ids.iter().map(accept).collect()
}

fn ids(events: &[Event]) -> Vec<EventId> {
    events.iter().map(|event| event.id).collect()
}

/// What an event filter lets through, as provider event ids.
fn matching(world: &World, filter: &EventFilter) -> Vec<String> {
    let list = world.list_events(filter, &Page::first(100, Order::OldestFirst));
    list.items.iter().map(|event| event.identity.id.to_string()).collect()
}

/// Reads a list to its end in pages of `items_max`. A page may be short, and even empty, without being the last: then too
/// it says where it ended.
fn in_pages<T>(items_max: u16, order: Order, read: impl Fn(&Page) -> List<T>) -> Vec<T> {
    let mut page = Page::first(items_max, order);
    let mut items = Vec::new();
    loop {
        let list = read(&page);
        assert!(list.items.len() <= usize::from(items_max));
        items.extend(list.items);
        if !list.more {
            return items;
        }
        page = page.after(list.next.expect("a page that is not the last ends somewhere"));
    }
}

/// Reads a list in pages of all sizes and in both orders, and compares it with the list in one page.
fn check_pages<T: PartialEq + std::fmt::Debug>(read: impl Fn(&Page) -> List<T>) {
    for order in [Order::OldestFirst, Order::NewestFirst] {
        let whole = read(&Page::first(PAGE_MAX, order)).items;
        assert!(whole.len() > 5, "the case has made something to read");
        for items_max in 1..=7 {
            assert_eq!(in_pages(items_max, order, &read), whole, "{items_max} {order:?}");
        }
    }
    let mut newest_first = read(&Page::first(PAGE_MAX, Order::NewestFirst)).items;
    newest_first.reverse();
    assert_eq!(newest_first, read(&Page::first(PAGE_MAX, Order::OldestFirst)).items);
}

fn events_are_listed_in_the_order_of_their_commits_or_against_it(world: &mut World) {
    let mut expected = accepted(world, world.source("shop"), &["z", "a", "m"]);
    let listed = |order| ids(&world.list_events(&EventFilter::default(), &Page::first(10, order)).items);
    assert_eq!(listed(Order::OldestFirst), expected);
    expected.reverse();
    assert_eq!(listed(Order::NewestFirst), expected);
}

fn pages_of_events_follow_each_other_without_gap_or_overlap(world: &mut World) {
    accepted(world, world.source("shop"), &["a", "b", "c", "d", "e", "f", "g"]);
    check_pages(|page| world.list_events(&EventFilter::default(), page));
}

fn pages_of_deliveries_follow_each_other_without_gap_or_overlap(world: &mut World) {
    let to = ["app", "billing", "search"].map(|name| world.destination(name));
    for id in ["a", "b"] {
        world.accept_owed(id, &to);
    }
    world.finish(to[1]);
    world.redeliver(&plan(1, to[1]), 100);
    check_pages(|page| world.list_deliveries(&DeliveryFilter::default(), page));
}

fn pages_of_conflicts_follow_each_other_without_gap_or_overlap(world: &mut World) {
    let source = world.source("shop");
    for body in ["1", "2", "3", "4"] {
        for id in ["a", "b"] {
            world.accept(&Draft::new(source, id, body));
        }
    }
    check_pages(|page| world.list_conflicts(&ConflictFilter::default(), page));
}

fn a_page_has_at_least_one_item_and_no_more_than_the_maximum(world: &mut World) {
    let source = world.source("shop");
    let accept = |n| world.accepting(&Draft::new(source, format!("evt_{n}"), "{}"));
    world.apply(&(0..=PAGE_MAX).map(accept).collect::<Vec<_>>());
    let length = |items_max| {
        let list = world.list_events(&EventFilter::default(), &Page::first(items_max, Order::NewestFirst));
        (list.items.len(), list.more)
    };
    assert_eq!(length(0), (1, true));
    assert_eq!(length(u16::MAX), (usize::from(PAGE_MAX), true));
}

fn there_is_more_exactly_when_there_are_items_beyond_the_page(world: &mut World) {
    accepted(world, world.source("shop"), &["a", "b", "c"]);
    accepted(world, world.source("bank"), &["d"]);
    let shop = EventFilter { source: Some(world.source("shop")), ..EventFilter::default() };
    for order in [Order::OldestFirst, Order::NewestFirst] {
        let more = |items_max| world.list_events(&shop, &Page::first(items_max, order)).more;
        assert_eq!([2, 3, 4].map(more), [true, false, false], "{order:?}");
    }
}

fn an_empty_list_has_no_cursor(world: &mut World) {
    let list = world.list_events(&EventFilter::default(), &Page::first(10, Order::OldestFirst));
    assert_eq!(list, List { items: vec![], next: None, more: false });
}

fn an_empty_page_keeps_the_cursor_of_a_follower(world: &mut World) {
    accepted(world, world.source("shop"), &["a"]);
    let read = |page: &Page| world.list_events(&EventFilter::default(), page);
    let end = read(&Page::first(10, Order::OldestFirst)).next.expect("the page ended somewhere");
    let nothing_yet = read(&Page::first(10, Order::OldestFirst).after(end.clone()));
    assert_eq!(nothing_yet, List { items: vec![], next: Some(end), more: false });
}

/// Follows a filtered list while events come in, a few at a time, and says what it saw.
fn followed(world: &World, filter: &EventFilter, commits: &[(SourceNumber, &str)]) -> Vec<EventId> {
    let mut page = Page::first(2, Order::OldestFirst);
    let mut seen = Vec::new();
    for (number, (source, id)) in commits.iter().enumerate() {
        accepted(world, *source, &[id]);
        if number % 3 == 2 || number + 1 == commits.len() {
            loop {
                let list = world.list_events(filter, &page);
                seen.extend(ids(&list.items));
                page.after = list.next.or(page.after);
                if !list.more {
                    break;
                }
            }
        }
    }
    seen
}

fn a_follower_sees_what_is_committed_later(world: &mut World) {
    let source = world.source("shop");
    let commits = ["f", "e", "d", "c", "b", "a", "0"].map(|id| (source, id));
    let seen = followed(world, &EventFilter::default(), &commits);
    assert_eq!(seen, ids(&world.events()));
}

fn a_follower_with_a_filter_sees_what_is_committed_later(world: &mut World) {
    let (shop, bank) = (world.source("shop"), world.source("bank"));
    let filter = EventFilter { source: Some(bank), ..EventFilter::default() };
    let commits = [(shop, "a"), (shop, "b"), (shop, "c"), (bank, "d"), (shop, "e"), (bank, "f"), (bank, "g")];
    let seen = followed(world, &filter, &commits);
    let expected: Vec<_> = world.events().iter().filter(|event| filter.matches(event)).cloned().collect();
    assert_eq!((seen.len(), seen), (3, ids(&expected)));
}

fn a_reader_that_goes_back_sees_nothing_newer(world: &mut World) {
    let source = world.source("shop");
    let old = accepted(world, source, &["a", "b", "c"]);
    let page = Page::first(1, Order::NewestFirst);
    let first = world.list_events(&EventFilter::default(), &page);
    accepted(world, source, &["d", "e"]);
    let page = Page { items_max: 10, ..page.after(first.next.expect("the page ended somewhere")) };
    let rest = world.list_events(&EventFilter::default(), &page);
    assert_eq!((ids(&first.items), ids(&rest.items)), (vec![old[2]], vec![old[1], old[0]]));
}

/// So a follower can begin behind the newest event without reading the others.
fn a_cursor_is_a_place_for_both_orders(world: &mut World) {
    let source = world.source("shop");
    let made = accepted(world, source, &["1", "2", "3"]);
    let read = |page: &Page| world.list_events(&EventFilter::default(), page);
    let newest = read(&Page::first(1, Order::NewestFirst));
    let behind = newest.next.expect("the page ended somewhere");
    let none = read(&Page::first(10, Order::OldestFirst).after(behind.clone()));
    assert_eq!((none.items, none.more), (vec![], false));
    let later = accepted(world, source, &["4", "5"]);
    assert_eq!(ids(&read(&Page::first(10, Order::OldestFirst).after(behind)).items), later);
    let first = read(&Page::first(2, Order::OldestFirst)).next.expect("the page ended somewhere");
    assert_eq!(ids(&read(&Page::first(10, Order::NewestFirst).after(first)).items), made[..1]);
}

/// However many rows a store looks at for a page, and wherever its pages end for that.
fn few_among_many_are_each_found_once(world: &mut World) {
    let (shop, to) = (world.source("shop"), world.destination("app"));
    let draft = |n: u16| {
        let event_type = if n % 211 == 7 { "rare" } else { "usual" };
        Draft::new(shop, format!("evt_{n}"), "{}").typed(event_type).owed_to([to])
    };
    world.apply(&(0..1_000).map(|n| world.accepting(&draft(n))).collect::<Vec<_>>());
    let filter =
        EventFilter { event_type: Some("rare".parse().expect("a pattern")), ..EventFilter::default() };
    for event in world.events().iter().filter(|event| filter.matches(event)) {
        world.resolve(Subject::HoldDelivery(first_delivery(event.id, to)));
    }
    let held = DeliveryFilter { state: Some(crate::StateName::Held), ..DeliveryFilter::default() };
    for (order, items_max) in [(Order::OldestFirst, 2), (Order::NewestFirst, 2), (Order::NewestFirst, 100)] {
        let found = in_pages(items_max, order, |page| world.list_events(&filter, page));
        let mut numbers: Vec<_> = found.iter().map(|event| event.seq.0).collect();
        let owed = in_pages(items_max, order, |page| world.list_deliveries(&held, page));
        assert_eq!(owed.iter().map(|delivery| delivery.id.event).collect::<Vec<_>>(), ids(&found));
        numbers.sort_unstable();
        assert_eq!(numbers, [8, 219, 430, 641, 852], "{order:?} {items_max}");
    }
}

fn a_text_that_is_no_cursor_is_refused(world: &mut World) {
    accepted(world, world.source("shop"), &["a"]);
    let cursor: Cursor = "no!cursor".parse().expect("a legal text");
    let page = Page::first(10, Order::OldestFirst).after(cursor);
    let store = world.store();
    let refused = [
        store.list_events(&EventFilter::default(), &page).err(),
        store.list_deliveries(&DeliveryFilter::default(), &page).err(),
        store.list_conflicts(&ConflictFilter::default(), &page).err(),
    ];
    for error in refused {
        assert!(matches!(error, Some(StoreError::Backend { .. })), "{error:?}");
    }
}

fn events_are_filtered_by_source(world: &mut World) {
    let (shop, bank) = (world.source("shop"), world.source("bank"));
    for (source, id) in [(shop, "a"), (bank, "b"), (shop, "c")] {
        accepted(world, source, &[id]);
    }
    let of = |source| matching(world, &EventFilter { source: Some(source), ..EventFilter::default() });
    assert_eq!((of(shop), of(bank)), (vec!["a".into(), "c".into()], vec!["b".to_owned()]));
}

fn events_are_filtered_by_type(world: &mut World) {
    let source = world.source("shop");
    let types = ["order.paid", "order.void", "Order.paid", "order_paid", "order%paid", "", "a*b"];
    for event_type in types {
        world.accept(&Draft::new(source, format!("={event_type}"), "{}").typed(event_type));
    }
    world.accept(&Draft::new(source, "untyped", "{}"));
    let of = |pattern: &str| {
        let event_type = Some(pattern.parse().expect("a pattern"));
        matching(world, &EventFilter { event_type, ..EventFilter::default() })
    };
    assert_eq!(of("order.*"), ["=order.paid", "=order.void"]);
    assert_eq!(of("*.paid"), ["=order.paid", "=Order.paid"]);
    assert_eq!(of("order_paid"), ["=order_paid"], "`_` stands for itself");
    assert_eq!(of("order%paid"), ["=order%paid"], "`%` stands for itself");
    assert_eq!(of("o*r*d"), ["=order.paid", "=order.void", "=order_paid", "=order%paid"]);
    assert_eq!(of("a*b"), ["=a*b"]);
    assert_eq!(of("?rder.paid"), [""; 0]);
    assert_eq!(of("*").len(), 8, "an event without a type too");
    assert_eq!(of("**").len(), 7);
}

fn events_are_filtered_by_the_time_of_their_commit(world: &mut World) {
    let start = world.now();
    accepted(world, world.source("shop"), &["1", "2", "3", "4"]);
    let at = |number| Some(start.plus(SECOND * number));
    let of = |committed_from, committed_before| {
        matching(world, &EventFilter { committed_from, committed_before, ..EventFilter::default() })
    };
    assert_eq!(of(at(2), None), ["2", "3", "4"]);
    assert_eq!(of(None, at(2)), ["1"]);
    assert_eq!(of(at(2), at(4)), ["2", "3"]);
    assert_eq!(of(at(4), at(2)), [""; 0]);
}

fn all_parts_of_a_filter_must_hold(world: &mut World) {
    let (shop, bank) = (world.source("shop"), world.source("bank"));
    let start = world.now();
    for (id, source, event_type) in [("a", shop, "x"), ("b", bank, "x"), ("c", shop, "y"), ("d", shop, "x")] {
        world.accept(&Draft::new(source, id, "{}").typed(event_type));
        world.advance(SECOND);
    }
    let filter = EventFilter {
        source: Some(shop),
        event_type: Some("x".parse().expect("a pattern")),
        committed_from: Some(start),
        committed_before: Some(start.plus(SECOND * 3)),
    };
    assert_eq!(matching(world, &filter), ["a"]);
}

fn listed_events_are_as_they_are_read_one_by_one(world: &mut World) {
    let to = world.destination("app");
    for state in STATES {
        world.delivery_in(state, to);
    }
    world.accept(&Draft::new(world.source("shop"), "evt_done", "other"));
    world.accept_owed("evt_dead", &[]);
    world.erase_finished(world.source("shop"));
    let events = world.events();
    assert_eq!(events.len(), STATES.len());
    for event in events {
        assert_eq!(world.event(event.id), event);
    }
}

fn deliveries_are_listed_by_event_destination_and_generation(world: &mut World) {
    let (app, billing) = (world.destination("app"), world.destination("billing"));
    let [one, two] = ["b", "a"].map(|id| world.accept_owed(id, &[billing, app]).event);
    world.finish(app);
    world.redeliver(&plan(1, app), 100);
    let listed: Vec<_> =
        world.deliveries(&DeliveryFilter::default()).iter().map(|delivery| delivery.id).collect();
    let expected = [one, two].map(|event| {
        let first = first_delivery(event, app);
        [first, crate::DeliveryId { generation: 2, ..first }, first_delivery(event, billing)]
    });
    assert_eq!(listed, expected.concat());
}

fn deliveries_are_filtered_by_event_destination_and_state(world: &mut World) {
    let (app, billing) = (world.destination("app"), world.destination("billing"));
    let ids = STATES.map(|state| world.delivery_in(state, app));
    let both = world.accept_owed("both", &[app, billing]).event;
    let found = |filter: DeliveryFilter| {
        world.deliveries(&filter).iter().map(|delivery| delivery.id).collect::<Vec<_>>()
    };
    for (state, id) in STATES.into_iter().zip(ids).take(4) {
        assert_eq!(found(DeliveryFilter { state: Some(state), ..DeliveryFilter::default() }), [id]);
    }
    let of_both = [app, billing].map(|to| first_delivery(both, to));
    assert_eq!(found(DeliveryFilter { event: Some(both), ..DeliveryFilter::default() }), of_both);
    let destination = Some(billing);
    assert_eq!(found(DeliveryFilter { destination, ..DeliveryFilter::default() }), [of_both[1]]);
    let state = Some(crate::StateName::Waiting);
    let (event, destination) = (None, Some(app));
    assert_eq!(found(DeliveryFilter { event, destination, state }), [ids[4], of_both[0]]);
    let event = Some(ids[0].event);
    assert_eq!(found(DeliveryFilter { event, destination, state }), []);
}

/// Two events of the source `shop` with two conflicts each, made crosswise; the conflicts by event and number.
fn two_with_conflicts(world: &World) -> ([EventId; 2], Vec<(EventId, u16)>) {
    let source = world.source("shop");
    let accept = |id, body| world.accept(&Draft::new(source, id, body)).event;
    let [one, two] = ["b", "a"].map(|id| accept(id, "0"));
    for body in ["1", "2"] {
        for id in ["a", "b"] {
            accept(id, body);
        }
    }
    ([one, two], vec![(one, 1), (one, 2), (two, 1), (two, 2)])
}

fn conflicts(world: &World, filter: &ConflictFilter) -> Vec<(EventId, u16)> {
    let list = world.list_conflicts(filter, &Page::first(100, Order::OldestFirst));
    list.items.iter().map(|conflict| (conflict.event, conflict.variant)).collect()
}

fn conflicts_are_listed_by_event_and_variant(world: &mut World) {
    let (_, expected) = two_with_conflicts(world);
    assert_eq!(conflicts(world, &ConflictFilter::default()), expected);
}

fn conflicts_are_filtered_by_event_and_by_being_open(world: &mut World) {
    let ([one, two], all) = two_with_conflicts(world);
    world.resolve(Subject::DismissConflict { event: one, variant: 1 });
    world.revise(two, 2, &[]);
    let found = |event, open_only| conflicts(world, &ConflictFilter { event, open_only });
    assert_eq!(found(Some(one), false), all[..2]);
    assert_eq!(found(None, true), all[1..3]);
    assert_eq!(found(Some(two), true), all[2..3]);
}

fn what_does_not_exist_is_an_empty_list(world: &mut World) {
    let unknown = SourceNumber(world.source("shop").0 + 1);
    accepted(world, world.source("shop"), &["a"]);
    assert_eq!(matching(world, &EventFilter { source: Some(unknown), ..EventFilter::default() }), [""; 0]);
    let event = Some(EventId::from_bytes([0xee; 16]));
    assert_eq!(world.deliveries(&DeliveryFilter { event, ..DeliveryFilter::default() }), []);
    assert_eq!(conflicts(world, &ConflictFilter { event, open_only: false }), []);
}
