//! The bars: which ratio of which figures, and what it must be. Pure; `docs/performance.md` says what each means.

use serde::Serialize;

use super::contestant::{Contestant, Missing, Ran};
use super::growth::{self, Growth};
use super::hookstead::BODY_MEMORY_MIB;
use super::rounds::{Agenda, Round};
use super::settings::BODY_BYTES;
use super::statistics::{Spread, count, ratio};

use Contestant::{
    Delivered64, Duplicates64, Fastapi64, Fastify64, Files64, Hookstead64, Hookstead256, Log64, Noop64,
    Noop256, Seed64,
};

/// What the server may hold beside the memory for bodies.
const MEMORY_BESIDE_MIB: u64 = 128;

const MEMORY_MIB_MAX: f64 = (BODY_MEMORY_MIB + MEMORY_BESIDE_MIB) as f64;

/// What a figure must be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Must {
    AtLeast(f64),
    AtMost(f64),
}

impl Must {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}

/// Where a figure comes from.
#[derive(Clone, Copy)]
enum Source {
    /// Each round has one; the median counts.
    Rounds(fn(&Round) -> Option<f64>),
    /// The growth bench has one.
    Growth(fn(&Growth) -> Option<f64>),
}

/// One line of the table. A bar has one or two.
pub(super) struct Figure {
    pub(super) bar: &'static str,
    pub(super) what: &'static str,
    must: Option<Must>,
    needs: &'static [Contestant],
    source: Source,
}

const fn of_rounds(
    bar: &'static str,
    what: &'static str,
    must: Option<Must>,
    needs: &'static [Contestant],
    value: fn(&Round) -> Option<f64>,
) -> Figure {
    Figure { bar, what, must, needs, source: Source::Rounds(value) }
}

const fn of_growth(what: &'static str, value: fn(&Growth) -> Option<f64>) -> Figure {
    Figure { bar: GROWTH_BAR, what, must: None, needs: &[], source: Source::Growth(value) }
}

const GROWTH_BAR: &str = "P8";
const MEMORY_BAR: &str = "P12";
const PULL_BAR: &str = "P15";

/// All figures, in the order of the table.
pub(super) const FIGURES: &[Figure] = &[
    of_rounds(
        "P1",
        "accepts over no-op axum, 64 connections",
        Some(Must::AtLeast(0.30)),
        &[Hookstead64, Noop64],
        |round| rate_ratio(round, Hookstead64, Noop64),
    ),
    of_rounds(
        "P2",
        "accepts over no-op axum, 256 connections",
        Some(Must::AtLeast(0.35)),
        &[Hookstead256, Noop256],
        |round| rate_ratio(round, Hookstead256, Noop256),
    ),
    of_rounds("P3", "accepts over the append-only log", None, &[Hookstead64, Log64], |round| {
        rate_ratio(round, Hookstead64, Log64)
    }),
    of_rounds(
        "P4",
        "accepts over Fastify + better-sqlite3",
        Some(Must::AtLeast(8.0)),
        &[Hookstead64, Fastify64],
        |round| rate_ratio(round, Hookstead64, Fastify64),
    ),
    of_rounds(
        "P5",
        "accepts over FastAPI + sqlite3",
        Some(Must::AtLeast(14.0)),
        &[Hookstead64, Fastapi64],
        |round| rate_ratio(round, Hookstead64, Fastapi64),
    ),
    of_rounds("P6", "p50 over one append + fdatasync", Some(Must::AtMost(10.0)), &[Hookstead64], |round| {
        ratio(round.runs.get(&Hookstead64)?.load.latency.p50_ms, round.probe.p50_ms)
    }),
    of_rounds("P6", "p99 over one append + fdatasync", Some(Must::AtMost(60.0)), &[Hookstead64], |round| {
        ratio(round.runs.get(&Hookstead64)?.load.latency.p99_ms, round.probe.p50_ms)
    }),
    of_rounds(
        "P7",
        "CPU of an accept over CPU of a no-op",
        Some(Must::AtMost(3.2)),
        &[Hookstead64, Noop64],
        |round| of_two(round, Hookstead64, Noop64, |ran| ran.load.server_cpu_us),
    ),
    of_growth("CPU of an event, 10th million over 2nd", Growth::cpu_ratio),
    of_growth("bytes of an event, 10th million over 2nd", Growth::bytes_ratio),
    of_rounds("P9", "bytes written over payload", None, &[Hookstead64], |round| {
        ratio(round.runs.get(&Hookstead64)?.load.written_bytes_per_request, BODY_BYTES as f64)
    }),
    of_rounds("P9", "file size over payload", None, &[Hookstead64], |round| {
        let ran = round.runs.get(&Hookstead64)?;
        ratio(count(ran.data_bytes), count(ran.load.expected_in_all) * BODY_BYTES as f64)
    }),
    of_rounds(
        "P10",
        "duplicates over no-op axum",
        Some(Must::AtLeast(0.6)),
        &[Duplicates64, Noop64],
        |round| rate_ratio(round, Duplicates64, Noop64),
    ),
    of_rounds("P10", "bytes written by duplicates", Some(Must::AtMost(0.0)), &[Duplicates64], |round| {
        Some(count(round.runs.get(&Duplicates64)?.load.written_bytes))
    }),
    of_rounds(
        "P11",
        "accepted, pushed and done over accepts",
        Some(Must::AtLeast(0.5)),
        &[Delivered64, Hookstead64],
        |round| ratio(round.runs.get(&Delivered64)?.delivered?.rate, round.runs.get(&Hookstead64)?.load.rate),
    ),
    of_rounds(
        "P11",
        "backlog done after the load's end, ms",
        Some(Must::AtMost(2_000.0)),
        &[Delivered64],
        |round| Some(round.runs.get(&Delivered64)?.delivered?.drain_ms),
    ),
    of_rounds(PULL_BAR, "claim and done, batches of 100 over of 1", Some(Must::AtLeast(8.0)), &[], |round| {
        let pull = round.pull.as_ref()?;
        ratio(pull.batch_per_second, pull.single_per_second)
    }),
    of_rounds(
        "F1",
        "accepts of files: over the seed's protocol, 64",
        Some(Must::AtLeast(2.5)),
        &[Files64, Seed64],
        |round| rate_ratio(round, Files64, Seed64),
    ),
    of_rounds(
        MEMORY_BAR,
        "resident MiB, 256 bodies of 1 MiB in flight",
        Some(Must::AtMost(MEMORY_MIB_MAX)),
        &[],
        |round| Some(count(round.memory.as_ref()?.peak_bytes) / (1024.0 * 1024.0)),
    ),
];

fn rate_ratio(round: &Round, ours: Contestant, theirs: Contestant) -> Option<f64> {
    of_two(round, ours, theirs, |ran| ran.load.rate)
}

fn of_two(round: &Round, ours: Contestant, theirs: Contestant, value: fn(&Ran) -> f64) -> Option<f64> {
    ratio(value(round.runs.get(&ours)?), value(round.runs.get(&theirs)?))
}

/// Whether there is such a bar.
pub(super) fn is_known(bar: &str) -> bool {
    FIGURES.iter().any(|figure| figure.bar == bar)
}

/// The figures of these bars, or all of them when none are named.
pub(super) fn chosen(only: &[String]) -> Vec<&'static Figure> {
    FIGURES.iter().filter(|figure| only.is_empty() || only.iter().any(|bar| bar == figure.bar)).collect()
}

/// What has to be run for these figures.
pub(super) fn agenda(figures: &[&Figure]) -> Agenda {
    let needed = |contestant: &Contestant| figures.iter().any(|figure| figure.needs.contains(contestant));
    let contestants = Contestant::ALL.into_iter().filter(needed).collect();
    let asked = |bar: &str| figures.iter().any(|figure| figure.bar == bar);
    Agenda { contestants, memory: asked(MEMORY_BAR), pull: asked(PULL_BAR) }
}

/// Whether one of these figures comes from the growth bench.
pub(super) fn needs_growth(figures: &[&Figure]) -> bool {
    figures.iter().any(|figure| figure.bar == GROWTH_BAR)
}

/// All that was measured.
pub(super) struct Evidence<'a> {
    pub(super) rounds: &'a [Round],
    pub(super) growth: Option<&'a Growth>,
    pub(super) missing: &'a Missing,
}

/// A figure with its value and what follows from it.
#[derive(Debug, Serialize)]
pub(super) struct Judged {
    pub(super) bar: &'static str,
    pub(super) what: &'static str,
    pub(super) value: Option<Spread>,
    pub(super) must: Option<Must>,
    pub(super) verdict: Verdict,
}

/// Whether a bar holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    Holds,
    Missed,
    /// It has no must.
    Printed,
    /// It was not measured, or not as it is written; it counts as neither.
    NotShown(String),
}

/// Compares a figure with what it must be.
pub(super) fn judge(figure: &Figure, evidence: &Evidence<'_>) -> Judged {
    let value = value(figure, evidence);
    let verdict = match (why_not(figure, evidence), value, figure.must) {
        (Some(reason), _, _) => Verdict::NotShown(reason),
        (None, None, _) => Verdict::NotShown("not measured".to_owned()),
        (None, Some(_), None) => Verdict::Printed,
        (None, Some(value), Some(must)) if must.holds(value.median) => Verdict::Holds,
        (None, Some(_), Some(_)) => Verdict::Missed,
    };
    Judged { bar: figure.bar, what: figure.what, value, must: figure.must, verdict }
}

fn value(figure: &Figure, evidence: &Evidence<'_>) -> Option<Spread> {
    match figure.source {
        Source::Rounds(value) => Spread::of(evidence.rounds.iter().filter_map(value)),
        Source::Growth(value) => Spread::of(evidence.growth.and_then(value)),
    }
}

fn why_not(figure: &Figure, evidence: &Evidence<'_>) -> Option<String> {
    if let Some(missing) = figure.needs.iter().find(|contestant| evidence.missing.contains_key(contestant)) {
        return Some(format!("`{}` was not measured", missing.name()));
    }
    let events = evidence.growth.filter(|_| figure.bar == GROWTH_BAR)?.events();
    (events != growth::EVENTS).then(|| format!("tenths of {events} events, not millions"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::bench::delivered::Delivered;
    use crate::bench::latency::Percentiles;
    use crate::bench::load::Load;
    use crate::bench::memory::Memory;
    use crate::bench::pull::Pull;

    fn percentiles(p50_ms: f64, p99_ms: f64) -> Percentiles {
        Percentiles { p50_ms, p99_ms, p999_ms: p99_ms, max_ms: p99_ms }
    }

    fn ran(rate: f64, server_cpu_us: f64) -> Ran {
        let load = Load {
            rate,
            statuses: BTreeMap::new(),
            closed: 0,
            latency: percentiles(1.0, 6.0),
            server_cpu_us,
            client_cpu_us: 1.0,
            written_bytes_per_request: 3072.0,
            written_bytes: 0,
            disk_bytes_per_request: None,
            expected_in_all: 10,
        };
        Ran { load, data_bytes: 12_800, delivered: None }
    }

    fn pushed(rate: f64) -> Ran {
        let delivered =
            Delivered { rate, drain_ms: 30.0, connections: 1, server_cpu_us: 1.0, sink_cpu_us: 1.0 };
        Ran { delivered: Some(delivered), ..ran(rate, 40.0) }
    }

    fn round(hookstead: f64, noop: f64) -> Round {
        let runs = [
            (Hookstead64, ran(hookstead, 20.0)),
            (Noop64, ran(noop, 10.0)),
            (Duplicates64, ran(noop, 9.0)),
            (Delivered64, pushed(hookstead / 2.0)),
        ];
        let memory = Memory { peak_bytes: 160 * 1024 * 1024, idle_bytes: 0, statuses: BTreeMap::new() };
        let pull = Pull { single_per_second: 500.0, batch_per_second: 5_000.0 };
        Round { probe: percentiles(0.2, 0.5), runs: runs.into(), memory: Some(memory), pull: Some(pull) }
    }

    fn judged(bar: &str, rounds: &[Round], missing: &Missing) -> Vec<(Option<f64>, Verdict)> {
        let evidence = Evidence { rounds, growth: None, missing };
        let figures = chosen(&[bar.to_owned()]);
        let judged = figures.iter().map(|figure| judge(figure, &evidence));
        judged.map(|judged| (judged.value.map(|value| value.median), judged.verdict)).collect()
    }

    #[test]
    fn a_bar_is_the_median_of_ratios_inside_the_rounds() {
        // The ratio of the medians would be 0.2 of 100.
        let rounds = [round(30.0, 100.0), round(20.0, 50.0), round(10.0, 500.0)];
        assert_eq!(judged("P1", &rounds, &Missing::new()), [(Some(0.30), Verdict::Holds)]);
        let slower = [round(29.0, 100.0), round(20.0, 50.0), round(10.0, 500.0)];
        assert_eq!(judged("P1", &slower, &Missing::new()), [(Some(0.29), Verdict::Missed)]);
    }

    #[test]
    fn each_figure_has_its_own_verdict() {
        let rounds = [round(30.0, 100.0)];
        let none = Missing::new();
        assert_eq!(judged("P6", &rounds, &none), [(Some(5.0), Verdict::Holds), (Some(30.0), Verdict::Holds)]);
        assert_eq!(judged("P7", &rounds, &none), [(Some(2.0), Verdict::Holds)]);
        assert_eq!(
            judged("P9", &rounds, &none),
            [(Some(3.0), Verdict::Printed), (Some(1.25), Verdict::Printed)]
        );
        assert_eq!(judged("P10", &rounds, &none), [(Some(1.0), Verdict::Holds), (Some(0.0), Verdict::Holds)]);
        assert_eq!(
            judged("P11", &rounds, &none),
            [(Some(0.5), Verdict::Holds), (Some(30.0), Verdict::Holds)]
        );
        assert_eq!(judged("P15", &rounds, &none), [(Some(10.0), Verdict::Holds)]);
        assert_eq!(judged("P12", &rounds, &none), [(Some(160.0), Verdict::Holds)]);
    }

    #[test]
    fn what_was_not_measured_is_not_passed() {
        let rounds = [round(30.0, 100.0)];
        let missing = Missing::from([(Fastify64, "npm is not there".to_owned())]);
        let why = Verdict::NotShown("`Fastify + better-sqlite3, 64` was not measured".to_owned());
        assert_eq!(judged("P4", &rounds, &missing), [(None, why)]);
        assert_eq!(judged("P5", &rounds, &missing), [(None, Verdict::NotShown("not measured".to_owned()))]);
    }

    #[test]
    fn only_what_the_chosen_bars_need_is_run() {
        let figures = chosen(&["P4".to_owned(), "P12".to_owned()]);
        let agenda = agenda(&figures);
        assert_eq!(agenda.contestants, [Hookstead64, Fastify64]);
        assert!(agenda.memory && !needs_growth(&figures));
        assert!(needs_growth(&chosen(&[])) && is_known("P8") && !is_known("P13"));
    }
}
