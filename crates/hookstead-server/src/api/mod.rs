//! The admin API: what the store holds, as JSON, behind a token. A resource a file; this one lists the routes.

mod body;
mod claim;
mod conflicts;
mod decision;
mod deliveries;
mod delivery_view;
mod destinations;
mod doctor;
mod doctor_view;
mod error;
mod events;
mod export;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod guard;
mod health;
mod hosts;
mod import;
mod import_view;
mod lease_id;
mod lease_view;
mod leases;
mod moment;
mod places;
pub(crate) mod proof;
mod query;
mod redeliveries;
mod refusal_view;
mod reload;
mod router;
mod runs;
mod selector;
mod sources;
mod stats;
mod tail;
pub mod view;
mod waiting;

pub(crate) use deliveries::views as delivery_views;
pub(crate) use hosts::Hosts;
pub(crate) use places::Places;
pub(crate) use router::{Api, router};
pub(crate) use waiting::Waiting;
