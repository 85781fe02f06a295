//! `cargo xtask overload`: the overload run of the tests, longer and harder, with a release build.

use anyhow::{Context, Result};

use crate::longer::{Longer, Output, Subject};

/// Slows the disk for `seconds` under `rate` requests a second, on each store.
pub(crate) fn run(seconds: u32, rate: u32, json: bool) -> Result<()> {
    let longer = Longer::build(if json { Output::Kept } else { Output::Shown }, &[Subject::Binary])?;
    let variables =
        [("HOOKSTEAD_OVERLOAD_SECONDS", seconds.to_string()), ("HOOKSTEAD_OVERLOAD_RATE", rate.to_string())];
    let what = format!("{rate} requests a second on a slow disk for {seconds} s");
    longer.run(&what, "overload::run", &variables)?;
    if json {
        let records = longer.records()?;
        println!("{}", serde_json::to_string_pretty(&records).context("cannot make JSON of the records")?);
    }
    Ok(())
}
