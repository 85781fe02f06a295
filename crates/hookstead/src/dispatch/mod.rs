//! Dispatch: what is owed is claimed, tried by a sink, and settled; nothing is decided here that the pure rules of
//! `hookstead-core` decide, and nothing is known of how a sink does it.
//!
//! A worker a destination claims as many deliveries as it has slots, gives each a task of its own, and every task's
//! end goes to one settler, which settles what has come together in one commit. Claims, settles and sweeps are
//! writes like accepted events and share their commits. Whatever is dropped on the way (a crash, an abort) is a lease
//! that expires: the sweeper takes it away and the delivery is tried again under the same idempotency key.

mod attempt;
mod catch;
mod circuit;
mod dispatcher;
mod ended;
mod engine;
mod rate;
mod read;
mod settler;
mod slots;
mod standing;
mod sweeper;
mod worker;

pub use circuit::{CIRCUIT_FAILURES_MAX, CIRCUIT_REST_MAX, CIRCUIT_REST_MIN, CircuitState};
pub use dispatcher::Dispatcher;
pub use slots::{OWN_SLOTS, SHARED_SLOTS};
pub use standing::{Standing, Standings};

pub(crate) use engine::Engine;
pub(crate) use worker::{Job, work_one};
