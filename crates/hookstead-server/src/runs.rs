//! Runs as the API and the verb `replay` make them: an event by its name, and its receipt as both show it.
//!
//! The rule of a run is the library's ([`hookstead::BlockingInbox::replay`]); here it only gets its event.

use hookstead::core::{EventSelector, RunName, RunOutcome, SourceName, Store};
use hookstead::{BlockingInbox, ReplayError};

use crate::api::view::{RunView, RunsView};
use crate::limits::RUNS_LISTED_MAX;
use crate::lookup::{self, EventName, LookupError};

/// Why there is no receipt. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The name leads to no event, or to several.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// Without its configuration nobody knows what a source's processor reads, and a receipt stays for ever.
    #[error("source `{0}` stands in no configuration, so that nobody knows how its events are processed")]
    SourceNotConfigured(SourceName),
    /// The library's reason.
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

/// Processes an event under a name. Waits on this thread; when it returns, the receipt is durable.
///
/// # Errors
///
/// [`RunError`]; nothing was written.
pub fn replay(inbox: &BlockingInbox, name: &EventName, run: &RunName) -> Result<RunView, RunError> {
    let event = lookup::find(&**inbox.inbox().store(), name)?;
    if inbox.inbox().source(event.source.as_str()).is_none() {
        return Err(RunError::SourceNotConfigured(event.source));
    }
    match inbox.replay(&EventSelector::Id(event.id), run)? {
        RunOutcome::New(receipt) => Ok(RunView::of(&event, &receipt, true)),
        RunOutcome::Known(receipt) => Ok(RunView::of(&event, &receipt, false)),
        RunOutcome::UnknownEvent => Err(ReplayError::UnknownEvent.into()),
    }
}

/// The receipts of an event's runs, by name, without their payloads.
///
/// # Errors
///
/// [`RunError`]; a receipt that belongs to other bytes refuses the whole list.
pub fn list(store: &dyn Store, name: &EventName) -> Result<RunsView, RunError> {
    let event = lookup::find(store, name)?;
    let receipts = store.runs(&event.id).map_err(ReplayError::from)?;
    if let Some(other) = receipts.iter().find(|receipt| receipt.digest != event.digest) {
        let what = "it belongs to other bytes";
        return Err(ReplayError::DamagedReceipt { run: other.run.clone(), what }.into());
    }
    let listed = receipts.iter().take(RUNS_LISTED_MAX).map(|receipt| RunView::listed(&event, receipt));
    Ok(RunsView { runs: listed.collect(), more: receipts.len() > RUNS_LISTED_MAX })
}
