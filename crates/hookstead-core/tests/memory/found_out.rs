//! The suite and the model can fail: each broken store is found out by the case that names its promise, and by
//! the model.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

use hookstead_core::conformance::{cases, model};
use libtest_mimic::{Failed, Trial};

use super::broken::{Broken, Fault};

/// Each fault, and the case that must fail because of it.
const FAULTS: [(Fault, &str); 5] = [
    (Fault::DuplicatesUncompared, "conflict::other_bytes_are_a_conflict_that_names_the_first_event"),
    (Fault::AttemptsForgotten, "attempts::an_attempt_comes_back_as_it_was_recorded"),
    (Fault::PauseIgnored, "claim::a_paused_destination_gets_no_lease"),
    (Fault::BatchesTorn, "batch::an_unknown_source_fails_the_whole_batch"),
    (Fault::ForgetsOnReopen, "reopen::a_retry_is_a_duplicate_after_reopening"),
];

thread_local! {
    static PANICS_ARE_EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// A test for each fault and each of its finders.
pub(crate) fn trials() -> Vec<Trial> {
    keep_expected_panics_quiet();
    FAULTS.into_iter().flat_map(|(fault, case)| [by_case(fault, case), by_model(fault)]).collect()
}

fn by_case(fault: Fault, name: &'static str) -> Trial {
    Trial::test(format!("found_out::{fault:?}::by_its_case"), move || {
        let case = cases().into_iter().find(|case| case.name == name).ok_or("the case was renamed")?;
        panic_of(|| case.run(&Broken(fault))).map(drop)
    })
}

fn by_model(fault: Fault) -> Trial {
    Trial::test(format!("found_out::{fault:?}::by_the_model"), move || {
        let extent = model::Extent { seed: 1, operations: 4_000 };
        let report = panic_of(|| model::check_extent(&Broken(fault), extent))?;
        let lines = report.lines().count();
        if report.contains("differs from the memory store") && report.contains("\n  1. ") && lines < 100 {
            return Ok(());
        }
        Err(format!("the report names no short run of steps:\n{report}").into())
    })
}

/// What a test panics with; it must.
fn panic_of(test: impl FnOnce()) -> Result<String, Failed> {
    PANICS_ARE_EXPECTED.set(true);
    let result = catch_unwind(AssertUnwindSafe(test));
    PANICS_ARE_EXPECTED.set(false);
    let panic = result.err().ok_or("the broken store passed")?;
    Ok(panic.downcast_ref::<String>().cloned().unwrap_or_default())
}

fn keep_expected_panics_quiet() {
    let report = take_hook();
    set_hook(Box::new(move |panic| {
        if !PANICS_ARE_EXPECTED.get() {
            report(panic);
        }
    }));
}
