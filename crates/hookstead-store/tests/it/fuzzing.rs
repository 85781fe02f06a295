//! The functions of the fuzz targets over inputs that are kept: the records and the log of the fixture, and what was a
//! finding.

use std::path::Path;

use hookstead_store::fuzzing::{Cursors, backup, entry, journal, owner, wal};

use crate::case::cases;

cases!("fuzzing":
    entries_and_logs_of_the_fixture,
    a_log_of_sqlite,
    what_was_a_finding,
);

fn entries_and_logs_of_the_fixture() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/files-format-1");
    let files = files(&folder);
    assert!(files.len() > 10, "{files:?}");
    for file in files {
        entry(&file);
        journal(&file);
        for cut in [1, file.len() / 2, file.len() - 1] {
            entry(&file[..cut]);
            journal(&file[..cut]);
        }
    }
}

/// Two frames of the smallest page, of which none, one and both are as SQLite would have written them.
fn a_log_of_sqlite() {
    let frame = |page: u8| [&[0, 0, 0, page, 0, 0, 0, page][..], &[7; 16], &[page; 512]].concat();
    for sealed in 0..=2 {
        wal(&[&[sealed, 1][..], &[9; 512], &[5; 32], &frame(1), &frame(2)].concat());
    }
}

fn what_was_a_finding() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/regressions");
    let scratch = tempfile::tempdir().expect("there is a place for temporary files");
    let cursors = Cursors::new(scratch.path()).expect("the stores can be made");
    cursors.run(b"3.1.1");
    cursors.run(b"18446744073709551615.0.0");
    let all =
        |target: &str, run: &dyn Fn(&[u8])| files(&root.join(target)).iter().for_each(|input| run(input));
    all("entry", &entry);
    all("journal", &journal);
    all("wal", &wal);
    all("cursor", &|input| cursors.run(input));
    all("backup", &backup);
    all("backup", &owner);
}

/// What is in the files of a folder and of those below it; nothing if it is not there.
fn files(folder: &Path) -> Vec<Vec<u8>> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    let content = |path: std::path::PathBuf| {
        if path.is_dir() { files(&path) } else { vec![std::fs::read(path).expect("it can be read")] }
    };
    paths.flat_map(content).collect()
}
