//! Sample events: made up from a provider's record, signed as the provider would.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use hookstead::SystemClock;
use hookstead_core::{Clock, Timestamp};
use hookstead_verify::{Provider, Secret, SignRequest, SignedRequest, Verifier, VerifyOptions};

use crate::failure::{Exit, Failure};

/// An event that can be sent, and sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Its type, as the record names it.
    pub(crate) event_type: String,
    /// The provider's event id.
    pub(crate) id: String,
    /// The content type of the body.
    pub(crate) content_type: String,
    /// The body.
    pub(crate) body: Bytes,
}

/// A provider and the secret with which it signs.
pub(crate) struct Signer {
    provider: Arc<Provider>,
    secret: Option<Secret>,
}

impl Signer {
    /// A signer. A provider that does not sign needs no secret.
    pub(crate) fn new(provider: Arc<Provider>, secret: Option<Secret>) -> Self {
        Self { provider, secret }
    }

    /// The provider.
    pub(crate) fn provider(&self) -> &Arc<Provider> {
        &self.provider
    }

    /// A new sample event that happens at `at`: the first of the record, or the one of this type. Without an
    /// id it gets one that nobody used before.
    pub(crate) fn sample(&self, event_type: Option<&str>, id: Option<&str>, at: Timestamp) -> Result<Sample> {
        let sample = self.provider.sample(event_type).ok_or_else(|| self.no_sample(event_type))?;
        let id = match id {
            Some(id) => id.to_owned(),
            None => sample.event_id(random_number()?),
        };
        let body = sample.render(&id, at.as_micros()).into();
        let (event_type, content_type) = (sample.event.clone(), sample.content_type.clone());
        Ok(Sample { event_type, id, content_type, body })
    }

    /// The sample as a request to `url` that is signed at `at`.
    pub(crate) fn sign(&self, sample: &Sample, url: &str, at: Timestamp) -> Result<SignedRequest> {
        let request = SignRequest {
            method: "POST",
            url,
            body: &sample.body,
            content_type: &sample.content_type,
            event_id: &sample.id,
            event_type: Some(sample.event_type.as_str()).filter(|event_type| !event_type.is_empty()),
            secret: self.secret.as_ref(),
            now_unix_micros: at.as_micros(),
        };
        self.provider.sign(&request).map_err(|error| {
            let name = self.provider.name();
            Failure::new(Exit::Failed, "cannot-sign", format!("cannot sign as `{name}` does: {error}"))
                .fix("check the secret: hookstead config check")
                .into()
        })
    }

    /// Whether the request would pass now, as far as its provider and its secret decide.
    pub(crate) fn passes(&self, signed: &SignedRequest) -> Result<bool> {
        let secrets: Vec<Secret> = self.secret.iter().cloned().collect();
        let options = VerifyOptions { url: Some(signed.url.clone()), ..VerifyOptions::default() };
        let verifier = Verifier::new(self.provider.clone(), &secrets, options)?;
        Ok(verifier.verify(&signed.as_request(), now().as_micros()).is_ok())
    }

    fn no_sample(&self, event_type: Option<&str>) -> Failure {
        let name = self.provider.name();
        let known: Vec<&str> = self.provider.samples().iter().map(|sample| sample.event.as_str()).collect();
        let message = match event_type {
            Some(event_type) => format!("`{name}` has no sample event `{event_type}`"),
            None => format!("`{name}` has no sample events"),
        };
        let failure = Failure::new(Exit::NotFound, "no-sample", message);
        if known.is_empty() { failure } else { failure.fix(format!("take one of: {}", known.join(", "))) }
    }
}

/// A number that nobody used before, of the length that ids have room for.
fn random_number() -> Result<u64> {
    const BELOW: u64 = 1_000_000_000_000;
    let mut bytes = [0; 8];
    aws_lc_rs::rand::fill(&mut bytes).ok().context("the system gives no random numbers")?;
    Ok(u64::from_le_bytes(bytes) % BELOW)
}

/// What the machine's clock says.
pub(crate) fn now() -> Timestamp {
    SystemClock::new().wall()
}

/// That many seconds ago.
pub(crate) fn seconds_ago(seconds: u64) -> Timestamp {
    now().minus(Duration::from_secs(seconds))
}
