//! A server as a whole: putting it together, running it, ending it.

mod deliveries;
mod local;
mod loops;
mod outcome;
mod parts;
mod redeliverer;
mod reload;
mod server;

pub use local::LocalApi;
pub use outcome::{RunOutcome, ServerFacts, StartError};
pub(crate) use reload::{ReloadError, Reloader};
pub use server::{Server, termination};
