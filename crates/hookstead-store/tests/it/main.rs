//! The SQLite store from outside: the conformance suite of `hookstead-core`, and what is true of this store
//! alone. Each case is a test of its own.

mod backend;

use hookstead_core::conformance::cases;
use libtest_mimic::{Arguments, Trial};

use backend::Sqlite;

fn main() {
    let conformance = cases().into_iter().map(|case| {
        Trial::test(format!("conformance::{}", case.name), move || {
            case.run(&Sqlite);
            Ok(())
        })
    });
    libtest_mimic::run(&Arguments::from_args(), conformance.collect()).exit();
}
