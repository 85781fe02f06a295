//! `cargo xtask siege`: what is left of legitimate traffic while others attack.
//!
//! `attack` says what the attackers send, `attacker` sends it at a bounded rate, `rounds` measures the same load with
//! and without it in turn, `report` prints. What the server has to do against an attack is measured, not what the
//! attack costs: the attackers share the cores with the server, so that each of them is kept far below a core.

mod attack;
mod attacker;
mod command;
mod report;
mod rounds;

pub(crate) use command::{Siege, run};
