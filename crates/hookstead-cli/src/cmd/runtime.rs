//! The runtime of verbs that talk to a server.

use anyhow::{Context, Result};
use tokio::runtime::{Builder, Runtime};

/// A runtime for one verb's own requests.
pub(crate) fn runtime() -> Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().context("start the runtime")
}
