//! A server as a whole: putting it together, running it, ending it.

mod outcome;
mod parts;
mod server;

pub use outcome::{RunOutcome, ServerFacts, StartError};
pub use server::{Server, termination};
