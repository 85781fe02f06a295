//! The model: random writes and reads, applied to a store and to [`crate::MemoryStore`] side by side, which
//! must answer the same and look the same after every batch.
//!
//! It knows the contract and nothing of a backend. A run is made of steps (`operation.rs`), which name things by
//! small numbers, so that a failing run can be cut down and still means something.

mod check;
mod look;
mod operation;
mod scribe;
mod seen;
mod twin;

pub use check::{Extent, check, check_extent};
