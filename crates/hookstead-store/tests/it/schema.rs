//! The schema as a person reads it, against the file beside this one. After a change of the migrations run
//! with `UPDATE_SNAPSHOTS=1` and read the difference.

use std::path::Path;

use rusqlite::Connection;

use crate::backend::Folder;
use crate::case::cases;

cases!("schema":
    the_schema_is_the_one_that_was_reviewed,
    the_settings_that_last_are_those_of_the_first_day,
);

fn the_schema_is_the_one_that_was_reviewed() {
    let folder = Folder::new();
    drop(folder.open());
    let raw = Connection::open(folder.database()).expect("anybody can open it");
    let sql = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type DESC, name";
    let mut statement = raw.prepare(sql).expect("it is legal");
    let rows = statement.query_map([], |row| row.get::<_, String>(0)).expect("it can be read");
    let schema = rows.map(|sql| sql.expect("it is text") + ";\n").collect::<Vec<_>>().join("\n");
    let snapshot = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/schema.sql");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&snapshot, &schema).expect("it can be written");
    }
    let reviewed = std::fs::read_to_string(&snapshot).expect("it is there");
    assert!(schema == reviewed, "the schema is now:\n{schema}");
}

fn the_settings_that_last_are_those_of_the_first_day() {
    let folder = Folder::new();
    drop(folder.open());
    let raw = Connection::open(folder.database()).expect("anybody can open it");
    let number =
        |name: &str| -> i64 { raw.pragma_query_value(None, name, |row| row.get(0)).expect("it can be read") };
    assert_eq!(number("page_size"), 8192);
    assert_eq!(number("auto_vacuum"), 2, "incremental");
    assert_eq!(number("application_id"), 0x486b_7374);
    let mode: String =
        raw.pragma_query_value(None, "journal_mode", |row| row.get(0)).expect("it can be read");
    assert_eq!(mode, "wal");
}
