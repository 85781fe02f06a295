//! The intake: from an HTTP request to the library's `receive`, and from its outcome to the answer that the
//! provider expects. Nothing of a request is parsed here beyond HTTP itself.

mod address;
pub(crate) mod answer;
mod body;
mod budget;
mod embedded;
mod framing;
mod gate;
mod handshake;
mod head;
mod proxies;
mod rate;
mod route;
mod service;
mod throttle;

pub(crate) use budget::BodyBudget;
pub use embedded::{IntakeOptions, intake};
pub(crate) use gate::Gate;
pub(crate) use handshake::Handshakes;
pub(crate) use service::{Intake, Setting};
