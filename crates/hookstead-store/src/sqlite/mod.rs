//! The `sqlite:` store: one database file, one writer, a few readers, a thread that checkpoints.
//!
//! One operation a file. It knows SQL and SQLite's ways; what may become of a delivery it takes from
//! `hookstead-core`, and which files exist it does through [`crate::fs`].

mod accept;
mod batch;
mod body_reuse;
mod bring_back;
mod check;
mod check_older;
mod checkpoint;
mod claim;
mod conflict;
mod connect;
mod copy;
mod create;
#[cfg(test)]
mod damaged_log;
mod delivery;
mod effect;
mod event;
mod examine;
mod extend;
mod failure;
mod fetch;
mod files;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod guard;
mod identities;
#[cfg(test)]
mod injected;
#[cfg(test)]
mod injected_filter;
mod ledger;
mod list;
mod log_format;
mod log_scan;
#[cfg(test)]
mod long_lists;
mod migrations;
mod open;
mod own_log;
mod published;
mod read_only;
mod readers;
mod redeliver;
mod register;
mod resolve;
mod row;
mod rows;
mod run;
mod settle;
mod store;
mod sweep;
mod upgrade;
mod walk;
mod writer;

pub(crate) use copy::{copy, restore};
pub use effect::{EffectError, SqliteTransaction, sqlite_effect};
pub(crate) use examine::examine;
pub(crate) use open::open;
pub(crate) use read_only::open_read_only;
