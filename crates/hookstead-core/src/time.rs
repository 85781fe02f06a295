//! Instants and the clock that hands them out. Everything below the edge is given `now`; only a
//! [`Clock`] at the edge knows where it comes from.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// An instant: microseconds since 1970-01-01T00:00:00Z, UTC, without leap seconds.
///
/// Arithmetic saturates at the ends of the range, so that no deadline a stranger chose can overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The end of the range: later than every real instant.
    pub const MAX: Self = Self(i64::MAX);

    /// From microseconds since the epoch; any value is legal.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// From whole seconds since the epoch, saturating.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// Microseconds since the epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Whole seconds since the epoch, rounded towards the past.
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// This instant moved into the future, at most to [`Timestamp::MAX`].
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(micros(duration)))
    }

    /// This instant moved into the past.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(micros(duration)))
    }

    /// How long ago `earlier` was; zero if it lies in the future.
    pub fn since(self, earlier: Self) -> Duration {
        let elapsed = self.0.saturating_sub(earlier.0);
        Duration::from_micros(u64::try_from(elapsed).unwrap_or(0))
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC with `Z`, trailing zeros of the fraction dropped: `2026-02-02T02:40:00Z`.
    /// Outside the years that RFC 3339 can write, the microseconds and their unit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(instant) => write!(f, "{instant}"),
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

/// Where `now` comes from.
///
/// Two readings, since they answer different questions: [`Clock::now`] never jumps within a process
/// (leases, due times and records use it), [`Clock::wall`] is what the machine believes at this moment
/// (the tolerance of signed timestamps uses it, and nothing else).
pub trait Clock: Send + Sync {
    /// The wall time at start plus the monotonic time that has passed since.
    fn now(&self) -> Timestamp;
    /// The machine's wall time, jumps included.
    fn wall(&self) -> Timestamp;
}

/// A clock that moves when it is told to, for tests and simulations.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that stands at `start`.
    pub fn new(start: Timestamp) -> Self {
        Self(AtomicI64::new(start.0))
    }

    /// Moves the clock forwards.
    pub fn advance(&self, duration: Duration) {
        self.0.fetch_add(micros(duration), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }

    fn wall(&self) -> Timestamp {
        self.now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_rfc3339() {
        assert_eq!(Timestamp::from_secs(1_770_000_000).to_string(), "2026-02-02T02:40:00Z");
        assert_eq!(Timestamp::from_micros(1_770_000_000_250_000).to_string(), "2026-02-02T02:40:00.25Z");
        assert_eq!(Timestamp::MAX.to_string(), "9223372036854775807us");
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Timestamp::MAX.plus(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::from_secs(1).since(Timestamp::from_secs(2)), Duration::ZERO);
        assert_eq!(Timestamp::from_micros(-1).as_secs(), -1);
    }
}
