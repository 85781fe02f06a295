//! The evidence: the checks and their sizes, where they are done, and the table of what they found.

mod checks;
mod command;
mod machine;
mod report;
mod table;

pub(crate) use command::{Evidence, run};
