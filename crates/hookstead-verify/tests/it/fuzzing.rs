//! The functions of the fuzz targets over inputs that are kept: every vector, every record, and what was a finding.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use hookstead_verify::Template;
use hookstead_verify::fuzzing::{Requests, keys, record, template};
use libtest_mimic::Trial;
use serde_json::Value;

use crate::{inputs, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("fuzzing/requests", requests),
        trial("fuzzing/records", || records().iter().for_each(|input| record(input))),
        trial("fuzzing/templates", templates),
        trial("fuzzing/keys", published_keys),
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

/// Each template of each record over a request of a vector.
fn templates() {
    let records = records();
    let texts = records.iter().flat_map(|record| strings(record));
    let texts: BTreeSet<String> = texts.filter(|text| text.contains('{') && !text.contains('\0')).collect();
    let compiled = texts.iter().filter(|text| text.parse::<Template>().is_ok()).count();
    assert!(compiled > 300, "only {compiled} templates of {} texts", texts.len());
    let (_, requests) = Requests::new(&inputs::cases());
    for (text, request) in texts.iter().zip(requests.iter().cycle().step_by(7)) {
        // Before the request stand its source and its time.
        template(&[text.as_bytes(), b"\0", &request[6..]].concat());
    }
    found("template").iter().for_each(|input| template(input));
}

/// Every text of a record, wherever it stands.
fn strings(record: &[u8]) -> Vec<String> {
    fn collect(value: &toml::Value, texts: &mut Vec<String>) {
        match value {
            toml::Value::String(text) => texts.push(text.clone()),
            toml::Value::Array(values) => values.iter().for_each(|value| collect(value, texts)),
            toml::Value::Table(table) => {
                for (name, value) in table {
                    texts.push(name.clone());
                    collect(value, texts);
                }
            }
            _ => {}
        }
    }
    let mut texts = Vec::new();
    // What was found by the target for records need not be TOML.
    if let Ok(table) = String::from_utf8_lossy(record).parse::<toml::Table>() {
        collect(&toml::Value::Table(table), &mut texts);
    }
    texts
}

/// Each document of keys that a vector has, and each of its first halves.
fn published_keys() {
    let documents: BTreeSet<String> = inputs::raw().iter().flat_map(documents).collect();
    assert!(documents.len() >= 10, "only {} documents of keys", documents.len());
    for document in &documents {
        keys(document.as_bytes());
        keys(&document.as_bytes()[..document.len() / 2]);
    }
    found("keys").iter().for_each(|input| keys(input));
}

fn documents(vector: &Value) -> Vec<String> {
    let config = &vector["config"];
    let texts = |key: &str| {
        let values = config[key].as_object().into_iter().flat_map(|values| values.values());
        values
            .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            .collect::<Vec<_>>()
    };
    let jwks = config["jwks"].as_object().map(|_| config["jwks"].to_string());
    let secrets = config["secrets"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let public = secrets.filter(|secret| secret.starts_with("-----BEGIN")).map(str::to_owned);
    [texts("certs"), texts("keys")].concat().into_iter().chain(jwks).chain(public).collect()
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
