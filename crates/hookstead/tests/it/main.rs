//! The inbox as an embedder uses it, on every store that is built in.

mod receive;
mod record;
mod replay;
mod stores;
