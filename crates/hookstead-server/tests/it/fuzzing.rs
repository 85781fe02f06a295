//! The functions of the fuzz targets over inputs that are kept: a few of each kind, and what was a finding.

use std::path::{Path, PathBuf};

use hookstead_server::fuzzing::{answer, config, names};

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The inputs that are kept of a target, which there is.
fn found(fuzz: &Path, target: &str) -> Vec<Vec<u8>> {
    let program = fuzz.join("fuzz_targets").join(target).with_extension("rs");
    assert!(program.is_file(), "there is no target `{target}`");
    let folder = fuzz.join("regressions").join(target);
    if !folder.is_dir() {
        return Vec::new();
    }
    let files = std::fs::read_dir(folder).unwrap();
    files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
}

fn check(target: &str, run: fn(&[u8]), inputs: &[&[u8]]) {
    inputs.iter().for_each(|input| run(input));
    found(&fuzz(), target).iter().for_each(|input| run(input));
}

#[test]
fn what_is_kept_of_a_target_is_found_and_a_misspelt_target_is_told() {
    let fuzz = tempfile::tempdir().unwrap();
    for (folder, file) in
        [("fuzz_targets", "names.rs"), ("regressions/names", "a"), ("regressions/names", "b")]
    {
        let folder = fuzz.path().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(file), b"input").unwrap();
    }
    assert_eq!(found(fuzz.path(), "names"), [b"input", b"input"]);
    let told = std::panic::catch_unwind(|| found(fuzz.path(), "name"));
    assert!(told.is_err(), "{told:?}");
}

#[test]
fn names_that_were_findings_are_read_as_they_are_shown() {
    let id = b"019c1c38-cb10-7912-8ceb-01e2f720c499.1.1";
    check(
        "names",
        names,
        &[id, &id[..36], b"0001", b"oOil", b"@", b"shop:a:b", b"\xff:\xff", b"a: b\r\n: c\r\n"],
    );
}

#[test]
fn answers_that_were_findings_ask_for_no_endless_wait() {
    check(
        "answer",
        answer,
        &[b"120", b"99999999999999999999", b"Wed, 21 Oct 2026 07:28:00 GMT", b"http://0x7f.1/"],
    );
}

#[test]
fn configurations_that_were_findings_are_judged() {
    check(
        "config",
        config,
        &[b"", b"[store]\nurl = 1\n", b"[sources.a]\nprovider = \"stripe\"\nsecret = { env = \"SECRET\" }\n"],
    );
}
