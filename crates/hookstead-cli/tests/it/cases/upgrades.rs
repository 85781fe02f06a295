//! Theme upgrade-migration: what an older program does with a newer store, and a newer one with an older store.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::case::text;
use super::owed::{post, source, stage};
use super::stage::Stage;

/// Raises the number of the format, as a later version would.
const RAISE_SQLITE: &str = "import sqlite3, sys\n\
    database = sqlite3.connect(sys.argv[1])\n\
    database.execute(\"INSERT INTO migrations VALUES (1000, 'later', 'x', 1)\")\n\
    database.commit()";
const RAISE_FILES: &str = "import json, sys\n\
    marker = json.load(open(sys.argv[1]))\n\
    marker['format'] = 1000\n\
    json.dump(marker, open(sys.argv[1], 'w'))";

#[test]
fn b218_a_newer_store_is_refused_and_not_touched() {
    let stores = [
        ("sqlite:hookstead.db", RAISE_SQLITE, "hookstead.db"),
        ("files:records", RAISE_FILES, "records/hookstead.json"),
    ];
    for (url, raise, file) in stores {
        let stage = stage("").store(&format!("url = \"{url}\"\n"));
        let server = stage.serve();
        post(&server, "one", b"x");
        let data = PathBuf::from(text(&server.ready()["data"]));
        assert!(server.stop().success());
        let raised = Command::new("python3").args(["-c", raise]).arg(data.join(file)).status();
        assert!(raised.expect("python3 starts").success(), "{url}");

        let before = contents(&data);
        let refused = stage.refused_start();
        assert_ne!(refused.exit_code, Some(0), "{url}: {refused:?}");
        assert!(
            refused.stderr.contains("1000") && refused.stderr.contains("newer program"),
            "{url}: {refused:?}"
        );
        let exported = stage.run(&["events", "export"]);
        assert!(exported.exit_code != Some(0) && exported.stdout.is_empty(), "{url}: {exported:?}");
        assert!(exported.stderr.contains("newer program"), "{url}: {exported:?}");
        assert!(contents(&data) == before, "{url}: the store was written to");
    }
}

/// A database with ten events, as a program with the first schema left it.
const OLD: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../hookstead-store/tests/it/fixtures/sqlite-schema-1/hookstead.db.gz"
);

/// What the copy holds: the newest migration, and how many events.
const LOOK: &str = "import sqlite3, sys\n\
    database = sqlite3.connect('file:' + sys.argv[1] + '?mode=ro', uri=True)\n\
    print(*database.execute('SELECT (SELECT max(number) FROM migrations), (SELECT count(*) FROM events)').fetchone())";

/// The start of a newer program keeps a copy of the database before it changes the schema.
#[test]
fn b219_the_copy_is_made_before_the_schema_is_changed() {
    let stage = Stage::at(1_770_003_000).source(&source("gen"));
    let data = stage.data().join(".hookstead");
    fs::create_dir(&data).expect("it can be made");
    let unpack = format!("gzip -dc '{OLD}' > '{}'", data.join("hookstead.db").display());
    assert!(Command::new("sh").args(["-c", &unpack]).status().expect("a shell starts").success());
    let server = stage.serve();
    assert_eq!(server.admin().events().len(), 10);
    server.kill9();
    let looked = Command::new("python3").args(["-c", LOOK]).arg(data.join("hookstead.db.schema-1")).output();
    let looked = looked.expect("python3 starts");
    assert_eq!(String::from_utf8_lossy(&looked.stdout).trim(), "1 10", "{looked:?}");
}

/// The bytes of each file of the store; the lock and what readers share are no part of it.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("it can be listed") {
        let path = entry.expect("it can be listed").path();
        let name = path.to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(contents(&path));
        } else if name.contains("hookstead.db") && !name.ends_with("-shm") && !name.ends_with(".lock")
            || name.contains("/records/") && !name.ends_with("lock")
        {
            found.insert(path.clone(), fs::read(&path).expect("it can be read"));
        }
    }
    // To read a database without a log SQLite makes an empty one.
    found.retain(|_, bytes| !bytes.is_empty());
    found
}
