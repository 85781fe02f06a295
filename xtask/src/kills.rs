//! `cargo xtask kills`: the kill loop of the tests, longer and with a release build.

use anyhow::Result;

use crate::run::{cargo, check, step};

/// Kills the server `count` times on each store; the figures are printed by the test.
pub(crate) fn run(count: u32, seed: Option<u64>) -> Result<()> {
    let build = ["test", "--release", "--package", "hookstead-cli", "--test", "it"];
    step("build for release", || check(cargo(&build).arg("--no-run")))?;
    step(&format!("kill the server {count} times under load"), || {
        let mut test = cargo(&build);
        // One store after the other, so that neither's figures are the other's load.
        test.args(["--", "kill_loop::", "--nocapture", "--test-threads", "1"]);
        test.env("HOOKSTEAD_KILLS", count.to_string());
        if let Some(seed) = seed {
            test.env("HOOKSTEAD_SEED", seed.to_string());
        }
        check(&mut test)
    })
}
