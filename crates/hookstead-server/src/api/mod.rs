//! The admin API: what the store holds, as JSON, behind a token. A resource a file; this one lists the routes.

mod conflicts;
mod error;
mod events;
mod guard;
mod health;
mod hosts;
mod places;
pub(crate) mod proof;
mod query;
mod router;
mod runs;
mod selector;
mod sources;
mod stats;
pub mod view;

pub(crate) use hosts::Hosts;
pub(crate) use places::Places;
pub(crate) use router::{Api, router};
