//! `send --count`: many requests, some at once, and a summary.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;
use tokio::task::JoinSet;

use super::Posting;
use crate::failure::{Exit, Failure};
use crate::output::{self, BOLD};
use crate::sample::Sample;

/// One answer, as far as the summary needs it.
struct Answered {
    status: u16,
    as_asked: bool,
    took: Duration,
}

/// Sends `count` requests, at most `parallel` at once. The first that gets no answer ends it.
pub(super) async fn send(posting: Posting, first: Option<Sample>, count: u32, parallel: u16) -> Result<()> {
    let json = posting.json;
    let work = Arc::new(Work { posting, first, left: AtomicU32::new(count) });
    let mut workers = JoinSet::new();
    let begun = Instant::now();
    for _ in 0..u32::from(parallel).min(count) {
        workers.spawn(work.clone().run());
    }
    let mut answers = Vec::new();
    while let Some(worker) = workers.join_next().await {
        answers.extend(worker??);
    }
    let summary = Summary { answers, took: begun.elapsed() };
    if json {
        output::json(&summary.document())?;
    } else {
        summary.print()?;
    }
    summary.check()
}

struct Work {
    posting: Posting,
    first: Option<Sample>,
    left: AtomicU32,
}

impl Work {
    async fn run(self: Arc<Self>) -> Result<Vec<Answered>> {
        let mut answers = Vec::new();
        while self.take_one() {
            let sample = self.posting.sample(self.first.as_ref())?;
            let sent = self.posting.post(self.posting.variation, sample).await?;
            let (status, took) = (sent.answer.status, sent.answer.took);
            answers.push(Answered { status, as_asked: sent.as_asked(), took });
        }
        Ok(answers)
    }

    fn take_one(&self) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

/// The summary for programs.
#[derive(Serialize)]
struct Document {
    sent: usize,
    as_asked: usize,
    statuses: BTreeMap<u16, usize>,
    ms: f64,
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
}

struct Summary {
    answers: Vec<Answered>,
    took: Duration,
}

impl Summary {
    fn as_asked(&self) -> usize {
        self.answers.iter().filter(|answer| answer.as_asked).count()
    }

    fn statuses(&self) -> BTreeMap<u16, usize> {
        self.answers.iter().fold(BTreeMap::new(), |mut counts, answer| {
            *counts.entry(answer.status).or_default() += 1;
            counts
        })
    }

    fn per_second(&self) -> f64 {
        let sent = u32::try_from(self.answers.len()).unwrap_or(u32::MAX);
        f64::from(sent) / self.took.as_secs_f64().max(f64::EPSILON)
    }

    /// The time within which so many of a hundred were answered (nearest rank).
    fn percentile(&self, percent: usize) -> Duration {
        let mut times: Vec<Duration> = self.answers.iter().map(|answer| answer.took).collect();
        times.sort_unstable();
        let rank = (times.len() * percent).div_ceil(100).max(1);
        times.get(rank - 1).copied().unwrap_or_default()
    }

    fn print(&self) -> Result<()> {
        let (sent, took) = (output::grouped(self.answers.len() as u64), output::took(self.took));
        output::labelled("sent", format_args!("{sent} in {took}, {:.0} per second", self.per_second()))?;
        for (status, count) in self.statuses() {
            let count = output::grouped(count as u64);
            output::labelled("answer", format_args!("{BOLD}{status}{BOLD:#} × {count}"))?;
        }
        let (p50, p99) = (output::took(self.percentile(50)), output::took(self.percentile(99)));
        output::labelled("time", format_args!("p50 {p50}, p99 {p99}"))
    }

    fn document(&self) -> Document {
        Document {
            sent: self.answers.len(),
            as_asked: self.as_asked(),
            statuses: self.statuses(),
            ms: output::millis(self.took),
            per_second: self.per_second().round(),
            p50_ms: output::millis(self.percentile(50)),
            p99_ms: output::millis(self.percentile(99)),
        }
    }

    fn check(&self) -> Result<()> {
        let (sent, as_asked) = (self.answers.len(), self.as_asked());
        if as_asked == sent {
            return Ok(());
        }
        let exit = if as_asked > 0 { Exit::Partly } else { Exit::Refused };
        let message = format!("{} of {sent} answers were not as asked", sent - as_asked);
        Err(Failure::new(exit, "not-as-asked", message)
            .fix("send one alone to see why: the same without --count")
            .into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(millis: impl IntoIterator<Item = u64>) -> Summary {
        let answer = |ms| Answered { status: 202, as_asked: true, took: Duration::from_millis(ms) };
        Summary { answers: millis.into_iter().map(answer).collect(), took: Duration::from_secs(2) }
    }

    #[test]
    fn percentiles_are_answers_that_were_seen() {
        let hundred = summary((1..=100).rev());
        assert_eq!(hundred.percentile(50), Duration::from_millis(50));
        assert_eq!(hundred.percentile(99), Duration::from_millis(99));
        assert_eq!(summary([7]).percentile(99), Duration::from_millis(7));
        assert_eq!(summary([]).percentile(50), Duration::ZERO);
    }

    #[test]
    fn some_refusals_are_partly_done_and_only_refusals_are_refused() {
        let mut mixed = summary([1, 2]);
        assert!(mixed.check().is_ok());
        mixed.answers[0].as_asked = false;
        let exit = |summary: &Summary| summary.check().unwrap_err().downcast_ref::<Failure>().unwrap().exit();
        assert_eq!(exit(&mixed), Exit::Partly);
        mixed.answers[1].as_asked = false;
        assert_eq!(exit(&mixed), Exit::Refused);
        assert!((mixed.document().per_second - 1.0).abs() < f64::EPSILON);
    }
}
