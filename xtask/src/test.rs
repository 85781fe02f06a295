//! `cargo xtask test`: every test of the workspace, and the examples in its documentation.

use anyhow::Result;

use crate::run::{cargo, check, step};
use crate::{senders, setup};

/// Installs what is missing, then runs the tests whose names hold `filter`.
pub(crate) fn run(filter: Option<&str>, options: &[String]) -> Result<()> {
    step("set up what the tests need", setup::run)?;
    // Built apart from the run, so that the two times can be told apart.
    step("build the tests", || check(&mut cargo(&["test", "--workspace", "--all-features", "--no-run"])))?;
    step("run the tests", || {
        let mut tests = cargo(&["test", "--workspace", "--all-features", "--no-fail-fast"]);
        tests.args(filter).arg("--").args(options);
        check(tests.env(senders::VARIABLE, senders::folder()))
    })
}
