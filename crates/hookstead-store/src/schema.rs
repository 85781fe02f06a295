//! The migrator: numbered, checksummed steps from one schema to the next, each applied once, in a
//! transaction, and written down. A database that is newer than this program, or whose history is another
//! one, is refused before anything is written to it. It knows no table but its own.

use aws_lc_rs::digest::{SHA256, digest};
use hookstead_core::Timestamp;
use rusqlite::{Connection, OptionalExtension};

/// One step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Migration {
    /// From 1, without gaps.
    pub(crate) number: u32,
    /// The file's name, for people.
    pub(crate) name: &'static str,
    /// What it does. Never edited once released: its checksum is written down.
    pub(crate) sql: &'static str,
}

impl Migration {
    fn checksum(&self) -> String {
        hex::encode(digest(&SHA256, self.sql.as_bytes()))
    }
}

/// Why a database cannot be brought to the present schema.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SchemaError {
    #[error("schema {found} is newer than {known}")]
    Newer { found: u32, known: u32 },
    #[error("migration {number} ({name}) was another one when it was applied")]
    Changed { number: u32, name: String },
    #[error("{0}")]
    Foreign(String),
    #[error("{doing}")]
    Database { doing: String, source: rusqlite::Error },
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at_us INTEGER NOT NULL
) STRICT";

/// How many of `known` are applied, after all of them were found to be ours. Only reads.
pub(crate) fn applied(connection: &Connection, known: &[Migration]) -> Result<usize, SchemaError> {
    let rows = history(connection)?;
    for (index, (number, name, checksum)) in rows.iter().enumerate() {
        let Some(migration) = known.get(index) else {
            let newest = rows.last().map_or(*number, |(number, ..)| *number);
            return Err(SchemaError::Newer { found: newest, known: last_number(known) });
        };
        if migration.number != *number || migration.checksum() != *checksum {
            return Err(SchemaError::Changed { number: *number, name: name.clone() });
        }
    }
    Ok(rows.len())
}

/// Applies what is missing, each step in a transaction of its own. How many that were.
pub(crate) fn migrate(
    connection: &mut Connection,
    known: &[Migration],
    now: Timestamp,
) -> Result<usize, SchemaError> {
    let done = if is_empty(connection)? { 0 } else { applied(connection, known)? };
    if done == 0 {
        connection.execute_batch(TABLE).map_err(failed("make the table of migrations"))?;
    }
    for migration in &known[done..] {
        apply(connection, migration, now)
            .map_err(failed(&format!("apply migration {} ({})", migration.number, migration.name)))?;
    }
    Ok(known.len() - done)
}

fn apply(connection: &mut Connection, migration: &Migration, now: Timestamp) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    transaction.execute_batch(migration.sql)?;
    transaction.execute(
        "INSERT INTO migrations (number, name, checksum, applied_at_us) VALUES (?1, ?2, ?3, ?4)",
        (migration.number, migration.name, migration.checksum(), now.as_micros()),
    )?;
    transaction.commit()
}

fn history(connection: &Connection) -> Result<Vec<(u32, String, String)>, SchemaError> {
    if !has_table(connection)? {
        return Err(SchemaError::Foreign("it has no table of migrations".to_owned()));
    }
    let read = || -> rusqlite::Result<Vec<(u32, String, String)>> {
        let sql = "SELECT number, name, checksum FROM migrations ORDER BY number";
        let mut statement = connection.prepare(sql)?;
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
    };
    read().map_err(failed("read the table of migrations"))
}

fn has_table(connection: &Connection) -> Result<bool, SchemaError> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migrations'";
    let found = connection.query_row(sql, [], |_| Ok(())).optional();
    found.map(|row| row.is_some()).map_err(failed("look for the table of migrations"))
}

fn is_empty(connection: &Connection) -> Result<bool, SchemaError> {
    let found = connection.query_row("SELECT 1 FROM sqlite_schema LIMIT 1", [], |_| Ok(())).optional();
    found.map(|row| row.is_none()).map_err(failed("read the schema"))
}

fn last_number(known: &[Migration]) -> u32 {
    known.last().map_or(0, |migration| migration.number)
}

fn failed(doing: &str) -> impl FnOnce(rusqlite::Error) -> SchemaError {
    move |source| SchemaError::Database { doing: doing.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Migration = Migration { number: 1, name: "one", sql: "CREATE TABLE a (x)" };
    const TWO: Migration =
        Migration { number: 2, name: "two", sql: "CREATE TABLE b (x); INSERT INTO a VALUES (1)" };

    fn database(known: &[Migration]) -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        assert_eq!(migrate(&mut connection, known, Timestamp::from_secs(1)).unwrap(), known.len());
        connection
    }

    #[test]
    fn each_step_is_applied_once() {
        let mut connection = database(&[ONE]);
        assert_eq!(migrate(&mut connection, &[ONE, TWO], Timestamp::from_secs(2)).unwrap(), 1);
        assert_eq!(migrate(&mut connection, &[ONE, TWO], Timestamp::from_secs(3)).unwrap(), 0);
        let rows: i64 = connection.query_row("SELECT count(*) FROM a", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 1);
    }

    #[test]
    fn a_newer_or_other_history_is_refused() {
        let connection = database(&[ONE, TWO]);
        let newer = applied(&connection, &[ONE]);
        assert!(matches!(newer, Err(SchemaError::Newer { found: 2, known: 1 })), "{newer:?}");
        let edited = Migration { sql: "CREATE TABLE a (y)", ..ONE };
        let changed = applied(&connection, &[edited, TWO]);
        assert!(matches!(changed, Err(SchemaError::Changed { number: 1, .. })), "{changed:?}");
        let foreign = Connection::open_in_memory().unwrap();
        foreign.execute_batch("CREATE TABLE other (x)").unwrap();
        assert!(matches!(applied(&foreign, &[ONE]), Err(SchemaError::Foreign(_))));
    }

    #[test]
    fn a_step_that_fails_leaves_nothing_of_itself() {
        let mut connection = database(&[ONE]);
        let broken =
            Migration { number: 2, name: "two", sql: "CREATE TABLE b (x); INSERT INTO gone VALUES (1)" };
        assert!(migrate(&mut connection, &[ONE, broken], Timestamp::from_secs(2)).is_err());
        assert_eq!(migrate(&mut connection, &[ONE, TWO], Timestamp::from_secs(3)).unwrap(), 1);
    }
}
