//! Reading a list page by page, and finding events and bodies by all their names, on two stores at once.

use std::fmt::Debug;

use super::operation::Listed;
use super::scribe::{Scribe, event_filter, number};
use crate::error::StoreError;
use crate::id::EventId;
use crate::query::{ConflictFilter, DeliveryFilter, EventSelector, List, Page};
use crate::store::Store;

/// Reads a list of both stores in pages; says where they differ.
pub(super) fn compare_pages(
    stores: [&dyn Store; 2],
    list: &Listed,
    page: &Page,
    scribe: &Scribe<'_>,
) -> Result<(), String> {
    match list {
        Listed::Events(events) => {
            let filter = event_filter(events, scribe.now);
            compare(stores, page, |store, page| store.list_events(&filter, page))
        }
        Listed::Deliveries { event: place, to, state } => {
            let filter = DeliveryFilter {
                event: place.map(|place| scribe.event(place)),
                destination: to.map(number),
                state: *state,
            };
            compare(stores, page, |store, page| store.list_deliveries(&filter, page))
        }
        Listed::Conflicts { event: place, open_only } => {
            let filter =
                ConflictFilter { event: place.map(|place| scribe.event(place)), open_only: *open_only };
            compare(stores, page, |store, page| store.list_conflicts(&filter, page))
        }
    }
}

fn compare<T: PartialEq + Debug>(
    stores: [&dyn Store; 2],
    page: &Page,
    read: impl Fn(&dyn Store, &Page) -> Result<List<T>, StoreError>,
) -> Result<(), String> {
    let [mut one, mut two] = [page.clone(), page.clone()];
    loop {
        let (given, expected) = (read(stores[0], &one), read(stores[1], &two));
        let given = given.map_err(|error| format!("a list could not be read: {error:?}"))?;
        let expected = expected.map_err(|error| format!("the memory store failed: {error:?}"))?;
        if (&given.items, given.more) != (&expected.items, expected.more) {
            return Err(format!("a page differs:\n  {given:?}\n  {expected:?}"));
        }
        match (given.more, given.next, expected.next) {
            (false, ..) => return Ok(()),
            (true, Some(after_one), Some(after_two)) => {
                one.after = Some(after_one);
                two.after = Some(after_two);
            }
            (true, ..) => return Err("a page that is not the last has no end".to_owned()),
        }
    }
}

/// Finds every event by each of its names, and compares what a check says.
pub(super) fn compare_names(
    given: &dyn Store,
    expected: &dyn Store,
    events: &[EventId],
) -> Result<(), String> {
    let find = |store: &dyn Store, selector: &EventSelector| {
        store.event(selector).map_err(|error| format!("an event could not be read: {error:?}"))
    };
    let mut selectors = vec![EventSelector::Newest];
    for id in events {
        let Some(event) = find(expected, &EventSelector::Id(*id))? else { continue };
        selectors.push(EventSelector::Id(*id));
        selectors.push(EventSelector::Seq(event.seq));
        selectors.push(EventSelector::Identity(event.identity));
    }
    for selector in &selectors {
        let (one, two) = (find(given, selector)?, find(expected, selector)?);
        if one != two {
            return Err(format!("{selector:?} finds another event:\n  {one:?}\n  {two:?}"));
        }
    }
    let check = |store: &dyn Store| store.check(&mut |_| {}).map_err(|error| format!("check: {error:?}"));
    let (one, two) = (check(given)?, check(expected)?);
    if one != two {
        return Err(format!("the check differs:\n  {one:?}\n  {two:?}"));
    }
    Ok(())
}
