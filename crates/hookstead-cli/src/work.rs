//! Doing something through the admin API: by the running server where one lives, else over the store itself, whose
//! lock is held for as long as the verb takes. Verbs do not notice which.

use anyhow::Result;
use hookstead_server::{Config, LocalApi, StartError};

use crate::client::Client;
use crate::cmd::runtime;
use crate::failure::Failure;
use crate::reader::{WhereArgs, refused, server, store_exists};

/// Does something with the API. `None`: there is no server, and no store was ever made. A store is never made by
/// looking at it.
pub(crate) fn with<T>(args: &WhereArgs, work: impl AsyncFnOnce(&Client) -> Result<T>) -> Result<Option<T>> {
    let config = args.place.load()?;
    let server = server(args, &config)?;
    if server.is_none() && !store_exists(&config) {
        return Ok(None);
    }
    done(server, config, work).map(Some)
}

/// Does something that brings events in: a store that was never made is made.
pub(crate) fn making<T>(args: &WhereArgs, work: impl AsyncFnOnce(&Client) -> Result<T>) -> Result<T> {
    let config = args.place.load()?;
    done(server(args, &config)?, config, work)
}

fn done<T>(
    server: Option<String>,
    config: Config,
    work: impl AsyncFnOnce(&Client) -> Result<T>,
) -> Result<T> {
    runtime()?.block_on(async {
        let client = match server {
            Some(address) => Client::at(&address, &config.data)?,
            None => Client::here(open(config).await?)?,
        };
        let done = work(&client).await;
        // Whatever was answered is durable already; a store that cannot be closed is still worth a word.
        let closed = client.close().await;
        let done = done?;
        closed?;
        Ok(done)
    })
}

async fn open(config: Config) -> Result<LocalApi> {
    LocalApi::open(config).await.map_err(|error| match error {
        StartError::Open(hookstead::OpenError::Store(error)) => Failure::into(refused(&error)),
        other => other.into(),
    })
}
