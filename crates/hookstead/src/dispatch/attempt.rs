//! One attempt of one delivery, from its lease to its end.

use std::sync::Arc;
use std::time::Duration;

use hookstead_core::Lease;

use super::catch::Caught;
use super::ended::Ended;
use super::engine::{Common, Phase};
use super::read::{Leased, Unread, read_one};
use super::slots::Slot;
use super::standing::Post;
use super::worker::Job;
use crate::sink::{Outgoing, Sink, Tried, TriedVerdict};

/// How much longer than its timeout an attempt is waited for: the sink knows better what it was waiting for.
const TIMEOUT_GRACE: Duration = Duration::from_secs(1);

/// What an attempt needs to know.
pub(super) struct Attempting {
    pub(super) common: Common,
    pub(super) job: Arc<Job>,
    pub(super) sink: Arc<dyn Sink>,
    pub(super) post: Arc<Post>,
}

impl Attempting {
    /// Makes the attempt and hands its end to the settler. The slot is held until then.
    pub(super) async fn run(self, leased: Leased, slot: Slot) {
        let counted = self.post.begin();
        let ended = self.ended(leased).await;
        drop(counted);
        if self.common.ends.send(ended).await.is_err() {
            tracing::error!("the settler has ended before the attempts did");
        }
        drop(slot);
    }

    async fn ended(&self, leased: Leased) -> Ended {
        let leased = match leased {
            // In a box of its own: most events have been read by now, and would carry room for it.
            Leased::Unread(lease) => Box::pin(read_one(&self.common.inbox, &self.common.memory, lease)).await,
            read => read,
        };
        match leased {
            Leased::Ready(outgoing, _memory) => self.deliver(&outgoing).await,
            Leased::Unreadable(lease, unread) => self.unreadable(lease, &unread),
            Leased::Unread(lease) => self.released(lease),
        }
    }

    async fn deliver(&self, outgoing: &Outgoing) -> Ended {
        let lease = &outgoing.lease;
        if !self.may_begin(lease) {
            return self.released(lease.clone());
        }
        let started_at = self.common.inbox.clock().now();
        let mut phase = self.common.phase.clone();
        let tried = tokio::select! {
            biased;
            tried = self.tried(outgoing) => tried,
            _ = phase.wait_for(|phase| *phase == Phase::Abandoning) => return self.released(lease.clone()),
        };
        let now = self.common.inbox.clock().now();
        let changed = self.post.circuit().found(lease.delivery, tried.target, now);
        if let Some(state) = changed {
            let destination = self.job.route.name();
            tracing::warn!(%destination, circuit = ?state, error = tried.error, "the circuit of a destination changed");
        }
        let policy = &self.job.route.destination().options().retry;
        Ended::tried(lease.clone(), tried, policy, started_at, now)
    }

    /// What the sink says, within the timeout and whatever it does.
    async fn tried(&self, outgoing: &Outgoing) -> Tried {
        let timeout = self.job.route.destination().timeout();
        match tokio::time::timeout(timeout + TIMEOUT_GRACE, Caught(self.sink.deliver(outgoing))).await {
            Ok(Ok(tried)) => tried,
            Ok(Err(panic)) => Tried::retry("panic", panic),
            Err(_) => Tried::down("timeout", format!("no answer within {} s", timeout.as_secs())),
        }
    }

    /// Not after the target was found down, not while everything stops, and not under a lease that would end before
    /// the attempt does.
    fn may_begin(&self, lease: &Lease) -> bool {
        let left = lease.expires_at.since(self.common.inbox.clock().now());
        *self.common.phase.borrow() == Phase::Working
            && left > self.job.route.destination().timeout() + TIMEOUT_GRACE
            && self.post.circuit().lets(&lease.delivery)
    }

    fn released(&self, lease: Lease) -> Ended {
        self.post.circuit().given_back(&lease.delivery);
        Ended::released(lease)
    }

    /// It says nothing of the target, and stops nobody else.
    fn unreadable(&self, lease: Lease, unread: &Unread) -> Ended {
        self.post.circuit().given_back(&lease.delivery);
        let tried = match unread {
            Unread::Erased => {
                Tried::new(TriedVerdict::Dead("its body was erased by retention".to_owned()), "erased")
            }
            Unread::Failed(what) => Tried::retry("unreadable", what.clone()),
        };
        tracing::error!(delivery = %lease.delivery, ?unread, "an event that is owed cannot be read");
        let now = self.common.inbox.clock().now();
        Ended::tried(lease, tried, &self.job.route.destination().options().retry, now, now)
    }
}
