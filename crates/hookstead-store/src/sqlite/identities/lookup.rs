//! The index as a reader sees it, on one state of the database: the table first, then what was pending in that state.
//! It is independent of what the writer has in memory, so that it serves another process and a copy as well.

use std::collections::HashMap;

use hookstead_core::{IdentityHash, Seq, StoreError};
use rusqlite::{Connection, OptionalExtension};

use super::super::failure::reading;
use super::super::row;
use super::table::{for_each_pending, marks};

/// Looks hashes up, for as long as one read lasts.
pub(in crate::sqlite) struct Lookup<'c> {
    connection: &'c Connection,
    /// Read when a hash is not in the table: some 3 ms for as many as there can be.
    pending: Option<HashMap<IdentityHash, Seq>>,
}

impl<'c> Lookup<'c> {
    /// `connection` must be within a read.
    pub(in crate::sqlite) fn new(connection: &'c Connection) -> Self {
        Self { connection, pending: None }
    }

    /// The event that holds a hash.
    pub(in crate::sqlite) fn holder(&mut self, hash: IdentityHash) -> Result<Option<Seq>, StoreError> {
        let found = self
            .connection
            .prepare_cached("SELECT seq FROM identities WHERE hash = ?1")
            .and_then(|mut statement| statement.query_row([hash.0], |row| row::seq(row, 0)).optional())
            .map_err(reading("look up an identity"))?;
        match found {
            Some(seq) => Ok(Some(seq)),
            None => Ok(self.pending()?.get(&hash).copied()),
        }
    }

    fn pending(&mut self) -> Result<&HashMap<IdentityHash, Seq>, StoreError> {
        if self.pending.is_none() {
            let mut pending = HashMap::new();
            // The first one holds a hash, should damage have it twice.
            for_each_pending(self.connection, &marks(self.connection)?, |hash, seq| {
                pending.entry(hash).or_insert(seq);
            })?;
            self.pending = Some(pending);
        }
        Ok(self.pending.get_or_insert_default())
    }
}
