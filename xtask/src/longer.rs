//! Tests of the binary at another size than in the test command: with a release build, one after the other so that
//! none is another's load, and with their figures shown.

use anyhow::Result;

use crate::run::{cargo, check, step};

const TEST: [&str; 6] = ["test", "--release", "--package", "hookstead-cli", "--test", "it"];

/// The tests, built.
pub(crate) struct Longer;

impl Longer {
    /// Builds them for release.
    pub(crate) fn build() -> Result<Self> {
        step("build for release", || check(cargo(&TEST).arg("--no-run")))?;
        Ok(Self)
    }

    /// Runs those whose names begin with `filter`, with these variables in their environment.
    pub(crate) fn run(&self, what: &str, filter: &str, variables: &[(&str, String)]) -> Result<()> {
        step(what, || {
            let mut test = cargo(&TEST);
            test.args(["--", filter, "--nocapture", "--test-threads", "1"]);
            test.envs(variables.iter().map(|(name, value)| (name, value)));
            check(&mut test)
        })
    }
}
