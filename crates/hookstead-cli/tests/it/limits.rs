//! Each limit of the HTTP side against crowds of clients that do not keep it: what they are told, that everybody else
//! is served meanwhile, and that their connections and memory come back.
//!
//! docs/limits.md lists the limits with the names of these tests. Time limits are set short, so that nothing is
//! waited for; the values themselves are the settings' own tests.

mod besieged;
mod bodies;
mod connections;
mod heads;
mod protocol;
mod proxies;
mod rate;
mod slow;
