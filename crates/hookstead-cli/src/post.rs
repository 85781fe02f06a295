//! Posting a signed request to an intake, as a provider would, and reading the answer.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hookstead_verify::SignedRequest;
use serde::Deserialize;

use crate::failure::{Exit, Failure};

/// Longer than the server's own limits, so that a slow answer is the server's and not ours.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// The code of a failure after which nobody knows what became of a request: it was sent, and not answered.
pub(crate) const NO_ANSWER: &str = "no-answer";

/// What came back.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: u16,
    /// What the body said, if it was one of ours.
    pub(crate) said: Said,
    /// From the first byte sent until the last one read.
    pub(crate) took: Duration,
}

/// The parts of an answer's JSON that are of use; a provider's own answer may have none of them.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Said {
    /// `stored`, `duplicate` or `conflict`.
    pub(crate) outcome: Option<String>,
    /// The event that holds the identity.
    pub(crate) event: Option<String>,
    /// The code of a refusal.
    pub(crate) code: Option<String>,
}

/// Something that posts; it keeps its connections open.
pub(crate) struct Sender {
    http: reqwest::Client,
}

impl Sender {
    /// A sender for addresses like this one.
    pub(crate) fn new(url: &str) -> Result<Self> {
        Ok(Self { http: http_client(url, ANSWER_WITHIN)? })
    }

    /// Posts and waits for the whole answer.
    pub(crate) async fn send(&self, signed: &SignedRequest) -> Result<Answer> {
        let method = http::Method::from_bytes(signed.method.as_bytes()).context("read the method")?;
        let mut request = self.http.request(method, &signed.url).body(signed.body.clone());
        for (name, value) in &signed.headers {
            request = request.header(name, value.as_slice());
        }
        let begun = Instant::now();
        let response = request.send().await.map_err(|error| not_reached(&signed.url, &error))?;
        let status = response.status().as_u16();
        let body = response.bytes().await.map_err(|error| not_reached(&signed.url, &error))?;
        let took = begun.elapsed();
        // A provider may want an answer that is no JSON at all; then the status says everything.
        let said = serde_json::from_slice(&body).unwrap_or_default();
        Ok(Answer { status, said, took })
    }
}

/// An HTTP client. Without https it needs no certificates, which a bare machine may not have, and loopback is
/// never behind a proxy.
pub(crate) fn http_client(url: &str, timeout: Duration) -> Result<reqwest::Client> {
    let builder = reqwest::Client::builder()
        .timeout(timeout)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("hookstead/", env!("CARGO_PKG_VERSION")));
    let builder = if url.starts_with("https:") { builder } else { builder.no_proxy().tls_certs_only([]) };
    builder.build().context("set up the HTTP client")
}

/// The failure of a request that got no answer.
pub(crate) fn not_reached(url: &str, error: &reqwest::Error) -> anyhow::Error {
    let base =
        reqwest::Url::parse(url).map_or_else(|_| url.to_owned(), |url| url.origin().ascii_serialization());
    let (code, message) = match error {
        e if e.is_timeout() => (NO_ANSWER, format!("{base} did not answer in time")),
        e if e.is_connect() => ("not-reachable", format!("nothing answers at {base}")),
        e if e.is_builder() => ("bad-url", format!("`{url}` is not an address to send to")),
        _ => (NO_ANSWER, format!("the connection to {base} broke before the answer was complete")),
    };
    let exit = if error.is_builder() { Exit::Usage } else { Exit::Unreachable };
    let failure = Failure::new(exit, code, message).line("why", innermost(error));
    failure
        .fix("start the server:       hookstead serve\nor name another one:    --to URL, --server URL")
        .into()
}

fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
