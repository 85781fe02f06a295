//! The routes of the API and what they share.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use hookstead::{Health, Inbox};
use tokio::sync::watch;

use super::error::ApiError;
use super::hosts::Hosts;
use super::places::Places;
use super::{conflicts, events, guard, health, runs, sources, stats};
use crate::listen::Stop;
use crate::problem::Problem;
use crate::tokens::Tokens;

/// What the handlers share.
pub(crate) struct Api {
    pub(crate) inbox: Inbox,
    pub(crate) reads: Places,
    pub(crate) changes: Places,
    pub(crate) tokens: Tokens,
    pub(crate) hosts: Hosts,
    pub(crate) health: watch::Receiver<Health>,
    /// Whether the intake was told to stop.
    pub(crate) stop: watch::Receiver<Stop>,
    /// Where the intake listens.
    pub(crate) intake: SocketAddr,
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
        .route("/v1/events/{event}/runs", get(runs::list).post(runs::create))
        .route("/v1/conflicts", get(conflicts::list))
        .route("/v1/sources", get(sources::list))
        .route("/v1/stats", get(stats::show))
        .fallback(async || ApiError::from(Problem::NotFound))
        .method_not_allowed_fallback(async || ApiError::from(Problem::Method))
        .layer(from_fn_with_state(api.clone(), guard::guard))
        .with_state(api)
}
