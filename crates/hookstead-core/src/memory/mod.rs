//! The contract as the shortest correct code: everything in ordered maps behind one lock. It is the oracle
//! that other stores are compared with, and the store of tests and of embedders who need no durability.

mod accept;
mod deliveries;
mod read;
mod resolve;
mod state;
mod store;
mod sweep;

pub use store::MemoryStore;
