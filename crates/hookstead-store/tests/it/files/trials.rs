//! The list of the files store's tests.

use hookstead_core::conformance::model::Extent;
use hookstead_core::conformance::{cases, model};
use libtest_mimic::Trial;

use super::backend::Files;
use super::cut::CutFiles;
use super::{folder, power, receipts, refusal, seed};

/// How many operations the model does with a power cut after each batch. Each costs a start of the store.
const CUT_OPERATIONS: u64 = 1_500;

/// Cases that are about closing a store, or about what only a store that is closed keeps.
const NOT_AFTER_A_CUT: &[&str] = &["reopen::writes_fail_after_the_store_was_closed"];

/// Every test of the files store.
pub(crate) fn trials() -> Vec<Trial> {
    let on_disk = cases()
        .into_iter()
        .map(|case| trial(format!("files::conformance::{}", case.name), move || case.run(&Files)));
    let with_cuts = cases()
        .into_iter()
        .filter(|case| !NOT_AFTER_A_CUT.contains(&case.name))
        .map(|case| trial(format!("files::cut::{}", case.name), move || case.run(&CutFiles)));
    let models = [
        trial("files::conformance::model::random_operations".to_owned(), || model::check(&Files)),
        trial("files::cut::model::random_operations".to_owned(), || {
            let extent = Extent::from_env();
            let operations = extent.operations.min(CUT_OPERATIONS);
            model::check_extent(&CutFiles, Extent { operations, ..extent });
        }),
    ];
    let own = [folder::CASES, power::CASES, receipts::CASES, refusal::CASES, seed::CASES]
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
