//! The evidence: the checks and their sizes, and the table of what they found.

mod command;
mod table;

pub(crate) use command::{Evidence, run};
