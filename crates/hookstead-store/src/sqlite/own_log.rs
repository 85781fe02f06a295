//! Whether the log beside a database is the one that was begun on it. SQLite takes whatever log lies there for the
//! database's own, and puts its pages over the database's. It reads and writes nothing down; what the log lost is told
//! elsewhere.
//!
//! **Another store's log** is known by the key that each store has.
//!
//! **Another copy of the same store** has the same key, so that each has a mark as well: `probes + barriers` in its row of
//! `store`. It only grows; one transaction adds at most one to it.
//!
//! - *An older copy.* A filling of the log begins when the database has everything before it. So the database's own mark
//!   is never below that of the first page of `store` in the log, less one. Each start adds to the mark before it empties
//!   the log, so that what was copied before the start lies below.
//! - *A copy that this program made*, for a backup or before a change of the schema, also of a store in the middle of a
//!   filling: its mark is put on by more than a log can add ([`MARK_STEP`]). Beside a log of the store that it was made of,
//!   it is above what the log leads to.
//!
//! What stays unknown:
//!
//! - *A copy that another program made of a running store*, beside the log of the very next filling.
//! - *An older copy beside a log that has no page of `store` yet.* A transaction puts one there that begins after a
//!   checkpoint has said that it is through. It does not if it begins in the moment before, when the checkpoint is through
//!   and has not said so, and another was written while the checkpoint ran. The next transaction puts it there.

use std::path::Path;

use hookstead_core::StoreError;
use rusqlite::Connection;

use super::connect::Target;
use super::create::io_error;
use super::failure::reading;
use super::log_scan;
use super::open::{key_bytes, store_error};
use crate::fs::Fs;
use crate::open::{OpenError, random_key};

/// The least by which the mark of a copy is put on, and the bound of what chance adds to it: no store begins so many
/// fillings, and 2^29 copies of copies can be made.
const MARK_STEP: i64 = 1 << 32;

/// Refuses a log that was not begun on the database of `target`; `reader` sees both.
pub(super) fn refuse_foreign_log(
    fs: &dyn Fs,
    target: &Target,
    reader: &Connection,
    wal: &Path,
) -> Result<(), OpenError> {
    // A checkpoint that a power cut ended may leave a database that cannot be read without its log: then nothing is known.
    let alone = target.without_log().map_err(reading("open the database without its log"));
    let Ok((own_key, own_mark)) = alone.and_then(|alone| Ok((key_bytes(&alone)?, mark(&alone)?))) else {
        return Ok(());
    };
    let failed = |error| store_error("read the database", error);
    let path = target.path.clone();
    if key_bytes(reader).map_err(failed)? != own_key {
        return Err(OpenError::ForeignLog { path, wal: wal.to_owned() });
    }
    let first = first_mark(fs, reader, wal)?;
    if own_mark > mark(reader).map_err(failed)? || first.is_some_and(|first| own_mark < first - 1) {
        return Err(OpenError::OtherCopy { path, wal: wal.to_owned() });
    }
    Ok(())
}

/// Puts on the mark of a copy, so that it is told from what it was made of.
pub(super) fn mark_as_copy(copy: &Connection) -> Result<(), OpenError> {
    let [a, b, c, d, ..] = random_key()?;
    let by = MARK_STEP + i64::from(u32::from_be_bytes([a, b, c, d]));
    copy.execute("UPDATE store SET barriers = barriers + ?1", [by]).map(drop).map_err(|source| {
        OpenError::Database { doing: "mark the copy".to_owned(), source: source.into(), step: None }
    })
}

fn mark(connection: &Connection) -> Result<i64, StoreError> {
    connection
        .query_row("SELECT probes + barriers FROM store", [], |row| row.get(0))
        .map_err(reading("read the mark of the store"))
}

/// The mark in the first page of `store` that the log has.
fn first_mark(fs: &dyn Fs, reader: &Connection, wal: &Path) -> Result<Option<i64>, OpenError> {
    let root = reader
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'store'", [], |row| row.get(0))
        .map_err(reading("find the page of the store"))
        .map_err(|error| store_error("read the database", error))?;
    let page = log_scan::first_of(fs, wal, root).map_err(io_error("read the log", wal))?;
    Ok(page.as_deref().and_then(mark_in))
}

/// The mark in a page of `store`; `None` if it is no such page. The table has one row, so that its root is a leaf with
/// one cell.
fn mark_in(page: &[u8]) -> Option<i64> {
    const LEAF_OF_A_TABLE: u8 = 13;
    let short = |at: usize| Some(usize::from(u16::from_be_bytes([*page.get(at)?, *page.get(at + 1)?])));
    if page.first() != Some(&LEAF_OF_A_TABLE) || short(3) != Some(1) {
        return None;
    }
    let mut cell = page.get(short(8)?..)?;
    varint(&mut cell)?;
    varint(&mut cell)?;
    let record = cell;
    let head_bytes = usize::try_from(varint(&mut cell)?).ok()?;
    let mut values = record.get(head_bytes..)?;
    let mut numbers = [None; 4];
    for number in &mut numbers {
        let kind = varint(&mut cell)?;
        let value;
        (value, values) = values.split_at_checked(value_bytes(kind)?)?;
        *number = integer(kind, value);
    }
    let [_, _, probes, barriers] = numbers;
    probes?.checked_add(barriers?)
}

/// A number of SQLite's variable length, which `bytes` then stands behind.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for at in 0..9 {
        let byte = *bytes.get(at)?;
        if at == 8 || byte < 0x80 {
            *bytes = &bytes[at + 1..];
            let bits = if at == 8 { 8 } else { 7 };
            return Some((number << bits) | u64::from(byte));
        }
        number = (number << 7) | u64::from(byte & 0x7f);
    }
    None
}

/// How long a value of this kind is, in bytes.
fn value_bytes(kind: u64) -> Option<usize> {
    match kind {
        0 | 8 | 9 => Some(0),
        1..=4 => usize::try_from(kind).ok(),
        5 => Some(6),
        6 | 7 => Some(8),
        10 | 11 => None,
        _ => usize::try_from((kind - 12) / 2).ok(),
    }
}

fn integer(kind: u64, value: &[u8]) -> Option<i64> {
    match kind {
        8 => Some(0),
        9 => Some(1),
        1..=6 => {
            let sign = if value.first()? & 0x80 == 0 { 0 } else { -1 };
            Some(value.iter().fold(sign, |number, byte| (number << 8) | i64::from(*byte)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of `store` as SQLite writes it.
    fn page(probes: i64, barriers: i64) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let connection = Connection::open(&path).unwrap();
        let first = include_str!("migrations/0001_first.sql");
        connection.execute_batch(&format!("PRAGMA page_size = 8192; {first}")).unwrap();
        let key = [0xff_u8; 32];
        connection
            .execute("INSERT INTO store VALUES (1, ?1, ?2, ?3, 7, 1000, 1)", (key, probes, barriers))
            .unwrap();
        let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'store'";
        let root: u32 = connection.query_row(sql, [], |row| row.get(0)).unwrap();
        let root = root as usize;
        connection.close().unwrap();
        std::fs::read(&path).unwrap()[(root - 1) * 8192..root * 8192].to_vec()
    }

    #[test]
    fn a_mark_is_read_from_a_page_whatever_its_width() {
        for probes in [0, 1, 2, 127, 128, 300, 40_000, 9_000_000, 5_000_000_000] {
            for barriers in [0, 1, 200, 70_000, MARK_STEP, 3 * MARK_STEP, 1 << 50] {
                assert_eq!(mark_in(&page(probes, barriers)), Some(probes + barriers));
            }
        }
    }

    #[test]
    fn what_is_no_such_page_has_no_mark() {
        let sound = page(300, 70_000);
        assert_eq!(mark_in(&[]), None);
        assert_eq!(mark_in(&vec![0; 8192]), None);
        // Cut anywhere it is refused, and nothing is read beyond its end.
        let at = usize::from(u16::from_be_bytes([sound[8], sound[9]]));
        for length in (0..at + 40).step_by(3) {
            assert_eq!(mark_in(&sound[..length]), None, "{length} bytes");
        }
    }
}
