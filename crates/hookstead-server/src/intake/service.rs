//! One request, from its head to its answer: framing, route, method, length, body, receive, respond. The order
//! is such that nothing of a body is read, asked for or kept before everything that needs no body has passed.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hookstead::core::{AcceptReceipt, Outcome, RawQueryError};
use hookstead::verify::{HandshakeAnswer, Provider, Reason, RejectionClass};
use hookstead::{
    Health, Inbox, Incoming as IncomingRequest, Received, Refusal, RefusedRequest, Source, Unavailable,
};
use http::header::{ALLOW, CONNECTION, EXPECT, HeaderValue, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::Full;
use hyper::body::Body;
use tokio::sync::watch;

use super::body::{BodyFault, BodyLimits, ReadBody, announced, read, skip};
use super::budget::BodyBudget;
use super::gate::{Gate, host};
use super::handshake::Handshakes;
use super::head::HeadCheck;
use super::rate::retry_after_s;
use super::route::{Mount, Route, route};
use super::throttle::Throttle;
use super::{address, answer, framing};
use crate::explain::{HANDSHAKE_REFUSED, is_explained};
use crate::limits::{ANSWER_TIME, HEAD_BYTES_MAX, LAST_ANSWERS_TIME};
use crate::listen::{Stop, Unread};
use crate::problem::Problem;

/// What answers the requests of all connections.
pub(crate) struct Intake {
    inbox: Inbox,
    health: watch::Receiver<Health>,
    budget: Arc<BodyBudget>,
    body_time: Duration,
    gate: Gate,
    setting: Setting,
    /// Without it a handshake that asks for more than an answer is refused.
    handshakes: Option<Arc<Handshakes>>,
    /// For what strangers cause.
    refusals: Throttle,
    /// For what the store causes: a flood of refusals must not hide it.
    failures: Throttle,
}

/// What an intake stands in.
pub(crate) enum Setting {
    /// A listener of our own, which says when it stops.
    Listener(watch::Receiver<Stop>),
    /// An application's router. Its connections and their end are the application's.
    Router,
}

/// Why a request was refused before its body was read, or because of it.
struct Refused<B> {
    problem: Problem,
    /// What is left of the request.
    rest: Rest<B>,
    allow: Option<String>,
    /// The answer, where the source's provider wants one of its own.
    answer: Option<Box<Response<Bytes>>>,
    /// When there is room again, where that is known better than by the problem alone.
    retry_after_s: Option<u32>,
}

/// What is left of a request when its answer is known.
enum Rest<B> {
    /// Nothing: it was read to its end, or there was no body.
    Nothing,
    /// This.
    Body(B),
    /// Something; nobody can read it any more.
    Lost,
}

impl<B> Refused<B> {
    fn new(problem: Problem, rest: Rest<B>) -> Self {
        Self { problem, rest, allow: None, answer: None, retry_after_s: None }
    }

    /// What was read to its end, by the rules of its source.
    fn by(source: &Source, problem: Problem) -> Self {
        let allow = (problem == Problem::Method).then(|| allow(source));
        let answer = (problem == Problem::NotVerified).then(|| Box::new(answer::not_verified(source)));
        Self { allow, answer, ..Self::new(problem, Rest::Nothing) }
    }

    /// By its method, where these are taken.
    fn method(allow: String, rest: Rest<B>) -> Self {
        Self { allow: Some(allow), ..Self::new(Problem::Method, rest) }
    }

    /// By the rate of its source, which takes one again after `wait`.
    fn over_rate(wait: Duration, rest: Rest<B>) -> Self {
        Self { retry_after_s: Some(retry_after_s(wait)), ..Self::new(Problem::Rate, rest) }
    }
}

impl Intake {
    pub(crate) fn new(
        inbox: Inbox,
        budget: Arc<BodyBudget>,
        body_time: Duration,
        gate: Gate,
        setting: Setting,
    ) -> Self {
        let (refusals, failures) = (Throttle::new(), Throttle::new());
        let (health, handshakes) = (inbox.health(), None);
        Self { health, inbox, budget, body_time, gate, setting, handshakes, refusals, failures }
    }

    /// With what does what handshakes ask for beside an answer.
    pub(crate) fn with_handshakes(self, handshakes: Arc<Handshakes>) -> Self {
        Self { handshakes: Some(handshakes), ..self }
    }

    /// Answers one request. Without a `peer` nobody knows where it came from.
    pub(crate) async fn answer<B>(&self, request: Request<B>, peer: Option<IpAddr>) -> Response<Full<Bytes>>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let (head, body) = request.into_parts();
        let chunked = framing::is_chunked(&head.headers);
        let client = peer.map(|peer| self.gate.client(peer, &head.headers));
        let taken_in = match self.gate.enter(peer, client) {
            Ok(_place_until_the_answer) => self.take_in(&head, body, client).await,
            Err(problem) => {
                self.note_at(&head, problem, client);
                Err(Refused::new(problem, Rest::Body(body)))
            }
        };
        let mut response = match taken_in {
            Ok(response) => response,
            Err(refused) => self.refuse(&head, refused).await,
        };
        if chunked {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response.map(Full::new)
    }

    async fn take_in<B>(
        &self,
        head: &Parts,
        body: B,
        peer: Option<IpAddr>,
    ) -> Result<Response<Bytes>, Refused<B>>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        if let Err(problem) = framing::check(head) {
            self.note_at(head, problem, peer);
            return Err(Refused::new(problem, Rest::Body(body)));
        }
        let source = match route(head.uri.path(), self.mount()) {
            Route::Ready => return self.ready(head, body),
            Route::None => return Err(Refused::new(Problem::NotFound, Rest::Body(body))),
            Route::Source(name) => self.inbox.source(name),
        };
        if !self.gate.serves(head) {
            self.log_host(head, peer);
            if let Some(source) = &source {
                self.note(source, Problem::HostNotAllowed.code(), peer);
            }
            return Err(Refused::new(Problem::HostNotAllowed, Rest::Body(body)));
        }
        let Some(source) = source else {
            return Err(Refused::new(Problem::UnknownSource, Rest::Body(body)));
        };
        if !takes(&source, head.method.as_str()) {
            self.note(&source, Problem::Method.code(), peer);
            return Err(Refused::method(allow(&source), Rest::Body(body)));
        }
        let length = announced(&body);
        if let Some(wait) = self.gate.wait(&source) {
            self.log_unread(&source, Problem::Rate, length, peer);
            return Err(Refused::over_rate(wait, Rest::Body(body)));
        }
        let read = self.read_body(head, &source, body).await;
        let read = read.inspect_err(|refused| self.log_unread(&source, refused.problem, length, peer))?;
        self.gate.count(&source).map_err(|wait| {
            self.log_unread(&source, Problem::Rate, length, peer);
            Refused::over_rate(wait, Rest::Nothing)
        })?;
        self.receive(head, &source, read, peer).await.map_err(|problem| Refused::by(&source, problem))
    }

    fn mount(&self) -> Mount {
        match self.setting {
            Setting::Listener(_) => Mount::Listener,
            Setting::Router => Mount::Router,
        }
    }

    /// Whether events can be accepted: bare, since strangers ask as well.
    fn ready<B>(&self, head: &Parts, body: B) -> Result<Response<Bytes>, Refused<B>> {
        if !matches!(head.method, Method::GET | Method::HEAD) {
            return Err(Refused::method("GET, HEAD".to_owned(), Rest::Body(body)));
        }
        if *self.health.borrow() != Health::Ready {
            return Err(Refused::new(Problem::NotDurable, Rest::Body(body)));
        }
        let mut response = Response::new(Bytes::from_static(b"{\"ready\":true}\n"));
        response
            .headers_mut()
            .insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(response)
    }

    async fn read_body<B>(&self, head: &Parts, source: &Source, body: B) -> Result<ReadBody, Refused<B>>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        // Refused before the body is asked for: no sender shall transfer in vain.
        if let Some(unavailable) = self.health.borrow().unavailable() {
            return Err(Refused::new(problem_of(&unavailable), Rest::Body(body)));
        }
        let limits = BodyLimits { bytes_max: source.body_bytes_max(), time: self.body_time };
        if announced(&body).is_some_and(|announced| announced > limits.bytes_max) {
            return Err(Refused::new(self.too_large(head, source), Rest::Body(body)));
        }
        let read = tokio::select! {
            biased;
            read = read(body, limits, &self.budget) => read,
            () = self.last_answers() => return Err(Refused::new(Problem::Stopping, Rest::Lost)),
        };
        read.map_err(|fault| {
            let problem = match fault {
                BodyFault::TooLarge => self.too_large(head, source),
                BodyFault::Busy => Problem::Busy,
                BodyFault::Timeout => Problem::Timeout,
                BodyFault::Broken => Problem::Malformed,
            };
            Refused::new(problem, Rest::Lost)
        })
    }

    /// Ready when a stop is so far that what is not here yet must be refused, to be answered at all.
    async fn last_answers(&self) {
        let Setting::Listener(stop) = &self.setting else { return std::future::pending().await };
        let mut stop = stop.clone();
        let until = match stop.wait_for(|stop| *stop != Stop::Not).await.map(|stop| *stop) {
            Ok(Stop::Until(until)) => until,
            Ok(Stop::Not) | Err(_) => return,
        };
        let last = until.checked_sub(LAST_ANSWERS_TIME).unwrap_or(until);
        tokio::time::sleep_until(last).await;
    }

    /// 413, unless the provider's record has something else refused first.
    fn too_large(&self, head: &Parts, source: &Source) -> Problem {
        let Some(check) = HeadCheck::of(source) else { return Problem::TooLarge };
        let now_us = self.inbox.clock().wall().as_micros();
        let fields = Fields::of(&head.headers);
        let holds = check.holds(head.method.as_str(), framing::target(head), &fields.0, now_us);
        if holds { Problem::TooLarge } else { Problem::Malformed }
    }

    async fn receive(
        &self,
        head: &Parts,
        source: &Source,
        read: ReadBody,
        peer: Option<IpAddr>,
    ) -> Result<Response<Bytes>, Problem> {
        let ReadBody { bytes, reservation } = read;
        let fields = Fields::of(&head.headers);
        let incoming = IncomingRequest {
            method: head.method.as_str(),
            target: framing::target(head),
            headers: &fields.0,
            body: bytes,
            received_from: peer.map(address::text),
        };
        // A commit that comes later is not taken back; the sender's retry finds its event there.
        let received = tokio::time::timeout(ANSWER_TIME, self.inbox.receive(source, incoming)).await;
        let received = received.unwrap_or(Err(Refusal::Unavailable(Unavailable::Late)));
        // The answer is known: the memory of the body goes back, whoever else still holds its bytes.
        drop(reservation);
        match received {
            Ok(Received::Accepted(receipt)) => {
                tracing::debug!(source.name = %source.name(), event.id = %receipt.event, outcome = ?receipt.outcome, "accepted");
                self.log_reuse(source, &receipt, peer);
                if let Some(problem) = answer::refusal(source, receipt.outcome) {
                    self.note(source, problem.code(), peer);
                }
                Ok(answer::accepted(source, &receipt, &fields.0))
            }
            Ok(Received::Handshake(handshake)) => self.shake_hands(source, handshake, peer).await,
            Err(refusal) => {
                if matches!(refusal, Refusal::Rejected(_)) {
                    self.gate.uncount(source);
                }
                self.log(source, &refusal, peer);
                Err(problem_of_refusal(&refusal))
            }
        }
    }

    /// Does what a handshake asks for, then answers it. It counts as no event.
    async fn shake_hands(
        &self,
        source: &Source,
        handshake: HandshakeAnswer,
        peer: Option<IpAddr>,
    ) -> Result<Response<Bytes>, Problem> {
        self.gate.uncount(source);
        let prepared = self.prepare(source, &handshake).await;
        prepared.inspect_err(|problem| self.note(source, problem.code(), peer))?;
        if handshake.refused {
            self.note(source, HANDSHAKE_REFUSED, peer);
        }
        if let Some(suppressed) = self.refusals.admit(Instant::now()) {
            tracing::info!(
                source.name = %source.name(), handshake.name, handshake.refused,
                peer.address = peer.map(tracing::field::display), log.suppressed = suppressed,
                "a handshake was answered"
            );
        }
        Ok(answer::handshake(handshake))
    }

    /// Does what a handshake asks for beside its answer; with an error, that is the answer.
    async fn prepare(&self, source: &Source, handshake: &HandshakeAnswer) -> Result<(), Problem> {
        match &self.handshakes {
            Some(handshakes) => handshakes.prepare(source, handshake).await,
            None if handshake.secret.is_some() || handshake.fetch.is_some() => {
                tracing::error!(
                    source.name = %source.name(), handshake.name,
                    "a handshake asks for a secret to be kept or an address to be called, which this router does not do"
                );
                Err(Problem::NotDurable)
            }
            None => Ok(()),
        }
    }

    /// The answer to a refused request, and what becomes of the rest of it.
    async fn refuse<B>(&self, head: &Parts, refused: Refused<B>) -> Response<Bytes>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let mut response = refused.answer.map_or_else(|| refused.problem.response(), |answer| *answer);
        if let Some(seconds) = refused.retry_after_s {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(allow) = refused.allow {
            // Names of methods, joined: always a value.
            response.headers_mut().extend(HeaderValue::try_from(allow).ok().map(|value| (ALLOW, value)));
        }
        let lost = match refused.rest {
            Rest::Nothing => false,
            Rest::Body(body) if body.is_end_stream() => false,
            // A small body is read and thrown away, so that the connection can go on.
            Rest::Body(body) if is_small(&body) && !head.headers.contains_key(EXPECT) => {
                skip(body, self.body_time).await.is_err()
            }
            Rest::Body(_) | Rest::Lost => true,
        };
        if lost {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            response.extensions_mut().insert(Unread);
        }
        response
    }

    /// Where a refusal is logged: the reason is for the operator, never for the sender.
    fn log(&self, source: &Source, refusal: &Refusal, peer: Option<IpAddr>) {
        source.refusals().note(noted(refusal, peer), self.inbox.clock().now());
        let failed = matches!(refusal, Refusal::Unavailable(_));
        let throttle = if failed { &self.failures } else { &self.refusals };
        let Some(suppressed) = throttle.admit(Instant::now()) else { return };
        let (name, code) = (source.name(), refusal.code());
        if failed {
            tracing::error!(
                source.name = %name, refusal.code = code, reason = %refusal, log.suppressed = suppressed,
                "an event could not be stored"
            );
        } else {
            tracing::info!(
                source.name = %name, refusal.code = code, reason = %refusal,
                peer.address = peer.map(tracing::field::display),
                log.suppressed = suppressed, "a request was refused"
            );
        }
    }

    /// As [`note`](Self::note), for a request whose source was not looked for yet: it may be for none.
    fn note_at(&self, head: &Parts, problem: Problem, peer: Option<IpAddr>) {
        let Route::Source(name) = route(head.uri.path(), self.mount()) else { return };
        if let Some(source) = self.inbox.source(name) {
            self.note(&source, problem.code(), peer);
        }
    }

    /// Takes note of a request that was refused for something else than its signature.
    fn note(&self, source: &Source, code: &'static str, peer: Option<IpAddr>) {
        debug_assert!(is_explained(code), "the operator is told what `{code}` means");
        let from = peer.map(|peer| peer.to_canonical());
        let request = RefusedRequest { code, part: String::new(), age_micros: None, from };
        source.refusals().note(request, self.inbox.clock().now());
    }

    /// A body that came before under another id: somebody may be repeating what was sent once.
    fn log_reuse(&self, source: &Source, receipt: &AcceptReceipt, peer: Option<IpAddr>) {
        let (earlier, said) = match (receipt.outcome, receipt.same_body_as) {
            (Outcome::BodyReused, _) => {
                (receipt.event, "an event was refused: its body came before under another id")
            }
            (_, Some(first)) => (first, "an event was marked: its body came before under another id"),
            (_, None) => return,
        };
        let Some(suppressed) = self.refusals.admit(Instant::now()) else { return };
        tracing::warn!(
            source.name = %source.name(), event.same_body_as = %earlier,
            peer.address = peer.map(tracing::field::display), log.suppressed = suppressed, "{said}"
        );
    }

    /// As [`log`](Self::log), for a body that was not read to its end. A store that cannot accept speaks for itself.
    fn log_unread(&self, source: &Source, problem: Problem, length: Option<u64>, peer: Option<IpAddr>) {
        self.note(source, problem.code(), peer);
        if matches!(problem, Problem::NotDurable | Problem::Stopping) {
            return;
        }
        let Some(suppressed) = self.refusals.admit(Instant::now()) else { return };
        tracing::info!(
            source.name = %source.name(), refusal.code = problem.code(), body.bytes_announced = length,
            body.bytes_max = source.body_bytes_max(), peer.address = peer.map(tracing::field::display),
            log.suppressed = suppressed, "a request was refused before its body was read"
        );
    }

    /// As [`log`](Self::log), for a request that names another host than ours: mostly a proxy whose setting or a
    /// name that the configuration lacks.
    fn log_host(&self, head: &Parts, peer: Option<IpAddr>) {
        let Some(suppressed) = self.refusals.admit(Instant::now()) else { return };
        let host: String = host(head).unwrap_or_default().chars().take(HOST_LOGGED_BYTES_MAX).collect();
        tracing::info!(
            refusal.code = Problem::HostNotAllowed.code(), http.host = ?host,
            peer.address = peer.map(tracing::field::display), log.suppressed = suppressed,
            "a request for another host was refused; if it is one of yours, add it to intake_hosts in [server]"
        );
    }
}

/// The longest host name that is logged: what DNS allows.
const HOST_LOGGED_BYTES_MAX: usize = 253;

/// What a source that is only recorded to is asked with: it refuses what it is posted, as a wrong signature would be.
const RECORDED_METHOD: &str = "POST";

/// Whether a source takes requests of this method: its provider's events or handshakes.
fn takes(source: &Source, method: &str) -> bool {
    source.provider().map_or(method == RECORDED_METHOD, |provider| provider.calls_with(method))
}

/// The methods that a source takes.
fn allow(source: &Source) -> String {
    let of_provider = |provider: &Arc<Provider>| provider.methods().collect::<Vec<_>>().join(", ");
    source.provider().map_or_else(|| RECORDED_METHOD.to_owned(), of_provider)
}

/// What its operator may know of a refused request.
fn noted(refusal: &Refusal, peer: Option<IpAddr>) -> RefusedRequest {
    let (part, age_micros) = match refusal {
        // Its part is the address that the request named: a stranger's text, not a name.
        Refusal::Rejected(rejection) if rejection.reason == Reason::KeyAddress => (String::new(), None),
        Refusal::Rejected(rejection) => (rejection.part.clone(), rejection.age_micros),
        Refusal::Query(_) => ("query".to_owned(), None),
        Refusal::Unidentified(_) | Refusal::Unavailable(_) => (String::new(), None),
    };
    RefusedRequest { code: refusal.code(), part, age_micros, from: peer.map(|peer| peer.to_canonical()) }
}

fn is_small(body: &impl Body) -> bool {
    announced(body).is_some_and(|announced| announced <= HEAD_BYTES_MAX as u64)
}

fn problem_of_refusal(refusal: &Refusal) -> Problem {
    match refusal {
        Refusal::Rejected(rejection) if rejection.reason == Reason::Method => Problem::Method,
        Refusal::Rejected(rejection) => match rejection.class {
            RejectionClass::NotVerified => Problem::NotVerified,
            RejectionClass::Malformed => Problem::Malformed,
            // A key that the provider publishes is being fetched: 503, and the sender comes again.
            RejectionClass::Unavailable => Problem::Busy,
        },
        Refusal::Query(RawQueryError::TooLong { .. }) => Problem::TargetTooLong,
        Refusal::Query(RawQueryError::Unescaped { .. }) => Problem::Malformed,
        Refusal::Unidentified(_) => Problem::EventId,
        Refusal::Unavailable(unavailable) => problem_of(unavailable),
    }
}

fn problem_of(unavailable: &Unavailable) -> Problem {
    match unavailable {
        Unavailable::Overloaded => Problem::Busy,
        Unavailable::Closing => Problem::Stopping,
        _ => Problem::NotDurable,
    }
}

/// Header fields in the form that verifiers read.
struct Fields<'a>(Vec<(&'a [u8], &'a [u8])>);

impl<'a> Fields<'a> {
    fn of(headers: &'a HeaderMap) -> Self {
        // Names as bytes: a verifier asks for each of them several times.
        let fields = headers.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
        let mut list = Vec::with_capacity(headers.len());
        list.extend(fields);
        Self(list)
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    #[test]
    fn what_cannot_be_stored_is_503() {
        let reasons = [
            Unavailable::Overloaded,
            Unavailable::Late,
            Unavailable::Recovering("x".into()),
            Unavailable::Poisoned("x".into()),
            Unavailable::Damaged("x".into()),
            Unavailable::Failed("x".into()),
            Unavailable::Closing,
        ];
        for reason in reasons {
            assert_eq!(problem_of(&reason).status(), StatusCode::SERVICE_UNAVAILABLE, "{reason}");
        }
    }
}
