//! From an outcome to the answer that the provider expects.

use std::fmt::Write;

use bytes::Bytes;
use hookstead::core::{AcceptReceipt, Outcome};
use hookstead::verify::{Ack, HandshakeAnswer};
use hookstead::{OnConflict, Source, SourceOptions, SuccessBody};
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};

use crate::api::view::AnswersView;
use crate::problem::Problem;

/// What decides how the sender of an event is answered.
pub(crate) struct Policy<'a> {
    /// What the provider expects.
    pub(crate) ack: Option<&'a Ack>,
    /// What the sender is told of a conflict.
    pub(crate) on_conflict: OnConflict,
    /// One status for every success.
    pub(crate) success_status: Option<u16>,
    /// One body for every success.
    pub(crate) success_body: Option<&'a SuccessBody>,
}

impl<'a> Policy<'a> {
    fn of(source: &'a Source) -> Self {
        let SourceOptions { on_conflict, success_status, success_body, .. } = source.options();
        let ack = source.provider().map(|provider| provider.ack());
        let (on_conflict, success_status) = (*on_conflict, *success_status);
        Self { ack, on_conflict, success_status, success_body: success_body.as_ref() }
    }

    /// The text of a success and its type, if it is not ours: that of the source, else of the provider.
    fn body(&self) -> Option<(&'a str, &'a str)> {
        let of_source = self.success_body.map(|body| (body.text.as_str(), body.content_type.as_str()));
        of_source.or_else(|| {
            let ack = self.ack?;
            Some((ack.body.as_deref()?, ack.content_type.as_deref().unwrap_or("application/json")))
        })
    }

    /// The status for an outcome; `None` if it is refused.
    fn status(&self, outcome: Outcome) -> Option<StatusCode> {
        let status = match outcome {
            Outcome::Duplicate => StatusCode::OK,
            Outcome::Conflict { .. } if self.on_conflict == OnConflict::Refuse => return None,
            Outcome::BodyReused => return None,
            // Held for review: to the sender it is as if it had come for the first time.
            Outcome::Stored | Outcome::Conflict { .. } => StatusCode::ACCEPTED,
        };
        let wanted = self.success_status.or_else(|| self.ack.and_then(Ack::status));
        Some(wanted.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or(status))
    }

    /// The status for each outcome.
    pub(crate) fn answers(&self) -> AnswersView {
        let status = |outcome| self.status(outcome).unwrap_or_else(|| Problem::Conflict.status()).as_u16();
        AnswersView {
            stored: status(Outcome::Stored),
            duplicate: status(Outcome::Duplicate),
            conflict: status(Outcome::Conflict { variant: None }),
        }
    }
}

/// With which status a source's requests are answered.
pub(crate) fn answers(source: &Source) -> AnswersView {
    Policy::of(source).answers()
}

/// The answer to an event that is durable now.
pub(crate) fn accepted(source: &Source, receipt: &AcceptReceipt, headers: &HeaderMap) -> Response<Bytes> {
    let policy = Policy::of(source);
    let Some(status) = policy.status(receipt.outcome) else { return refused(receipt.outcome).response() };
    let word = match receipt.outcome {
        Outcome::Stored => "stored",
        Outcome::Duplicate => "duplicate",
        Outcome::Conflict { .. } => "conflict",
        Outcome::BodyReused => "body-reused",
    };
    let (body, content_type) = match policy.body() {
        Some((template, content_type)) => (Filling { word, receipt, headers }.fill(template), content_type),
        None => (format!("{{\"outcome\":\"{word}\",\"event\":\"{}\"}}\n", receipt.seq), "application/json"),
    };
    success(status, content_type, body.into())
}

/// The answer to a request that is not verified: for each source one, whatever the reason, so that a sender learns
/// nothing. The body is that of the provider's record, if it wants one of its own.
pub(crate) fn not_verified(source: &Source) -> Response<Bytes> {
    let mut response = Problem::NotVerified.response();
    if let Some(body) = source.provider().and_then(|provider| provider.ack().reject_body.as_ref()) {
        *response.body_mut() = Bytes::from(body.clone());
        if body.is_empty() {
            response.headers_mut().remove(header::CONTENT_TYPE);
        }
    }
    response
}

/// As what an outcome is refused, if the source refuses it.
pub(crate) fn refusal(source: &Source, outcome: Outcome) -> Option<Problem> {
    Policy::of(source).status(outcome).is_none().then(|| refused(outcome))
}

/// Why an outcome is refused.
fn refused(outcome: Outcome) -> Problem {
    match outcome {
        Outcome::BodyReused => Problem::BodyReused,
        Outcome::Conflict { .. } | Outcome::Stored | Outcome::Duplicate => Problem::Conflict,
    }
}

fn success(status: StatusCode, content_type: &str, body: Bytes) -> Response<Bytes> {
    // 204 and 205 have no body by definition.
    let bodyless = matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT);
    let body = if bodyless { Bytes::new() } else { body };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    if !response.body().is_empty()
        && let Ok(value) = HeaderValue::from_str(content_type)
    {
        response.headers_mut().insert(header::CONTENT_TYPE, value);
    }
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The answer to a provider's question whether somebody is there.
pub(crate) fn handshake(answer: HandshakeAnswer) -> Response<Bytes> {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    let content_type = match answer.content_type.as_deref() {
        None | Some("text/plain") => "text/plain; charset=utf-8",
        Some(other) => other,
    };
    let mut response = success(status, content_type, answer.body.into());
    // It may hold what a stranger sent: whatever reads it as a page gets one that can do nothing.
    let nothing = HeaderValue::from_static("default-src 'none'");
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, nothing);
    for (name, value) in answer.headers {
        match (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(&value)) {
            (Ok(name), Ok(value)) => {
                response.headers_mut().insert(name, value);
            }
            _ => tracing::warn!(handshake.name = answer.name, header.name = name, "not a header; left out"),
        }
    }
    response
}

/// What the placeholders of a record's own answer stand for: `@outcome@`, `@event@`, `@new@`, `@sha256@` and
/// `@header.NAME@`. Values are escaped for a JSON text.
struct Filling<'a> {
    word: &'static str,
    receipt: &'a AcceptReceipt,
    headers: &'a HeaderMap,
}

impl Filling<'_> {
    fn fill(&self, template: &str) -> String {
        let mut filled = String::with_capacity(template.len() + 128);
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('@') {
            filled.push_str(before);
            let Some((name, behind)) = after.split_once('@') else {
                filled.push('@');
                rest = after;
                continue;
            };
            if self.append(name, &mut filled).is_some() {
                rest = behind;
            } else {
                filled.push('@');
                rest = after;
            }
        }
        filled.push_str(rest);
        filled
    }

    /// Appends what a placeholder stands for; `None` if it stands for nothing.
    fn append(&self, name: &str, filled: &mut String) -> Option<()> {
        match name {
            "outcome" => filled.push_str(self.word),
            "event" => write!(filled, "{}", self.receipt.seq).ok()?,
            "new" => filled.push_str(if self.receipt.outcome == Outcome::Stored { "true" } else { "false" }),
            "sha256" => write!(filled, "{}", self.receipt.digest).ok()?,
            _ => {
                let value = self.headers.get(name.strip_prefix("header.")?)?;
                append_escaped(filled, value.as_bytes());
            }
        }
        Some(())
    }
}

/// Appends a text as it stands between the quotation marks of a JSON text.
fn append_escaped(filled: &mut String, value: &[u8]) {
    let text = String::from_utf8_lossy(value);
    // Nearly every id: nothing in it has to be escaped.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\') {
        return filled.push_str(&text);
    }
    let quoted = serde_json::Value::from(&*text).to_string();
    filled.push_str(&quoted[1..quoted.len() - 1]);
}

#[cfg(test)]
mod tests {
    use hookstead::core::{Digest, EventId, Seq, Timestamp};

    use super::*;

    #[test]
    fn placeholders_are_filled_and_escaped() {
        let receipt = AcceptReceipt {
            outcome: Outcome::Stored,
            event: EventId::from_bytes([1; 16]),
            seq: Seq(7),
            digest: Digest::of(b""),
            committed_at: Timestamp::default(),
            same_body_as: None,
        };
        let mut headers = HeaderMap::new();
        headers.insert("x-id", HeaderValue::from_static("a\"b"));
        let filling = Filling { word: "stored", receipt: &receipt, headers: &headers };
        let check = |template: &str, expected: &str| assert_eq!(filling.fill(template), expected);
        check("{\"id\":\"@header.x-id@\",\"new\":@new@}", "{\"id\":\"a\\\"b\",\"new\":true}");
        check("@outcome@ @event@ a@b @header.none@ @", "stored 0007 a@b @header.none@ @");
        check("", "");
        assert!(filling.fill("@sha256@").starts_with("e3b0c442"));
    }
}
