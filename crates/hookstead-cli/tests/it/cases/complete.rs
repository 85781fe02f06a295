//! Nothing is forgotten: every case of the themes has a test or stands in `put-off.md` with what it waits for.

use std::collections::{BTreeMap, BTreeSet};

use super::case::Case;

/// The themes that are tested here.
const THEMES: &[&str] = &[
    "raw-body",
    "body-kinds",
    "charset-newlines",
    "http-framing",
    "json-edge",
    "headers",
    "secrets",
    "body-limits",
    "timestamps-skew",
    "signature-format",
    "event-ids",
    "dedupe-conflict",
    "durability",
    "sqlite",
    "files-storage",
    "content-encoding",
    "redirects-inbound",
    "ack-semantics",
    "network-listen",
    "shutdown",
    "lease-processing",
    "retry-backoff",
    "dead-letter",
    "forward-http",
    "forward-security",
    "verification-handshake",
    "verify-policy",
    "url-signing-proxy",
    "secrets-leak",
    "upgrade-migration",
];

/// The modules that hold the tests.
const TESTS: &[&str] = &[
    include_str!("answers.rs"),
    include_str!("codings.rs"),
    include_str!("conflicts.rs"),
    include_str!("dead_letters.rs"),
    include_str!("durable.rs"),
    include_str!("event_ids.rs"),
    include_str!("forward.rs"),
    include_str!("http.rs"),
    include_str!("json_edge.rs"),
    include_str!("leaks.rs"),
    include_str!("leases.rs"),
    include_str!("network.rs"),
    include_str!("pushed.rs"),
    include_str!("raw_body.rs"),
    include_str!("retries.rs"),
    include_str!("secrets.rs"),
    include_str!("setting_up.rs"),
    include_str!("signatures.rs"),
    include_str!("timestamps.rs"),
    include_str!("upgrades.rs"),
];

const PUT_OFF: &str = include_str!("put-off.md");

/// More than this would be a promise that is not kept.
const PUT_OFF_MAX: usize = 10;

#[test]
fn every_case_is_run_or_put_off() {
    let wanted: BTreeSet<String> = Case::all()
        .iter()
        .filter(|case| THEMES.contains(&case.theme()))
        .map(|case| case.id().to_owned())
        .collect();
    assert_eq!(wanted.len(), 111);
    let (run, put_off) = (run(), put_off());
    let both: Vec<_> = run.iter().filter(|id| put_off.contains_key(*id)).collect();
    assert!(both.is_empty(), "run and put off: {both:?}");
    let known: BTreeSet<String> = run.iter().chain(put_off.keys()).cloned().collect();
    assert_eq!(known, wanted, "run or put off on the left, the cases of the themes on the right");
    assert!(put_off.len() <= PUT_OFF_MAX, "{put_off:?}");
    assert!(put_off.values().all(|why| why.len() > 20), "each with a reason: {put_off:?}");
}

/// The ids in the names of the tests, such as `b001_json_is_not_written_anew`.
fn run() -> BTreeSet<String> {
    let tests = TESTS.iter().flat_map(|module| module.split("#[test]\nfn ").skip(1));
    let id = |test: &str| test.split(['_', '(']).next().map(str::to_uppercase);
    tests.filter_map(id).filter(|id| id.len() == 4).collect()
}

/// The first and the third column of the first table.
fn put_off() -> BTreeMap<String, String> {
    let row = |line: &str| {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        match cells.as_slice() {
            ["", id, _theme, why, ..] if id.starts_with('B') => Some(((*id).to_owned(), (*why).to_owned())),
            _ => None,
        }
    };
    let table = PUT_OFF.split("\nSteps of cases").next().unwrap_or_default();
    table.lines().filter_map(row).collect()
}
