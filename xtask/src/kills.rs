//! `cargo xtask kills`: the kill loop of the tests, longer and with a release build.

use anyhow::Result;

use crate::longer::{Longer, Output};

/// Kills the server `count` times on each store; the figures are printed by the test.
pub(crate) fn run(count: u32, seed: Option<u64>) -> Result<()> {
    let mut variables = vec![("HOOKSTEAD_KILLS", count.to_string())];
    variables.extend(seed.map(|seed| ("HOOKSTEAD_SEED", seed.to_string())));
    Longer::build(Output::Shown)?.run(
        &format!("kill the server {count} times under load"),
        "kill_loop::",
        &variables,
    )
}
