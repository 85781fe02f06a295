//! Reading what is to be delivered, many at once in one call on a thread that may block, and never more bodies at
//! once than the memory that they may take.

use std::sync::Arc;

use bytes::Bytes;
use hookstead_core::{Body, Event, EventSelector, Fetched, Lease, Store, Timestamp};
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
    let memory = memory.clone();
    let take = move |bytes| memory.clone().try_acquire_many_owned(units(bytes)).ok();
    fetch(inbox, leases, take).await
}

/// Reads one event for which there was no memory, once there is.
pub(super) async fn read_one(inbox: &Inbox, memory: &Arc<Semaphore>, lease: Lease) -> Leased {
    let id = lease.delivery.event;
    let event = in_background(inbox, move |store| store.event(&EventSelector::Id(id))).await;
    let bytes = match event.map(|event| event.map_err(|error| error.to_string())) {
        Ok(Ok(Some(event))) => event.body_bytes,
        Ok(Ok(None)) => return unreadable(lease, "there is no such event"),
        Ok(Err(what)) => return unreadable(lease, what),
        Err(Panicked) => return unreadable(lease, PANICKED),
    };
    let Ok(permit) = memory.clone().acquire_many_owned(units(bytes)).await else {
        return unreadable(lease, "the dispatcher has ended");
    };
    let mut permit = Some(permit);
    let spare = lease.clone();
    let mut fetched = fetch(inbox, vec![lease], move |_| permit.take()).await;
    fetched.pop().unwrap_or_else(|| unreadable(spare, "nothing was read"))
}

/// Reads the events of leases in one go. `take` gives the memory for a body of so many bytes, or says that there is none.
async fn fetch(
    inbox: &Inbox,
    leases: Vec<Lease>,
    mut take: impl FnMut(u64) -> Option<OwnedSemaphorePermit> + Send + 'static,
) -> Vec<Leased> {
    let (ids, wall) =
        (leases.iter().map(|lease| lease.delivery.event).collect::<Vec<_>>(), inbox.clock().wall());
    let read = in_background(inbox, move |store| {
        let mut permits: Vec<Option<OwnedSemaphorePermit>> = ids.iter().map(|_| None).collect();
        // The store may ask again about one: then its memory was taken already.
        let fetched = store.fetch(&ids, &mut |at, bytes| {
            let permit = &mut permits[at];
            *permit = permit.take().or_else(|| take(bytes));
            permit.is_some()
        });
        fetched.map(|fetched| fetched.into_iter().zip(permits).collect::<Vec<_>>())
    });
    match read.await {
        Ok(Ok(fetched)) => {
            let each = leases.into_iter().zip(fetched);
            each.map(|(lease, (fetched, permit))| leased(lease, fetched, permit, wall)).collect()
        }
        Ok(Err(error)) => leases.into_iter().map(|lease| unreadable(lease, error.to_string())).collect(),
        Err(Panicked) => leases.into_iter().map(|lease| unreadable(lease, PANICKED)).collect(),
    }
}

/// A read that panicked.
struct Panicked;

/// What is said of it.
const PANICKED: &str = "reading panicked";

async fn in_background<T: Send + 'static>(
    inbox: &Inbox,
    read: impl FnOnce(&dyn Store) -> T + Send + 'static,
) -> Result<T, Panicked> {
    let inbox = inbox.clone();
    tokio::task::spawn_blocking(move || read(inbox.store().as_ref())).await.map_err(|_| Panicked)
}

fn leased(lease: Lease, fetched: Fetched, permit: Option<OwnedSemaphorePermit>, wall: Timestamp) -> Leased {
    match (fetched, permit) {
        (Fetched::Whole(event, Body::Kept(body)), Some(permit)) => {
            Leased::Ready(Box::new(outgoing(lease, *event, body, wall)), permit)
        }
        (Fetched::Whole(_, Body::Erased), _) => Leased::Unreadable(lease, Unread::Erased),
        // A body without memory for it is none that may be kept.
        (Fetched::Whole(_, Body::Kept(_)), None) | (Fetched::TooLarge, _) => Leased::Unread(lease),
        (Fetched::Unknown, _) => unreadable(lease, "there is no such event"),
        (Fetched::Failed(error), _) => unreadable(lease, error.to_string()),
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
