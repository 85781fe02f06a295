//! What a store proves before anybody gets it, as one list of steps: `step` names them, each kind of store takes them
//! in its order, `steps` writes down how each came out. Whoever only looks at a store takes those again that change nothing
//! ([`crate::examine`]), by the same functions: what a start checks and what a look checks are one thing. It knows no
//! kind of store.

mod file_system;
mod finding;
mod probe_file;
mod step;
mod steps;

pub(crate) use file_system::{check_file_system, nearest_existing};
pub use finding::{Finding, Verdict};
pub(crate) use probe_file::try_out;
pub use step::StartStep;
pub(crate) use steps::Steps;
