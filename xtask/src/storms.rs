//! `cargo xtask storms`: the storms of the tests at their full size, with a release build.

use anyhow::Result;

use crate::longer::{Longer, Output, Subject};

/// Sends `count` retries of one id at once, and as many conflicts under ten ids, to each store.
pub(crate) fn run(count: u32) -> Result<()> {
    Longer::build(Output::Shown, &[Subject::Binary])?.run(
        &format!("{count} retries and {count} conflicts at once"),
        "storms::",
        &[("HOOKSTEAD_STORM", count.to_string())],
    )
}
