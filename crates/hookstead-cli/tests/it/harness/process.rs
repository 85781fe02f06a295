//! What a running server holds, as the kernel counts it.

use std::fs;
use std::thread::park_timeout;
use std::time::{Duration, Instant};

use super::Server;

/// Far above every time limit that a test sets, and enough for hundreds of commits one by one, also on a machine whose
/// disk is slow and whose other half is busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Between two looks, so that those who wait leave the machine to what they wait for.
const LOOK_EVERY: Duration = Duration::from_millis(5);

impl Server {
    /// How many files and sockets the process has open.
    pub(crate) fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).expect("a process of ours").count()
    }

    /// Its memory at the moment, in KiB.
    pub(crate) fn memory_kib(&self) -> u64 {
        self.status_kib("VmRSS:")
    }

    /// The most memory that it ever had, in KiB.
    pub(crate) fn memory_peak_kib(&self) -> u64 {
        self.status_kib("VmHWM:")
    }

    fn status_kib(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("a process of ours");
        let value =
            status.lines().find_map(|line| line.strip_prefix(field)).expect("a field of the kernel's");
        value.trim().split(' ').next().and_then(|number| number.parse().ok()).expect("a number of KiB")
    }
}

/// Asks again and again until the answer is yes; `state` says how things stand if it never is.
pub(crate) fn wait_until(mut holds: impl FnMut() -> bool, state: impl Fn() -> String) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {}", state());
        park_timeout(LOOK_EVERY);
    }
}
