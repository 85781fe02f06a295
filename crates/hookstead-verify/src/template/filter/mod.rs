//! Pure functions that a template may apply to a value: `{body|sha256|hex}`.
//!
//! Each takes bytes and gives bytes, does bounded work, and gives nothing where its input makes no sense; then
//! the value counts as absent. To add one: one line in the table of `table.rs`.

mod digests;
mod headers;
mod json;
mod pairs;
mod table;
mod texts;

pub(crate) use table::{FILTERS, Filter, find};
