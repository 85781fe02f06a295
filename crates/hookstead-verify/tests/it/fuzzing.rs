//! The functions of the fuzz targets over inputs that are kept: every vector, every record, and what was a finding.

use std::fs;
use std::path::PathBuf;

use hookstead_verify::fuzzing::{Requests, keys, record, template};
use libtest_mimic::Trial;

use crate::{inputs, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("fuzzing/requests", requests),
        trial("fuzzing/records", || records().iter().for_each(|input| record(input))),
        trial("fuzzing/templates", || found("template").iter().for_each(|input| template(input))),
        trial("fuzzing/keys", || found("keys").iter().for_each(|input| keys(input))),
    ]
}

/// Each vector at its time, a day later, and for another source.
fn requests() {
    let (requests, seeds) = Requests::new(&inputs::cases());
    assert!(seeds.len() > 2_000, "only {} vectors became inputs", seeds.len());
    for seed in &seeds {
        requests.run(seed);
    }
    for seed in seeds.iter().step_by(7) {
        let (source, rest) = seed.split_at(2);
        requests.run(&[source, &86_400_i32.to_be_bytes(), &rest[4..]].concat());
        requests.run(&[&[source[1], source[0]], rest].concat());
    }
    found("request").iter().for_each(|input| requests.run(input));
}

fn records() -> Vec<Vec<u8>> {
    let folder = fs::read_dir(inputs::root().join("providers")).unwrap();
    let files = folder
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "toml"));
    files.map(|path| fs::read(path).unwrap()).chain(found("record")).collect()
}

/// The inputs that are kept of a target.
fn found(target: &str) -> Vec<Vec<u8>> {
    let folder: PathBuf = inputs::root().join("../../fuzz/regressions").join(target);
    let Ok(files) = fs::read_dir(folder) else { return Vec::new() };
    files.map(|file| fs::read(file.unwrap().path()).unwrap()).collect()
}
