//! The admin API without a server: the same routes over the store itself, for a verb that has to do its work while no
//! server runs. The store's lock is held in between. No listener, no dispatcher: nothing is accepted or delivered.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use hookstead::dispatch::Standings;
use hookstead::keys::KeyCache;
use hookstead::verify::KeySource;
use hookstead::{Inbox, Unavailable};
use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use tokio::sync::{Notify, watch};

use super::Reloader;
use super::outcome::StartError;
use super::parts::{self, Addresses, Shared};
use super::redeliverer::Redeliverer;
use crate::api::{Waiting, router};
use crate::config::Config;
use crate::folder;
use crate::listen::Stop;
use crate::tokens::{Tokens, admin_token};

/// The API of a configuration's store, open for as long as this lives. End it with [`LocalApi::close`].
pub struct LocalApi {
    router: Router,
    inbox: Inbox,
    redeliverer: Redeliverer,
    token: String,
    /// Held, so that nothing that waits takes its absence for a stop.
    _stop: watch::Sender<Stop>,
}

impl LocalApi {
    /// Opens the store. Must be called on a tokio runtime with time.
    ///
    /// # Errors
    ///
    /// [`StartError`]; nothing is left open then.
    pub async fn open(config: Config) -> Result<Self, StartError> {
        folder::prepare(&config.data)?;
        let tokens = Tokens::open(&config.data)?;
        let token = admin_token(&config.data)?;
        let addresses = Addresses { intake: config.server.intake, admin: config.server.admin };
        // Nothing is received here, so no keys are fetched.
        let (keys, _nothing) = KeyCache::new();
        let keys: Arc<dyn KeySource> = keys;
        let inbox = parts::open(&config, addresses.intake, &keys).await?;
        let redeliveries = Arc::new(Notify::new());
        let (stop, stopped) = watch::channel(Stop::default());
        let shared = Shared {
            intake_stop: stopped,
            standings: Standings::default(),
            waiting: Arc::new(Waiting::new()),
            redeliveries: redeliveries.clone(),
            reloader: Reloader::new(inbox.clone(), addresses.intake, keys, config.clone()),
        };
        let api = parts::api(&config, &inbox, tokens, addresses, shared);
        let redeliverer = Redeliverer::start(inbox.clone(), redeliveries);
        Ok(Self { router: router(Arc::new(api)), inbox, redeliverer, token, _stop: stop })
    }

    /// The answer to a request of the owner of the data folder: its status and body. `target` is path and query.
    ///
    /// # Errors
    ///
    /// The target cannot be one, or the answer broke off.
    pub async fn answer(
        &self,
        method: Method,
        target: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), axum::Error> {
        let request = Request::builder()
            .method(method)
            .uri(target)
            .header(header::HOST, "localhost")
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .body(Body::from(body))
            .map_err(axum::Error::new)?;
        let answered = TowerToHyperService::new(self.router.clone()).call(request).await;
        // A router cannot fail: what goes wrong in it is an answer.
        let response = answered.unwrap_or_else(|never| match never {});
        let status = response.status();
        Ok((status, response.into_body().collect().await?.to_bytes()))
    }

    /// Lets the store go; what was answered is durable already.
    ///
    /// # Errors
    ///
    /// The store could not be closed in order.
    pub async fn close(self) -> Result<(), Unavailable> {
        self.redeliverer.end().await;
        let inbox = self.inbox;
        let closed = tokio::task::spawn_blocking(move || inbox.close()).await;
        closed.unwrap_or_else(|error| Err(Unavailable::Failed(error.to_string().into())))
    }
}
