//! Everything that readers see of a store, taken at one moment and comparable with another moment or store.

use std::fmt::Debug;

use crate::attempt::Attempt;
use crate::delivery::Delivery;
use crate::event::{Body, Conflict, Event};
use crate::id::{DeliveryId, DestinationNumber, EventId, RedeliveryId};
use crate::query::{BodySelector, ConflictFilter, DeliveryFilter, EventFilter, List, Order, PAGE_MAX, Page};
use crate::redelivery::Redelivery;
use crate::run::RunReceipt;
use crate::store::{Registry, Stats, Store};
use crate::time::Timestamp;

/// What a store shows. Of the redeliveries, those that were asked for.
#[derive(Debug, PartialEq)]
pub(super) struct Picture {
    pub(super) registry: Registry,
    stats: Stats,
    pub(super) next_due: Vec<(DestinationNumber, Option<Timestamp>)>,
    pub(super) next_expiry: Option<Timestamp>,
    pub(super) events: Vec<Event>,
    bodies: Vec<(EventId, Option<Body>)>,
    pub(super) deliveries: Vec<Delivery>,
    pub(super) attempts: Vec<(DeliveryId, Vec<Attempt>)>,
    pub(super) conflicts: Vec<Conflict>,
    variant_bodies: Vec<(EventId, u16, Option<Body>)>,
    runs: Vec<RunReceipt>,
    redeliveries: Vec<Option<Redelivery>>,
}

impl Picture {
    pub(super) fn of(store: &dyn Store, redeliveries: &[RedeliveryId]) -> Self {
        let events = every(|page| store.list_events(&EventFilter::default(), page).expect("events"));
        let deliveries =
            every(|page| store.list_deliveries(&DeliveryFilter::default(), page).expect("deliveries"));
        let conflicts =
            every(|page| store.list_conflicts(&ConflictFilter::default(), page).expect("conflicts"));
        let body = |selector| store.body(selector).expect("a body");
        let registry = store.registry().expect("the registry");
        let due = |number| (number, store.next_due(number).expect("the next due time"));
        Self {
            stats: store.stats().expect("the counts"),
            next_due: registry.destinations.iter().map(|row| due(row.number)).collect(),
            next_expiry: store.next_expiry().expect("the next end of a lease"),
            registry,
            bodies: events.iter().map(|event| (event.id, body(BodySelector::Event(event.id)))).collect(),
            attempts: deliveries
                .iter()
                .map(|delivery| (delivery.id, store.attempts(&delivery.id).expect("attempts")))
                .collect(),
            variant_bodies: conflicts
                .iter()
                .map(|Conflict { event, variant, .. }| {
                    (*event, *variant, body(BodySelector::Variant(*event, *variant)))
                })
                .collect(),
            runs: events.iter().flat_map(|event| store.runs(&event.id).expect("runs")).collect(),
            redeliveries: redeliveries.iter().map(|id| store.redelivery(id).expect("a redelivery")).collect(),
            events,
            deliveries,
            conflicts,
        }
    }

    /// Where two pictures differ, for people: the part, then what only this one shows, then what only the
    /// other one shows.
    pub(super) fn differences(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        macro_rules! compare {
            ($of:path: $($part:ident),+) => {
                $(found.extend($of(stringify!($part), &self.$part, &other.$part));)+
            };
        }
        compare!(of_values: registry, stats, next_due, next_expiry);
        compare!(of_lists: events, bodies, deliveries, attempts, conflicts, variant_bodies, runs, redeliveries);
        found
    }
}

fn of_values<T: PartialEq + Debug>(part: &str, one: &T, two: &T) -> Option<String> {
    (one != two).then(|| format!("{part}:\n  {one:?}\n  {two:?}"))
}

fn of_lists<T: PartialEq + Debug>(part: &str, one: &[T], two: &[T]) -> Option<String> {
    if one == two {
        return None;
    }
    let only = |these: &[T], those: &[T]| {
        let items = these.iter().filter(|item| !those.contains(item));
        items.map(|item| format!("\n    {item:?}")).collect::<String>()
    };
    Some(format!("{part}:\n  only the first:{}\n  only the second:{}", only(one, two), only(two, one)))
}

/// Follows a list to its end.
fn every<T>(mut read: impl FnMut(&Page) -> List<T>) -> Vec<T> {
    let mut page = Page::first(PAGE_MAX, Order::OldestFirst);
    let mut items = Vec::new();
    loop {
        let list = read(&page);
        items.extend(list.items);
        match list.next {
            Some(cursor) if list.more => page = page.after(cursor),
            _ => return items,
        }
    }
}
