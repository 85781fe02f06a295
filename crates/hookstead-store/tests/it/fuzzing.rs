//! The functions of the fuzz targets over inputs that are kept: the records and the log of the fixture, and what was a
//! finding.

use std::path::Path;

use hookstead_store::fuzzing::{Cursors, backup, entry, journal, owner, wal};

use crate::case::cases;

cases!("fuzzing":
    entries_and_logs_of_the_fixture,
    a_log_of_sqlite,
    cursors_and_what_describes_a_backup,
    what_was_a_finding,
    a_finding_under_the_name_of_no_target_is_told,
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

/// As they are, cut at each byte, and with each bit of them flipped.
fn cursors_and_what_describes_a_backup() {
    let scratch = tempfile::tempdir().expect("there is a place for temporary files");
    let cursors = Cursors::new(scratch.path()).expect("the stores can be made");
    for text in
        ["3.1.1", "0.0.0", "18446744073709551615.0.0", "2", "5.0.0", "9223372036854775808.4294967296.1"]
    {
        variations(text.as_bytes()).for_each(|input| cursors.run(&input));
    }
    for text in [
        r#"{"format":1,"kind":"sqlite","begun_at":"2026-02-02T02:40:00Z","files":1,"bytes":2,"events":3,"problems":0}"#,
        "01  store/hookstead.db\n02  store/x\n",
        "pid = 1\nstarted_at_us = 1\nadmin = 127.0.0.1:1\n",
    ] {
        variations(text.as_bytes()).for_each(|input| {
            backup(&input);
            owner(&input);
        });
    }
}

fn variations(text: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let cut = (0..=text.len()).map(|at| text[..at].to_vec());
    let flipped = (0..text.len() * 8).map(|bit| {
        let mut text = text.to_vec();
        text[bit / 8] ^= 1 << (bit % 8);
        text
    });
    cut.chain(flipped)
}

/// The targets that are run here, and those that the tests of other crates run.
const HERE: [&str; 5] = ["backup", "cursor", "entry", "journal", "wal"];
const ELSEWHERE: [&str; 7] = ["answer", "config", "keys", "names", "record", "request", "template"];

fn what_was_a_finding() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let mut targets: Vec<String> = names(&root.join("fuzz_targets"));
    targets.sort_unstable();
    let mut known: Vec<String> = HERE.iter().chain(&ELSEWHERE).map(|name| format!("{name}.rs")).collect();
    known.sort_unstable();
    assert_eq!(targets, known, "what was a finding of a target is run by the tests of one crate");
    let scratch = tempfile::tempdir().expect("there is a place for temporary files");
    let cursors = Cursors::new(scratch.path()).expect("the stores can be made");
    for (target, input) in kept(&root.join("regressions")).expect("each folder is a target's") {
        match target.as_str() {
            "backup" => {
                backup(&input);
                owner(&input);
            }
            "cursor" => cursors.run(&input),
            "entry" => entry(&input),
            "journal" => journal(&input),
            "wal" => wal(&input),
            other => assert!(ELSEWHERE.contains(&other), "{other}"),
        }
    }
}

/// Otherwise one that is kept under a misspelt name would never be run.
fn a_finding_under_the_name_of_no_target_is_told() {
    let folder = tempfile::tempdir().expect("there is a place for temporary files");
    for path in ["README.md", "wal/a", "wal/b", "entry/of-a-day/c", "keys/d"] {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        std::fs::write(path, b"input").expect("it can be written");
    }
    let mut found: Vec<_> =
        kept(folder.path()).expect("all are targets").into_iter().map(|(name, _)| name).collect();
    found.sort_unstable();
    assert_eq!(found, ["entry", "keys", "wal", "wal"]);
    std::fs::create_dir(folder.path().join("jurnal")).expect("it can be made");
    assert_eq!(kept(folder.path()), Err("jurnal".to_owned()));
}

/// The inputs below a folder, with their target's name; or a folder that is named after no target.
fn kept(root: &Path) -> Result<Vec<(String, Vec<u8>)>, String> {
    let mut kept = Vec::new();
    for name in names(root).into_iter().filter(|name| root.join(name).is_dir()) {
        if !HERE.iter().chain(&ELSEWHERE).any(|target| *target == name) {
            return Err(name);
        }
        kept.extend(files(&root.join(&name)).into_iter().map(|input| (name.clone(), input)));
    }
    Ok(kept)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("it can be listed");
    entries.map(|entry| entry.expect("it can be listed").file_name().to_string_lossy().into_owned()).collect()
}

/// What is in the files of a folder and of those below it.
fn files(folder: &Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("it can be listed");
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    let content = |path: std::path::PathBuf| {
        if path.is_dir() { files(&path) } else { vec![std::fs::read(path).expect("it can be read")] }
    };
    paths.flat_map(content).collect()
}
