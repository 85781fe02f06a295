//! Templates: texts with variables of the request in them, compiled once and resolved per request.

mod context;
mod filter;
mod parse;
mod resolve;
mod variable;

pub(crate) use context::Context;
pub(crate) use parse::{Part, Slot};
pub use parse::{Template, TemplateError};
pub(crate) use resolve::{Pieces, Unresolved};
pub(crate) use variable::Variable;
