//! A server as a whole: putting it together, running it, ending it.

mod loops;
mod outcome;
mod parts;
mod server;

pub use outcome::{RunOutcome, ServerFacts, StartError};
pub use server::{Server, termination};
