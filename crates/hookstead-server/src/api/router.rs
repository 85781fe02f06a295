//! The routes of the API and what they share.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use hookstead::dispatch::Standings;
use hookstead::{Health, Inbox};
use tokio::sync::{Notify, Semaphore, watch};

use super::error::ApiError;
use super::hosts::Hosts;
use super::places::Places;
use super::waiting::Waiting;
use super::{
    claim, conflicts, deliveries, destinations, doctor, events, export, guard, health, import, leases,
    redeliveries, reload, runs, sources, stats, tail,
};
use crate::config::LimitsConfig;
use crate::listen::Stop;
use crate::problem::Problem;
use crate::run::Reloader;
use crate::tokens::Tokens;

/// What the handlers share.
pub(crate) struct Api {
    pub(crate) inbox: Inbox,
    pub(crate) reads: Places,
    pub(crate) changes: Places,
    /// Claims that are read and answered.
    pub(crate) claims: Places,
    /// Imports that are read and committed.
    pub(crate) imports: Semaphore,
    /// How the destinations stand that the server works.
    pub(crate) standings: Standings,
    pub(crate) waiting: Arc<Waiting>,
    /// Tells the redeliverer of new work.
    pub(crate) redeliveries: Arc<Notify>,
    pub(crate) reloader: Arc<Reloader>,
    pub(crate) tokens: Tokens,
    pub(crate) hosts: Hosts,
    pub(crate) health: watch::Receiver<Health>,
    /// Whether the intake was told to stop.
    pub(crate) stop: watch::Receiver<Stop>,
    /// Where the intake listens.
    pub(crate) intake: SocketAddr,
    pub(crate) limits: LimitsConfig,
    /// How providers reach it, if that is another address.
    pub(crate) public_url: Option<String>,
}

/// All routes.
pub(crate) fn router(api: Arc<Api>) -> Router {
    Router::new()
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/v1/events", get(events::list))
        .route("/v1/events/{event}", get(events::show))
        .route("/v1/events/{event}/body", get(events::body))
        .route("/v1/events/{event}/receipt", get(events::receipt))
        .route("/v1/events/{event}/export", get(export::event))
        .route("/v1/events/{event}/runs", get(runs::list).post(runs::create))
        .route("/v1/events/{event}/redeliver", post(redeliveries::event))
        .route("/v1/export", get(export::page))
        .route("/v1/import", get(import::limits).post(import::import))
        .route("/v1/tail", get(tail::tail))
        .route("/v1/destinations", get(destinations::list))
        .route("/v1/destinations/{name}", get(destinations::show))
        .route("/v1/destinations/{name}/pause", post(destinations::pause))
        .route("/v1/destinations/{name}/resume", post(destinations::resume))
        .route("/v1/destinations/{name}/claim", post(claim::claim))
        .route("/v1/leases/settle", post(leases::many))
        .route("/v1/leases/{lease}/{outcome}", post(leases::one))
        .route("/v1/deliveries", get(deliveries::list))
        .route("/v1/deliveries/{delivery}", get(deliveries::show))
        .route("/v1/deliveries/{delivery}/redeliver", post(deliveries::redeliver))
        .route("/v1/deliveries/{delivery}/done", post(deliveries::done))
        .route("/v1/deliveries/{delivery}/hold", post(deliveries::hold))
        .route("/v1/deliveries/{delivery}/release", post(deliveries::release))
        .route("/v1/redeliveries", get(redeliveries::list).post(redeliveries::create))
        .route("/v1/redeliveries/{redelivery}", get(redeliveries::show))
        .route("/v1/redeliveries/{redelivery}/cancel", post(redeliveries::cancel))
        .route("/v1/reload", post(reload::reload))
        .route("/v1/conflicts", get(conflicts::list))
        .route("/v1/sources", get(sources::list))
        .route("/v1/sources/{name}/refusals", get(sources::refusals))
        .route("/v1/stats", get(stats::show))
        .route("/v1/doctor", get(doctor::show))
        .fallback(async || ApiError::from(Problem::NotFound))
        .method_not_allowed_fallback(async || ApiError::from(Problem::Method))
        .layer(from_fn_with_state(api.clone(), guard::guard))
        .with_state(api)
}
