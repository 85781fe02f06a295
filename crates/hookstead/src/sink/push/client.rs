//! One attempt from request to verdict, within the destination's timeout.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use super::answer::{self, ExcerptEnd};
use super::connection::{Connection, IdleConnections};
use super::connector::{self, Failure};
use super::headers::Shape;
use super::network::Network;
use super::options::{PushOptions, PushSetupError};
use super::rules::{self, PushRule};
use super::tls;
use crate::sink::contract::{Delivering, Outgoing, Sink, Tried};

/// Pushes to one destination. It keeps a few connections between pushes, which no other destination uses.
pub struct PushSink {
    pub(super) options: PushOptions,
    pub(super) network: Arc<dyn Network>,
    pub(super) tls: Option<TlsConnector>,
    /// What all requests have in common; or why there can be none.
    shape: Result<Shape, String>,
    idle: IdleConnections,
}

impl PushSink {
    /// Makes a sink; reads the CA file and the system's certificates if the URL is `https`.
    ///
    /// # Errors
    ///
    /// [`PushSetupError`] if an option is out of its range, or the certificates cannot be read.
    pub fn new(options: PushOptions, network: Arc<dyn Network>) -> Result<Self, PushSetupError> {
        options.check()?;
        let secure = options.url.is_secure().then(|| tls::connector(options.ca_file.as_deref()));
        let shape = Shape::new(&options.url, &options.secrets).map_err(|error| error.to_string());
        Ok(Self { options, network, tls: secure.transpose()?, shape, idle: IdleConnections::default() })
    }

    async fn attempt(&self, outgoing: &Outgoing) -> Tried {
        let deadline = Instant::now() + self.options.timeout;
        let connected = AtomicBool::new(false);
        match timeout_at(deadline, self.exchange(outgoing, &connected)).await {
            Ok(Ok((response, connection))) => self.answered(response, connection, outgoing, deadline).await,
            Ok(Err(failure)) => failed(failure),
            Err(_) => failed(timed_out(self.options.timeout, connected.load(Ordering::Relaxed))),
        }
    }

    /// Sends the request and waits for the head of the answer. A target closes a kept connection when it likes,
    /// maybe while the request is on its way: then it goes out once more, over a new one. Should it have been
    /// seen, its idempotency key says so.
    async fn exchange(
        &self,
        outgoing: &Outgoing,
        connected: &AtomicBool,
    ) -> Result<(Response<Incoming>, Connection), Failure> {
        if let Some(mut kept) = self.idle.take().await {
            connected.store(true, Ordering::Relaxed);
            match kept.send(self.request(outgoing)?).await {
                Err(failure) if failure.rule == PushRule::ConnectionLost => {}
                answered => return answered.map(|response| (response, kept)),
            }
        }
        connected.store(false, Ordering::Relaxed);
        // In a box of its own: it is seldom needed, and large, and each attempt would carry room for it.
        let connecting = Box::pin(connector::connect(&self.network, &self.options.url, self.tls.as_ref()));
        let mut fresh = connecting.await?;
        connected.store(true, Ordering::Relaxed);
        let response = fresh.send(self.request(outgoing)?).await?;
        Ok((response, fresh))
    }

    fn request(&self, outgoing: &Outgoing) -> Result<Request<Full<Bytes>>, Failure> {
        let body = Full::new(outgoing.body.clone());
        let shape = self.shape.as_ref().map_err(|error| {
            Failure::new(PushRule::ConnectFailed, format!("the URL cannot be sent: {error}"))
        })?;
        Ok(shape.request(outgoing, body))
    }

    async fn answered(
        &self,
        response: Response<Incoming>,
        mut connection: Connection,
        outgoing: &Outgoing,
        deadline: Instant,
    ) -> Tried {
        let (head, body) = response.into_parts();
        let status = head.status.as_u16();
        let excerpt = connection.drive(answer::read(body, deadline)).await;
        if excerpt.end == ExcerptEnd::Whole && connection.is_open().await {
            self.idle.put(connection);
        }
        let cut = match excerpt.end {
            ExcerptEnd::Cut(cut) => Some(cut),
            ExcerptEnd::Whole | ExcerptEnd::Capped => None,
        };
        let rule = match rules::rule_of(status) {
            PushRule::Success if cut.is_some() => PushRule::SuccessCut,
            rule => rule,
        };
        let after = head.headers.get(RETRY_AFTER);
        let after = after.and_then(|value| rules::retry_after(value.as_bytes(), outgoing.now));
        Tried {
            verdict: rules::verdict(rule, after, self.options.on_gone),
            status: Some(status),
            excerpt: excerpt.bytes,
            error: refusal(rule, status, cut),
            rule: rule.as_str(),
            target: rule.target(),
        }
    }
}

impl Sink for PushSink {
    fn deliver<'a>(&'a self, outgoing: &'a Outgoing) -> Delivering<'a> {
        Box::pin(self.attempt(outgoing))
    }
}

impl fmt::Debug for PushSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushSink").field("options", &self.options).finish_non_exhaustive()
    }
}

/// What was wrong with an answer.
fn refusal(rule: PushRule, status: u16, cut: Option<String>) -> Option<String> {
    let refused = match rule {
        PushRule::Success => return None,
        PushRule::SuccessCut => return cut,
        PushRule::Redirect => format!("redirect not followed ({status}); push to the final address"),
        _ => format!("the target answered {status}"),
    };
    Some(cut.map_or_else(|| refused.clone(), |cut| format!("{refused}; {cut}")))
}

fn timed_out(limit: Duration, connected: bool) -> Failure {
    let what = if connected { "no answer" } else { "no connection" };
    Failure::new(PushRule::Timeout, format!("{what} within {limit:?}"))
}

fn failed(failure: Failure) -> Tried {
    let Failure { rule, error } = failure;
    Tried {
        verdict: rules::verdict(rule, None, super::options::OnGone::Hold),
        status: None,
        excerpt: Bytes::new(),
        error: Some(error),
        rule: rule.as_str(),
        target: rule.target(),
    }
}
