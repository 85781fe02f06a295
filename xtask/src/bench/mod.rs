//! `cargo xtask bench`: what the server does in numbers, beside other servers and in the same minutes.
//!
//! `load` makes the requests, `usage` reads what a process has spent, `contestant` says what is measured, `rounds`
//! interleaves it, `bars` judges and `report` prints. It must not know anything of the server's inside: the server
//! is the release binary, and its ready line is all that is asked of it.

mod admin;
mod bars;
mod child;
mod command;
mod contestant;
mod delivered;
mod growth;
mod hookstead;
mod latency;
mod load;
mod log;
mod memory;
mod noop;
mod peers;
mod probe;
mod pull;
mod report;
mod response;
mod rounds;
mod seed;
mod settings;
mod siege;
mod sink;
mod statistics;
mod template;
mod usage;

pub(crate) use command::{Bench, run};
pub(crate) use siege::{Siege, run as run_siege};
