//! Accepting the other bytes of a conflict: whom the new event is owed to is read from the configuration, as for every
//! other event.

use hookstead_core::{
    Body, BodySelector, Decision, DestinationNumber, EventId, EventSelector, Resolve, Resolved, StoreError,
    Subject,
};

use crate::error::Unavailable;
use crate::inbox::Inbox;
use crate::receive::new_event_id;

/// Why a conflict could not be decided. Nothing changed, or nobody knows; the same call again finds out.
#[derive(Debug, thiserror::Error)]
pub enum ConflictError {
    /// The other bytes cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nothing can be recorded at the moment.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The thread that read was lost.
    #[error("reading was interrupted")]
    Interrupted,
}

impl Inbox {
    /// Makes an event of a conflict's bytes, which revises the first, with the deliveries that the configuration of this
    /// moment wants, in one commit.
    ///
    /// [`Resolved::Unknown`]: there is no such conflict; [`Resolved::Unchanged`]: it was decided before, or its bytes
    /// are gone.
    ///
    /// # Errors
    ///
    /// [`ConflictError`].
    pub async fn accept_conflict(
        &self,
        event: EventId,
        variant: u16,
        decision: Decision,
    ) -> Result<Resolved, ConflictError> {
        let inbox = self.clone();
        let wanted = tokio::task::spawn_blocking(move || wanted(&inbox, event, variant)).await;
        let Some(wanted) = wanted.map_err(|_| ConflictError::Interrupted)?? else {
            return Ok(Resolved::Unknown);
        };
        let Some(destinations) = wanted else { return Ok(Resolved::Unchanged) };
        let revision = new_event_id(self.clock().now(), event.bucket())?;
        let subject = Subject::AcceptConflict { event, variant, revision, destinations };
        Ok(self.resolve(Resolve { subject, decision }).await?)
    }
}

/// Whom a variant is owed to: nothing if there is none, and nothing within if its bytes are gone.
fn wanted(
    inbox: &Inbox,
    event: EventId,
    variant: u16,
) -> Result<Option<Option<Vec<DestinationNumber>>>, StoreError> {
    let Some(first) = inbox.store().event(&EventSelector::Id(event))? else { return Ok(None) };
    let Some(body) = inbox.store().body(BodySelector::Variant(event, variant))? else { return Ok(None) };
    let Body::Kept(body) = body else { return Ok(Some(None)) };
    let routes = inbox.routes().now();
    Ok(Some(Some(routes.wanted(&first.source, first.event_type.as_deref(), &body))))
}
