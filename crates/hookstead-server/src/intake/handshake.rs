//! What a handshake asks for beside its answer: a secret that has to be kept first, an address of the provider's that
//! has to be called afterwards. Which address that may be, and whether a secret may be taken, was decided before.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hookstead::sink::push::Fetcher;
use hookstead::verify::{HandshakeAnswer, Secret};
use hookstead::{Inbox, Source, SourceName};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use crate::handed_secrets::{self, Handed};
use crate::problem::Problem;

/// Most confirmations under way; above it the provider is asked to come again.
const CONFIRMATIONS_MAX: usize = 32;

/// Most bytes of a confirmation's answer, which nobody reads.
const CONFIRMATION_BYTES_MAX: usize = 64 * 1024;

/// Pauses between the attempts of one confirmation. The provider asks again by itself when they are used up.
const CONFIRMATION_PAUSES: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30), Duration::from_mins(2)];

/// Does what handshakes ask for.
pub(crate) struct Handshakes {
    inbox: Inbox,
    data: PathBuf,
    /// One secret is kept at a time.
    keeping: Mutex<()>,
    fetcher: Fetcher,
    confirming: Arc<Semaphore>,
    /// Where confirmations run: they outlive the connection that asked.
    runtime: Handle,
}

impl Handshakes {
    /// Must be called on the runtime that confirmations shall run in.
    pub(crate) fn new(inbox: Inbox, data: PathBuf, fetcher: Fetcher) -> Arc<Self> {
        let confirming = Arc::new(Semaphore::new(CONFIRMATIONS_MAX));
        Arc::new(Self {
            inbox,
            data,
            keeping: Mutex::default(),
            fetcher,
            confirming,
            runtime: Handle::current(),
        })
    }

    /// Does what has to be done before the answer is given. With an error nothing was done, and it is the answer.
    pub(crate) async fn prepare(&self, source: &Source, answer: &HandshakeAnswer) -> Result<(), Problem> {
        if let Some(secret) = &answer.secret {
            self.keep(source, secret.clone()).await?;
        }
        match &answer.fetch {
            Some(url) => self.confirm(source.name().clone(), url.clone()),
            None => Ok(()),
        }
    }

    /// Makes a secret durable, and only then lets the source be opened by it.
    async fn keep(&self, source: &Source, secret: Secret) -> Result<(), Problem> {
        let name = source.name();
        if let Some(error) = source.provider().and_then(|provider| provider.check_secret(&secret).err()) {
            tracing::warn!(source.name = %name, error = %error, "a secret that was handed over was refused");
            return Err(Problem::NotVerified);
        }
        let _one_at_a_time = self.keeping.lock().await;
        let (data, of, given) = (self.data.clone(), name.clone(), secret.clone());
        let kept = tokio::task::spawn_blocking(move || handed_secrets::keep(&data, &of, &given)).await;
        let handed = match kept {
            Ok(Ok(handed)) => handed,
            Ok(Err(error)) => return Err(not_kept(name, &error)),
            Err(error) => return Err(not_kept(name, &error)),
        };
        match handed {
            Handed::Kept => {
                self.give(name, &secret).await?;
                tracing::info!(source.name = %name, "the provider handed over the secret; it is kept, and no other is taken");
                Ok(())
            }
            Handed::Before(before) => {
                // Read before it was there, by a reload at the same time.
                self.give(name, &before).await?;
                tracing::warn!(source.name = %name, "a second secret was handed over, and not taken");
                Err(Problem::NotVerified)
            }
            Handed::NoText => {
                tracing::warn!(source.name = %name, "a secret that was handed over is no text, and was not taken");
                Err(Problem::NotVerified)
            }
        }
    }

    async fn give(&self, name: &SourceName, secret: &Secret) -> Result<(), Problem> {
        match self.inbox.give_secret(name, secret).await {
            Ok(_) => Ok(()),
            Err(error) => Err(not_kept(name, &error)),
        }
    }

    /// Calls an address of the provider's outside of the request.
    fn confirm(&self, name: SourceName, url: String) -> Result<(), Problem> {
        let Ok(place) = self.confirming.clone().try_acquire_owned() else {
            tracing::warn!(source.name = %name, "too many subscriptions are being confirmed; the provider is asked to come again");
            return Err(Problem::Busy);
        };
        self.runtime.spawn(confirm(self.fetcher.clone(), name, url, place));
        Ok(())
    }
}

/// The query of the address is a secret of the subscription, so that only its host is logged.
async fn confirm(fetcher: Fetcher, name: SourceName, url: String, _place: OwnedSemaphorePermit) {
    let host = url.split('/').nth(2).unwrap_or_default();
    let pauses = CONFIRMATION_PAUSES.into_iter().map(Some).chain([None]);
    for pause in pauses {
        let error = match fetcher.get(&url, CONFIRMATION_BYTES_MAX).await {
            Ok(_) => {
                tracing::info!(source.name = %name, confirmation.host = host, "the subscription was confirmed");
                return;
            }
            Err(error) => error,
        };
        match pause.filter(|_| !error.is_final()) {
            Some(pause) => sleep(pause).await,
            None => {
                tracing::error!(
                    source.name = %name, confirmation.host = host, error = %error,
                    "the subscription could not be confirmed; let the provider send its confirmation again"
                );
                return;
            }
        }
    }
}

fn not_kept(name: &SourceName, error: &dyn std::error::Error) -> Problem {
    tracing::error!(source.name = %name, error = %error, "a secret that was handed over could not be kept");
    Problem::NotDurable
}
