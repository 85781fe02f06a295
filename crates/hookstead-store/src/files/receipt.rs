//! The receipt of a run as a file: the seed's fields (contract R52), then our own. The payload stands in it
//! byte by byte, neither indented nor escaped again: what was recorded is what comes back. It knows no files.
//!
//! A receipt is trusted only if every field is there and agrees with what the store knows of the run.

use std::borrow::Cow;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use hookstead_core::{Digest, Event, RunName, RunReceipt, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::entry::{SCHEMA, delivery_id, instant_of};
use super::row::RunRow;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReceiptJson<'a> {
    schema_version: u64,
    delivery_id: Cow<'a, str>,
    run_id: &'a str,
    business_event_id: Option<&'a str>,
    #[serde(rename = "bodySHA256")]
    body_sha256: String,
    processed_at: String,
    payload: Option<&'a RawValue>,
    hookstead: AboutJson,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AboutJson {
    event: String,
    /// The payload, where it is no JSON value by itself; `payload` is then null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
    /// Whether there is a payload at all: a JSON null is one.
    has_payload: bool,
}

/// The file of a receipt.
pub(super) fn write(event: &Event, receipt: &RunReceipt) -> Result<Vec<u8>, serde_json::Error> {
    let value = receipt.payload.as_deref().and_then(as_json);
    let payload_base64 = match (&receipt.payload, value) {
        (Some(payload), None) => Some(BASE64_STANDARD.encode(payload)),
        _ => None,
    };
    serde_json::to_vec_pretty(&ReceiptJson {
        schema_version: SCHEMA,
        delivery_id: delivery_id(&event.identity.id),
        run_id: receipt.run.as_str(),
        business_event_id: receipt.business_id.as_deref(),
        body_sha256: receipt.digest.to_string(),
        processed_at: receipt.processed_at.to_string(),
        payload: value,
        hookstead: AboutJson {
            event: event.id.to_string(),
            payload_base64,
            has_payload: receipt.payload.is_some(),
        },
    })
}

/// The payload as a JSON value that a reader gives back byte by byte, if it is one. The reader does not
/// recurse, so that no depth can exhaust the stack.
fn as_json(payload: &[u8]) -> Option<&RawValue> {
    let value: &RawValue = serde_json::from_slice(payload).ok()?;
    (value.get().len() == payload.len()).then_some(value)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored<'a> {
    schema_version: u64,
    #[serde(borrow)]
    delivery_id: Cow<'a, str>,
    #[serde(borrow)]
    run_id: Cow<'a, str>,
    /// Raw, so that a missing one is told from a null.
    #[serde(borrow)]
    business_event_id: &'a RawValue,
    #[serde(borrow, rename = "bodySHA256")]
    body_sha256: Cow<'a, str>,
    #[serde(borrow)]
    processed_at: Cow<'a, str>,
    #[serde(borrow)]
    payload: &'a RawValue,
    #[serde(borrow, default)]
    hookstead: Option<&'a RawValue>,
}

/// A receipt that has every field.
#[derive(Debug)]
pub(super) struct Stated {
    pub(super) delivery_id: String,
    pub(super) run: RunName,
    pub(super) business_id: Option<String>,
    pub(super) digest: String,
    pub(super) processed_at: Option<Timestamp>,
    pub(super) payload: Option<Bytes>,
    /// The event's own id, in a receipt of ours.
    pub(super) event: Option<String>,
}

impl Stated {
    /// Reads a receipt. A missing field is damage. The error says what is wrong.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        let text = |error: serde_json::Error| error.to_string();
        let stored: Stored<'_> = serde_json::from_slice(bytes).map_err(text)?;
        if stored.schema_version != SCHEMA {
            return Err(format!("its schema is {} and not {SCHEMA}", stored.schema_version));
        }
        let about: Option<AboutJson> =
            stored.hookstead.map(|json| serde_json::from_str(json.get())).transpose().map_err(text)?;
        Ok(Self {
            delivery_id: stored.delivery_id.into_owned(),
            run: stored.run_id.parse().map_err(|_| "its run has no legal name".to_owned())?,
            business_id: serde_json::from_str(stored.business_event_id.get()).map_err(text)?,
            digest: stored.body_sha256.into_owned(),
            processed_at: instant_of(&stored.processed_at),
            event: about.as_ref().map(|about| about.event.clone()),
            payload: payload(stored.payload, about)?,
        })
    }
}

fn payload(value: &RawValue, about: Option<AboutJson>) -> Result<Option<Bytes>, String> {
    let as_it_stands = || Some(Bytes::copy_from_slice(value.get().as_bytes()));
    match about {
        None => Ok(as_it_stands()),
        Some(about) if !about.has_payload => Ok(None),
        Some(AboutJson { payload_base64: Some(text), .. }) => {
            let bytes = BASE64_STANDARD.decode(text).map_err(|error| format!("its payload: {error}"))?;
            Ok(Some(bytes.into()))
        }
        Some(_) => Ok(as_it_stands()),
    }
}

/// Reads the receipt of a run that the store knows, and verifies it against that. The error says what is
/// wrong.
pub(super) fn read(bytes: &[u8], event: &Event, run: &RunName, row: &RunRow) -> Result<RunReceipt, String> {
    let stated = Stated::read(bytes)?;
    let facts = [
        (stated.delivery_id == delivery_id(&event.identity.id), "id"),
        (stated.run == *run, "run"),
        (stated.business_id == row.business_id, "business id"),
        (stated.digest == row.digest.to_string(), "digest"),
        (stated.payload.as_deref().map(Digest::of) == row.payload, "payload"),
    ];
    if let Some((_, what)) = facts.iter().find(|(holds, _)| !holds) {
        return Err(format!("its {what} is another than was recorded"));
    }
    Ok(RunReceipt {
        event: event.id,
        run: run.clone(),
        digest: row.digest,
        processed_at: row.processed_at,
        business_id: stated.business_id,
        payload: stated.payload,
    })
}
