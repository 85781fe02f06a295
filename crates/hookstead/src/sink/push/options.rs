//! How a destination is pushed to, and what is wrong with it.

use std::path::PathBuf;
use std::time::Duration;

use super::signature::{SIGNING_SECRETS_MAX, SigningSecret};
use super::url::PushUrl;

/// The timeout of a push unless the destination names another: what Standard Webhooks advises.
pub const PUSH_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// The longest timeout of a push: work that takes longer belongs behind an answer.
pub const PUSH_TIMEOUT_MAX: Duration = Duration::from_mins(15);

/// How a destination is pushed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushOptions {
    /// Where to, and how far the destination may reach.
    pub url: PushUrl,
    /// What pushes are signed with, the newest first: one to [`SIGNING_SECRETS_MAX`].
    pub secrets: Vec<SigningSecret>,
    /// How long an attempt may take, from the look-up of the name to the end of the answer; more than zero,
    /// at most [`PUSH_TIMEOUT_MAX`].
    pub timeout: Duration,
    /// A PEM file of certificates to trust beside the system's, for a target with a private CA.
    pub ca_file: Option<PathBuf>,
    /// What a 410 makes of the delivery.
    pub on_gone: OnGone,
}

/// What becomes of a delivery whose target answers 410 Gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnGone {
    /// It is kept back until a person looks at it.
    #[default]
    Hold,
    /// It is dead.
    Dead,
    /// It is tried again like after any other failure.
    Retry,
}

impl PushOptions {
    /// A push to that URL, signed with that secret, with every other option at its default.
    pub fn new(url: PushUrl, secret: SigningSecret) -> Self {
        let secrets = vec![secret];
        Self { url, secrets, timeout: PUSH_TIMEOUT_DEFAULT, ca_file: None, on_gone: OnGone::default() }
    }

    pub(super) fn check(&self) -> Result<(), PushSetupError> {
        if self.secrets.is_empty() || self.secrets.len() > SIGNING_SECRETS_MAX {
            return Err(PushSetupError::Secrets(self.secrets.len()));
        }
        if self.timeout.is_zero() || self.timeout > PUSH_TIMEOUT_MAX {
            return Err(PushSetupError::Timeout(self.timeout));
        }
        Ok(())
    }
}

/// Why a destination cannot be pushed to as it is configured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PushSetupError {
    /// Too few or too many signing secrets.
    #[error("{0} signing secrets; give one to {SIGNING_SECRETS_MAX}")]
    Secrets(usize),
    /// A timeout of zero, or an absurd one.
    #[error("a timeout of {0:?}; give one of more than zero and at most {PUSH_TIMEOUT_MAX:?}")]
    Timeout(Duration),
    /// The CA file cannot be read, or holds no certificate.
    #[error("CA file `{}`: {reason}; give a PEM file with the certificates of the target's CA", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// There is nothing to check a target's certificate by.
    #[error(
        "{0}; install the system's CA certificates (`ca-certificates`), or set `ca_file` on the destination"
    )]
    Trust(String),
}
