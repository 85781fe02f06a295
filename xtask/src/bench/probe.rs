//! What the disk can do at that moment: one append and one fdatasync after the other, to a file that grows.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::latency::{Percentiles, Times};

/// The size of an append: a page.
const APPEND_BYTES: usize = 4096;

/// Enough for a median.
const APPENDS_MAX: u32 = 400;

/// On a slow disk fewer must do.
const TIME_MAX: Duration = Duration::from_secs(1);

/// Appends and syncs in `folder` for at most a second.
pub(super) fn run(folder: &Path) -> Result<Percentiles> {
    let mut file =
        tempfile::tempfile_in(folder).with_context(|| format!("no room in {}", folder.display()))?;
    let page = [0x5a; APPEND_BYTES];
    let mut times = Times::default();
    let start = Instant::now();
    for _ in 0..APPENDS_MAX {
        let begin = Instant::now();
        file.write_all(&page).context("cannot append to the probe's file")?;
        file.sync_data().context("cannot sync the probe's file")?;
        times.add(begin.elapsed());
        if start.elapsed() > TIME_MAX {
            break;
        }
    }
    Ok(times.percentiles())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_probe_takes_some_time() {
        let folder = tempfile::tempdir().unwrap();
        let times = super::run(folder.path()).unwrap();
        assert!(times.p50_ms > 0.0 && times.p50_ms <= times.p99_ms, "{times:?}");
    }
}
