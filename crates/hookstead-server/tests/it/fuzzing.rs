//! The functions of the fuzz targets over inputs that are kept: a few of each kind, and what was a finding.

use std::path::Path;

use hookstead_server::fuzzing::{answer, config, names};

fn found(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/regressions").join(target);
    let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
    files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
}

fn check(target: &str, run: fn(&[u8]), inputs: &[&[u8]]) {
    inputs.iter().for_each(|input| run(input));
    found(target).iter().for_each(|input| run(input));
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
