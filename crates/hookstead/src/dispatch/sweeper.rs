//! The sweeper: takes expired leases away. One works an inbox at a time, however many dispatchers and consumers it
//! has. Without leases it sleeps.

use std::time::Duration;

use hookstead_core::retention::SWEEP_STEP_MAX;
use hookstead_core::{Sweep, Timestamp};
use tokio::sync::watch;

use super::settler::is_available_again;
use crate::error::Unavailable;
use crate::inbox::Inbox;

/// While there are leases, how often is looked when the next one expires: so much later than its end a lease is taken
/// away at the most.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// How long the sweeper waits for a store that is recovering before it looks again.
const RECOVERY_WAIT: Duration = Duration::from_secs(60);

/// Sweeps until it is dropped, or until the inbox can commit nothing any more.
pub(super) async fn run(inbox: Inbox) {
    // The semaphore is never closed.
    let Ok(_alone) = inbox.sweeping().clone().acquire_owned().await else { return };
    let mut leases = inbox.signals().leases();
    loop {
        leases.mark_unchanged();
        match next_expiry(&inbox).await {
            Ok(Some(expiry)) if expiry <= inbox.clock().now() => {
                if !sweep(&inbox).await {
                    return;
                }
            }
            Ok(Some(expiry)) => {
                let left = expiry.since(inbox.clock().now());
                tokio::time::sleep(left.min(LOOK_INTERVAL)).await;
            }
            Ok(None) => {
                if wait_for_leases(&mut leases).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::error!(error, "the end of the next lease cannot be read");
                tokio::time::sleep(LOOK_INTERVAL).await;
            }
        }
    }
}

async fn wait_for_leases(leases: &mut watch::Receiver<()>) -> Result<(), watch::error::RecvError> {
    leases.changed().await
}

/// One step. `false`: the inbox can commit nothing any more.
async fn sweep(inbox: &Inbox) -> bool {
    match inbox.sweep(Sweep { retention: Vec::new(), max: SWEEP_STEP_MAX }).await {
        Ok(swept) => {
            if swept.expired > 0 {
                tracing::info!(leases = swept.expired, "leases expired: what they were for is owed again");
            }
            true
        }
        Err(unavailable) => {
            let until = inbox.clock().now().plus(RECOVERY_WAIT);
            is_available_again(inbox, &unavailable, until).await
                || matches!(unavailable, Unavailable::Recovering(_))
        }
    }
}

async fn next_expiry(inbox: &Inbox) -> Result<Option<Timestamp>, String> {
    let inbox = inbox.clone();
    match tokio::task::spawn_blocking(move || inbox.store().next_expiry()).await {
        Ok(expiry) => expiry.map_err(|error| error.to_string()),
        Err(_) => Err("reading panicked".to_owned()),
    }
}
