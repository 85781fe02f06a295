//! The record of one body: an indented JSON object that begins with the fields of the seed's own receiver, in
//! its order and form (contract R41), so that its loader reads ours, followed by one field of our own that
//! holds everything else that is known of the event. It knows no files.
//!
//! A record is trusted only after it was verified (contract R44): one JSON value and nothing behind it, the
//! schema the number 1, the id the one that was asked for, the digest in lower-case hex and that of the body.

use std::borrow::Cow;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use hookstead_core::{Digest, Event, Identity, ProviderEventId, RawHeaders, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::row::{EventRow, VariantRow};

/// The only schema of the seed's fields.
pub(super) const SCHEMA: u64 = 1;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EntryJson<'a> {
    schema_version: u64,
    delivery_id: Cow<'a, str>,
    body: String,
    sha256: String,
    accepted_at: String,
    hookstead: About,
}

/// What the seed has no field for. `event` is what a store recognises its own record by.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct About {
    /// The event's id.
    pub(super) event: String,
    /// Its sequence number.
    pub(super) seq: u64,
    /// The exact id, where `deliveryId` is not: it holds bytes that are no UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) provider_event_id_base64: Option<String>,
    /// The scope, if it is not empty; the file's name is then a digest of the scope's length (8 bytes, the
    /// greatest first), the scope and the id, and ends in `-scoped`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) scope_base64: Option<String>,
    /// Which variant of the event this is, if it is not the event itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) variant: Option<u16>,
    /// The event that this one revises.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) revises: Option<String>,
    pub(super) received_at: String,
    pub(super) committed_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) event_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) account: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) received_from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) verified_by: Option<String>,
    /// The version of the comparison rule and the digest by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) comparison: Option<(u32, String)>,
    /// Whether this body is looked out for under other ids.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) body_watched: bool,
    /// The event that had this body first, under another id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) same_body_as: Option<String>,
    /// The header fields, one a line, where they are text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) headers: Option<String>,
    /// The same, where they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) headers_base64: Option<String>,
}

/// The record of an event's own body.
pub(super) fn write_event(row: &EventRow, body: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let event = &row.event;
    let about = About {
        comparison: row.comparison.map(|rule| (rule.rule_version, rule.digest.to_string())),
        body_watched: row.body_watched,
        same_body_as: event.same_body_as.map(|id| id.to_string()),
        ..about(event, &event.headers, event.received_at)
    };
    write(&event.identity.id, body, event.digest, event.committed_at, about)
}

/// The record of other bytes under an event's identity.
pub(super) fn write_variant(
    event: &Event,
    number: u16,
    variant: &VariantRow,
    body: &[u8],
) -> Result<Vec<u8>, serde_json::Error> {
    let about = About {
        variant: Some(number),
        event_type: None,
        received_from: None,
        verified_by: None,
        ..about(event, &variant.headers, variant.received_at)
    };
    write(&event.identity.id, body, variant.digest, variant.received_at, about)
}

fn about(event: &Event, headers: &RawHeaders, received_at: Timestamp) -> About {
    let id = event.identity.id.as_bytes();
    let scope = event.identity.scope.as_bytes();
    let (headers, headers_base64) = text_or_base64(headers.as_block());
    About {
        event: event.id.to_string(),
        seq: event.seq.0,
        provider_event_id_base64: std::str::from_utf8(id).is_err().then(|| BASE64_STANDARD.encode(id)),
        scope_base64: (!scope.is_empty()).then(|| BASE64_STANDARD.encode(scope)),
        variant: None,
        revises: event.revises.map(|id| id.to_string()),
        received_at: received_at.to_string(),
        committed_at: event.committed_at.to_string(),
        event_type: event.event_type.clone(),
        account: event.account.clone(),
        received_from: event.received_from.clone(),
        verified_by: event.verified_by.clone(),
        comparison: None,
        body_watched: false,
        same_body_as: None,
        headers,
        headers_base64,
    }
}

fn text_or_base64(bytes: &[u8]) -> (Option<String>, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok("") => (None, None),
        Ok(text) => (Some(text.to_owned()), None),
        Err(_) => (None, Some(BASE64_STANDARD.encode(bytes))),
    }
}

fn write(
    id: &ProviderEventId,
    body: &[u8],
    digest: Digest,
    accepted_at: Timestamp,
    hookstead: About,
) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec_pretty(&EntryJson {
        schema_version: SCHEMA,
        delivery_id: delivery_id(id),
        body: BASE64_STANDARD.encode(body),
        sha256: digest.to_string(),
        accepted_at: accepted_at.to_string(),
        hookstead,
    })
}

/// The id as the record's `deliveryId`: as it is where it is UTF-8, else with its other bytes escaped.
pub(super) fn delivery_id(id: &ProviderEventId) -> Cow<'_, str> {
    match std::str::from_utf8(id.as_bytes()) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(id.as_bytes().escape_ascii().to_string()),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored<'a> {
    schema_version: u64,
    #[serde(borrow)]
    delivery_id: Cow<'a, str>,
    #[serde(borrow)]
    body: Cow<'a, str>,
    #[serde(borrow)]
    sha256: Cow<'a, str>,
    #[serde(borrow, default)]
    accepted_at: Option<&'a RawValue>,
    #[serde(borrow, default)]
    hookstead: Option<&'a RawValue>,
}

/// A record that agrees with itself.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) delivery_id: String,
    pub(super) body: Bytes,
    pub(super) digest: Digest,
    /// `acceptedAt`, where it is an instant; the seed lets it be missing or any text.
    pub(super) accepted_at: Option<Timestamp>,
    /// What our own field says; `None` in a record of the seed's own receiver.
    pub(super) about: Option<About>,
}

impl Entry {
    /// Reads a record and verifies it against itself. The error says what is wrong.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        let stored: Stored<'_> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if stored.schema_version != SCHEMA {
            return Err(format!("its schema is {} and not {SCHEMA}", stored.schema_version));
        }
        let body = BASE64_STANDARD
            .decode(stored.body.as_bytes())
            .map_err(|error| format!("its body is no base64: {error}"))?;
        let digest = Digest::of(&body);
        if digest.to_string() != stored.sha256 {
            return Err("its digest is not that of its body in lower-case hex".to_owned());
        }
        let about = stored.hookstead.map(|json| serde_json::from_str(json.get())).transpose();
        Ok(Self {
            delivery_id: stored.delivery_id.into_owned(),
            body: body.into(),
            digest,
            accepted_at: stored.accepted_at.and_then(|json| instant(json.get())),
            about: about.map_err(|error| format!("its field `hookstead` cannot be read: {error}"))?,
        })
    }

    /// Reads a record and verifies that it is the one of `identity` whose digest is known to be `digest`.
    /// Returns the body.
    pub(super) fn body_of(bytes: &[u8], identity: &Identity, digest: Digest) -> Result<Bytes, String> {
        let entry = Self::read(bytes)?;
        if entry.delivery_id != delivery_id(&identity.id) {
            return Err("it is of another id".to_owned());
        }
        if entry.digest != digest {
            return Err("its body is another one than was accepted".to_owned());
        }
        Ok(entry.body)
    }
}

fn instant(json: &str) -> Option<Timestamp> {
    let text: String = serde_json::from_str(json).ok()?;
    instant_of(&text)
}

/// An instant from the text that a [`Timestamp`] prints, or any other RFC 3339 text.
pub(super) fn instant_of(text: &str) -> Option<Timestamp> {
    if let Some(micros) = text.strip_suffix("us").and_then(|digits| digits.parse().ok()) {
        return Some(Timestamp::from_micros(micros));
    }
    let instant: jiff::Timestamp = text.parse().ok()?;
    Some(Timestamp::from_micros(instant.as_microsecond()))
}

#[cfg(test)]
mod tests {
    use hookstead_core::{DeliveryTally, Duplicates, EventId, Scope, Seq, SourceNumber};

    use super::*;

    fn event(id: &[u8], scope: &[u8], body: &[u8]) -> Event {
        Event {
            id: EventId::from_bytes([7; 16]),
            seq: Seq(3),
            source: "shop".parse().unwrap(),
            identity: Identity {
                source: SourceNumber(1),
                scope: Scope::new(scope).unwrap(),
                id: ProviderEventId::new(id).unwrap(),
            },
            event_type: None,
            account: None,
            received_from: None,
            verified_by: None,
            received_at: Timestamp::from_secs(1_770_000_000),
            committed_at: Timestamp::from_secs(1_770_000_000),
            digest: Digest::of(body),
            body_bytes: body.len() as u64,
            erased_at: None,
            headers: RawHeaders::default(),
            revises: None,
            same_body_as: None,
            duplicates: Duplicates::default(),
            conflicts: 0,
            deliveries: DeliveryTally::default(),
        }
    }

    fn written(event: &Event, body: &[u8]) -> Vec<u8> {
        let event = event.clone();
        let row = EventRow { event, comparison: None, body_watched: false, variants: Vec::new() };
        write_event(&row, body).unwrap()
    }

    #[test]
    fn a_record_begins_as_the_seeds_and_has_no_final_line_feed() {
        let body = b"{\"eventId\":\"business-42\"}\n";
        let text = String::from_utf8(written(&event(b"delivery-1", b"", body), body)).unwrap();
        let expected = format!(
            "{{\n  \"schemaVersion\": 1,\n  \"deliveryId\": \"delivery-1\",\n  \"body\": \"{}\",\n  \
             \"sha256\": \"{}\",\n  \"acceptedAt\": \"2026-02-02T02:40:00Z\",\n  \"hookstead\": {{\n",
            BASE64_STANDARD.encode(body),
            Digest::of(body)
        );
        assert!(text.starts_with(&expected), "{text}");
        assert!(text.ends_with("\n  }\n}"), "{text}");
    }

    #[test]
    fn every_id_and_body_comes_back() {
        let all: Vec<u8> = (0..=u8::MAX).collect();
        for (id, body) in [(&b"a"[..], &b""[..]), (b"\xff\0", &all), ("é\n\"".as_bytes(), b"x")] {
            let event = event(id, b"scope\xff", body);
            let bytes = written(&event, body);
            assert_eq!(Entry::body_of(&bytes, &event.identity, event.digest).unwrap(), body);
        }
    }

    #[test]
    fn damaged_records_are_refused() {
        let good = event(b"delivery-1", b"", b"body!");
        let text = String::from_utf8(written(&good, b"body!")).unwrap();
        let digest = good.digest.to_string();
        for (what, bad) in [
            ("empty", String::new()),
            ("cut", text[..text.len() - 1].to_owned()),
            ("schema 2", text.replace("\"schemaVersion\": 1", "\"schemaVersion\": 2")),
            ("schema 1.0", text.replace("\"schemaVersion\": 1", "\"schemaVersion\": 1.0")),
            ("schema text", text.replace("\"schemaVersion\": 1", "\"schemaVersion\": \"1\"")),
            ("no schema", text.replace("\"schemaVersion\": 1,", "")),
            ("other id", text.replace("delivery-1", "delivery-2")),
            ("id in another case", text.replace("delivery-1", "Delivery-1")),
            ("wrong digest", text.replace(&digest, &digest.replace(&digest[..1], "0"))),
            ("upper-case digest", text.replace(&digest, &digest.to_uppercase())),
            ("no base64", text.replace("Ym9keSE=", "Ym9keSE")),
            ("other body", text.replace("Ym9keSE=", "Ym9keSA=")),
            ("trailing bytes", format!("{text}x")),
            ("second value", format!("{text}{{}}")),
            ("twice the field", text.replace("\"body\": ", "\"body\": \"\",\n  \"body\": ")),
        ] {
            assert_ne!(bad, text, "{what}");
            let read = Entry::body_of(bad.as_bytes(), &good.identity, good.digest);
            assert!(read.is_err(), "{what}");
        }
    }

    #[test]
    fn what_the_seed_does_not_check_is_no_damage() {
        let good = event(b"delivery-1", b"", b"body!");
        let seed = format!(
            "{{\"schemaVersion\":1,\"deliveryId\":\"delivery-1\",\"body\":\"Ym9keSE=\",\"sha256\":\"{}\",\
             \"acceptedAt\":7,\"more\":[1e999]}}\n",
            good.digest
        );
        let entry = Entry::read(seed.as_bytes()).unwrap();
        assert_eq!((entry.accepted_at, entry.about.is_some()), (None, false));
        let nine = seed.replace(":7,", ":\"2026-02-02T02:40:00.123456789Z\",");
        let accepted_at = Entry::read(nine.as_bytes()).unwrap().accepted_at;
        assert_eq!(accepted_at, Some(Timestamp::from_micros(1_770_000_000_123_456)));
    }
}
