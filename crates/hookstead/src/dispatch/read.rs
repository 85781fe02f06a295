//! Reading what is to be delivered, many at once in one call on a thread that may block, and never more bodies at
//! once than the memory that they may take.

use std::sync::Arc;

use bytes::Bytes;
use hookstead_core::{Body, BodySelector, Event, EventSelector, Lease, Store, Timestamp};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::inbox::Inbox;
use crate::sink::Outgoing;

/// What bodies on their way out may take in memory, in units of [`MEMORY_UNIT_BYTES`]: 64 MiB. A single larger body
/// takes all of it.
pub(super) const MEMORY_UNITS: u32 = 1024;

/// The unit in which memory is counted.
const MEMORY_UNIT_BYTES: u64 = 64 * 1024;

/// A delivery on its way to its sink.
#[derive(Debug)]
pub(super) enum Leased {
    /// With its event and body, and the memory that they take.
    Ready(Box<Outgoing>, OwnedSemaphorePermit),
    /// There is no memory for it at the moment.
    Unread(Lease),
    /// It cannot be read, and why.
    Unreadable(Lease, Unread),
}

/// Why an event cannot be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// Its body was erased: no further attempt can help.
    Erased,
    /// It is damaged, or the store cannot be read at the moment.
    Failed(String),
}

/// Reads the events of leases, as far as there is memory for their bodies.
pub(super) async fn read_all(inbox: &Inbox, memory: &Arc<Semaphore>, leases: Vec<Lease>) -> Vec<Leased> {
    let (inbox, memory, wall) = (inbox.clone(), memory.clone(), inbox.clock().wall());
    let spares = leases.clone();
    let read = move || {
        let store = inbox.store().as_ref();
        leases.into_iter().map(|lease| read_if_free(store, &memory, lease, wall)).collect()
    };
    match tokio::task::spawn_blocking(read).await {
        Ok(read) => read,
        Err(_) => spares.into_iter().map(|lease| unreadable(lease, "reading panicked")).collect(),
    }
}

/// Reads one event for which there was no memory, once there is.
pub(super) async fn read_one(inbox: &Inbox, memory: &Arc<Semaphore>, lease: Lease) -> Leased {
    let event = match in_background(inbox, {
        let selector = EventSelector::Id(lease.delivery.event);
        move |store| store.event(&selector)
    })
    .await
    {
        Ok(Some(event)) => event,
        Ok(None) => return unreadable(lease, "there is no such event"),
        Err(what) => return unreadable(lease, what),
    };
    let Ok(permit) = memory.clone().acquire_many_owned(units(event.body_bytes)).await else {
        return unreadable(lease, "the dispatcher has ended");
    };
    let selector = BodySelector::Event(event.id);
    let wall = inbox.clock().wall();
    match in_background(inbox, move |store| store.body(selector)).await {
        Ok(body) => with_body(lease, event, body, permit, wall),
        Err(what) => unreadable(lease, what),
    }
}

async fn in_background<T: Send + 'static>(
    inbox: &Inbox,
    read: impl FnOnce(&dyn Store) -> Result<T, hookstead_core::StoreError> + Send + 'static,
) -> Result<T, String> {
    let inbox = inbox.clone();
    match tokio::task::spawn_blocking(move || read(inbox.store().as_ref())).await {
        Ok(read) => read.map_err(|error| error.to_string()),
        Err(_) => Err("reading panicked".to_owned()),
    }
}

fn read_if_free(store: &dyn Store, memory: &Arc<Semaphore>, lease: Lease, wall: Timestamp) -> Leased {
    let event = match store.event(&EventSelector::Id(lease.delivery.event)) {
        Ok(Some(event)) => event,
        Ok(None) => return unreadable(lease, "there is no such event"),
        Err(error) => return unreadable(lease, error.to_string()),
    };
    let Ok(permit) = memory.clone().try_acquire_many_owned(units(event.body_bytes)) else {
        return Leased::Unread(lease);
    };
    match store.body(BodySelector::Event(event.id)) {
        Ok(body) => with_body(lease, event, body, permit, wall),
        Err(error) => unreadable(lease, error.to_string()),
    }
}

fn with_body(
    lease: Lease,
    event: Event,
    body: Option<Body>,
    permit: OwnedSemaphorePermit,
    wall: Timestamp,
) -> Leased {
    match body {
        Some(Body::Kept(body)) => Leased::Ready(Box::new(outgoing(lease, event, body, wall)), permit),
        Some(Body::Erased) => Leased::Unreadable(lease, Unread::Erased),
        None => unreadable(lease, "there is no such body"),
    }
}

fn outgoing(lease: Lease, event: Event, body: Bytes, now: Timestamp) -> Outgoing {
    Outgoing { source: event.source.clone(), event, body, attempt: lease.attempt, lease, now }
}

fn unreadable(lease: Lease, what: impl Into<String>) -> Leased {
    Leased::Unreadable(lease, Unread::Failed(what.into()))
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(MEMORY_UNIT_BYTES)).unwrap_or(u32::MAX).clamp(1, MEMORY_UNITS)
}
