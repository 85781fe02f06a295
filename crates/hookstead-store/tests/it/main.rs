//! The SQLite store from outside: the conformance suite of `hookstead-core`, and what is true of this store
//! alone. Each case is a test of its own.

mod backend;
mod backup;
mod body_reuse;
mod case;
mod concurrency;
mod damage;
mod damaged_log;
mod durability;
mod effects;
mod faults;
mod faulty;
mod files;
mod findings;
mod fixtures;
mod flips;
mod foreign_log;
mod fuzzing;
mod identities;
mod open;
mod read_only;
mod refusal;
mod same_batch;
mod scene;
mod schema;
mod start;
mod upgrade;
mod wal;
mod watch;

use std::process::ExitCode;

use hookstead_core::conformance::{cases, model};
use hookstead_store::IdentityFlush;
use libtest_mimic::{Arguments, Trial};

use backend::{SMALL_FLUSHES, Sqlite};

fn main() -> ExitCode {
    if let Some(code) = faults::child() {
        return code;
    }
    if let Some(code) = findings::child() {
        return code;
    }
    if files::child() {
        return ExitCode::SUCCESS;
    }
    let suites = [("conformance", IdentityFlush::default()), ("small_flushes", SMALL_FLUSHES)];
    let conformance = suites.into_iter().flat_map(|(suite, flush)| {
        cases().into_iter().map(move |case| {
            Trial::test(format!("{suite}::{}", case.name), move || {
                case.run(&Sqlite(flush));
                Ok(())
            })
        })
    });
    let model = suites.map(|(suite, flush)| {
        Trial::test(format!("{suite}::model::random_operations"), move || {
            model::check(&Sqlite(flush));
            Ok(())
        })
    });
    let own = [
        body_reuse::CASES,
        concurrency::CASES,
        damage::CASES,
        damaged_log::CASES,
        durability::CASES,
        effects::CASES,
        findings::CASES,
        flips::CASES,
        foreign_log::CASES,
        fuzzing::CASES,
        identities::CASES,
        open::CASES,
        read_only::CASES,
        refusal::CASES,
        same_batch::CASES,
        schema::CASES,
        start::CASES,
        upgrade::CASES,
        wal::CASES,
    ];
    let own = own.into_iter().flatten().map(|(name, run)| {
        Trial::test(*name, move || {
            run();
            Ok(())
        })
    });
    libtest_mimic::run(
        &Arguments::from_args(),
        conformance
            .chain(model)
            .chain(own)
            .chain(faults::trials())
            .chain(findings::trials())
            .chain(files::trials())
            .chain(fixtures::trials())
            .chain(backup::trials())
            .chain(watch::trials())
            .collect(),
    )
    .exit_code()
}
