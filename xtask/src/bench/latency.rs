//! How long answers took.

use std::time::Duration;

use serde::Serialize;

use super::statistics::percentile;

/// Every answer's time, in microseconds.
#[derive(Default)]
pub(super) struct Times(Vec<u32>);

impl Times {
    pub(super) fn add(&mut self, time: Duration) {
        // 71 minutes are longer than anything here waits.
        self.0.push(u32::try_from(time.as_micros()).unwrap_or(u32::MAX));
    }

    /// Puts them in order and reads the percentiles off; zeros when there are none.
    pub(super) fn percentiles(mut self) -> Percentiles {
        self.0.sort_unstable();
        let at = |share| percentile(&self.0, share).map_or(0.0, |micros| f64::from(micros) / 1000.0);
        Percentiles { p50_ms: at(0.5), p99_ms: at(0.99), p999_ms: at(0.999), max_ms: at(1.0) }
    }
}

/// Of the times of a run, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Percentiles {
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) p999_ms: f64,
    pub(super) max_ms: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_percentiles_in_milliseconds() {
        let mut times = Times::default();
        for micros in (1..=1000).rev() {
            times.add(Duration::from_micros(micros));
        }
        let Percentiles { p50_ms, p99_ms, p999_ms, max_ms } = times.percentiles();
        assert_eq!([p50_ms, p99_ms, p999_ms, max_ms], [0.5, 0.99, 0.999, 1.0]);
    }
}
