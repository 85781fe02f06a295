//! The index of identities: which event holds a hash. Hashes come in no order, so that a table by hash has a page of
//! its own to write for nearly every event. So the newest hashes are kept in memory (`pending.rs`, in a `map.rs` a range),
//! and each commit that is due to moves some ranges of them, sorted, into the table (`flush.rs`). Until then they stand in
//! a small table by sequence number (`table.rs`), from which a start has them again and readers know them (`lookup.rs`).
//! That a new hash is not in the table is known without a search, from a filter in memory (`filter.rs`). A batch says
//! only [`Staged::holder`] and [`Staged::take`].
//!
//! It knows nothing of events: that the identity behind a hash is the one that was asked for is for its callers to see.

mod filter;
mod flush;
mod lookup;
mod map;
mod pending;
mod table;

pub(super) use flush::Staged;
pub(super) use lookup::Lookup;
pub(super) use pending::Pending;
pub(super) use table::{load, pending_count};
