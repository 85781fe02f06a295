//! `cargo xtask kills`: the kill loops of the tests, longer and with a release build.

use anyhow::Result;

use crate::longer::{Longer, Output, Subject};

/// What the server is killed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Accepting.
    Accepts,
    /// Accepting, delivering and settling.
    Deliveries,
}

/// Kills the server `count` times on each store; the figures are printed by the test.
pub(crate) fn run(work: Work, count: u32, seed: Option<u64>) -> Result<()> {
    let (variable, filter, what) = match work {
        Work::Accepts => ("HOOKSTEAD_KILLS", "kill_loop::", "under load"),
        Work::Deliveries => ("HOOKSTEAD_DELIVERY_KILLS", "delivery_kills::", "while it delivers"),
    };
    let mut variables = vec![(variable, count.to_string())];
    variables.extend(seed.map(|seed| ("HOOKSTEAD_SEED", seed.to_string())));
    Longer::build(Output::Shown, &[Subject::Binary])?.run(
        &format!("kill the server {count} times {what}"),
        filter,
        &variables,
    )
}
