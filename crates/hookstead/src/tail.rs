//! Following the events: from a place in the order of commits onwards, and then each as it is committed.

use std::time::Duration;

use hookstead_core::{Cursor, Event, EventFilter, List, Order, Page, Seq, StoreError};
use tokio::sync::watch;

use crate::inbox::Inbox;

/// How long a follower waits for word of a new event before it looks all the same: another process may have written.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// The most events that [`Tail::next`] gives at once.
pub const TAIL_PAGE_MAX: u16 = 100;

/// Where a follower begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TailFrom {
    /// With the oldest event.
    Beginning,
    /// With the next event that is committed.
    Now,
    /// Behind the place at which another follower, or an earlier run, was; see [`Tail::cursor`].
    Cursor(Cursor),
}

/// Follows the events of an inbox in the order of their commits: each once, none left out.
pub struct Tail {
    inbox: Inbox,
    filter: EventFilter,
    cursor: Option<Cursor>,
    newest: watch::Receiver<Option<Seq>>,
}

/// Why events cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum TailError {
    /// The store could not be read, or the cursor is none of its cursors.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The thread that read was lost.
    #[error("reading was interrupted")]
    Interrupted,
}

impl Inbox {
    /// Follows the events that a filter takes.
    ///
    /// # Errors
    ///
    /// [`TailError`]: the store cannot be read.
    pub async fn tail(&self, from: TailFrom, filter: EventFilter) -> Result<Tail, TailError> {
        // Subscribe before looking: what is committed from here on is noticed.
        let newest = self.signals().newest();
        let cursor = match from {
            TailFrom::Beginning => None,
            TailFrom::Cursor(cursor) => Some(cursor),
            TailFrom::Now => {
                let page = Page::first(1, Order::NewestFirst);
                read(self, page).await?.next
            }
        };
        Ok(Tail { inbox: self.clone(), filter, cursor, newest })
    }
}

impl Tail {
    /// The next events, at least one and at most `max` (and [`TAIL_PAGE_MAX`]): at once if there are any, else as soon
    /// as there are. If the returned future is dropped, nothing is left out: the next call gives the same events.
    ///
    /// # Errors
    ///
    /// [`TailError`]; the same call again goes on at the same place.
    pub async fn next(&mut self, max: u16) -> Result<Vec<Event>, TailError> {
        loop {
            let events = self.ready(max).await?;
            if !events.is_empty() {
                return Ok(events);
            }
            // Told or not, it looks again; a sender that is gone has closed the inbox, which stays readable.
            drop(tokio::time::timeout(LOOK_INTERVAL, self.newest.changed()).await);
        }
    }

    /// The next events that are there already, possibly none.
    ///
    /// # Errors
    ///
    /// [`TailError`]; the same call again goes on at the same place.
    pub async fn ready(&mut self, max: u16) -> Result<Vec<Event>, TailError> {
        self.newest.mark_unchanged();
        loop {
            let mut page = Page::first(max.clamp(1, TAIL_PAGE_MAX), Order::OldestFirst);
            page.after = self.cursor.clone();
            // The filter is asked here, so that the place moves past what it leaves out.
            let mut list = read(&self.inbox, page).await?;
            if list.next.is_some() {
                self.cursor = list.next;
            }
            list.items.retain(|event| self.filter.matches(event));
            if !list.items.is_empty() || !list.more {
                return Ok(list.items);
            }
        }
    }

    /// The place behind the last events that were given, to go on from later; `None`: the beginning.
    pub fn cursor(&self) -> Option<&Cursor> {
        self.cursor.as_ref()
    }
}

async fn read(inbox: &Inbox, page: Page) -> Result<List<Event>, TailError> {
    let inbox = inbox.clone();
    let read = tokio::task::spawn_blocking(move || inbox.store().list_events(&EventFilter::default(), &page));
    Ok(read.await.map_err(|_| TailError::Interrupted)??)
}
