//! The settler: takes the ends of leases as they come and settles what has come together in one go.

use std::time::Duration;

use hookstead_core::{Settlement, Timestamp, Write, Written};
use tokio::sync::mpsc;

use super::ended::Ended;
use crate::commit::{Health, LaneName};
use crate::error::Unavailable;
use crate::inbox::Inbox;

/// The most ends that wait for the settler. An attempt keeps its slot until its end is among them.
pub(super) const SETTLE_QUEUE_MAX: usize = 1024;

/// The most that are settled in one go: a commit's worth.
const SETTLE_BATCH_MAX: usize = 256;

/// How long the settler waits when the queue to the store is full.
const OVERLOAD_WAIT: Duration = Duration::from_millis(20);

/// How long the settler waits after a failure that a person may have to look at.
const FAILURE_WAIT: Duration = Duration::from_secs(1);

/// How long an end that cannot be committed is kept: as long as a lease lasts beyond its attempt. Then the lease
/// expires and the delivery is tried again, as after a crash.
const KEPT_FOR: Duration = crate::destination::LEASE_MARGIN;

/// Settles until nobody can send any more.
pub(super) async fn run(inbox: Inbox, mut ends: mpsc::Receiver<Ended>) {
    let mut batch = Vec::new();
    while ends.recv_many(&mut batch, SETTLE_BATCH_MAX).await > 0 {
        settle(&inbox, std::mem::take(&mut batch)).await;
    }
}

async fn settle(inbox: &Inbox, mut batch: Vec<Ended>) {
    let until = inbox.clock().now().plus(KEPT_FOR);
    loop {
        let unavailable = match submit(inbox, batch).await {
            Ok(()) => return,
            Err((unavailable, again)) => {
                batch = again;
                unavailable
            }
        };
        if inbox.clock().now() >= until || !is_available_again(inbox, &unavailable, until).await {
            tracing::warn!(
                leases = batch.len(),
                error = %unavailable,
                "ends of leases could not be recorded: the leases will expire and what they were for is tried again"
            );
            return;
        }
    }
}

/// Commits a batch. Of what could not be committed, why and which.
async fn submit(inbox: &Inbox, batch: Vec<Ended>) -> Result<(), (Unavailable, Vec<Ended>)> {
    let writes: Vec<Write> = batch.iter().flat_map(|ended| ended.writes.iter().cloned()).collect();
    let pendings = match inbox.submit_all(LaneName::Rest, writes) {
        Ok(pendings) => pendings,
        Err(unavailable) => return Err((unavailable, batch)),
    };
    let mut answers = pendings.into_iter();
    let mut failed: Option<(Unavailable, Vec<Ended>)> = None;
    for ended in batch {
        let mut problem = None;
        for answer in answers.by_ref().take(ended.writes.len()) {
            match answer.await {
                Ok(written) => note(&ended, &written),
                Err(Unavailable::Damaged(what)) => {
                    tracing::error!(delivery = %ended.lease.delivery, %what, "the record of a delivery is damaged");
                }
                Err(unavailable) => problem = Some(unavailable),
            }
        }
        if let Some(unavailable) = problem {
            failed.get_or_insert((unavailable, Vec::new())).1.push(ended);
        }
    }
    failed.map_or(Ok(()), Err)
}

fn note(ended: &Ended, written: &Written) {
    if let Written::Settled(settlement @ (Settlement::LeaseLost | Settlement::Unknown)) = written {
        let delivery = ended.lease.delivery;
        tracing::info!(%delivery, ?settlement, "a lease had ended before its attempt did");
    }
}

/// Waits until it is worth trying again; `false` if it never will be.
pub(super) async fn is_available_again(inbox: &Inbox, unavailable: &Unavailable, until: Timestamp) -> bool {
    match unavailable {
        Unavailable::Poisoned(_) | Unavailable::Closing => false,
        Unavailable::Overloaded | Unavailable::Late => {
            tokio::time::sleep(OVERLOAD_WAIT).await;
            true
        }
        Unavailable::Failed(_) | Unavailable::Damaged(_) => {
            tokio::time::sleep(FAILURE_WAIT).await;
            true
        }
        Unavailable::Recovering(_) => {
            let mut health = inbox.health();
            let left = until.since(inbox.clock().now());
            let known = tokio::time::timeout(
                left,
                health.wait_for(|health| !matches!(health, Health::Recovering(_))),
            );
            matches!(known.await, Ok(Ok(health)) if *health == Health::Ready)
        }
    }
}
