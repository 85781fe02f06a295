//! What became of the requests of a stretch of time.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use super::load::Sent;

/// Figures of the requests that were due in a stretch of time.
#[derive(Debug)]
pub(super) struct Phase {
    pub(super) name: &'static str,
    pub(super) sent: usize,
    /// How long the accepted ones took, sorted.
    accepted: Vec<Duration>,
    /// How long the refused ones took, sorted.
    refused: Vec<Duration>,
    /// Answers that are neither 202 nor 503 with `Retry-After`, by status; 0 is none at all.
    pub(super) others: BTreeMap<u16, usize>,
}

impl Phase {
    pub(super) fn of(name: &'static str, all: &[Sent], due: &Range<Duration>) -> Self {
        let mut phase =
            Self { name, sent: 0, accepted: Vec::new(), refused: Vec::new(), others: BTreeMap::new() };
        for sent in all.iter().filter(|sent| due.contains(&sent.due)) {
            phase.sent += 1;
            match (sent.status, sent.retry_after) {
                (202, _) => phase.accepted.push(sent.took),
                (503, true) => phase.refused.push(sent.took),
                (status, _) => *phase.others.entry(status).or_default() += 1,
            }
        }
        phase.accepted.sort();
        phase.refused.sort();
        phase
    }

    pub(super) fn accepted(&self) -> usize {
        self.accepted.len()
    }

    pub(super) fn refused(&self) -> usize {
        self.refused.len()
    }

    /// Zero if none was accepted.
    pub(super) fn accepted_percentile(&self, percent: usize) -> Duration {
        percentile(&self.accepted, percent)
    }

    /// Zero if none was refused.
    pub(super) fn refused_percentile(&self, percent: usize) -> Duration {
        percentile(&self.refused, percent)
    }
}

/// The heads of the lines that a [`Phase`] prints.
pub(super) const HEADS: &str = "disk        sent  accepted   refused   others   accepted p50 / p99 / max ms   refused p50 / p99 / max ms";

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others: usize = self.others.values().sum();
        let times = |times: &[Duration]| {
            let [p50, p99, max] = [50, 99, 100].map(|percent| percentile(times, percent).as_millis());
            format!("{p50:>9} / {p99:>6} / {max:>6}")
        };
        let Self { name, sent, accepted, refused, .. } = self;
        write!(
            f,
            "{name:<8} {sent:>7} {:>9} {:>9} {others:>8}   {}      {}",
            accepted.len(),
            refused.len(),
            times(accepted),
            times(refused)
        )
    }
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}
