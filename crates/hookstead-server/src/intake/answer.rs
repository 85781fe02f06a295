//! From an outcome to the answer that the provider expects.

use bytes::Bytes;
use hookstead::core::{AcceptReceipt, Outcome};
use hookstead::verify::{Ack, HandshakeAnswer, Headers};
use hookstead::{OnConflict, Placeholder, Source, SourceOptions};
use http::header::{self, HeaderName, HeaderValue, InvalidHeaderValue};
use http::{Response, StatusCode};

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
}

impl<'a> Policy<'a> {
    fn of(source: &'a Source) -> Self {
        let SourceOptions { on_conflict, success_status, .. } = source.options();
        let ack = source.provider().map(|provider| provider.ack());
        Self { ack, on_conflict: *on_conflict, success_status: *success_status }
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
pub(crate) fn accepted(source: &Source, receipt: &AcceptReceipt, headers: &dyn Headers) -> Response<Bytes> {
    let status = Policy::of(source).status(receipt.outcome);
    let Some(status) = status else { return refused(receipt.outcome).response() };
    let template = source.success();
    let body = template.fill(|placeholder, filled| append(placeholder, receipt, headers, filled));
    success(status, template.content_type(), body.into())
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
        && let Ok(value) = content_type_of(content_type)
    {
        response.headers_mut().insert(header::CONTENT_TYPE, value);
    }
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Nearly every answer is JSON, whose type is neither looked at nor copied for each.
fn content_type_of(text: &str) -> Result<HeaderValue, InvalidHeaderValue> {
    match text {
        "application/json" => Ok(HeaderValue::from_static("application/json")),
        other => HeaderValue::from_str(other),
    }
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

/// Appends what a placeholder stands for, escaped for a JSON text; `false` if it stands for nothing.
fn append(
    placeholder: &Placeholder,
    receipt: &AcceptReceipt,
    headers: &dyn Headers,
    filled: &mut Vec<u8>,
) -> bool {
    match placeholder {
        Placeholder::Outcome => filled.extend_from_slice(word(receipt.outcome)),
        Placeholder::Event => filled.extend_from_slice(receipt.seq.to_string().as_bytes()),
        Placeholder::New if receipt.outcome == Outcome::Stored => filled.extend_from_slice(b"true"),
        Placeholder::New => filled.extend_from_slice(b"false"),
        Placeholder::Sha256 => filled.extend_from_slice(&receipt.digest.hex()),
        Placeholder::Header(name) => match headers.find(name.as_bytes(), 0) {
            Some(index) => append_escaped(filled, headers.at(index).1),
            None => return false,
        },
    }
    true
}

fn word(outcome: Outcome) -> &'static [u8] {
    match outcome {
        Outcome::Stored => b"stored",
        Outcome::Duplicate => b"duplicate",
        Outcome::Conflict { .. } => b"conflict",
        Outcome::BodyReused => b"body-reused",
    }
}

/// Appends a text as it stands between the quotation marks of a JSON text.
fn append_escaped(filled: &mut Vec<u8>, value: &[u8]) {
    // Nearly every id: nothing in it has to be escaped.
    if value.iter().all(|byte| matches!(byte, b' '..=b'~') && *byte != b'"' && *byte != b'\\') {
        return filled.extend_from_slice(value);
    }
    let quoted = serde_json::Value::from(&*String::from_utf8_lossy(value)).to_string();
    filled.extend_from_slice(&quoted.as_bytes()[1..quoted.len() - 1]);
}

#[cfg(test)]
mod tests {
    use hookstead::core::{Digest, EventId, Seq, Timestamp};
    use hookstead::{SuccessBody, SuccessTemplate};

    use super::*;

    fn fill(receipt: &AcceptReceipt, headers: &dyn Headers, text: &str) -> String {
        let body = SuccessBody { text: text.to_owned(), content_type: "text/plain".to_owned() };
        let append =
            |placeholder: &Placeholder, filled: &mut Vec<u8>| append(placeholder, receipt, headers, filled);
        String::from_utf8(SuccessTemplate::from(&body).fill(append)).unwrap()
    }

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
        let headers = [("X-Id", &b"a\"b"[..]), ("x-id", b"another")];
        let check = |text: &str, expected: &str| assert_eq!(fill(&receipt, &headers, text), expected);
        check("{\"id\":\"@header.x-id@\",\"new\":@new@}", "{\"id\":\"a\\\"b\",\"new\":true}");
        check("@outcome@ @event@ a@b @header.none@ @", "stored 0007 a@b @header.none@ @");
        check("", "");
        assert!(fill(&receipt, &headers, "@sha256@").starts_with("e3b0c442"));
        let headers = [("x-id", b"\xff\t")];
        assert_eq!(fill(&receipt, &headers, "@header.x-id@"), "\u{fffd}\\t");
    }
}
