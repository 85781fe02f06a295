//! What a push brings is what receivers verify: the provider's own SDK the bytes and fields as they came, the
//! Standard Webhooks libraries the signature of each attempt, however late.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hookstead::sink::push::{PushOptions, PushSink, PushUrl, Reach, SigningSecret, SystemNetwork};
use hookstead::sink::{Outgoing, Sink, TriedVerdict};
use hookstead_core::{
    DeliveryId, DeliveryTally, DestinationNumber, Digest, Duplicates, Event, EventId, Identity, Lease,
    LeaseToken, ProviderEventId, RawHeaders, Scope, Seq, SourceNumber, Timestamp,
};
use serde_json::Value;

use super::sdk::{Receiver, Sdk};
use super::{SECRET, text};

/// What pushes are signed with here; providers sign with another one.
const PUSH_SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

const THREE_DAYS: Duration = Duration::from_hours(72);

/// A request of the SDK's own, stored and pushed, is accepted by the SDK as if it had come straight from the
/// provider, and with a changed byte it is not.
pub(super) fn check_providers_own(sdk: &Sdk) {
    let receiver = Receiver::start(sdk, SECRET);
    let own = sdk.sign(SECRET, &receiver.url());
    let event = Received::of(&own, wall());
    assert_eq!(push(text(&own, "url"), &event.outgoing(1, wall())), 200, "{own}");

    let mut body = text(&own, "body").as_bytes().to_vec();
    body[3] ^= 1;
    let changed = Received { body, ..event };
    assert_eq!(push(text(&own, "url"), &changed.outgoing(1, wall())), 401, "{own}");
}

/// Whoever knows the destination's secret accepts the first attempt at an event and one three days after it,
/// though the event came with a signature of another secret under the same names. What is not signed for this
/// time is refused.
pub(super) fn check_own_signature(sdk: &Sdk) {
    let receiver = Receiver::start(sdk, PUSH_SECRET);
    let own = sdk.sign(SECRET, &receiver.url());
    let received_at = wall().minus(THREE_DAYS);
    let event = Received::of(&own, received_at);
    for attempt in [1, 10] {
        assert_eq!(push(&receiver.url(), &event.outgoing(attempt, wall())), 200, "{own}");
    }
    assert_eq!(push(&receiver.url(), &event.outgoing(1, received_at)), 401, "signed three days ago");
    assert_eq!(
        push(&receiver.url(), &event.outgoing(1, wall().plus(THREE_DAYS))),
        401,
        "signed in three days"
    );
    let other = Receiver::start(sdk, SECRET);
    assert_eq!(
        push(&other.url(), &event.outgoing(1, wall())),
        401,
        "the provider's signature is no longer there"
    );
}

fn wall() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock after 1970");
    Timestamp::default().plus(since_epoch)
}

/// The status that a push gets.
fn push(url: &str, outgoing: &Outgoing) -> u16 {
    let url = PushUrl::parse(url, Reach::Loopback).expect("the receiver's address");
    let secret = SigningSecret::parse(PUSH_SECRET).expect("a secret");
    let sink = PushSink::new(PushOptions::new(url, secret), Arc::new(SystemNetwork::new())).expect("a sink");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let tried = runtime.block_on(sink.deliver(outgoing));
    let status = tried.status.unwrap_or_else(|| panic!("no answer: {tried:?}"));
    assert_eq!(tried.verdict == TriedVerdict::Done, status == 200, "{tried:?}");
    status
}

/// A request of an SDK as an event that was stored.
struct Received {
    id: String,
    headers: HashMap<String, String>,
    body: Vec<u8>,
    at: Timestamp,
}

impl Received {
    fn of(own: &Value, at: Timestamp) -> Self {
        let headers = serde_json::from_value(own["headers"].clone()).expect("texts");
        Self { id: text(own, "id").to_owned(), headers, body: text(own, "body").into(), at }
    }

    fn outgoing(&self, attempt: u32, now: Timestamp) -> Outgoing {
        let fields = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let body = bytes::Bytes::from(self.body.clone());
        let id = ProviderEventId::new(self.id.as_bytes()).expect("an id");
        let scope = Scope::new(&b""[..]).expect("a scope");
        let event = Event {
            id: EventId::from_bytes(*b"\x01\x98\xc0\xde\x11\x11\x72\x22\x83\x33\x44\x44\x55\x55\x66\x66"),
            seq: Seq(1),
            source: "provider".parse().expect("a name"),
            identity: Identity { source: SourceNumber(1), scope, id },
            event_type: None,
            account: None,
            received_from: None,
            verified_by: None,
            received_at: self.at,
            committed_at: self.at,
            digest: Digest::of(&body),
            body_bytes: body.len() as u64,
            erased_at: None,
            headers: RawHeaders::from_fields(fields),
            revises: None,
            same_body_as: None,
            duplicates: Duplicates::default(),
            conflicts: 0,
            deliveries: DeliveryTally::default(),
        };
        let delivery = DeliveryId { event: event.id, destination: DestinationNumber(7), generation: 1 };
        let idempotency_key = format!("{}-7", event.id);
        let lease = Lease { delivery, token: LeaseToken(attempt), expires_at: now, attempt, idempotency_key };
        Outgoing { source: event.source.clone(), event, body, lease, attempt, now }
    }
}
