//! What proves that something happened, as the JSON of the API and the verbs: the receipt of an acceptance, and
//! the receipts of runs.
//!
//! The names in a run's receipt are those of the contract of `signed-inbox` (rule R52), so they are not written as
//! everywhere else. A payload is never serialised anew: it is the bytes that came.

use bytes::Bytes;
use hookstead::core::{Event, RunReceipt, StoreFacts};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::view::{StoreView, text_or_base64};

/// With which status requests of an event are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswersView {
    /// The first time.
    pub stored: u16,
    /// When it comes again.
    pub duplicate: u16,
    /// When other bytes come under its id.
    pub conflict: u16,
}

/// Proof that an event was accepted, and of what that rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptView {
    /// Our own key, a UUID.
    pub event: String,
    /// The short id, for people.
    pub short_id: String,
    /// What accepting it came to: `stored`. Whatever came later was a duplicate or a conflict.
    pub outcome: String,
    /// The source's name.
    pub source: String,
    /// The provider event id; `null` if it is no text.
    pub provider_event_id: Option<String>,
    /// The provider event id in base64, only if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_event_id_base64: Option<String>,
    /// The scope, the third part of the identity; empty where there is none, `null` if it is no text.
    pub scope: Option<String>,
    /// The scope in base64, only if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope_base64: Option<String>,
    /// The SHA-256 of the body, in hex.
    pub digest: String,
    /// The length of the body.
    pub bytes: u64,
    /// When the request was complete.
    pub received_at: String,
    /// When it was committed; only after that it was answered.
    pub committed_at: String,
    /// How the sender proved itself; `null` for an event that a program recorded.
    pub verified_by: Option<String>,
    /// The store, and what its commits rest on.
    pub store: StoreView,
}

/// Proof that an event was processed under a name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunView {
    /// 1.
    pub schema_version: u32,
    /// The provider event id; `null` if it is no text.
    pub delivery_id: Option<String>,
    /// The provider event id in base64, only if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_id_base64: Option<String>,
    /// The run's name.
    pub run_id: String,
    /// The event's id in the business that it is about, where the source's processor reads one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub business_event_id: Option<String>,
    /// The SHA-256 of the body, in hex.
    #[serde(rename = "bodySHA256")]
    pub body_sha256: String,
    /// When the run was recorded first.
    pub processed_at: String,
    /// What the processor read, byte for byte. Lists leave it out.
    #[serde(default, deserialize_with = "raw", skip_serializing_if = "Option::is_none")]
    pub payload: Option<Box<RawValue>>,
    /// The payload in base64 instead, only if its bytes are no UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
    /// Our own key of the event, a UUID.
    pub event: String,
    /// Whether this call recorded the run. Lists leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<bool>,
}

/// The receipts of an event's runs, by name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunsView {
    /// The receipts, without their payloads.
    pub runs: Vec<RunView>,
    /// Whether there are more than are listed.
    pub more: bool,
}

/// A `null` is a payload too.
fn raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

impl ReceiptView {
    /// The receipt of an event in this store.
    pub fn of(event: &Event, store: &StoreFacts) -> Self {
        let (provider_event_id, provider_event_id_base64) = text_or_base64(event.identity.id.as_bytes());
        let (scope, scope_base64) = text_or_base64(event.identity.scope.as_bytes());
        Self {
            event: event.id.to_string(),
            short_id: event.seq.to_string(),
            outcome: "stored".to_owned(),
            source: event.source.to_string(),
            provider_event_id,
            provider_event_id_base64,
            scope,
            scope_base64,
            digest: event.digest.to_string(),
            bytes: event.body_bytes,
            received_at: event.received_at.to_string(),
            committed_at: event.committed_at.to_string(),
            verified_by: event.verified_by.clone(),
            store: StoreView::from(store),
        }
    }
}

impl RunView {
    /// A receipt without its payload.
    pub fn listed(event: &Event, receipt: &RunReceipt) -> Self {
        let (delivery_id, delivery_id_base64) = text_or_base64(event.identity.id.as_bytes());
        Self {
            schema_version: 1,
            delivery_id,
            delivery_id_base64,
            run_id: receipt.run.to_string(),
            business_event_id: receipt.business_id.clone(),
            body_sha256: receipt.digest.to_string(),
            processed_at: receipt.processed_at.to_string(),
            payload: None,
            payload_base64: None,
            event: event.id.to_string(),
            new: None,
        }
    }

    /// A whole receipt, and whether it is new.
    pub fn of(event: &Event, receipt: &RunReceipt, new: bool) -> Self {
        let (payload, payload_base64) = receipt.payload.as_ref().map_or((None, None), payload);
        Self { payload, payload_base64, new: Some(new), ..Self::listed(event, receipt) }
    }
}

/// The payload as JSON; in base64 where its bytes can stand in no JSON document.
fn payload(bytes: &Bytes) -> (Option<Box<RawValue>>, Option<String>) {
    let (text, base64) = text_or_base64(bytes);
    match text.map(RawValue::from_string) {
        Some(Ok(json)) => (Some(json), None),
        // A processor only ever cut JSON out of a body; whatever else this is, it is shown whole.
        Some(Err(_)) | None => (None, base64.or_else(|| Some(encoded(bytes)))),
    }
}

fn encoded(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &'static [u8], json: Option<&str>, base64: Option<&str>) {
        let (found, encoded) = payload(&Bytes::from_static(bytes));
        assert_eq!((found.as_deref().map(RawValue::get), encoded.as_deref()), (json, base64));
    }

    #[test]
    fn a_payload_is_never_written_anew() {
        check(b"null", Some("null"), None);
        check(
            b"{\"a\": 1.50, \"a\":1e2,\"h\":\"<&>\"}",
            Some("{\"a\": 1.50, \"a\":1e2,\"h\":\"<&>\"}"),
            None,
        );
        check(b"\"\xff\"", None, Some("Iv8i"));
        check(b"not json", None, Some("bm90IGpzb24="));
    }

    #[test]
    fn a_payload_of_null_survives_the_way() {
        let receipt = r#"{"schemaVersion":1,"deliveryId":"d","runId":"r","businessEventId":"b","bodySHA256":"00","processedAt":"t","payload":null,"event":"e","new":true}"#;
        let view: RunView = serde_json::from_str(receipt).unwrap();
        assert_eq!(view.payload.as_deref().map(RawValue::get), Some("null"));
        assert_eq!(serde_json::to_string(&view).unwrap(), receipt);
    }

    #[test]
    fn a_deep_payload_is_passed_on() {
        let deep = format!("{}{}", "[".repeat(9000), "]".repeat(9000));
        let (json, base64) = payload(&Bytes::from(deep.clone()));
        assert_eq!((json.as_deref().map(RawValue::get), base64), (Some(deep.as_str()), None));
    }
}
