//! Carries redeliveries on, step by step, until each has looked at all of its events. It begins with those that a
//! stop or a crash left unfinished.

use std::sync::Arc;
use std::time::Duration;

use hookstead::core::{Order, Page, Redeliver, Redelivery, RedeliveryState, Store, StoreError};
use hookstead::{Inbox, Unavailable};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::limits::REDELIVERY_STEP;

/// Redeliveries that take turns; of more, the others wait until one of these has ended.
const AT_ONCE_MAX: u16 = 16;

/// How long it waits after a step that could not be stored.
const PAUSE: Duration = Duration::from_secs(1);

/// The task and its switch.
pub(super) struct Redeliverer {
    stop: watch::Sender<bool>,
    handle: JoinHandle<()>,
}

impl Redeliverer {
    /// Starts it; `new` tells it of a redelivery that was asked for.
    pub(super) fn start(inbox: Inbox, new: Arc<Notify>) -> Self {
        let (stop, stopped) = watch::channel(false);
        Self { stop, handle: tokio::spawn(run(inbox, new, stopped)) }
    }

    /// Ends it after the step that it is at.
    pub(super) async fn end(self) {
        self.stop.send_replace(true);
        if let Err(error) = self.handle.await {
            tracing::error!(error = %error, "the redeliverer did not end in order");
        }
    }
}

async fn run(inbox: Inbox, new: Arc<Notify>, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        let pause = match step_all(&inbox, &new, &stop).await {
            // A permit that was given meanwhile is kept, so that nothing is missed.
            Ok(()) => None,
            Err(error) => {
                tracing::warn!(error = %error, "redeliveries wait: a step could not be stored");
                Some(PAUSE)
            }
        };
        let wake = async {
            match pause {
                Some(pause) => tokio::time::sleep(pause).await,
                None => new.notified().await,
            }
        };
        tokio::select! {
            () = wake => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

/// Steps those that run, in turns, until none does.
async fn step_all(inbox: &Inbox, new: &Notify, stop: &watch::Receiver<bool>) -> Result<(), Unavailable> {
    let mut running = look(inbox).await?;
    while !running.is_empty() {
        let taken = running.len();
        let mut still = Vec::with_capacity(taken);
        for redelivery in running {
            if *stop.borrow() {
                return Ok(());
            }
            still.extend(step(inbox, redelivery).await?);
        }
        running = still;
        // A look passes by everything that ever ended, so there is none where it could bring nothing new.
        if running.len() < taken || was_told(new).await {
            running = look(inbox).await?;
        }
    }
    Ok(())
}

/// One step; what it was of, if it still runs.
async fn step(inbox: &Inbox, redelivery: Redelivery) -> Result<Option<Redelivery>, Unavailable> {
    let step = Redeliver { plan: redelivery.plan, only: None, events_max: REDELIVERY_STEP };
    let redelivery = inbox.redeliver(step).await?;
    if redelivery.state == RedeliveryState::Complete {
        tracing::info!(
            redelivery.id = %redelivery.plan.id, redelivery.made = redelivery.made,
            redelivery.skipped = redelivery.skipped, "a redelivery is complete"
        );
    }
    Ok((redelivery.state == RedeliveryState::Running).then_some(redelivery))
}

/// Whether a redelivery was asked for since one was last heard of.
async fn was_told(new: &Notify) -> bool {
    tokio::select! {
        biased;
        () = new.notified() => true,
        () = std::future::ready(()) => false,
    }
}

async fn look(inbox: &Inbox) -> Result<Vec<Redelivery>, Unavailable> {
    let store: Arc<dyn Store> = inbox.store().clone();
    match tokio::task::spawn_blocking(move || running(&*store)).await {
        Ok(read) => read.map_err(|error| Unavailable::from(&error)),
        Err(error) => Err(Unavailable::Failed(error.to_string().into())),
    }
}

/// Those that run, at most as many as take turns. Ended ones are kept and a page ends after so many rows, whatever
/// they are: one without any that runs is not the last.
fn running(store: &dyn Store) -> Result<Vec<Redelivery>, StoreError> {
    let mut page = Page::first(AT_ONCE_MAX, Order::OldestFirst);
    let mut running = Vec::new();
    loop {
        let list = store.list_redeliveries(Some(RedeliveryState::Running), &page)?;
        running.extend(list.items);
        match list.next {
            Some(next) if list.more && running.len() < usize::from(AT_ONCE_MAX) => page = page.after(next),
            _ => {
                running.truncate(usize::from(AT_ONCE_MAX));
                return Ok(running);
            }
        }
    }
}
