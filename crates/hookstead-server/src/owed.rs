//! What an event is owed to whom, as the API and the verb `events show` tell it.

use hookstead::core::query::PAGE_MAX;
use hookstead::core::{DeliveryFilter, Event, Order, Page, Store, StoreError};

use crate::api::delivery_views;
use crate::api::view::DeliveryView;

/// The deliveries of an event, the oldest first; of very many redeliveries, the first of them.
///
/// # Errors
///
/// The store could not be read.
pub fn owed(store: &dyn Store, event: &Event) -> Result<Vec<DeliveryView>, StoreError> {
    let filter = DeliveryFilter { event: Some(event.id), ..DeliveryFilter::default() };
    let list = store.list_deliveries(&filter, &Page::first(PAGE_MAX, Order::OldestFirst))?;
    delivery_views(store, &store.registry()?, &list.items)
}
