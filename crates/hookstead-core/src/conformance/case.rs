//! A case and the list of all of them.

use super::backend::Backend;
use super::world::World;
use super::{
    accept, attempts, batch, body_reuse, claim, conflict, duplicate, expiry, extend, identity, lists, people,
    races, read, redeliver, register, reopen, revision, run, settle, sweep,
};

/// One sentence of the contract and the steps that prove it on an empty store.
#[derive(Clone, Copy)]
pub struct Case {
    /// The sentence, as a path: `claim::a_paused_destination_gets_no_lease`.
    pub name: &'static str,
    steps: fn(&mut World),
}

impl Case {
    pub(super) const fn new(name: &'static str, steps: fn(&mut World)) -> Self {
        Self { name, steps }
    }

    /// Runs the case on a new store. Panics if the store breaks the promise.
    pub fn run(&self, backend: &dyn Backend) {
        (self.steps)(&mut World::open(backend));
    }
}

/// Every case, each of which every store passes.
pub fn cases() -> Vec<Case> {
    [
        accept::CASES,
        duplicate::CASES,
        conflict::CASES,
        identity::CASES,
        body_reuse::CASES,
        claim::CASES,
        extend::CASES,
        settle::CASES,
        attempts::CASES,
        expiry::CASES,
        people::CASES,
        revision::CASES,
        run::CASES,
        redeliver::CASES,
        sweep::CASES,
        register::CASES,
        lists::CASES,
        batch::CASES,
        read::CASES,
        reopen::CASES,
        races::CASES,
    ]
    .concat()
}

/// Makes the list of a module's cases, named by the module and the functions.
macro_rules! list {
    ($module:literal: $($case:ident),+ $(,)?) => {
        pub(super) const CASES: &[$crate::conformance::case::Case] = &[
            $($crate::conformance::case::Case::new(concat!($module, "::", stringify!($case)), $case)),+
        ];
    };
}

pub(super) use list;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_cases_share_a_name() {
        let names: HashSet<_> = cases().iter().map(|case| case.name).collect();
        assert_eq!(names.len(), cases().len());
    }
}
