//! `cargo xtask test`: every test of the workspace, the examples in its documentation, and the example programs.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::failures::check_tests;
use crate::run::{cargo, check, root, step, target_dir};
use crate::{senders, setup};

/// Installs what is missing, then runs the tests whose names hold `filter`.
pub(crate) fn run(filter: Option<&str>, options: &[String]) -> Result<()> {
    step("set up what the tests need", setup::run)?;
    // Built apart from the run, so that the two times can be told apart.
    step("build the tests", || check(&mut cargo(&["test", "--workspace", "--all-features", "--no-run"])))?;
    step("run the tests", || {
        let mut tests = cargo(&["test", "--workspace", "--all-features", "--no-fail-fast"]);
        tests.args(filter).arg("--").args(options);
        check_tests(tests.env(senders::VARIABLE, senders::folder()))
    })?;
    if filter.is_none() { step("run the examples", run_examples) } else { Ok(()) }
}

/// Example programs that measure: they show nothing of how the product is used, and their figures want a quiet machine.
const MEASURING: [&str; 2] = ["files_rate", "growth"];

/// Runs every example program that shows how something is used to its end. They were built with the tests.
fn run_examples() -> Result<()> {
    let names = examples()?;
    if names.is_empty() {
        bail!("there is no example in crates/*/examples");
    }
    let built = target_dir().join("debug").join("examples");
    names.iter().try_for_each(|name| check(Command::new(built.join(name)).current_dir(root())))
}

/// The names of the programs in `crates/*/examples`, without those that measure.
fn examples() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for package in fs::read_dir(root().join("crates")).context("cannot list the crates")? {
        let folder = package.context("cannot list the crates")?.path().join("examples");
        if !folder.exists() {
            continue;
        }
        for file in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let path = file.with_context(|| format!("cannot list {}", folder.display()))?.path();
            names.extend(name(&path));
        }
    }
    names.retain(|name| !MEASURING.contains(&name.as_str()));
    names.sort_unstable();
    Ok(names)
}

fn name(path: &Path) -> Option<String> {
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    is_rust.then(|| path.file_stem().map(|stem| stem.to_string_lossy().into_owned())).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_all_crates_are_found() {
        let names = examples().unwrap();
        for name in ["axum_app", "record"] {
            assert!(names.iter().any(|found| found == name), "{name} in {names:?}");
        }
    }
}
