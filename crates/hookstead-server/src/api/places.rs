//! Calls of the store block, so they run on threads for that, and never too many at once. Reads and changes have
//! places of their own: neither can keep the other waiting.

use std::sync::Arc;

use hookstead::core::Store;
use tokio::sync::Semaphore;

use super::error::ApiError;
use crate::limits::READ_WAIT;
use crate::problem::Problem;

/// The places for calls of one kind.
#[derive(Debug)]
pub(crate) struct Places(Semaphore);

impl Places {
    pub(crate) fn new(count: usize) -> Self {
        Self(Semaphore::new(count))
    }

    /// Reads the store when there is a place for it.
    pub(crate) async fn read<T, E>(
        &self,
        store: &Arc<dyn Store>,
        read: impl FnOnce(&dyn Store) -> Result<T, E> + Send + 'static,
    ) -> Result<T, ApiError>
    where
        T: Send + 'static,
        E: Into<ApiError> + Send + 'static,
    {
        let store = store.clone();
        self.run(move || read(&*store)).await
    }

    /// Runs a call when there is a place for it.
    pub(crate) async fn run<T, E>(
        &self,
        call: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Result<T, ApiError>
    where
        T: Send + 'static,
        E: Into<ApiError> + Send + 'static,
    {
        let _place = match tokio::time::timeout(READ_WAIT, self.0.acquire()).await {
            Ok(Ok(place)) => place,
            Ok(Err(_)) | Err(_) => return Err(Problem::Busy.into()),
        };
        match tokio::task::spawn_blocking(call).await {
            Ok(result) => result.map_err(Into::into),
            Err(error) => {
                tracing::error!(error = %error, "a call of the store did not end");
                Err(Problem::Damaged.into())
            }
        }
    }
}
