//! The store under test and the memory store, given the very same writes and compared after each batch.

use super::look::{compare_names, compare_pages};
use super::operation::{NAMES, Operation, REDELIVERIES, Step};
use super::scribe::{Scribe, redelivery, register_destination, register_source};
use super::seen::Seen;
use crate::conformance::backend::{Backend, Instance};
use crate::conformance::picture::Picture;
use crate::conformance::world::START;
use crate::error::StoreError;
use crate::memory::MemoryStore;
use crate::query::Page;
use crate::store::{Store, Write, Written};
use crate::time::Timestamp;

/// Both stores, and the clock that they are given.
pub(super) struct Twin<'a> {
    instance: Box<dyn Instance>,
    oracle: MemoryStore,
    now: Timestamp,
    entropy: u64,
    seen: &'a mut Seen,
}

impl<'a> Twin<'a> {
    /// Two empty stores that know the names of the model.
    pub(super) fn open(backend: &dyn Backend, seen: &'a mut Seen) -> Result<Self, String> {
        let instance = backend.open();
        let oracle = MemoryStore::with_key(instance.store().facts().identity_key.clone());
        let mut twin = Self { instance, oracle, now: START, entropy: 0, seen };
        let sources = (0..NAMES).map(|place| register_source(place, 0));
        let destinations = (0..NAMES).map(|place| register_destination(place, 0, place));
        twin.apply(&sources.chain(destinations).collect::<Vec<_>>(), &[])?;
        Ok(twin)
    }

    /// Carries a step out on both stores; says where they differ.
    pub(super) fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Batch(operations) => {
                let mut scribe = Scribe::new(&self.oracle, self.now, &mut self.entropy);
                let writes: Vec<_> = operations.iter().map(|operation| scribe.write(operation)).collect();
                self.apply(&writes, operations)
            }
            Step::Wait(duration) => {
                self.now = self.now.plus(*duration);
                Ok(())
            }
            Step::Reopen => {
                self.instance.reopen();
                self.compare()
            }
            Step::Look { list, items_max, order } => {
                let store = self.instance.store();
                let page = Page::first(*items_max, *order);
                let scribe = Scribe::new(&self.oracle, self.now, &mut self.entropy);
                compare_pages([&*store, &self.oracle], list, &page, &scribe)
            }
        }
    }

    /// What is compared once, at the end of a run.
    pub(super) fn end(&mut self) -> Result<(), String> {
        let scribe = Scribe::new(&self.oracle, self.now, &mut self.entropy);
        compare_names(&*self.instance.store(), &self.oracle, &scribe.events)
    }

    fn apply(&mut self, writes: &[Write], operations: &[Operation]) -> Result<(), String> {
        let given = self.instance.store().apply(writes, self.now);
        let expected = self.oracle.apply(writes, self.now);
        match (given, expected) {
            (Ok(given), Ok(expected)) => {
                compare_answers(&given, &expected, operations)?;
                expected.iter().for_each(|written| self.seen.answer(written));
            }
            (Err(StoreError::Backend { .. }), Err(StoreError::Backend { .. })) => self.seen.failed_batch(),
            (given, expected) => {
                return Err(format!("the batch came to another end:\n  {given:?}\n  {expected:?}"));
            }
        }
        self.compare()
    }

    fn compare(&mut self) -> Result<(), String> {
        let redeliveries: Vec<_> = (0..REDELIVERIES).map(redelivery).collect();
        let given = Picture::of(&*self.instance.store(), &redeliveries);
        let expected = Picture::of(&self.oracle, &redeliveries);
        self.seen.picture(&expected);
        let differences = given.differences(&expected);
        if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
    }
}

fn compare_answers(given: &[Written], expected: &[Written], operations: &[Operation]) -> Result<(), String> {
    if given.len() != expected.len() {
        return Err(format!("{} writes got {} answers", expected.len(), given.len()));
    }
    match (0..given.len()).find(|place| given[*place] != expected[*place]) {
        None => Ok(()),
        Some(place) => {
            let (given, expected) = (&given[place], &expected[place]);
            let operation = operations.get(place).map_or_else(String::new, |what| format!("{what:?}"));
            Err(format!("the answer to {operation} differs:\n  {given:?}\n  {expected:?}"))
        }
    }
}
