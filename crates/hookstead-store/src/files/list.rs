//! The lists: pages over the tables, with cursors.

use std::ops::Bound;

use hookstead_core::query::QueryError;
use hookstead_core::{
    Conflict, ConflictFilter, Cursor, Delivery, DeliveryFilter, DestinationNumber, Event, EventFilter, List,
    Order, Page, Redelivery, RedeliveryId, RedeliveryState, Seq, StoreError,
};

use super::row::WorkKey;
use super::tables::Tables;

/// A place in a list: up to three numbers, compared in order.
type Place = [u64; 3];

impl Tables {
    pub(super) fn list_events(&self, filter: &EventFilter, page: &Page) -> Result<List<Event>, StoreError> {
        let after = after(page)?;
        let rows = between(&self.events, after.map(|[seq, ..]| Seq(seq)), page.order);
        let matching = rows.filter(|(_, row)| filter.matches(&row.event));
        Ok(paged(matching.map(|(seq, row)| ([seq.0, 0, 0], self.event(row))), page))
    }

    pub(super) fn list_deliveries(
        &self,
        filter: &DeliveryFilter,
        page: &Page,
    ) -> Result<List<Delivery>, StoreError> {
        let after = after(page)?.map(work_key).transpose()?;
        let matching =
            between(&self.work, after, page.order).filter(|(_, delivery)| filter.matches(delivery));
        Ok(paged(matching.map(|(key, delivery)| (place(key), delivery.clone())), page))
    }

    pub(super) fn list_redeliveries(
        &self,
        state: Option<RedeliveryState>,
        page: &Page,
    ) -> Result<List<Redelivery>, StoreError> {
        let after = after(page)?.map(|[first, last, _]| RedeliveryId::from_halves([first, last]));
        let matching = between(&self.redeliveries, after, page.order)
            .filter(|(_, known)| state.is_none_or(|state| state == known.state));
        let placed = |(id, known): (&RedeliveryId, &Redelivery)| {
            let [first, last] = id.halves();
            ([first, last, 0], known.clone())
        };
        Ok(paged(matching.map(placed), page))
    }

    pub(super) fn list_conflicts(
        &self,
        filter: &ConflictFilter,
        page: &Page,
    ) -> Result<List<Conflict>, StoreError> {
        let after = after(page)?;
        let with_conflicts = self.events.values().filter(|row| !row.variants.is_empty());
        let all = with_conflicts.flat_map(|row| {
            let numbers = 1..=u16::try_from(row.variants.len()).unwrap_or(u16::MAX);
            numbers.filter_map(|number| row.conflict(number))
        });
        let mut matching: Vec<_> = all
            .filter(|conflict| filter.matches(conflict))
            .map(|conflict| ([conflict.seq.0, u64::from(conflict.variant), 0], conflict))
            .filter(|(place, _)| is_beyond(place, after.as_ref(), page.order))
            .collect();
        if page.order == Order::NewestFirst {
            matching.reverse();
        }
        Ok(paged(matching.into_iter(), page))
    }
}

/// The rows of a map beyond `after`, in the order of the page.
fn between<'a, K: Ord + Copy, V>(
    map: &'a std::collections::BTreeMap<K, V>,
    after: Option<K>,
    order: Order,
) -> Box<dyn Iterator<Item = (&'a K, &'a V)> + 'a> {
    let beyond = after.map_or(Bound::Unbounded, Bound::Excluded);
    match order {
        Order::OldestFirst => Box::new(map.range((beyond, Bound::Unbounded))),
        Order::NewestFirst => Box::new(map.range((Bound::Unbounded, beyond)).rev()),
    }
}

fn is_beyond(place: &Place, after: Option<&Place>, order: Order) -> bool {
    match (after, order) {
        (None, _) => true,
        (Some(after), Order::OldestFirst) => place > after,
        (Some(after), Order::NewestFirst) => place < after,
    }
}

fn paged<T>(mut items: impl Iterator<Item = (Place, T)>, page: &Page) -> List<T> {
    let listed: Vec<(Place, T)> = items.by_ref().take(page.limit()).collect();
    let more = items.next().is_some();
    let next = listed.last().map(|(place, _)| cursor(*place)).or_else(|| page.after.clone());
    List { items: listed.into_iter().map(|(_, item)| item).collect(), next, more }
}

fn place((Seq(seq), DestinationNumber(destination), generation): &WorkKey) -> Place {
    [*seq, u64::from(*destination), u64::from(*generation)]
}

fn work_key([seq, destination, generation]: Place) -> Result<WorkKey, StoreError> {
    let number = |value: u64| u32::try_from(value).map_err(|_| foreign_cursor());
    Ok((Seq(seq), DestinationNumber(number(destination)?), number(generation)?))
}

fn cursor([a, b, c]: Place) -> Cursor {
    Cursor::from_text(format!("{a}.{b}.{c}"))
}

fn after(page: &Page) -> Result<Option<Place>, StoreError> {
    let Some(cursor) = &page.after else { return Ok(None) };
    let numbers: Result<Vec<u64>, _> = cursor.as_str().split('.').map(str::parse).collect();
    let place = numbers.ok().and_then(|numbers| Place::try_from(numbers).ok());
    place.map(Some).ok_or_else(foreign_cursor)
}

fn foreign_cursor() -> StoreError {
    StoreError::backend("read a cursor", QueryError::Cursor)
}
