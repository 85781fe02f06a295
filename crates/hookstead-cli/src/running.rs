//! The server that runs on a store, as the store's owner record tells: the one place where addresses of running
//! servers are written down.

use anyhow::Result;
use hookstead_server::Config;
use hookstead_store::OpenOptions;

use crate::failure::{Exit, Failure};

/// A running server.
pub(crate) struct Running {
    /// Its process.
    pub(crate) pid: u32,
    /// The address of its admin listener.
    pub(crate) admin: String,
    /// The address of its intake.
    pub(crate) intake: String,
}

impl Running {
    /// The server that has the store open; `None` if nobody has.
    pub(crate) fn find(config: &Config) -> Result<Option<Self>> {
        let Some(owner) = hookstead_store::owner_record(&config.store.url, &OpenOptions::default())? else {
            return Ok(None);
        };
        let address = |listener: &str| owner.address(listener).map(with_scheme);
        match (address("admin"), address("intake")) {
            (Some(admin), Some(intake)) => Ok(Some(Self { pid: owner.pid, admin, intake })),
            _ => Err(not_listening(config, owner.pid).into()),
        }
    }

    /// Where requests are posted to: the running server's intake, else the configured one.
    pub(crate) fn intake(config: &Config) -> Result<String> {
        match Self::find(config)? {
            Some(running) => Ok(running.intake),
            None if config.server.intake.port() == 0 => Err(none_running(config).into()),
            None => Ok(with_scheme(&config.server.intake.to_string())),
        }
    }
}

fn with_scheme(address: &str) -> String {
    if address.contains("://") { address.to_owned() } else { format!("http://{address}") }
}

fn not_listening(config: &Config, pid: u32) -> Failure {
    let message = format!("process {pid} has {} open, and is no server that listens", config.store.url);
    Failure::new(Exit::Unreachable, "not-reachable", message)
        .fix("wait until it has started or ended, or name a server with --server URL")
}

/// No server has the store of a configuration open.
pub(crate) fn none_running(config: &Config) -> Failure {
    Failure::new(Exit::Unreachable, "not-reachable", format!("no server runs on {}", config.store.url))
        .fix("start one in another terminal:  hookstead serve\nor name its address:            --to URL")
}
