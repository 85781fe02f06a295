//! The format: what stands in a file of vectors.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

use crate::spec::SchemeSpec;

/// Longest body that a vector may ask for by repetition, in bytes.
const FILLED_BYTES_MAX: usize = 32 * 1024 * 1024;

/// One request, the configuration of its source, and what must come out.
#[derive(Debug, Clone, Deserialize)]
pub struct Vector {
    /// `<provider>/<case>`.
    pub id: String,
    /// The provider's name in the registry.
    pub provider: String,
    pub(super) kind: Kind,
    pub(super) request: Message,
    #[serde(default)]
    pub(super) config: Config,
    /// Unix seconds at which the request is judged.
    pub now: i64,
    pub(super) expect: Expect,
    /// Why the case is there, or empty.
    #[serde(default)]
    pub note: String,
}

/// Why a file of vectors cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("no file of vectors: {0}")]
pub struct VectorError(#[from] serde_json::Error);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// The verdict, and the event.
    Verify,
    /// The answer to a request that is no event.
    Handshake,
    /// The verdict, and the status of the answer.
    Ack,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Message {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    #[serde(default)]
    pub(super) body_b64: String,
    pub(super) body_fill: Option<Fill>,
}

/// A long body: a text so many times.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fill {
    text: String,
    times: usize,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    #[serde(default)]
    pub(super) secrets: Vec<String>,
    pub(super) url: Option<String>,
    #[serde(default)]
    pub(super) vars: BTreeMap<String, String>,
    pub(super) jwks: Option<Value>,
    /// Single keys by their id.
    #[serde(default)]
    pub(super) keys: BTreeMap<String, String>,
    /// Certificates by their address.
    #[serde(default)]
    pub(super) certs: BTreeMap<String, String>,
    /// A scheme in a source's own words, instead of a record.
    pub(super) scheme: Option<SchemeSpec>,
    pub(super) identity: Option<String>,
    /// Published examples have secrets that a source would refuse as too short.
    pub(super) secret_bytes_min: Option<usize>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expect {
    pub(super) verdict: Option<String>,
    #[serde(default)]
    pub(super) also_ok: Vec<String>,
    pub(super) event_id: Option<String>,
    pub(super) event_type: Option<String>,
    pub(super) account: Option<String>,
    pub(super) secret_index: Option<usize>,
    pub(super) class: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) response: Option<Response>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Response {
    pub(super) status: u16,
    #[serde(rename = "type")]
    pub(super) content_type: Option<String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Option<String>,
    pub(super) json: Option<Value>,
    #[serde(default)]
    pub(super) store: BTreeMap<String, String>,
}

/// Reads a file: a list of vectors, or an object with such a list as `vectors`.
///
/// # Errors
///
/// [`VectorError`] if it is neither.
pub fn parse(text: &str) -> Result<Vec<Vector>, VectorError> {
    #[derive(Deserialize)]
    struct Wrapped {
        vectors: Vec<Vector>,
    }
    if text.trim_start().starts_with('[') {
        return Ok(serde_json::from_str(text)?);
    }
    Ok(serde_json::from_str::<Wrapped>(text)?.vectors)
}

impl Vector {
    /// The body of the request.
    ///
    /// # Errors
    ///
    /// In words, if it is no base64 or too long.
    pub fn body(&self) -> Result<Vec<u8>, String> {
        match &self.request.body_fill {
            None => STANDARD.decode(&self.request.body_b64).map_err(|error| format!("body_b64: {error}")),
            Some(fill) if fill.text.len().saturating_mul(fill.times) <= FILLED_BYTES_MAX => {
                Ok(fill.text.repeat(fill.times).into_bytes())
            }
            Some(_) => Err(format!("body_fill gives more than {FILLED_BYTES_MAX} bytes")),
        }
    }

    /// The verdict that it must get; nothing for a handshake.
    pub fn verdict(&self) -> Option<&str> {
        self.expect.verdict.as_deref()
    }

    /// The method, the path with its query, and the headers of the request.
    pub fn head(&self) -> (&str, &str, &[(String, String)]) {
        (&self.request.method, &self.request.path, &self.request.headers)
    }

    /// The secrets of the source.
    pub fn secrets(&self) -> &[String] {
        &self.config.secrets
    }

    /// The public address of the source.
    pub fn url(&self) -> Option<&str> {
        self.config.url.as_deref()
    }

    /// Whether it is a request that must be accepted as an event.
    pub fn is_valid_event(&self) -> bool {
        self.kind == Kind::Verify && self.verdict() == Some("valid")
    }
}
