//! One event as one line of JSON: the words are those of `events show --json`, and the body is with it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hookstead::core::Event;
use serde::{Deserialize, Serialize};

use crate::api::view::text_or_base64;

/// The number of the form that lines are written in. A reader refuses every other one; fields may be added within it.
///
/// | written by | read by 1 |
/// |---|---|
/// | 1 | yes |
/// | a later number | refused, and the line says which number it has |
pub const FORMAT: u32 = 1;

/// What stands in a line beside the body and what is read out of the body, in bytes, at most: header fields of 64 KiB
/// and five texts of up to 8 KiB, type and account where they are of the head, of which JSON makes up to six times as
/// much.
const BESIDE_BODY_BYTES_MAX: u64 = 1024 * 1024;

/// The longest line of an event whose body has at most so many bytes: the body in base64; type and account, which are
/// values of the body and so in JSON no longer than it; and what stands beside them.
pub const fn line_bytes_max(body_bytes_max: u64) -> u64 {
    let base64 = body_bytes_max.div_ceil(3).saturating_mul(4);
    base64.saturating_add(body_bytes_max).saturating_add(BESIDE_BODY_BYTES_MAX)
}

/// An event as it was accepted, with its body. What became of it since (deliveries, runs, counts) is not here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventLine {
    /// [`FORMAT`].
    pub format: u32,
    /// The key that it had in the store it comes from. It gets another one where it is imported.
    pub id: String,
    /// Its place in the order of commits there.
    pub seq: u64,
    /// The source's name.
    pub source: String,
    /// The provider event id; `null` if it is no text.
    pub provider_event_id: Option<String>,
    /// The provider event id in base64, only if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_event_id_base64: Option<String>,
    /// The scope in base64, only if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope_base64: Option<String>,
    /// The provider's type.
    #[serde(rename = "type")]
    pub event_type: Option<String>,
    /// The provider's account.
    pub account: Option<String>,
    /// The address that it came from.
    pub received_from: Option<String>,
    /// How the sender proved itself.
    pub verified_by: Option<String>,
    /// When the request was complete, RFC 3339.
    pub received_at: String,
    /// When it was committed there.
    pub committed_at: String,
    /// The SHA-256 of the body, in hex.
    pub digest: String,
    /// The length of the body.
    pub bytes: u64,
    /// When retention erased the body.
    pub erased_at: Option<String>,
    /// The id of the event whose conflict was resolved by making this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revises: Option<String>,
    /// The id of the event that had the same signed bytes first, under another provider event id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_body_as: Option<String>,
    /// The query of the address that it came to, as it came and without secrets. Only where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// The query in base64, only if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_base64: Option<String>,
    /// The header fields as they came, without secrets.
    pub headers: Vec<HeaderField>,
    /// The body in base64 (RFC 4648, section 4, with padding); `null` if it was erased.
    pub body_base64: Option<String>,
}

/// A header field, with every byte of its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeaderField {
    /// Its name, as it came.
    pub name: String,
    /// Its value; `null` if it is no text.
    pub value: Option<String>,
    /// Its value in base64, only if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_base64: Option<String>,
}

/// A line could not be put into JSON.
#[derive(Debug, thiserror::Error)]
#[error("write an event as JSON")]
pub struct LineError(#[from] serde_json::Error);

impl EventLine {
    /// The line of an event. `body`: its bytes, whose digest was checked; `None` if they were erased.
    pub fn of(event: &Event, body: Option<&[u8]>) -> Self {
        let scope = event.identity.scope.as_bytes();
        let (text, base64) = text_or_base64(event.identity.id.as_bytes());
        let query = event.headers.query().map(|query| text_or_base64(query.as_bytes()));
        let (query, query_base64) = query.unwrap_or_default();
        Self {
            format: FORMAT,
            id: event.id.to_string(),
            seq: event.seq.0,
            source: event.source.to_string(),
            provider_event_id: text,
            provider_event_id_base64: base64,
            scope_base64: (!scope.is_empty()).then(|| STANDARD.encode(scope)),
            event_type: event.event_type.clone(),
            account: event.account.clone(),
            received_from: event.received_from.clone(),
            verified_by: event.verified_by.clone(),
            received_at: event.received_at.to_string(),
            committed_at: event.committed_at.to_string(),
            digest: event.digest.to_string(),
            bytes: event.body_bytes,
            erased_at: event.erased_at.map(|at| at.to_string()),
            revises: event.revises.map(|id| id.to_string()),
            same_body_as: event.same_body_as.map(|id| id.to_string()),
            query,
            query_base64,
            headers: event.headers.fields().map(HeaderField::of).collect(),
            body_base64: body.map(|body| STANDARD.encode(body)),
        }
    }

    /// Appends the line, with the LF that ends it.
    ///
    /// # Errors
    ///
    /// [`LineError`]; `out` then ends in the middle of a line.
    pub fn write_to(&self, out: &mut Vec<u8>) -> Result<(), LineError> {
        serde_json::to_writer(&mut *out, self)?;
        out.push(b'\n');
        Ok(())
    }
}

impl HeaderField {
    fn of((name, value): (&str, &[u8])) -> Self {
        let (value, value_base64) = text_or_base64(value);
        Self { name: name.to_owned(), value, value_base64 }
    }
}
