//! Bounds what strangers can make the server write to its log: so many lines a second, and a count of the
//! rest.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lines a second. A person reads no more, and a disk with the log on it does not notice them.
const LINES_PER_SECOND: u32 = 10;

/// A bound on log lines.
#[derive(Debug)]
pub(crate) struct Throttle(Mutex<Window>);

#[derive(Debug)]
struct Window {
    began_at: Instant,
    lines: u32,
    suppressed: u64,
}

impl Throttle {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Window { began_at: Instant::now(), lines: 0, suppressed: 0 }))
    }

    /// Whether a line may be written; then with the number of lines that were not, since the last one.
    pub(crate) fn admit(&self, now: Instant) -> Option<u64> {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(window.began_at) >= Duration::from_secs(1) {
            window.began_at = now;
            window.lines = 0;
        }
        if window.lines >= LINES_PER_SECOND {
            window.suppressed += 1;
            return None;
        }
        window.lines += 1;
        Some(std::mem::take(&mut window.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_not_written() {
        let throttle = Throttle::new();
        let now = Instant::now();
        let written = (0..100).filter(|_| throttle.admit(now).is_some()).count();
        assert_eq!(written, 10);
        assert_eq!(throttle.admit(now + Duration::from_secs(1)), Some(90));
        assert_eq!(throttle.admit(now + Duration::from_secs(1)), Some(0));
    }
}
