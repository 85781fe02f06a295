//! What whoever works deliveries asks of an inbox: leases, how they end, and what people decide.
//!
//! Each call is a write like an accepted event: it waits in the committer's queue, shares a commit with whatever
//! else is there, and is durable when it returns. Who may call, and what is done with a lease, others know.

use hookstead_core::{
    Claim, Extend, Extension, Lease, Redeliver, Redelivery, Resolve, Resolved, Settle, Settlement, Sweep,
    Swept, Write, Written,
};

use crate::commit::LaneName;
use crate::error::Unavailable;
use crate::inbox::Inbox;

/// One change of one lease, as part of a batch.
#[derive(Clone, Debug)]
pub enum LeaseWrite {
    /// End it.
    Settle(Settle),
    /// Let it end later.
    Extend(Extend),
}

/// What a [`LeaseWrite`] came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseAnswer {
    /// Of [`LeaseWrite::Settle`].
    Settled(Settlement),
    /// Of [`LeaseWrite::Extend`].
    Extended(Extension),
}

impl Inbox {
    /// Takes leases of due deliveries to one destination, in the order of their due times; none if nothing is due or
    /// the destination is paused. They are durable when this returns.
    ///
    /// If the returned future is dropped, leases may be taken all the same; they expire.
    ///
    /// # Errors
    ///
    /// [`Unavailable`]: no lease may be worked; those that were taken all the same expire.
    pub async fn claim(&self, claim: Claim) -> Result<Vec<Lease>, Unavailable> {
        match self.submit(LaneName::Rest, Write::Claim(claim))?.await? {
            Written::Claimed(leases) => Ok(leases),
            other => Err(unexpected("a claim", &other)),
        }
    }

    /// Ends a lease. A lost lease is an answer, not an error.
    ///
    /// # Errors
    ///
    /// [`Unavailable`]: nobody knows whether it is settled. The same call again finds out: a settle that was
    /// committed is answered the same again.
    pub async fn settle(&self, settle: Settle) -> Result<Settlement, Unavailable> {
        match self.submit(LaneName::Rest, Write::Settle(Box::new(settle)))?.await? {
            Written::Settled(settlement) => Ok(settlement),
            other => Err(unexpected("a settle", &other)),
        }
    }

    /// Moves the end of a lease to `lease_for` from now. A lost lease is an answer, not an error.
    ///
    /// # Errors
    ///
    /// [`Unavailable`]: nobody knows; the lease lasts at least until its old end.
    pub async fn extend(&self, extend: Extend) -> Result<Extension, Unavailable> {
        match self.submit(LaneName::Rest, Write::Extend(extend))?.await? {
            Written::Extended(extension) => Ok(extension),
            other => Err(unexpected("an extension", &other)),
        }
    }

    /// Ends and extends many leases behind one another, in one commit as far as they fit into one. There is an answer
    /// for each, in order; one that fails for its own sake leaves its neighbours alone.
    ///
    /// # Errors
    ///
    /// [`Unavailable`]: the queue has no room for all of them, or nothing can be stored. None was queued.
    pub async fn change_leases(
        &self,
        changes: Vec<LeaseWrite>,
    ) -> Result<Vec<Result<LeaseAnswer, Unavailable>>, Unavailable> {
        let write = |change| match change {
            LeaseWrite::Settle(settle) => Write::Settle(Box::new(settle)),
            LeaseWrite::Extend(extend) => Write::Extend(extend),
        };
        let pendings = self.submit_all(LaneName::Rest, changes.into_iter().map(write).collect())?;
        let mut answers = Vec::with_capacity(pendings.len());
        for pending in pendings {
            answers.push(match pending.await {
                Ok(Written::Settled(settlement)) => Ok(LeaseAnswer::Settled(settlement)),
                Ok(Written::Extended(extension)) => Ok(LeaseAnswer::Extended(extension)),
                Ok(other) => Err(unexpected("a change of a lease", &other)),
                Err(unavailable) => Err(unavailable),
            });
        }
        Ok(answers)
    }

    /// Makes a redelivery if its id is new, and continues it by one bounded step.
    ///
    /// # Errors
    ///
    /// [`Unavailable`]: nobody knows; the same call again goes on where the store is.
    pub async fn redeliver(&self, step: Redeliver) -> Result<Redelivery, Unavailable> {
        match self.submit(LaneName::Rest, Write::Redeliver(Box::new(step)))?.await? {
            Written::Redelivered(redelivery) => Ok(redelivery),
            other => Err(unexpected("a redelivery", &other)),
        }
    }

    /// Carries out what a person decided.
    ///
    /// # Errors
    ///
    /// [`Unavailable`]: nobody knows; the same call again finds out.
    pub async fn resolve(&self, resolve: Resolve) -> Result<Resolved, Unavailable> {
        match self.submit(LaneName::Rest, Write::Resolve(Box::new(resolve)))?.await? {
            Written::Resolved(resolved) => Ok(resolved),
            other => Err(unexpected("a decision", &other)),
        }
    }

    /// Takes expired leases away, by one bounded step.
    ///
    /// # Errors
    ///
    /// [`Unavailable`]: nobody knows; the next step finds out.
    pub async fn sweep(&self, sweep: Sweep) -> Result<Swept, Unavailable> {
        match self.submit(LaneName::Rest, Write::Sweep(sweep))?.await? {
            Written::Swept(swept) => Ok(swept),
            other => Err(unexpected("a sweep", &other)),
        }
    }
}

fn unexpected(asked: &str, answer: &Written) -> Unavailable {
    Unavailable::Failed(format!("the store answered {answer:?} to {asked}").into())
}
