//! `hookstead providers test`: requests with the verdict that they must get, run through the registry.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use hookstead_verify::Registry;
use hookstead_verify::vector::{self, Mismatch, Vector};
use serde::Serialize;

use super::{bad_record, read, record_name};
use crate::failure::{Exit, Failure};
use crate::output::{self, BAD, printable};

const EXAMPLES: &str = "\
Examples:
  hookstead providers test vectors.json
  hookstead providers test acme.json --record acme.toml
  hookstead providers test vectors.json --json | jq -r '.failures[].id'";

const JSON: &str = "\
JSON: {\"passed\", \"failed\", \"failures\": [{\"id\", \"reason\", \"note\"}]}. Exit code 1 if any failed, with and without \
--json.

A file is a list of vectors, or an object with such a list as `vectors`: id, provider, kind (verify, handshake, ack), \
request (method, path, headers, body_b64), config (secrets, url, jwks ...), now in Unix seconds, and expect (verdict, \
event_id, event_type, account, response). crates/hookstead-verify/vectors/ has one for every provider.";

/// Run requests with a known verdict through the registry, and print every one that gets another
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = JSON)]
pub(super) struct Test {
    /// The vectors, in JSON.
    file: PathBuf,
    /// A record to try with them, beside the built-in ones; may be given several times.
    #[arg(long, value_name = "FILE")]
    record: Vec<PathBuf>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    passed: usize,
    failed: usize,
    failures: Vec<Failed<'a>>,
}

#[derive(Serialize)]
struct Failed<'a> {
    id: &'a str,
    reason: String,
    note: &'a str,
}

pub(super) fn run(args: &Test) -> Result<()> {
    let registry = registry(&args.record)?;
    let vectors = vectors(args)?;
    let failed = |vector: &Vector| vector.check(&registry).err();
    let found: Vec<(&Vector, Mismatch)> =
        vectors.iter().filter_map(|vector| Some((vector, failed(vector)?))).collect();
    let (passed, failed) = (vectors.len() - found.len(), found.len());
    if args.json {
        let failures = found
            .iter()
            .map(|(vector, reason)| Failed { id: &vector.id, reason: reason.to_string(), note: &vector.note })
            .collect();
        output::json(&Document { passed, failed, failures })?;
    } else {
        for (vector, reason) in &found {
            let (id, reason) = (printable(&vector.id), printable(&reason.to_string()));
            output::line(format_args!("{BAD}FAILED{BAD:#}  {id}: {reason}"))?;
        }
        output::line(format_args!("{passed} passed, {failed} failed"))?;
    }
    if failed == 0 {
        return Ok(());
    }
    let message = format!("{failed} of {} vectors get another verdict", vectors.len());
    Err(Failure::new(Exit::Failed, "vectors-failed", message)
        .fix("if the vector is right, correct the record; see it with: hookstead providers show NAME")
        .into())
}

/// The built-in providers with the records of the command line.
fn registry(records: &[PathBuf]) -> Result<Registry> {
    let mut registry = Registry::new();
    for file in records {
        registry.add(record_name(file)?, &read(file)?).map_err(|error| bad_record(&error))?;
    }
    Ok(registry)
}

fn vectors(args: &Test) -> Result<Vec<Vector>> {
    let vectors = vector::parse(&read(&args.file)?).map_err(|error| {
        Failure::new(Exit::Refused, "bad-vectors", format!("{}: {error}", args.file.display()))
            .fix("the format: hookstead providers test --help")
    })?;
    if vectors.is_empty() {
        let message = format!("{} has no vectors", args.file.display());
        return Err(Failure::new(Exit::Refused, "no-vectors", message)
            .fix("an empty list proves nothing: add a good request, a bad one and a stale one")
            .into());
    }
    Ok(vectors)
}
