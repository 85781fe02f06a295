//! Each vector as a test: verdict, identity, and what is answered.

use std::collections::BTreeMap;
use std::fs;

use hookstead_verify::Registry;
use libtest_mimic::Trial;

use crate::inputs;
use crate::trial;

/// Vectors that came from the study of providers, and our own beside them. A lost file must not look like success.
const VECTORS_MIN: usize = 2_650;

/// Most vectors whose expectation is not ours.
const EXCEPTIONS_MAX: usize = 25;

pub(crate) fn trials() -> Vec<Trial> {
    let cases = inputs::cases();
    assert!(cases.len() >= VECTORS_MIN, "only {} vectors found", cases.len());
    let exceptions = exceptions();
    assert!(exceptions.len() <= EXCEPTIONS_MAX, "{} exceptions", exceptions.len());
    for id in exceptions.keys() {
        assert!(cases.iter().any(|case| case.id == *id), "the exception `{id}` is no vector");
    }
    let test = |case: hookstead_verify::vector::Vector| {
        let reason = exceptions.get(&case.id).cloned();
        trial(case.id.clone(), move || match (case.check(Registry::builtin()), reason) {
            (Ok(()), None) | (Err(_), Some(_)) => {}
            (Ok(()), Some(reason)) => panic!("passes, and is an exception: {reason}"),
            (Err(mismatch), None) => panic!("{mismatch}"),
        })
    };
    cases.into_iter().map(test).collect()
}

/// Vectors that are not as we decide, each with its reason: `vectors/exceptions.toml`.
fn exceptions() -> BTreeMap<String, String> {
    let text = fs::read_to_string(inputs::root().join("vectors").join("exceptions.toml")).unwrap();
    let exceptions: BTreeMap<String, String> = toml::from_str(&text).unwrap();
    assert!(exceptions.values().all(|reason| reason.len() > 20), "an exception needs its reason");
    exceptions
}
