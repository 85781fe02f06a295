//! The conformance suite and the model against [`MemoryStore`], and the proof that both can fail: stores that
//! break a promise on purpose are found out.

use std::sync::Arc;

use hookstead_core::conformance::{Backend, Instance, cases, model};
use hookstead_core::{MemoryStore, Store};
use libtest_mimic::{Arguments, Trial};

#[path = "memory/broken.rs"]
mod broken;
#[path = "memory/found_out.rs"]
mod found_out;

fn main() {
    let case = |case: hookstead_core::conformance::Case| {
        Trial::test(format!("conformance::{}", case.name), move || {
            case.run(&Memory);
            Ok(())
        })
    };
    let mut trials: Vec<_> = cases().into_iter().map(case).collect();
    trials.push(Trial::test("conformance::model::random_operations", || {
        model::check(&Memory);
        Ok(())
    }));
    trials.extend(found_out::trials());
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
