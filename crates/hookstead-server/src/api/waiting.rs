//! Waiting for something to come: bounded in time and in number, woken by commits, ended by a stop of the server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hookstead::News;
use hookstead::core::{DestinationNumber, Store, Timestamp};
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::Instant;

use super::error::ApiError;
use super::router::Api;
use crate::config::parse_duration;
use crate::limits::{READ_WAIT, WAIT_LOOK, WAIT_MAX, WAITING_MAX};
use crate::listen::Stop;
use crate::problem::Problem;

/// What the waiting requests share.
pub(crate) struct Waiting {
    places: Semaphore,
    due: Due,
}

impl Waiting {
    /// How many requests wait.
    pub(crate) fn count(&self) -> usize {
        WAITING_MAX - self.places.available_permits()
    }

    pub(crate) fn new() -> Self {
        Self { places: Semaphore::new(WAITING_MAX), due: Due::default() }
    }
}

/// When a destination's next delivery is due, read once a commit for all who wait for it.
#[derive(Default)]
struct Due(Mutex<HashMap<DestinationNumber, Arc<tokio::sync::Mutex<Option<Known>>>>>);

#[derive(Clone, Copy)]
struct Known {
    /// The count of commits that it was read after.
    work: u64,
    due: Option<Timestamp>,
}

impl Due {
    async fn of(
        &self,
        api: &Api,
        destination: DestinationNumber,
        work: u64,
    ) -> Result<Option<Timestamp>, ApiError> {
        // As many entries as there are pull destinations.
        let slot =
            self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(destination).or_default().clone();
        let mut known = slot.lock().await;
        if let Some(known) = *known
            && known.work >= work
        {
            return Ok(known.due);
        }
        let read = move |store: &dyn Store| store.next_due(destination);
        let due = api.reads.read(api.inbox.store(), read).await?;
        *known = Some(Known { work, due });
        Ok(due)
    }
}

/// The counts of commits, and what they were when somebody last began to look.
struct Watched {
    news: watch::Receiver<News>,
    seen: News,
}

impl Watched {
    fn new(news: watch::Receiver<News>) -> Self {
        let seen = *news.borrow();
        Self { news, seen }
    }

    fn see(&mut self) -> News {
        self.seen = *self.news.borrow_and_update();
        self.seen
    }

    /// Waits for counts that are worth another look. They are compared with those from before the last look and not
    /// with the newest: what was committed while somebody looked may be what the look just missed.
    async fn newer(
        &mut self,
        is_worth_it: impl Fn(&News, &News) -> bool,
    ) -> Result<(), watch::error::RecvError> {
        let seen = self.seen;
        self.news.wait_for(|now| is_worth_it(&seen, now)).await.map(drop)
    }
}

/// A request that may wait until an instant.
pub(super) struct Wait<'a> {
    api: &'a Api,
    until: Instant,
    news: Watched,
    stop: watch::Receiver<Stop>,
    place: Option<SemaphorePermit<'a>>,
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    /// It may be worth looking.
    Look,
    /// The time is over.
    Over,
}

/// Reads `wait=20s`; no wait if it is absent.
pub(super) fn wait_of(text: Option<&str>) -> Result<Duration, ApiError> {
    let Some(text) = text else { return Ok(Duration::ZERO) };
    let wait = duration("wait", text)?;
    if wait > WAIT_MAX {
        let detail = format!("`wait` is at most {}", crate::config::format_duration(WAIT_MAX));
        return Err(ApiError::new(Problem::Query, detail));
    }
    Ok(wait)
}

/// Reads a parameter that is a duration.
pub(super) fn duration(name: &str, text: &str) -> Result<Duration, ApiError> {
    parse_duration(text).map_err(|fault| ApiError::new(Problem::Query, format!("`{name}`: `{text}` {fault}")))
}

impl<'a> Wait<'a> {
    /// Subscribes; what is committed from now on wakes it.
    pub(super) fn new(api: &'a Api, wait: Duration) -> Self {
        let (news, stop) = (Watched::new(api.inbox.news()), api.stop.clone());
        Self { api, until: Instant::now() + wait, news, stop, place: None }
    }

    /// The counts of commits as they are now: later ones wake the next wait.
    pub(super) fn seen(&mut self) -> News {
        self.news.see()
    }

    /// Waits until deliveries to the destination are due.
    pub(super) async fn for_work(&mut self, destination: DestinationNumber) -> Result<Woken, ApiError> {
        loop {
            let seen = self.seen();
            // Others may look before it, one after the other. A claim that does not wait looks once all the same.
            let until = self.until.max(Instant::now() + READ_WAIT);
            let due = self.api.waiting.due.of(self.api, destination, seen.work);
            let due = in_time(due, until, &mut self.stop).await?;
            let now = self.api.inbox.clock().now();
            if due.is_some_and(|due| due <= now) {
                return Ok(Woken::Look);
            }
            let due_in = due.map_or(WAIT_LOOK, |due| due.since(now)).min(WAIT_LOOK);
            if self.sleep(due_in, |before, after| before.work != after.work).await? == Woken::Over {
                return Ok(Woken::Over);
            }
        }
    }

    /// Waits until events were stored since they were last [`seen`](Self::seen).
    pub(super) async fn for_events(&mut self) -> Result<Woken, ApiError> {
        self.sleep(WAIT_LOOK, |before, after| before.events != after.events).await
    }

    /// Whether there is time for another look at once.
    pub(super) fn goes_on(&self) -> Result<Woken, ApiError> {
        if Instant::now() >= self.until {
            return Ok(Woken::Over);
        }
        match *self.stop.borrow() {
            Stop::Not => Ok(Woken::Look),
            Stop::Until(_) => Err(Problem::Stopping.into()),
        }
    }

    async fn sleep(
        &mut self,
        longest: Duration,
        is_worth_it: impl Fn(&News, &News) -> bool,
    ) -> Result<Woken, ApiError> {
        if Instant::now() >= self.until {
            return Ok(Woken::Over);
        }
        self.take_place()?;
        let look_at = (Instant::now() + longest).min(self.until);
        tokio::select! {
            newer = self.news.newer(is_worth_it) => match newer {
                Ok(()) => Ok(Woken::Look),
                Err(_) => Err(Problem::Stopping.into()),
            },
            () = tokio::time::sleep_until(look_at) => {
                Ok(if Instant::now() >= self.until { Woken::Over } else { Woken::Look })
            }
            _ = self.stop.wait_for(|stop| *stop != Stop::Not) => Err(Problem::Stopping.into()),
        }
    }

    fn take_place(&mut self) -> Result<(), ApiError> {
        if self.place.is_none() {
            let place = self.api.waiting.places.try_acquire();
            let full = || ApiError::new(Problem::Busy, "as many requests as may wait do so already");
            self.place = Some(place.map_err(|_full| full())?);
        }
        Ok(())
    }
}

/// What a look finds, unless it takes too long or the server stops meanwhile.
async fn in_time<T>(
    look: impl Future<Output = Result<T, ApiError>>,
    until: Instant,
    stop: &mut watch::Receiver<Stop>,
) -> Result<T, ApiError> {
    tokio::select! {
        found = look => found,
        () = tokio::time::sleep_until(until) => Err(Problem::Busy.into()),
        _ = stop.wait_for(|stop| *stop != Stop::Not) => Err(Problem::Stopping.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_look_that_finds_nothing_ends_with_its_time_and_with_the_server() {
        let (stopping, mut stop) = watch::channel(Stop::Not);
        let never = std::future::pending::<Result<(), ApiError>>;
        let now = Instant::now();
        let late = in_time(never(), now, &mut stop).await.unwrap_err();
        assert_eq!(late.code(), "busy");
        let found = in_time(std::future::ready(Ok(1)), now + WAIT_MAX, &mut stop).await.unwrap();
        assert_eq!(found, 1);
        stopping.send_replace(Stop::Until(now));
        let stopped = in_time(never(), now + WAIT_MAX, &mut stop).await.unwrap_err();
        assert_eq!(stopped.code(), "stopping");
    }

    /// Whether the wait is over at once.
    async fn wakes(watched: &mut Watched) -> bool {
        let over = watched.newer(|before, after| before.events != after.events);
        tokio::select! { biased; over = over => over.is_ok(), () = std::future::ready(()) => false }
    }

    #[tokio::test]
    async fn what_is_committed_between_looking_and_sleeping_wakes() {
        let (commits, news) = watch::channel(News::default());
        let mut watched = Watched::new(news);
        watched.see();
        assert!(!wakes(&mut watched).await, "nothing was committed");
        watched.see();
        commits.send_modify(|news| news.events += 1);
        assert!(wakes(&mut watched).await, "the look may have missed it");
        watched.see();
        assert!(!wakes(&mut watched).await, "the next look began after it");
        commits.send_modify(|news| news.work += 1);
        assert!(!wakes(&mut watched).await, "not what is waited for");
    }
}
