//! The conformance suite: one list of cases that every store runs, and a model that drives a store and
//! [`crate::MemoryStore`] side by side through random operations.
//!
//! It knows the contract of [`crate::store`] and nothing of any backend: a backend is what implements
//! [`Backend`]. A broken promise is a panic that says which; a test harness turns [`cases`] into its tests.

mod accept;
mod backend;
mod case;
mod conflict;
mod draft;
mod duplicate;
mod world;

pub use backend::{Backend, Instance};
pub use case::{Case, cases};
