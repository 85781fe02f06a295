//! What a batch does to the index: it looks hashes up, takes some, and before its commit writes down what it took and
//! flushes what is due. Nothing of it is pending in memory before the commit succeeded: a batch that fails, or is run
//! again, drops its [`Staged`]. For the filters the rule is the reverse: they know what is flushed before the commit
//! ([`Pending::foresee`]).

use hookstead_core::{IdentityHash, Seq, StoreError};
use rusqlite::{CachedStatement, Connection, OptionalExtension};

use super::super::batch::held;
use super::super::failure::reading;
use super::super::row;
use super::map::SeqByHash;
use super::pending::{Pending, Taken, range_of};
use super::table;

/// The index as a batch leaves it.
pub(in crate::sqlite) struct Staged<'a> {
    connection: &'a Connection,
    pending: &'a Pending,
    taken: SeqByHash,
    find: Option<CachedStatement<'a>>,
}

impl<'a> Staged<'a> {
    /// Nothing is taken yet.
    pub(in crate::sqlite) fn new(connection: &'a Connection, pending: &'a Pending) -> Self {
        Self { connection, pending, taken: SeqByHash::default(), find: None }
    }

    /// The event that holds a hash.
    pub(in crate::sqlite) fn holder(&mut self, hash: IdentityHash) -> Result<Option<Seq>, StoreError> {
        let in_memory = self.taken.get(&hash).copied().or_else(|| self.pending.holder(hash));
        if in_memory.is_some() || !self.pending.may_be_in_table(hash) {
            return Ok(in_memory);
        }
        held(&mut self.find, self.connection, "SELECT seq FROM identities WHERE hash = ?1")
            .and_then(|statement| statement.query_row([hash.0], |row| row::seq(row, 0)).optional())
            .map_err(reading("find the event of an identity"))
    }

    /// Gives a hash that nobody holds to an event: one that this batch stores.
    pub(in crate::sqlite) fn take(&mut self, hash: IdentityHash, seq: Seq) {
        self.taken.insert(hash, seq);
    }

    /// Writes into the transaction what was taken and what is due, now that `newest` is the newest event. What it returns
    /// is for [`Pending::foresee`], and then, once the transaction is committed, for [`Pending::join`].
    pub(in crate::sqlite) fn write(self, newest: Seq) -> Result<Taken, StoreError> {
        let Self { connection, pending, taken, .. } = self;
        if taken.is_empty() {
            return Ok(Taken { hashes: taken, flushed: Vec::new(), flushed_to: newest, read: Vec::new() });
        }
        let mut by_seq: Vec<(Seq, IdentityHash)> = taken.iter().map(|(hash, seq)| (*seq, *hash)).collect();
        by_seq.sort_unstable();
        table::append(connection, &by_seq)?;
        let due = pending.due(newest);
        for range in &due {
            let of_batch = taken.iter().filter(|(hash, _)| range_of(**hash) == *range);
            let of_batch = of_batch.map(|(hash, seq)| (*hash, *seq));
            let mut sorted: Vec<_> = pending.hashes_of(*range).chain(of_batch).collect();
            sorted.sort_unstable();
            table::insert(connection, &sorted)?;
            table::mark(connection, *range, newest)?;
        }
        let mut read = Vec::new();
        if !due.is_empty() {
            table::forget(connection, pending.oldest_mark(&due, newest))?;
            read = pending.filters().read(|range, after, max| table::range(connection, range, after, max))?;
        }
        Ok(Taken { hashes: taken, flushed: due, flushed_to: newest, read })
    }
}
