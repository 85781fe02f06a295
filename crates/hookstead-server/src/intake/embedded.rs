//! The intake within somebody else's application: a router to nest in theirs. The application has the listener, and
//! with it all that is true of connections; from the request's head on, everything is as on our own listener.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use axum::routing::any;
use hookstead::Inbox;

use super::budget::BodyBudget;
use super::gate::Gate;
use super::service::{Intake, Setting};
use crate::limits::{BODY_MEMORY_BYTES, BODY_TIME};

/// The limits of an [`intake`] that are not those of a source. The defaults are those of `hookstead serve`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntakeOptions {
    /// Memory for all bodies in flight together, in bytes. What does not fit is answered with 503.
    pub body_memory_bytes: u64,
    /// Time for any body, however small; a larger one has 1 s more for each 64 KiB. Then 408.
    pub body_time: Duration,
}

impl Default for IntakeOptions {
    fn default() -> Self {
        Self { body_memory_bytes: BODY_MEMORY_BYTES, body_time: BODY_TIME }
    }
}

/// A router that takes in the requests of an inbox's sources, each at `/<source>`: below `/hooks`, nested as
/// `Router::new().nest("/hooks", intake(&inbox, options))`, the source `stripe` is at `/hooks/stripe`.
///
/// It answers as `hookstead serve` does, with the same statuses and bodies: a success follows a durable commit, what
/// cannot be made durable is a 503 with `Retry-After`, and every signature that does not hold is the same 401. The
/// raw body is read here, with the source's own limit; an extractor or a layer of the application that reads or
/// changes bodies must not stand before it.
///
/// **What remains the application's**: the time for a request's head and between requests, the number of
/// connections, TLS, and an orderly end. `axum::serve` alone limits none of these.
///
/// - An address is kept with an event (`received_from`) if the application is served with
///   `into_make_service_with_connect_info::<SocketAddr>()`.
/// - A provider that signs its address (Twilio) is checked against [`VerifyOptions::url`] of its source, the address
///   as it is registered there, whatever prefix a router or proxy took off.
/// - When the application ends: first stop accepting requests, then call [`Inbox::close`] on a thread that may block.
///   A request after that is answered with 503.
///
/// [`VerifyOptions::url`]: hookstead::verify::VerifyOptions::url
///
/// ```
/// use hookstead::{Inbox, Source, SourceOptions, verify::{Registry, Secret}};
/// use hookstead_server::{IntakeOptions, intake};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stripe = Registry::builtin().get("stripe").expect("stripe is built in").clone();
/// let secret = Secret::new("whsec_0123456789abcdef0123456789abcdef")?;
/// let source = Source::new("stripe".parse()?, stripe, &[secret], SourceOptions::default())?;
/// let inbox = Inbox::builder().source(source).open()?;
///
/// let app: axum::Router = axum::Router::new()
///     .route("/", axum::routing::get(async || "my own page"))
///     .nest("/hooks", intake(&inbox, IntakeOptions::default()));
/// # let _ = app;
/// # Ok(())
/// # }
/// ```
pub fn intake(inbox: &Inbox, options: IntakeOptions) -> Router {
    let budget = BodyBudget::new(options.body_memory_bytes);
    let intake =
        Arc::new(Intake::new(inbox.clone(), budget, options.body_time, Gate::default(), Setting::Router));
    let answer = move |request: Request| answer(intake.clone(), request);
    // Every method comes here, so that a wrong one is answered as everywhere.
    Router::new().route("/{source}", any(answer.clone())).route("/{source}/", any(answer))
}

async fn answer(intake: Arc<Intake>, request: Request) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    intake.answer(request, peer).await.map(Body::new)
}
