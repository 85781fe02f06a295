//! An event on its way out, as the dispatcher would hand it to a sink.

use hookstead::core::{
    DeliveryId, DeliveryTally, DestinationNumber, Digest, Duplicates, Event, EventId, Identity, Lease,
    LeaseToken, ProviderEventId, RawHeaders, Scope, Seq, SourceNumber, Timestamp,
};
use hookstead::sink::Outgoing;

/// 2026-02-02T02:40:00Z.
pub(super) const NOW: Timestamp = Timestamp::from_secs(1_770_000_000);

/// A body that is not text.
pub(super) const BODY: &[u8] = b"{\"type\":\"invoice.paid\",\"n\":1e2,\"n\":2}\r\n\0\xff\xfe";

pub(super) const KEY: &str = "0198c0de-1111-7222-8333-444455556666-7";

/// An event with those header fields and that body.
pub(super) fn outgoing_with(headers: &[(&str, &[u8])], body: impl AsRef<[u8]>) -> Outgoing {
    let body = bytes::Bytes::copy_from_slice(body.as_ref());
    let id = EventId::from_bytes(*b"\x01\x98\xc0\xde\x11\x11\x72\x22\x83\x33\x44\x44\x55\x55\x66\x66");
    let (source, provider_id) = (SourceNumber(1), ProviderEventId::new(&b"evt_\xe9"[..]).unwrap());
    let event = Event {
        id,
        seq: Seq(1),
        source: "stripe".parse().unwrap(),
        identity: Identity { source, scope: Scope::new(&b""[..]).unwrap(), id: provider_id },
        event_type: Some("invoice.paid".into()),
        account: None,
        received_from: None,
        verified_by: None,
        received_at: NOW,
        committed_at: NOW,
        digest: Digest::of(&body),
        body_bytes: body.len() as u64,
        erased_at: None,
        headers: RawHeaders::from_fields(headers.iter().copied()),
        revises: None,
        same_body_as: None,
        duplicates: Duplicates::default(),
        conflicts: 0,
        deliveries: DeliveryTally::default(),
    };
    let delivery = DeliveryId { event: id, destination: DestinationNumber(7), generation: 1 };
    let (token, idempotency_key) = (LeaseToken(3), KEY.to_owned());
    let lease = Lease { delivery, token, expires_at: NOW, attempt: 3, idempotency_key };
    Outgoing { source: event.source.clone(), event, body, lease, attempt: 3, now: NOW }
}

/// An event as most are.
pub(super) fn outgoing() -> Outgoing {
    outgoing_with(&[("Content-Type", b"application/json")], BODY)
}
