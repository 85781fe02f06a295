//! The inbox as an embedder uses it, on every store that is built in.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

mod comparison;
mod consume;
mod dispatch;
mod effects;
mod filters;
mod receive;
mod record;
mod replay;
mod scene;
mod sinks;
mod stores;
mod tail;
