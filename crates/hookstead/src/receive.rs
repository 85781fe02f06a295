//! The straight line of a request: authenticate, identify, accept. HTTP stays outside; storing stays below.

use std::cell::RefCell;

use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use bytes::Bytes;
use hookstead_core::{
    AcceptReceipt, Acceptance, AcceptanceFacts, Bucket, ComparisonDigest, DestinationNumber, Digest, EventId,
    Identity, IdentityError, ProviderEventId, RawHeaders, RawQuery, Scope, SourceNumber, Timestamp, Write,
    Written,
};
use hookstead_verify::{
    HandshakeAnswer, Headers, Identified, IdentifyError, Reason, Rejection, RejectionClass, Request,
    query_without,
};

use crate::commit::LaneName;
use crate::error::{Refusal, Unavailable};
use crate::inbox::Inbox;
use crate::source::Source;

/// A request as it arrived at a source, its body complete.
pub struct Incoming<'a> {
    /// The method, in the case in which it was sent.
    pub method: &'a str,
    /// Path and query exactly as sent.
    pub target: &'a str,
    /// The header fields in the order of arrival.
    pub headers: &'a dyn Headers,
    /// The raw body.
    pub body: Bytes,
    /// The address that it came from.
    pub received_from: Option<String>,
}

/// What a request was, once it was found genuine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// An event; it is durable.
    Accepted(AcceptReceipt),
    /// A provider's question whether somebody is there. Nothing was stored.
    Handshake(HandshakeAnswer),
}

impl Inbox {
    /// Takes a request in: checks its signature over the raw bytes, finds its identity, and commits it.
    ///
    /// When it returns [`Received::Accepted`], the event is durable: it survives a crash and a loss of power.
    /// If the returned future is dropped, the event may be stored all the same.
    ///
    /// # Errors
    ///
    /// [`Refusal::Query`], [`Refusal::Rejected`] and [`Refusal::Unidentified`]: nothing was stored. [`Refusal::Unavailable`]:
    /// nothing is acknowledged; a retry finds out.
    pub async fn receive(&self, source: &Source, incoming: Incoming<'_>) -> Result<Received, Refusal> {
        let received_at = self.clock().now();
        let query = query_of(incoming.target)?;
        let genuine = match authenticate(source, &incoming, self.clock().wall())? {
            Authenticated::Handshake(answer) => return Ok(Received::Handshake(answer)),
            Authenticated::Event(genuine) => genuine,
        };
        let number = self.number_of(source).await?;
        let Genuine { identified, verified_by } = genuine;
        let identity = identify(number, identified.scope, identified.event_id, received_at)?;
        let facts = AcceptanceFacts {
            received_at,
            destinations: Vec::new(),
            headers: kept(source, query, fields(incoming.headers)),
            event_type: identified.event_type,
            account: identified.account,
            received_from: incoming.received_from,
            verified_by: Some(verified_by),
            comparison: comparison(source, &incoming.body),
            body_reuse: source.body_reuse(),
        };
        let receipt = accepted(self.accept(source, identity, incoming.body, facts)?.await)?;
        Ok(Received::Accepted(receipt))
    }

    /// Queues an event for the next commit, with the deliveries that the configuration of this moment wants.
    pub(crate) fn accept(
        &self,
        source: &Source,
        identity: Identity,
        body: Bytes,
        mut facts: AcceptanceFacts,
    ) -> Result<crate::commit::Pending, Unavailable> {
        facts.destinations = self.wanted(source, facts.event_type.as_deref(), &body);
        self.submit_acceptance(identity, body, facts)
    }

    /// Whom an event is owed to by the configuration of this moment.
    pub(crate) fn wanted(
        &self,
        source: &Source,
        event_type: Option<&str>,
        body: &Bytes,
    ) -> Vec<DestinationNumber> {
        self.routes().now().wanted(source.name(), event_type, body)
    }

    /// Queues an event for the next commit, owed to whom its facts name.
    pub(crate) fn submit_acceptance(
        &self,
        identity: Identity,
        body: Bytes,
        facts: AcceptanceFacts,
    ) -> Result<crate::commit::Pending, Unavailable> {
        let key = &self.store().facts().identity_key;
        let acceptance = Acceptance::new(key, identity, body, facts, entropy()?);
        self.submit(LaneName::Accepts, Write::Accept(Box::new(acceptance)))
    }
}

/// The receipt out of the committer's answer.
pub(crate) fn accepted(answer: Result<Written, Unavailable>) -> Result<AcceptReceipt, Unavailable> {
    match answer? {
        Written::Accepted(receipt) => Ok(receipt),
        other => Err(Unavailable::Failed(format!("the store answered {other:?} to an event").into())),
    }
}

enum Authenticated {
    Event(Genuine),
    Handshake(HandshakeAnswer),
}

struct Genuine {
    identified: Identified,
    verified_by: String,
}

fn authenticate(source: &Source, incoming: &Incoming<'_>, wall: Timestamp) -> Result<Authenticated, Refusal> {
    let verifier = source.verifier().ok_or_else(|| Refusal::Rejected(never_by_request()))?;
    let request = Request {
        method: incoming.method,
        target: incoming.target,
        url: None,
        headers: incoming.headers,
        body: &incoming.body,
    };
    if let Some(answer) = verifier.handshake(&request) {
        return Ok(Authenticated::Handshake(answer));
    }
    let verified = verifier.verify(&request, wall.as_micros()).map_err(|rejection| {
        source.clock_skew().refused(rejection.reason);
        Refusal::Rejected(rejection)
    })?;
    if let Some(skew) = verified.skew_micros() {
        source.clock_skew().verified(skew);
    }
    if let Some(answer) = verified.handshake() {
        return Ok(Authenticated::Handshake(answer));
    }
    let identified = verified.identify().map_err(Refusal::Unidentified)?;
    let verified_by = source.proof(verified.secret_index()).to_owned();
    Ok(Authenticated::Event(Genuine { identified, verified_by }))
}

/// What a body says apart from the values that its provider changes on a retry.
pub(crate) fn comparison(source: &Source, body: &[u8]) -> Option<ComparisonDigest> {
    let made = source.provider()?.comparison_digest(body)?;
    Some(ComparisonDigest { rule_version: made.rule, digest: Digest::from_bytes(made.digest) })
}

/// A source that is only recorded to refuses every request like one with a wrong signature.
fn never_by_request() -> Rejection {
    Rejection {
        reason: Reason::SignatureMissing,
        class: RejectionClass::NotVerified,
        part: String::new(),
        age_micros: None,
    }
}

fn identify(
    source: SourceNumber,
    scope: Vec<u8>,
    event_id: Option<Vec<u8>>,
    received_at: Timestamp,
) -> Result<Identity, Refusal> {
    let unusable = |error: IdentityError| {
        Refusal::Unidentified(match error {
            IdentityError::Blank => IdentifyError::Missing,
            IdentityError::TooLong { bytes } => IdentifyError::TooLong(bytes),
        })
    };
    let scope = Scope::new(scope).map_err(unusable)?;
    let id = match event_id {
        Some(id) => ProviderEventId::new(id).map_err(unusable)?,
        None => ProviderEventId::new(unique_id(received_at)?.into_bytes()).map_err(unusable)?,
    };
    Ok(Identity { source, scope, id })
}

/// An id for a source whose requests are each an event of their own.
fn unique_id(received_at: Timestamp) -> Result<String, Unavailable> {
    Ok(format!("{:016x}-{}", received_at.as_micros(), hex::encode(entropy()?)))
}

/// The query of a target, if it has one.
fn query_of(target: &str) -> Result<Option<RawQuery<'_>>, Refusal> {
    let Some((_, query)) = target.split_once('?') else { return Ok(None) };
    RawQuery::new(query.as_bytes()).map(Some).map_err(Refusal::Query)
}

fn fields(headers: &dyn Headers) -> impl Iterator<Item = (&[u8], &[u8])> {
    (0..headers.count()).map(|index| headers.at(index))
}

/// What is stored of a request's head: everything but the sender's secrets.
pub(crate) fn kept<'h>(
    source: &Source,
    query: Option<RawQuery<'_>>,
    fields: impl Iterator<Item = (&'h [u8], &'h [u8])>,
) -> RawHeaders {
    let fields = fields.filter(|(name, _)| !source.hides_header(name));
    let query = query.map(|query| query_without(query.as_bytes(), |name| source.hides_query(name)));
    // A piece of a query is one as well.
    RawHeaders::from_request(query.as_deref().and_then(|query| RawQuery::new(query).ok()), fields)
}

/// An id for an event that is made here, in a bucket that is known.
pub(crate) fn new_event_id(at: Timestamp, bucket: Bucket) -> Result<EventId, Unavailable> {
    Ok(EventId::new(at, entropy()?, bucket))
}

/// Random bytes that were drawn in advance, and how many of them are left.
struct Entropy {
    drawn: [u8; ENTROPY_BYTES],
    left: usize,
}

/// For 64 ids, so that not every event calls the generator.
const ENTROPY_BYTES: usize = 64 * ID_ENTROPY_BYTES;
const ID_ENTROPY_BYTES: usize = 10;

thread_local! {
    static ENTROPY: RefCell<Entropy> = const { RefCell::new(Entropy { drawn: [0; ENTROPY_BYTES], left: 0 }) };
}

/// Random bytes, each given out once.
fn entropy() -> Result<[u8; ID_ENTROPY_BYTES], Unavailable> {
    ENTROPY.with_borrow_mut(|entropy| {
        if entropy.left < ID_ENTROPY_BYTES {
            SystemRandom::new()
                .fill(&mut entropy.drawn)
                .map_err(|_| Unavailable::Failed("the operating system gave no randomness".into()))?;
            entropy.left = ENTROPY_BYTES;
        }
        let mut bytes = [0; ID_ENTROPY_BYTES];
        bytes.copy_from_slice(&entropy.drawn[entropy.left - ID_ENTROPY_BYTES..entropy.left]);
        entropy.left -= ID_ENTROPY_BYTES;
        Ok(bytes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_entropy_is_given_twice() {
        let given: std::collections::HashSet<_> = (0..1000).map(|_| entropy().unwrap()).collect();
        assert_eq!(given.len(), 1000);
    }
}
