//! The list of the files store's tests.

use hookstead_core::conformance::model::Extent;
use hookstead_core::conformance::{cases, model};
use libtest_mimic::Trial;

use super::backend::Files;
use super::cut::CutFiles;
use super::{folder, journal, power, receipts, refusal, seed};

/// How many operations the model does with power cuts, unless the environment asks for a number. Each cut costs
/// a start of the store.
const CUT_OPERATIONS: u64 = 1_500;

/// Cases that are about closing a store, or about what only a store that is closed keeps.
const NOT_AFTER_A_CUT: &[&str] = &["reopen::writes_fail_after_the_store_was_closed"];

const CUT_EACH: CutFiles = CutFiles { every_batches: 1 };
const CUT_SOME: CutFiles = CutFiles { every_batches: 9 };

fn check_with_cuts(backend: &CutFiles) {
    let extent = Extent::from_env();
    let asked_for = std::env::var_os("HOOKSTEAD_MODEL_OPERATIONS").is_some();
    let operations = if asked_for { extent.operations } else { CUT_OPERATIONS };
    model::check_extent(backend, Extent { operations, ..extent });
}

/// Every test of the files store.
pub(crate) fn trials() -> Vec<Trial> {
    let on_disk = cases()
        .into_iter()
        .map(|case| trial(format!("files::conformance::{}", case.name), move || case.run(&Files)));
    let with_cuts = cases()
        .into_iter()
        .filter(|case| !NOT_AFTER_A_CUT.contains(&case.name))
        .map(|case| trial(format!("files::cut::{}", case.name), move || case.run(&CUT_EACH)));
    let models = [
        trial("files::conformance::model::random_operations".to_owned(), || model::check(&Files)),
        trial("files::cut::model::random_operations".to_owned(), || check_with_cuts(&CUT_EACH)),
        trial("files::cut::model::random_operations_and_checkpoints".to_owned(), || {
            check_with_cuts(&CUT_SOME);
        }),
    ];
    let own = [folder::CASES, journal::CASES, power::CASES, receipts::CASES, refusal::CASES, seed::CASES]
        .into_iter()
        .flatten()
        .map(|(name, run)| trial((*name).to_owned(), run));
    on_disk.chain(with_cuts).chain(models).chain(own).collect()
}

fn trial(name: String, run: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        run();
        Ok(())
    })
}
