//! From columns to domain types and back, where more than one operation needs it. What cannot be read is a
//! damaged record, never a default.

use bytes::Bytes;
use hookstead_core::{
    Decision, Digest, EventId, Identity, ProviderEventId, RawHeaders, Scope, Seq, SourceNumber, StoreError,
    Timestamp,
};
use rusqlite::Row;
use rusqlite::types::{FromSqlError, ValueRef};

use super::ledger::count;

/// A record that is damaged, or contradicts another one.
pub(super) fn corrupt(what: impl Into<String>) -> StoreError {
    StoreError::Corrupt { what: what.into() }
}

/// The index of event ids leads to another event's row: whole as that is, nobody asked for it.
pub(super) fn misled(id: &EventId, seq: Seq) -> StoreError {
    corrupt(format!("the index of event ids leads from {id} to event {seq}, which is another"))
}

/// A column's fixed number of bytes.
pub(super) fn bytes<const N: usize>(row: &Row<'_>, column: usize) -> rusqlite::Result<[u8; N]> {
    let blob = row.get_ref(column)?.as_blob().map_err(|error| in_column(column, error))?;
    blob.try_into().map_err(|_| {
        let error = FromSqlError::InvalidBlobSize { expected_size: N, blob_size: blob.len() };
        in_column(column, error)
    })
}

/// The same, where the column may be null.
pub(super) fn optional_bytes<const N: usize>(
    row: &Row<'_>,
    column: usize,
) -> rusqlite::Result<Option<[u8; N]>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        _ => bytes(row, column).map(Some),
    }
}

pub(super) fn event_id(row: &Row<'_>, column: usize) -> rusqlite::Result<EventId> {
    bytes(row, column).map(EventId::from_bytes)
}

pub(super) fn digest(row: &Row<'_>, column: usize) -> rusqlite::Result<Digest> {
    bytes(row, column).map(Digest::from_bytes)
}

pub(super) fn seq(row: &Row<'_>, column: usize) -> rusqlite::Result<Seq> {
    row.get(column).map(|value| Seq(count(value)))
}

pub(super) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    row.get(column).map(Timestamp::from_micros)
}

/// A word, without a copy.
pub(super) fn word<'r>(row: &'r Row<'_>, column: usize) -> rusqlite::Result<&'r str> {
    row.get_ref(column)?.as_str().map_err(|error| in_column(column, error))
}

pub(super) fn optional_time(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_micros))
}

/// A block of headers; null, as after erasure, is an empty one.
pub(super) fn headers(row: &Row<'_>, column: usize) -> rusqlite::Result<RawHeaders> {
    let block: Option<Vec<u8>> = row.get(column)?;
    Ok(block.map(|block| RawHeaders::from_block(Bytes::from(block))).unwrap_or_default())
}

/// Source, scope and provider event id, in three columns from `column` on.
pub(super) fn identity(row: &Row<'_>, column: usize) -> rusqlite::Result<Identity> {
    let broken =
        |error: hookstead_core::IdentityError| in_column(column, FromSqlError::Other(Box::new(error)));
    Ok(Identity {
        source: SourceNumber(row.get(column)?),
        scope: Scope::new(row.get::<_, Vec<u8>>(column + 1)?).map_err(broken)?,
        id: ProviderEventId::new(row.get::<_, Vec<u8>>(column + 2)?).map_err(broken)?,
    })
}

/// Who, why and when, in three columns from `column` on.
pub(super) fn decision(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Decision>> {
    let Some(by) = row.get(column)? else { return Ok(None) };
    Ok(Some(Decision { by, note: row.get(column + 1)?, at: time(row, column + 2)? }))
}

/// A value that a column cannot have.
pub(super) fn in_column(column: usize, error: FromSqlError) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Blob, Box::new(error))
}

/// A word that a column cannot hold.
pub(super) fn bad_word(column: usize, word: &str) -> rusqlite::Error {
    let error = FromSqlError::Other(format!("`{word}` is not expected here").into());
    in_column(column, error)
}
