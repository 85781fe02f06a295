//! Failures that people had with webhooks elsewhere, as tests by their ids.
//!
//! `cases/open.jsonl` holds the cases as data; `cargo test b001` runs one. A case whose requests, sources and
//! statuses are data is played as it stands (`cases/play.rs`): its sketch of a source becomes a table of the
//! configuration, its bytes go to the socket unchanged, and afterwards exactly what was accepted is stored, byte
//! for byte. A case that is told in steps has a test of its own. What differs from the file because our
//! specification says so stands in `cases/overrides.rs`, and what waits for a feature in `cases/put-off.md`.
//!
//! The cases were signed in 2025. The server under test therefore runs with the wall clock that the case names,
//! put under it by libfaketime (`cargo xtask setup` installs it), and so the published signatures themselves are
//! what the real binary checks. The clock for time limits stays the machine's own.

mod answers;
mod case;
mod codings;
mod complete;
mod conflicts;
mod dead_letters;
mod durable;
mod event_ids;
mod forward;
mod http;
mod json_edge;
mod leaks;
mod leases;
mod network;
mod overrides;
mod owed;
mod play;
mod pushed;
mod raw_body;
mod retries;
mod secrets;
mod setting_up;
mod signatures;
mod sketch;
pub(crate) mod stage;
mod timestamps;
pub(crate) mod trace;
mod upgrades;

pub(crate) use case::hmac_hex;
