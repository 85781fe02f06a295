//! Record a run: the receipt of a processing run, written once.

use bytes::Bytes;
use hookstead_core::{RecordRun, RunOutcome, RunReceipt, Seq, StoreError};
use rusqlite::{OptionalExtension, Row, params};

use super::batch::Batch;
use super::failure::{reading, writing};
use super::ledger::int;
use super::row;

impl Batch<'_> {
    pub(super) fn record_run(&mut self, run: &RecordRun) -> Result<RunOutcome, StoreError> {
        let Some(seq) = self.seq_of(&run.event)? else { return Ok(RunOutcome::UnknownEvent) };
        if let Some(receipt) = self.find_run(seq, run)? {
            return Ok(RunOutcome::Known(receipt));
        }
        let digest = self
            .connection
            .prepare_cached("SELECT digest FROM events WHERE seq = ?1")
            .and_then(|mut statement| statement.query_row([int(seq.0)], |row| row::digest(row, 0)))
            .map_err(reading("read the digest of an event"))?;
        let receipt = RunReceipt {
            event: run.event,
            run: run.run.clone(),
            digest,
            processed_at: self.now,
            business_id: run.business_id.clone(),
            payload: run.payload.clone(),
        };
        self.add_run(seq, &receipt)?;
        Ok(RunOutcome::New(receipt))
    }

    fn find_run(&self, seq: Seq, run: &RecordRun) -> Result<Option<RunReceipt>, StoreError> {
        self.connection
            .prepare_cached(
                "SELECT run, digest, processed_at_us, business_id, payload
                 FROM runs WHERE seq = ?1 AND run = ?2",
            )
            .and_then(|mut statement| {
                let key = (int(seq.0), run.run.as_str());
                statement.query_row(key, |row| receipt(row, run.event)).optional()
            })
            .map_err(reading("look up a run"))
    }

    fn add_run(&self, seq: Seq, receipt: &RunReceipt) -> Result<(), StoreError> {
        self.connection
            .prepare_cached(
                "INSERT INTO runs (seq, run, digest, processed_at_us, business_id, payload)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )
            .and_then(|mut statement| {
                statement.execute(params![
                    int(seq.0),
                    receipt.run.as_str(),
                    receipt.digest.as_bytes(),
                    receipt.processed_at.as_micros(),
                    receipt.business_id,
                    receipt.payload.as_ref().map(AsRef::<[u8]>::as_ref),
                ])
            })
            .map(drop)
            .map_err(writing("record a run"))
    }
}

/// A row of `runs`: run, digest, processed_at_us, business_id, payload.
pub(super) fn receipt(row: &Row<'_>, event: hookstead_core::EventId) -> rusqlite::Result<RunReceipt> {
    let run: String = row.get(0)?;
    Ok(RunReceipt {
        event,
        run: run.parse().map_err(|_| row::bad_word(0, &run))?,
        digest: row::digest(row, 1)?,
        processed_at: row::time(row, 2)?,
        business_id: row.get(3)?,
        payload: row.get::<_, Option<Vec<u8>>>(4)?.map(Bytes::from),
    })
}
