//! Register: the sources and destinations, in their tables and in the writer's memory.

use std::sync::Arc;

use hookstead_core::{
    DestinationName, DestinationNumber, DestinationRow, Register, Registered, Registry, RetryPolicy,
    SourceName, SourceNumber, SourceRow, StoreError,
};
use rusqlite::{Connection, Row};

use super::batch::Batch;
use super::failure::{reading, writing};
use super::row::corrupt;

impl Batch<'_> {
    pub(super) fn register(&mut self, register: &Register) -> Result<Registered, StoreError> {
        match register {
            Register::Source { name, identity_fingerprint } => {
                self.register_source(name, identity_fingerprint)
            }
            Register::Destination { name, fingerprint, retry } => {
                self.register_destination(name, fingerprint, retry).map(Registered::Destination)
            }
        }
    }

    fn register_source(&mut self, name: &SourceName, fingerprint: &str) -> Result<Registered, StoreError> {
        let known = self.ledger.registry.sources.iter().find(|row| row.name == *name).cloned();
        let Some(mut row) = known else {
            let row = SourceRow {
                number: SourceNumber(next_number(self.ledger.registry.sources.len())),
                name: name.clone(),
                generation: 1,
                identity_fingerprint: fingerprint.to_owned(),
            };
            self.save_source(&row)?;
            Arc::make_mut(&mut self.ledger.registry).sources.push(row.clone());
            return Ok(Registered::Source { row, previous_fingerprint: None });
        };
        if row.identity_fingerprint == fingerprint {
            return Ok(Registered::Source { row, previous_fingerprint: None });
        }
        row.generation += 1;
        let previous = std::mem::replace(&mut row.identity_fingerprint, fingerprint.to_owned());
        self.save_source(&row)?;
        let rows = &mut Arc::make_mut(&mut self.ledger.registry).sources;
        rows.iter_mut().filter(|old| old.number == row.number).for_each(|old| *old = row.clone());
        Ok(Registered::Source { row, previous_fingerprint: Some(previous) })
    }

    fn register_destination(
        &mut self,
        name: &DestinationName,
        fingerprint: &str,
        retry: &RetryPolicy,
    ) -> Result<DestinationRow, StoreError> {
        let known = self.ledger.registry.destinations.iter().find(|row| row.name == *name).cloned();
        let Some(mut row) = known else {
            let row = DestinationRow {
                number: DestinationNumber(next_number(self.ledger.registry.destinations.len())),
                name: name.clone(),
                generation: 1,
                fingerprint: fingerprint.to_owned(),
                retry: retry.clone(),
                paused: false,
            };
            self.save_destination(&row)?;
            Arc::make_mut(&mut self.ledger.registry).destinations.push(row.clone());
            return Ok(row);
        };
        if row.fingerprint == fingerprint && row.retry == *retry {
            return Ok(row);
        }
        row.generation += 1;
        row.fingerprint = fingerprint.to_owned();
        row.retry = retry.clone();
        self.replace_destination(&row)?;
        Ok(row)
    }

    /// Writes a destination that is known over what it was.
    pub(super) fn replace_destination(&mut self, row: &DestinationRow) -> Result<(), StoreError> {
        self.save_destination(row)?;
        let rows = &mut Arc::make_mut(&mut self.ledger.registry).destinations;
        rows.iter_mut().filter(|old| old.number == row.number).for_each(|old| *old = row.clone());
        Ok(())
    }

    fn save_source(&self, row: &SourceRow) -> Result<(), StoreError> {
        self.connection
            .prepare_cached(
                "INSERT OR REPLACE INTO sources (number, name, generation, identity_fingerprint)
                 VALUES (?1, ?2, ?3, ?4)",
            )
            .and_then(|mut statement| {
                statement.execute((
                    row.number.0,
                    row.name.as_str(),
                    row.generation,
                    &row.identity_fingerprint,
                ))
            })
            .map(drop)
            .map_err(writing("register a source"))
    }

    fn save_destination(&self, row: &DestinationRow) -> Result<(), StoreError> {
        let schedule: Vec<String> = row.retry.schedule_s.iter().map(ToString::to_string).collect();
        self.connection
            .prepare_cached(
                "INSERT OR REPLACE INTO destinations (number, name, generation, fingerprint,
                    retry_schedule_s, retry_attempts_max, retry_age_max_s, retry_jitter_percent, paused)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )
            .and_then(|mut statement| {
                statement.execute((
                    row.number.0,
                    row.name.as_str(),
                    row.generation,
                    &row.fingerprint,
                    schedule.join(","),
                    row.retry.attempts_max,
                    row.retry.age_max_s,
                    row.retry.jitter_percent,
                    row.paused,
                ))
            })
            .map(drop)
            .map_err(writing("register a destination"))
    }
}

/// The registry as the database has it.
pub(super) fn load(connection: &Connection) -> Result<Registry, StoreError> {
    Ok(Registry {
        sources: rows(
            connection,
            "SELECT number, name, generation, identity_fingerprint FROM sources ORDER BY number",
            source_row,
        )?,
        destinations: rows(
            connection,
            "SELECT number, name, generation, fingerprint, retry_schedule_s, retry_attempts_max,
                retry_age_max_s, retry_jitter_percent, paused
             FROM destinations ORDER BY number",
            destination_row,
        )?,
    })
}

fn rows<T>(
    connection: &Connection,
    sql: &str,
    parse: fn(&Row<'_>) -> rusqlite::Result<Option<T>>,
) -> Result<Vec<T>, StoreError> {
    let failed = reading("read the registry");
    let mut statement = connection.prepare(sql).map_err(&failed)?;
    let found: rusqlite::Result<Vec<Option<T>>> = statement.query_map([], parse).and_then(Iterator::collect);
    let parsed: Option<Vec<T>> = found.map_err(&failed)?.into_iter().collect();
    parsed.ok_or_else(|| corrupt("a row of the registry is no source or destination"))
}

fn source_row(row: &Row<'_>) -> rusqlite::Result<Option<SourceRow>> {
    let name: String = row.get(1)?;
    let (number, generation, identity_fingerprint) = (SourceNumber(row.get(0)?), row.get(2)?, row.get(3)?);
    Ok(name.parse().ok().map(|name| SourceRow { number, name, generation, identity_fingerprint }))
}

fn destination_row(row: &Row<'_>) -> rusqlite::Result<Option<DestinationRow>> {
    let (name, schedule): (String, String) = (row.get(1)?, row.get(4)?);
    let steps: Result<Vec<u32>, _> =
        schedule.split(',').filter(|step| !step.is_empty()).map(str::parse).collect();
    let (Ok(name), Ok(schedule_s)) = (name.parse(), steps) else { return Ok(None) };
    let retry = RetryPolicy {
        schedule_s,
        attempts_max: row.get(5)?,
        age_max_s: row.get(6)?,
        jitter_percent: row.get(7)?,
    };
    Ok(Some(DestinationRow {
        number: DestinationNumber(row.get(0)?),
        name,
        generation: row.get(2)?,
        fingerprint: row.get(3)?,
        retry,
        paused: row.get(8)?,
    }))
}

fn next_number(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX - 1) + 1
}
