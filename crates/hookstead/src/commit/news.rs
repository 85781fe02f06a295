//! Word of commits for whoever waits for work or follows events: that there was something, not what.

use hookstead_core::{Extension, Outcome, RedeliveryState, Resolved, Settled, Settlement, Write, Written};
use tokio::sync::watch;

/// Counts of commits, since the inbox was opened, after which it is worth looking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Commits that stored events.
    pub events: u64,
    /// Commits after which a delivery may be claimed that could not be before, now or at a time to come, or a lease
    /// expires at another time.
    pub work: u64,
}

/// Tells of each commit what is worth looking at, once a commit.
pub(super) fn tell(news: &watch::Sender<News>, writes: &[Write], written: &[Written]) {
    let events = written.iter().any(is_new_event);
    let work = writes.iter().zip(written).any(|(write, written)| may_make_work(write, written));
    if events || work {
        news.send_modify(|news| {
            news.events += u64::from(events);
            news.work += u64::from(work);
        });
    }
}

fn is_new_event(written: &Written) -> bool {
    match written {
        Written::Accepted(receipt) => receipt.outcome == Outcome::Stored,
        Written::Resolved(resolved) => matches!(resolved, Resolved::Revised { .. }),
        _ => false,
    }
}

fn may_make_work(write: &Write, written: &Written) -> bool {
    match written {
        Written::Accepted(receipt) => receipt.outcome == Outcome::Stored && is_owed(write),
        // Nobody who waits for work has to look at what was taken, but the lease's end is a time to come.
        Written::Claimed(leases) => !leases.is_empty(),
        Written::Extended(extension) => matches!(extension, Extension::Extended { .. }),
        Written::Settled(settlement) => {
            matches!(settlement, Settlement::Settled(Settled::Retry { .. } | Settled::Released))
        }
        Written::Redelivered(redelivery) => {
            redelivery.made > 0 || redelivery.state == RedeliveryState::Running
        }
        Written::Resolved(resolved) => matches!(resolved, Resolved::Changed | Resolved::Revised { .. }),
        Written::Swept(swept) => swept.expired > 0,
        Written::Registered(_) => true,
        Written::RunRecorded(_) => false,
    }
}

fn is_owed(write: &Write) -> bool {
    matches!(write, Write::Accept(acceptance) if !acceptance.facts().destinations.is_empty())
}
