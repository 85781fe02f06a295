//! Draws runs at random, carries them out, and cuts a failing one down to what is needed to fail.

use std::cell::{Cell, RefCell};

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use super::operation::{Step, steps};
use super::seen::Seen;
use super::twin::Twin;
use crate::conformance::backend::Backend;

/// The longest run: long enough for an event to be delivered, erased, and to come again.
const STEPS_MAX: usize = 80;

/// How many writes are applied if nobody says otherwise: 5 to 12 s for an SQLite store on two cores, by how
/// busy the disk is.
const OPERATIONS: u64 = 8_000;

/// How many shorter runs are tried before the shortest so far is reported.
const SHRINKS_MAX: u32 = 5_000;

/// How much the model does, and with which random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Which runs are drawn. One seed always draws the same.
    pub seed: u64,
    /// How many writes are applied at least, over all runs.
    pub operations: u64,
}

impl Extent {
    /// What the environment says: `HOOKSTEAD_MODEL_SEED` (else 1) and `HOOKSTEAD_MODEL_OPERATIONS` (else
    /// 8000). Panics if either is no number.
    pub fn from_env() -> Self {
        Self {
            seed: number_in_env("HOOKSTEAD_MODEL_SEED", 1),
            operations: number_in_env("HOOKSTEAD_MODEL_OPERATIONS", OPERATIONS),
        }
    }
}

fn number_in_env(name: &str, otherwise: u64) -> u64 {
    match std::env::var(name) {
        Err(_) => otherwise,
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`, which is no number")),
    }
}

/// Compares a store with the memory store over random operations, as many as the environment says, see
/// [`Extent::from_env`]. Panics with the shortest failing run that was found.
pub fn check(backend: &dyn Backend) {
    check_extent(backend, Extent::from_env());
}

/// Like [`check`], with an extent that the caller chooses.
pub fn check_extent(backend: &dyn Backend, extent: Extent) {
    if let Err(report) = explore(backend, extent) {
        panic!("{report}");
    }
}

/// Carries out runs until there were as many operations as asked; what they came by, or what went wrong.
pub(super) fn explore(backend: &dyn Backend, extent: Extent) -> Result<Seen, String> {
    let mut runner = runner(extent.seed);
    let seen = RefCell::new(Seen::default());
    let applied = Cell::new(0_u64);
    let runs = steps(STEPS_MAX);
    while applied.get() < extent.operations {
        let run = runs.new_tree(&mut runner).map_err(|reason| reason.to_string())?;
        let result = runner.run_one(run, |run| {
            applied.set(applied.get() + operations_in(&run));
            carry_out(backend, &run, &mut seen.borrow_mut()).map_err(TestCaseError::fail)
        });
        if let Err(error) = result {
            return Err(report(backend, extent, &error));
        }
    }
    Ok(seen.into_inner())
}

fn runner(seed: u64) -> TestRunner {
    let config = Config { failure_persistence: None, max_shrink_iters: SHRINKS_MAX, ..Config::default() };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

fn operations_in(run: &[Step]) -> u64 {
    let operations = run.iter().map(|step| match step {
        Step::Batch(operations) => operations.len() as u64,
        Step::Wait(_) | Step::Reopen | Step::Look { .. } => 0,
    });
    operations.sum()
}

fn carry_out(backend: &dyn Backend, run: &[Step], seen: &mut Seen) -> Result<(), String> {
    let mut twin = Twin::open(backend, seen)?;
    for (place, step) in run.iter().enumerate() {
        twin.step(step).map_err(|difference| format!("after step {}: {difference}", place + 1))?;
    }
    twin.end().map_err(|difference| format!("at the end: {difference}"))
}

fn report(backend: &dyn Backend, Extent { seed, .. }: Extent, error: &TestError<Vec<Step>>) -> String {
    let (reason, run) = match error {
        TestError::Abort(reason) => return format!("the model gave up: {reason}"),
        TestError::Fail(reason, run) => (reason, run),
    };
    let mut report = format!(
        "{} (first) differs from the memory store (second), HOOKSTEAD_MODEL_SEED={seed}\n{reason}\n\nsteps:\n",
        backend.name(),
    );
    for (place, step) in run.iter().enumerate() {
        match step {
            Step::Batch(operations) => {
                line(&mut report, &format!("{:3}. a batch of", place + 1));
                operations.iter().for_each(|operation| line(&mut report, &format!("       {operation:?}")));
            }
            other => line(&mut report, &format!("{:3}. {other:?}", place + 1)),
        }
    }
    report
}

fn line(report: &mut String, line: &str) {
    report.push_str(line);
    report.push('\n');
}
