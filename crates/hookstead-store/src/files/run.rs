//! Record a run: a receipt that never changes.

use std::sync::Arc;

use hookstead_core::{Digest, RecordRun, RunOutcome, RunReceipt, StoreError};

use super::accept::unwritable;
use super::batch::Batch;
use super::receipt;
use super::row::{Row, RunRow};

impl Batch<'_> {
    pub(super) fn record_run(&mut self, run: &RecordRun) -> Result<RunOutcome, StoreError> {
        let Some(row) = self.tables.by_id(&run.event).map(Arc::clone) else {
            return Ok(RunOutcome::UnknownEvent);
        };
        let event = &row.event;
        let record = self.around.disk.layout.receipt(&row, &run.run);
        if let Some(known) = self.tables.run(event.seq, &run.run).cloned() {
            let receipt = self.with_record(&record, |bytes| receipt::read(bytes, event, &run.run, &known))?;
            self.rest_on(event.seq, record);
            return Ok(RunOutcome::Known(receipt));
        }
        let receipt = RunReceipt {
            event: event.id,
            run: run.run.clone(),
            digest: event.digest,
            processed_at: self.now,
            business_id: run.business_id.clone(),
            payload: run.payload.clone(),
        };
        self.put_file(record, receipt::write(event, &receipt).map_err(unwritable)?)?;
        let known = RunRow {
            digest: receipt.digest,
            processed_at: receipt.processed_at,
            business_id: receipt.business_id.clone(),
            payload: receipt.payload.as_deref().map(Digest::of),
        };
        self.put(Row::Run(event.seq, run.run.clone(), known))?;
        Ok(RunOutcome::New(receipt))
    }
}
