//! The conformance suite: one list of cases that every store runs, and a model that drives a store and
//! [`crate::MemoryStore`] side by side through random operations.
//!
//! It knows the contract of [`crate::store`] and nothing of any backend: a backend is what implements
//! [`Backend`]. A broken promise is a panic that says which; a test harness turns [`cases`] into its tests.

mod accept;
mod attempts;
mod backend;
mod batch;
mod body_reuse;
mod case;
mod claim;
mod conflict;
mod draft;
mod duplicate;
mod expiry;
mod extend;
mod identity;
mod lists;
pub mod model;
mod people;
mod picture;
mod races;
mod read;
mod redeliver;
mod register;
mod reopen;
mod revision;
mod run;
mod scene;
mod settle;
mod sweep;
mod world;

pub use backend::{Backend, Instance};
pub use case::{Case, cases};
