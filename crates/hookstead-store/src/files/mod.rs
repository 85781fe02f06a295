//! The `files:` store: one readable JSON record an event, and one log for everything else.
//!
//! ```text
//! DIR/hookstead.json                                  marks the folder as ours: format, key
//! DIR/lock                                            who has it open
//! DIR/work.log                                        rows of events, deliveries, attempts, runs, ...
//! DIR/journal-<n>.log                                 batches that are not yet durable where they belong
//! DIR/sources/<name>/deliveries/<sha256 of id>.json   the first bytes of an identity
//! DIR/sources/<name>/conflicts/<sha256 of id>-<n>.json   other bytes under it
//! DIR/sources/<name>/revisions/<event id>.json        other bytes that a person accepted
//! DIR/sources/<name>/processed/<sha256 of id, NUL and run>.json   the receipt of a run
//! DIR/**/.pending-*                                   being written; in a folder of the seed's own receiver
//!                                                     its source `seed` has its folders in DIR itself
//! ```
//!
//! The log holds what came of each batch, row by row, and never what was asked: replaying it needs no rule,
//! and gives the same tables whatever the rules are by then. Bodies and payloads are in their records, and until
//! a checkpoint in the journal; the log has their digests, so that a record that was changed is told from what
//! was accepted. Everything that is not a body or a payload is in memory, about a kilobyte an event.
//!
//! What makes a batch durable, and what a crash at each point leaves, stands in `writer`; what a start does
//! about it in `start`, `replay`, `recover` and `adopt`. This store knows nothing of SQL, and every call to the disk
//! goes through [`crate::fs`].

mod accept;
mod adopt;
mod batch;
mod check;
mod checkpoint;
mod codec;
mod copy;
mod disk;
mod entry;
mod examine;
mod failure;
mod folder;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod journal;
mod layout;
mod list;
mod log;
mod marker;
mod probe;
mod receipt;
mod recover;
mod redeliver;
mod register;
mod replay;
mod resolve;
mod row;
mod run;
mod start;
mod store;
mod sweep;
mod tables;
mod work;
mod writer;

pub(crate) use copy::{copy, restore};
pub(crate) use examine::examine;
pub(crate) use start::{lock_path, open};
