//! Reads of the store: they block, so they run on threads for that, and never too many at once.

use std::sync::Arc;

use hookstead::core::{Store, StoreError};
use tokio::sync::Semaphore;

use super::error::ApiError;
use crate::limits::{READ_WAIT, READS_MAX};
use crate::problem::Problem;

/// The places for reads.
#[derive(Debug)]
pub(crate) struct Reads(Semaphore);

impl Reads {
    pub(crate) fn new() -> Self {
        Self(Semaphore::new(READS_MAX))
    }

    /// Runs a read when there is a place for it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        store: &Arc<dyn Store>,
        read: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let _place = match tokio::time::timeout(READ_WAIT, self.0.acquire()).await {
            Ok(Ok(place)) => place,
            Ok(Err(_)) | Err(_) => return Err(Problem::Busy.into()),
        };
        let store = store.clone();
        match tokio::task::spawn_blocking(move || read(&*store)).await {
            Ok(result) => result.map_err(ApiError::from),
            Err(error) => {
                tracing::error!(error = %error, "a read of the store did not end");
                Err(Problem::Damaged.into())
            }
        }
    }
}
