//! The real clock. Everything else is given `now`.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use hookstead_core::{Clock, Timestamp};

/// The machine's clock: [`Clock::now`] is the wall time at start plus the monotonic time since, so that
/// setting the machine's clock moves no lease and no due time.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
    wall_at_start: Timestamp,
}

impl SystemClock {
    /// A clock that starts now.
    pub fn new() -> Self {
        Self { started: Instant::now(), wall_at_start: wall() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        self.wall_at_start.plus(self.started.elapsed())
    }

    fn wall(&self) -> Timestamp {
        wall()
    }
}

fn wall() -> Timestamp {
    let epoch = Timestamp::default();
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => epoch.plus(since),
        Err(before) => epoch.minus(before.duration()),
    }
}
