//! Who is told when a commit made work: a destination's workers and claimers, whoever takes expired leases away,
//! whoever follows the events. It is told after the commit and may be told too often; whoever listens subscribes
//! first and looks then, so that nothing falls between. It knows no queue and no store.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hookstead_core::{
    AcceptReceipt, DestinationNumber, Outcome, RedeliveryState, Resolved, Seq, Settled, Settlement, Subject,
    Write, Written,
};
use tokio::sync::watch;

/// Word of what commits made.
#[derive(Default)]
pub(crate) struct Signals {
    work: Mutex<HashMap<DestinationNumber, watch::Sender<()>>>,
    leases: watch::Sender<()>,
    newest: watch::Sender<Option<Seq>>,
}

impl Signals {
    /// Word of every commit after which there may be something to claim for a destination.
    pub(crate) fn work(&self, destination: DestinationNumber) -> watch::Receiver<()> {
        self.senders().entry(destination).or_default().subscribe()
    }

    /// Word of every commit that leased something or moved the end of a lease.
    pub(crate) fn leases(&self) -> watch::Receiver<()> {
        self.leases.subscribe()
    }

    /// The newest event that was committed since the inbox was opened, and word of each that follows.
    pub(crate) fn newest(&self) -> watch::Receiver<Option<Seq>> {
        self.newest.subscribe()
    }

    /// Tells whom a commit concerns.
    pub(crate) fn committed(&self, writes: &[Write], written: &[Written]) {
        let mut made = Made::default();
        writes.iter().zip(written).for_each(|(write, written)| made.note(write, written));
        if made.leased {
            self.leases.send_replace(());
        }
        if made.expired {
            self.senders().values().for_each(|sender| sender.send_replace(()));
        } else if !made.work_for.is_empty() {
            let senders = self.senders();
            for destination in made.work_for {
                if let Some(sender) = senders.get(&destination) {
                    sender.send_replace(());
                }
            }
        }
        if made.newest.is_some() {
            self.newest.send_if_modified(|newest| {
                let is_newer = *newest < made.newest;
                if is_newer {
                    *newest = made.newest;
                }
                is_newer
            });
        }
    }

    /// A map is right at every step, so a panic elsewhere does not spoil it.
    fn senders(&self) -> MutexGuard<'_, HashMap<DestinationNumber, watch::Sender<()>>> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one commit made.
#[derive(Default)]
struct Made {
    work_for: Vec<DestinationNumber>,
    newest: Option<Seq>,
    leased: bool,
    /// Leases of whatever destination were taken away.
    expired: bool,
}

impl Made {
    fn note(&mut self, write: &Write, written: &Written) {
        match (write, written) {
            (
                Write::Accept(acceptance),
                Written::Accepted(AcceptReceipt { outcome: Outcome::Stored, seq, .. }),
            ) => {
                self.event(*seq, &acceptance.facts().destinations);
            }
            (Write::Settle(settle), Written::Settled(Settlement::Settled(settled))) => match settled {
                Settled::Retry { .. } | Settled::Released => self.work(settle.delivery.destination),
                Settled::Done | Settled::Dead(_) => {}
            },
            (Write::Redeliver(step), Written::Redelivered(redelivery))
                if redelivery.state != RedeliveryState::Cancelled =>
            {
                self.work(step.plan.destination);
            }
            (Write::Resolve(resolve), Written::Resolved(resolved)) => {
                self.resolved(&resolve.subject, *resolved);
            }
            (_, Written::Swept(swept)) => self.expired |= swept.expired > 0,
            (_, Written::Claimed(leases)) => self.leased |= !leases.is_empty(),
            (_, Written::Extended(_)) => self.leased = true,
            _ => {}
        }
    }

    fn resolved(&mut self, subject: &Subject, resolved: Resolved) {
        match (subject, resolved) {
            (Subject::AcceptConflict { destinations, .. }, Resolved::Revised { seq, .. }) => {
                self.event(seq, destinations);
            }
            (Subject::LetDeliveryGo(delivery), Resolved::Changed) => self.work(delivery.destination),
            (Subject::ResumeDestination(destination), Resolved::Changed) => self.work(*destination),
            _ => {}
        }
    }

    fn event(&mut self, seq: Seq, destinations: &[DestinationNumber]) {
        self.newest = self.newest.max(Some(seq));
        destinations.iter().for_each(|destination| self.work(*destination));
    }

    fn work(&mut self, destination: DestinationNumber) {
        if !self.work_for.contains(&destination) {
            self.work_for.push(destination);
        }
    }
}
