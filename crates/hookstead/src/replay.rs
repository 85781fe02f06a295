//! Runs: processing an event under a name, with a receipt that stays (contract R50 to R55).

use bytes::Bytes;
use hookstead_core::{
    Body, BodySelector, Event, EventSelector, RecordRun, RunName, RunOutcome, RunReceipt, StoreError, Write,
    Written,
};
use hookstead_verify::Processor;

use crate::commit::LaneName;
use crate::error::Unavailable;
use crate::processor::{self, Business, Unreadable};
use crate::record::BlockingInbox;

/// Why a run was not recorded. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// No such event was ever accepted.
    #[error("no such event was ever accepted")]
    UnknownEvent,
    /// The event's body is gone, and the processor needs it.
    #[error("the event's body was erased by retention, so that it cannot be processed again")]
    Erased,
    /// The processor cannot read the event's body.
    #[error("the processor cannot read the event: {0}")]
    Unreadable(#[from] Unreadable),
    /// The receipt of an earlier run does not fit its event. It is neither returned nor overwritten.
    #[error("the receipt of run `{run}` is damaged: {what}")]
    DamagedReceipt {
        /// The run.
        run: RunName,
        /// What does not fit.
        what: &'static str,
    },
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The run cannot be recorded at the moment.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl BlockingInbox {
    /// Processes an accepted event under the name `run` and returns the receipt.
    ///
    /// The first time the receipt is [`RunOutcome::New`], and durable when this returns. The same event and
    /// run again give the same receipt, unchanged, as [`RunOutcome::Known`]; another run gives another one.
    /// A receipt that does not fit its event fails closed.
    ///
    /// Events of a `signed-inbox` source are read by its processor: the receipt holds their `eventId` and the
    /// bytes of their `data`. For other providers it holds event, digest, run and time.
    ///
    /// # Errors
    ///
    /// [`ReplayError`]; nothing was written then.
    pub fn replay(&self, event: &EventSelector, run: &RunName) -> Result<RunOutcome, ReplayError> {
        let store = self.inbox().store();
        let event = store.event(event)?.ok_or(ReplayError::UnknownEvent)?;
        let known = store.runs(&event.id)?.into_iter().find(|receipt| receipt.run == *run);
        if let Some(receipt) = known {
            return self.checked(&event, receipt).map(RunOutcome::Known);
        }
        let business = self.process(&event)?;
        let record = RecordRun {
            event: event.id,
            run: run.clone(),
            business_id: business.as_ref().map(|business| business.id.clone()),
            payload: business.map(|business| business.payload),
        };
        match self.inbox().submit(LaneName::Rest, Write::RecordRun(Box::new(record)))?.wait()? {
            Written::RunRecorded(RunOutcome::Known(receipt)) => {
                self.checked(&event, receipt).map(RunOutcome::Known)
            }
            Written::RunRecorded(RunOutcome::UnknownEvent) => Err(ReplayError::UnknownEvent),
            Written::RunRecorded(new) => Ok(new),
            other => Err(Unavailable::Failed(format!("the store answered {other:?} to a run").into()).into()),
        }
    }

    /// A receipt as it was kept, if it fits its event in every part.
    fn checked(&self, event: &Event, receipt: RunReceipt) -> Result<RunReceipt, ReplayError> {
        let damaged = |what| ReplayError::DamagedReceipt { run: receipt.run.clone(), what };
        if receipt.event != event.id || receipt.digest != event.digest {
            return Err(damaged("it belongs to another event"));
        }
        let business = match self.process(event) {
            Ok(business) => business,
            // The body may go; the receipt stays.
            Err(ReplayError::Erased) => return Ok(receipt),
            Err(error) => return Err(error),
        };
        if receipt.business_id.as_deref() != business.as_ref().map(|business| business.id.as_str()) {
            return Err(damaged("it names another business event"));
        }
        if receipt.payload != business.map(|business| business.payload) {
            return Err(damaged("its payload is not the event's"));
        }
        Ok(receipt)
    }

    /// What the processor of the event's source reads from its body; nothing if the source has none.
    fn process(&self, event: &Event) -> Result<Option<Business>, ReplayError> {
        let source = self.inbox().source(event.source.as_str());
        match source.and_then(|source| source.processor()) {
            None => Ok(None),
            Some(Processor::EventIdAndData) => Ok(Some(processor::read(&self.body(event)?)?)),
        }
    }

    fn body(&self, event: &Event) -> Result<Bytes, ReplayError> {
        match self.inbox().store().body(BodySelector::Event(event.id))? {
            Some(Body::Kept(body)) => Ok(body),
            Some(Body::Erased) => Err(ReplayError::Erased),
            None => Err(ReplayError::UnknownEvent),
        }
    }
}
