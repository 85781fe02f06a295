//! Processing an event while no server runs: the inbox is opened with the configured sources, since a source's
//! provider decides what is read from a body, and closed again. The store's lock is held in between.

use anyhow::Result;
use hookstead::ReplayError;
use hookstead_core::RunName;
use hookstead_server::api::view::RunView;
use hookstead_server::lookup::EventName;
use hookstead_server::runs::{self, RunError};
use hookstead_server::{Config, StartError, open_inbox};

use super::offline::{exists, not_found, refused};
use crate::refusal::{damaged, erased, no_event, not_configured, receipt_damaged, unreadable};

/// Processes the event and closes the inbox.
pub(super) fn offline(config: &Config, selector: &str, run: &RunName) -> Result<RunView> {
    let name = EventName::parse(selector.as_bytes()).filter(|_| exists(config));
    let name = name.ok_or_else(|| no_event(selector, None))?;
    let inbox = open_inbox(config, config.server.intake).map_err(not_opened)?;
    let receipt = runs::replay(&inbox.blocking(), &name, run);
    // What was acknowledged is durable already; a store that cannot be closed is still worth a word.
    let closed = inbox.close();
    let receipt = receipt.map_err(|error| failure(selector, error))?;
    closed?;
    Ok(receipt)
}

fn not_opened(error: StartError) -> anyhow::Error {
    match error {
        StartError::Open(hookstead::OpenError::Store(error)) => refused(&error).into(),
        other => other.into(),
    }
}

fn failure(selector: &str, error: RunError) -> anyhow::Error {
    let said = error.to_string();
    match error {
        RunError::Lookup(error) => not_found(selector, error),
        RunError::SourceNotConfigured(_) => not_configured(&said).into(),
        RunError::Replay(ReplayError::UnknownEvent) => no_event(selector, None).into(),
        RunError::Replay(ReplayError::Erased) => erased(selector).into(),
        RunError::Replay(ReplayError::Unreadable(_)) => unreadable(selector, &said).into(),
        RunError::Replay(ReplayError::DamagedReceipt { .. }) => receipt_damaged(&said).into(),
        RunError::Replay(ReplayError::Store(hookstead_core::StoreError::Corrupt { .. })) => {
            damaged(selector).into()
        }
        RunError::Replay(other) => other.into(),
    }
}
