//! The conformance suite against [`MemoryStore`]: each case is a test of its own.

use std::sync::Arc;

use hookstead_core::conformance::{Backend, Instance, cases};
use hookstead_core::{MemoryStore, Store};
use libtest_mimic::{Arguments, Trial};

fn main() {
    let trials = cases()
        .into_iter()
        .map(|case| {
            Trial::test(format!("conformance::{}", case.name), move || {
                case.run(&Memory);
                Ok(())
            })
        })
        .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// The memory store as a backend. It has nothing to open again.
struct Memory;

impl Backend for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    fn open(&self) -> Box<dyn Instance> {
        Box::new(OpenMemory(Arc::new(MemoryStore::new([7; 32]))))
    }
}

struct OpenMemory(Arc<MemoryStore>);

impl Instance for OpenMemory {
    fn store(&self) -> Arc<dyn Store> {
        self.0.clone()
    }

    fn reopen(&mut self) {}
}
