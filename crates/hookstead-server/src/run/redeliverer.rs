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
        let stepped = step_all(&inbox, &stop).await;
        let pause = match stepped {
            // A permit that was given meanwhile is kept, so that nothing is missed.
            Ok(0) => None,
            Ok(_) => continue,
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

/// One step of each that runs; how many there were.
async fn step_all(inbox: &Inbox, stop: &watch::Receiver<bool>) -> Result<usize, Unavailable> {
    let running = running(inbox).await?;
    for redelivery in &running {
        if *stop.borrow() {
            break;
        }
        let step = Redeliver { plan: redelivery.plan.clone(), only: None, events_max: REDELIVERY_STEP };
        let redelivery = inbox.redeliver(step).await?;
        if redelivery.state == RedeliveryState::Complete {
            tracing::info!(
                redelivery.id = %redelivery.plan.id, redelivery.made = redelivery.made,
                redelivery.skipped = redelivery.skipped, "a redelivery is complete"
            );
        }
    }
    Ok(running.len())
}

async fn running(inbox: &Inbox) -> Result<Vec<Redelivery>, Unavailable> {
    let store: Arc<dyn Store> = inbox.store().clone();
    let page = Page::first(AT_ONCE_MAX, Order::OldestFirst);
    let read = move || store.list_redeliveries(Some(RedeliveryState::Running), &page);
    let read: Result<_, StoreError> = match tokio::task::spawn_blocking(read).await {
        Ok(read) => read,
        Err(error) => return Err(Unavailable::Failed(error.to_string().into())),
    };
    read.map(|list| list.items).map_err(|error| Unavailable::from(&error))
}
