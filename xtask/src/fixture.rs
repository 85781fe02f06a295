//! `cargo xtask fixture`: stores of the present format, for the tests of later programs.

use std::path::Path;

use anyhow::Result;

use crate::run::{cargo, check};

const FIXTURES: &str = "crates/hookstead-store/tests/it/fixtures";

/// Makes one of each kind in `to`, or where the tests look for them.
pub(crate) fn run(to: Option<&Path>) -> Result<()> {
    let mut make = cargo(&["run", "--quiet", "--package", "hookstead-store", "--example", "fixture", "--"]);
    check(make.arg(to.unwrap_or(Path::new(FIXTURES))))
}
