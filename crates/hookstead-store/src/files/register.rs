//! Register: sources and destinations are made known.

use hookstead_core::{
    DestinationNumber, DestinationRow, Register, Registered, RetryPolicy, SourceName, SourceNumber,
    SourceRow, StoreError,
};

use super::batch::Batch;
use super::row::Row;

/// The fingerprint of a source that was found in a folder and that nobody has registered yet. The first
/// registration puts its own in place, and that is no change of the rule.
pub(super) const FOUND: &str = "found in the folder";

impl Batch<'_> {
    pub(super) fn register(&mut self, register: &Register) -> Result<Registered, StoreError> {
        match register {
            Register::Source { name, identity_fingerprint } => {
                self.register_source(name, identity_fingerprint)
            }
            Register::Destination { name, fingerprint, retry } => {
                let rows = &self.tables.registry.destinations;
                let row = match rows.iter().find(|row| row.name == *name) {
                    Some(row) if row.fingerprint == *fingerprint && row.retry == *retry => {
                        return Ok(Registered::Destination(row.clone()));
                    }
                    Some(row) => changed(row, fingerprint, retry),
                    None => DestinationRow {
                        number: DestinationNumber(next_number(rows.len())),
                        name: name.clone(),
                        generation: 1,
                        fingerprint: fingerprint.clone(),
                        retry: retry.clone(),
                        paused: false,
                    },
                };
                self.put(Row::Destination(row.clone()))?;
                Ok(Registered::Destination(row))
            }
        }
    }

    fn register_source(&mut self, name: &SourceName, fingerprint: &str) -> Result<Registered, StoreError> {
        let rows = &self.tables.registry.sources;
        let (row, previous_fingerprint) = match rows.iter().find(|row| row.name == *name) {
            Some(row) if row.identity_fingerprint == fingerprint => {
                return Ok(Registered::Source { row: row.clone(), previous_fingerprint: None });
            }
            Some(row) => {
                let mut row = row.clone();
                let previous = std::mem::replace(&mut row.identity_fingerprint, fingerprint.to_owned());
                let is_change = previous != FOUND;
                row.generation += u32::from(is_change);
                (row, is_change.then_some(previous))
            }
            None => (new_source(SourceNumber(next_number(rows.len())), name, fingerprint), None),
        };
        self.put(Row::Source(row.clone()))?;
        Ok(Registered::Source { row, previous_fingerprint })
    }
}

/// The row of a source that is new.
pub(super) fn new_source(number: SourceNumber, name: &SourceName, fingerprint: &str) -> SourceRow {
    SourceRow { number, name: name.clone(), generation: 1, identity_fingerprint: fingerprint.to_owned() }
}

fn changed(row: &DestinationRow, fingerprint: &str, retry: &RetryPolicy) -> DestinationRow {
    DestinationRow {
        generation: row.generation + 1,
        fingerprint: fingerprint.to_owned(),
        retry: retry.clone(),
        ..row.clone()
    }
}

/// The number of the row after so many.
pub(super) fn next_number(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX - 1) + 1
}
