//! The list of the files store's tests.

use hookstead_core::conformance::{cases, model};
use libtest_mimic::Trial;

use super::backend::Files;

/// Every test of the files store.
pub(crate) fn trials() -> Vec<Trial> {
    let conformance = cases().into_iter().map(|case| {
        Trial::test(format!("files::conformance::{}", case.name), move || {
            case.run(&Files);
            Ok(())
        })
    });
    let model = Trial::test("files::conformance::model::random_operations", || {
        model::check(&Files);
        Ok(())
    });
    conformance.chain([model]).collect()
}
