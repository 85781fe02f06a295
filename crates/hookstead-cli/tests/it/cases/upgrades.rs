//! Theme upgrade-migration: what an older program does with a newer store.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::case::text;
use super::owed::{post, stage};

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
        assert!(contents(&data) == before, "{url}: the store was written to");
    }
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
