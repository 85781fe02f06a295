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
    pending: Pending,
}

/// How a hash is looked for that is not in the table.
enum Pending {
    /// Each time in all of them, a megabyte at the most.
    Searched,
    /// In a map, which is made when it is first needed: worth it for many hashes.
    Mapped(Option<HashMap<IdentityHash, Seq>>),
}

impl<'c> Lookup<'c> {
    /// For one identity. `connection` must be within a read.
    pub(in crate::sqlite) fn for_one(connection: &'c Connection) -> Self {
        Self { connection, pending: Pending::Searched }
    }

    /// For many identities. `connection` must be within a read.
    pub(in crate::sqlite) fn for_many(connection: &'c Connection) -> Self {
        Self { connection, pending: Pending::Mapped(None) }
    }

    /// The event that holds a hash; the first of them, should damage have it twice.
    pub(in crate::sqlite) fn holder(&mut self, hash: IdentityHash) -> Result<Option<Seq>, StoreError> {
        let found = self
            .connection
            .prepare_cached("SELECT seq FROM identities WHERE hash = ?1")
            .and_then(|mut statement| statement.query_row([hash.0], |row| row::seq(row, 0)).optional())
            .map_err(reading("look up an identity"))?;
        if found.is_some() {
            return Ok(found);
        }
        match &mut self.pending {
            Pending::Searched => search(self.connection, hash),
            Pending::Mapped(Some(map)) => Ok(map.get(&hash).copied()),
            Pending::Mapped(unread) => Ok(unread.insert(map(self.connection)?).get(&hash).copied()),
        }
    }
}

fn search(connection: &Connection, wanted: IdentityHash) -> Result<Option<Seq>, StoreError> {
    let mut found = None;
    for_each_pending(connection, &marks(connection)?, |hash, seq| {
        if hash == wanted {
            found.get_or_insert(seq);
        }
    })?;
    Ok(found)
}

fn map(connection: &Connection) -> Result<HashMap<IdentityHash, Seq>, StoreError> {
    let mut map = HashMap::new();
    for_each_pending(connection, &marks(connection)?, |hash, seq| {
        map.entry(hash).or_insert(seq);
    })?;
    Ok(map)
}
