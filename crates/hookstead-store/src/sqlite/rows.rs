//! Rows of a key and a sequence number, inserted with few statements: what a statement costs beside its rows is shared by
//! up to sixteen of them, and rows in the order of their keys find the page that the one before them was put on. It knows
//! no table.

use std::iter;

use hookstead_core::Seq;
use rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY;
use rusqlite::{CachedStatement, Connection};

use super::ledger::int;

/// Bytes of a key.
const KEY_BYTES: usize = 16;

/// The statements that insert into one table, each with the number of its rows, the most first and one at the end.
pub(super) type Inserts = [(usize, &'static str); 3];

/// The [`Inserts`] of a table whose columns are a key and a sequence number. A row that cannot be inserted leaves those
/// before it where they are: the whole transaction is undone then, and to be able to undo one statement SQLite would have
/// to keep a copy of each page that it changes.
macro_rules! inserts {
    ($table:literal) => {
        [
            (
                16,
                concat!(
                    "INSERT OR FAIL INTO ",
                    $table,
                    " VALUES (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?),
                    (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?)"
                ),
            ),
            (4, concat!("INSERT OR FAIL INTO ", $table, " VALUES (?, ?), (?, ?), (?, ?), (?, ?)")),
            (1, concat!("INSERT OR FAIL INTO ", $table, " VALUES (?, ?)")),
        ]
    };
}
pub(super) use inserts;

/// Why rows were not inserted.
pub(super) struct NotInserted {
    pub(super) error: rusqlite::Error,
    /// The first row whose key is in the table already, if that is why.
    pub(super) taken: Option<Seq>,
}

impl NotInserted {
    fn because(error: rusqlite::Error) -> Self {
        Self { error, taken: None }
    }
}

/// Inserts rows; `key` has the bytes of a key. They should be sorted by it. If it fails, some of them may be there.
pub(super) fn insert<K>(
    connection: &Connection,
    inserts: &Inserts,
    rows: &[(K, Seq)],
    key: impl Fn(&K) -> &[u8; KEY_BYTES],
) -> Result<(), NotInserted> {
    let mut left = rows;
    for (rows_each, sql) in inserts {
        let chunks = left.chunks_exact(*rows_each);
        left = chunks.remainder();
        if chunks.len() > 0 {
            let mut statement = connection.prepare_cached(sql).map_err(NotInserted::because)?;
            for chunk in chunks {
                bind(&mut statement, chunk, &key).map_err(NotInserted::because)?;
                statement.raw_execute().map_err(|error| stopped_within(connection, chunk, error))?;
            }
        }
    }
    Ok(())
}

fn bind<K>(
    statement: &mut CachedStatement<'_>,
    chunk: &[(K, Seq)],
    key: impl Fn(&K) -> &[u8; KEY_BYTES],
) -> rusqlite::Result<()> {
    for (place, (of, seq)) in iter::zip((1..).step_by(2), chunk) {
        statement.raw_bind_parameter::<usize, _>(place, key(of))?;
        statement.raw_bind_parameter(place + 1, int(seq.0))?;
    }
    Ok(())
}

/// As many rows were inserted as SQLite says it changed: the next one was in the way.
fn stopped_within<K>(connection: &Connection, chunk: &[(K, Seq)], error: rusqlite::Error) -> NotInserted {
    let is_taken =
        error.sqlite_error().is_some_and(|code| code.extended_code == SQLITE_CONSTRAINT_PRIMARYKEY);
    let next = usize::try_from(connection.changes()).ok().and_then(|inserted| chunk.get(inserted));
    NotInserted { error, taken: next.filter(|_| is_taken).map(|(_, seq)| *seq) }
}

#[cfg(test)]
mod tests {
    use rusqlite::Row;

    use super::super::row;
    use super::*;

    const THINGS: Inserts = inserts!("things (key, seq)");

    fn database() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        let sql = "CREATE TABLE things (key BLOB PRIMARY KEY, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID";
        connection.execute_batch(sql).unwrap();
        connection
    }

    fn rows(seqs: impl Iterator<Item = u64>) -> Vec<([u8; KEY_BYTES], Seq)> {
        seqs.map(|seq| (u128::from(seq).to_be_bytes(), Seq(seq))).collect()
    }

    fn insert_into(connection: &Connection, rows: &[([u8; KEY_BYTES], Seq)]) -> Result<(), NotInserted> {
        insert(connection, &THINGS, rows, |key| key)
    }

    fn stored(connection: &Connection) -> Vec<([u8; KEY_BYTES], Seq)> {
        let mut statement = connection.prepare("SELECT key, seq FROM things ORDER BY key").unwrap();
        let read = |row: &Row<'_>| Ok((row.get(0)?, row::seq(row, 1)?));
        statement.query_map([], read).unwrap().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn every_row_is_inserted_however_many_there_are() {
        for count in (0..45).chain([64, 100]) {
            let (connection, rows) = (database(), rows(1..count + 1));
            assert!(insert_into(&connection, &rows).is_ok(), "{count}");
            assert_eq!(stored(&connection), rows, "{count}");
        }
    }

    #[test]
    fn the_row_whose_key_is_taken_is_told_wherever_it_stands() {
        // As many as fill one statement of each kind, and a second of the largest.
        let rows = rows(1..38);
        for taken in &rows {
            let connection = database();
            insert_into(&connection, &[(taken.0, Seq(99))]).ok().unwrap();
            let stopped = insert_into(&connection, &rows).err().unwrap();
            assert_eq!(stopped.taken, Some(taken.1), "{}", stopped.error);
            assert!(stored(&connection).contains(&(taken.0, Seq(99))), "what was there stays");
        }
    }

    #[test]
    fn a_key_that_comes_twice_is_told() {
        let mut twice = rows(1..17);
        twice[9].0 = twice[8].0;
        assert_eq!(insert_into(&database(), &twice).err().unwrap().taken, Some(Seq(10)));
    }

    #[test]
    fn another_failure_takes_no_key() {
        let connection = database();
        connection
            .execute_batch("ALTER TABLE things ADD COLUMN more INTEGER NOT NULL DEFAULT 1 CHECK (seq < 5)")
            .unwrap();
        let failed = insert_into(&connection, &rows(1..17)).err().unwrap();
        assert_eq!(failed.taken, None, "{}", failed.error);
    }
}
