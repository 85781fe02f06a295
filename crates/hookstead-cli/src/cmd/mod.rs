//! One module a verb. Each has its arguments with their help, and a `run`.

mod completions;
mod config;
mod deliveries;
mod demo;
mod destinations;
mod dispatch;
mod events;
mod overview;
mod providers;
mod redeliveries;
mod replay;
mod runtime;
mod send;
mod serve;
mod sign;
mod store;
mod tail;
mod token;

pub(crate) use completions::Completions;
pub(crate) use config::ConfigArgs;
pub(crate) use deliveries::Deliveries;
pub(crate) use demo::Demo;
pub(crate) use destinations::Destinations;
pub(crate) use dispatch::run;
pub(crate) use events::Events;
pub(crate) use providers::ProvidersArgs;
pub(crate) use redeliveries::Redeliveries;
pub(crate) use replay::Replay;
pub(crate) use runtime::runtime;
pub(crate) use send::Send;
pub(crate) use serve::Serve;
pub(crate) use sign::Sign;
pub(crate) use store::StoreArgs;
pub(crate) use tail::Tail;
pub(crate) use token::TokenArgs;
