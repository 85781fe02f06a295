//! A line of an export, read once: either an event that can be accepted, or why not, and what to do.

use std::fmt::Display;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hookstead::core::identity::IDENTITY_PART_BYTES_MAX;
use hookstead::core::{Digest, IdentityError, ProviderEventId, RawHeaders, RawQuery, Scope, Timestamp};
use hookstead::{Import, Inbox, Source};
use serde::Deserialize;

use super::line::{EventLine, FORMAT, HeaderField};
use crate::limits::IMPORT_HEADERS_BYTES_MAX;

/// What a line holds.
#[derive(Debug)]
pub enum ParsedLine {
    /// An event with its body, which has the digest that the line says.
    Event(Box<Import>),
    /// What retention left of an event: there is no body to accept.
    Erased,
}

/// Why a line is no event that this inbox can take over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct LineProblem {
    /// The stable name of the kind.
    pub code: &'static str,
    /// What is wrong.
    pub reason: String,
    /// What to do.
    pub fix: &'static str,
}

const EXPORT_AGAIN: &str = "export the event again; a line is not to be edited";

impl LineProblem {
    fn new(code: &'static str, reason: impl Into<String>, fix: &'static str) -> Self {
        Self { code, reason: reason.into(), fix }
    }

    /// A field that no export writes like this.
    fn field(name: &str, why: impl Display) -> Self {
        Self::new("malformed", format!("`{name}`: {why}"), EXPORT_AGAIN)
    }
}

/// Reads a line, without its LF, for an inbox that has the event's source.
///
/// # Errors
///
/// [`LineProblem`]: it is no whole line of a form that this program knows, its bytes do not have their digest, or the
/// inbox has no source of its name or takes no body of its length.
pub fn parse_line(line: &[u8], inbox: &Inbox) -> Result<ParsedLine, LineProblem> {
    let line: EventLine = serde_json::from_slice(line).map_err(|error| unreadable(line, &error))?;
    if line.format != FORMAT {
        return Err(other_format(line.format));
    }
    let Some(body) = &line.body_base64 else { return erased(&line) };
    let body = body_of(&line, body)?;
    let source = source_of(&line, inbox, body.len())?;
    let id = base64_or_text("provider_event_id", line.provider_event_id, line.provider_event_id_base64)?;
    let id = ProviderEventId::new(id.unwrap_or_default())
        .map_err(|error| unusable("provider_event_id", &error))?;
    let scope = base64_or_text("scope", None, line.scope_base64)?.unwrap_or_default();
    let query = base64_or_text("query", line.query, line.query_base64)?;
    Ok(ParsedLine::Event(Box::new(Import {
        source,
        scope: Scope::new(scope).map_err(|error| unusable("scope_base64", &error))?,
        id,
        received_at: received_at(&line.received_at)?,
        headers: headers(query.as_deref(), &line.headers)?,
        // Both are values of the request, as long as it made them: only the line bounds them.
        event_type: line.event_type,
        account: line.account,
        received_from: bounded("received_from", line.received_from)?,
        verified_by: bounded("verified_by", line.verified_by)?,
        body,
    })))
}

fn unreadable(line: &[u8], error: &serde_json::Error) -> LineProblem {
    #[derive(Deserialize)]
    struct Numbered {
        format: u32,
    }
    match serde_json::from_slice::<Numbered>(line) {
        Ok(Numbered { format }) if format != FORMAT => other_format(format),
        _ if error.is_eof() => LineProblem::new(
            "cut-off",
            "the line ends in the middle: the file was cut off, or is still being written",
            "export again, to a file with --output: it is there only when it is whole",
        ),
        _ => LineProblem::new("malformed", format!("not a line of an export: {error}"), EXPORT_AGAIN),
    }
}

fn other_format(format: u32) -> LineProblem {
    let reason = format!("the line has the form {format}; this hookstead reads {FORMAT}");
    LineProblem::new(
        "other-format",
        reason,
        "import it with the version of hookstead that exported it, or a newer one",
    )
}

/// A line without a body says since when.
fn erased(line: &EventLine) -> Result<ParsedLine, LineProblem> {
    match line.erased_at {
        Some(_) => Ok(ParsedLine::Erased),
        None => Err(LineProblem::field("body_base64", "there is no body, and it was not erased")),
    }
}

fn body_of(line: &EventLine, base64: &str) -> Result<Bytes, LineProblem> {
    let body = STANDARD.decode(base64).map_err(|error| LineProblem::field("body_base64", error))?;
    let digest = Digest::of(&body);
    if digest.to_string() != line.digest || body.len() as u64 != line.bytes {
        let (bytes, said) = (body.len(), line.bytes);
        let reason = format!(
            "the body is not the one that was exported: {bytes} bytes with the digest {digest}, and the line says {said} \
             bytes with {}",
            shortened(&line.digest)
        );
        return Err(LineProblem::new("digest", reason, EXPORT_AGAIN));
    }
    Ok(body.into())
}

/// As much as a digest has.
fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}

fn source_of(line: &EventLine, inbox: &Inbox, body_bytes: usize) -> Result<Arc<Source>, LineProblem> {
    let name: hookstead::SourceName =
        line.source.parse().map_err(|error| LineProblem::field("source", error))?;
    let source = inbox.source(name.as_str()).ok_or_else(|| {
        let reason = format!("no source `{name}` is configured here");
        LineProblem::new("source-not-configured", reason, "add it under this name: hookstead sources add")
    })?;
    let bytes_max = source.body_bytes_max();
    if body_bytes as u64 > bytes_max {
        let reason = format!("the body has {body_bytes} bytes, and source `{name}` takes {bytes_max}");
        return Err(LineProblem::new(
            "too-large",
            reason,
            "raise the largest body of the source in the configuration",
        ));
    }
    Ok(source)
}

fn unusable(field: &str, error: &IdentityError) -> LineProblem {
    LineProblem::field(field, error)
}

/// Bytes that stand as text, or in base64 where they are none.
fn base64_or_text(
    name: &str,
    text: Option<String>,
    base64: Option<String>,
) -> Result<Option<Vec<u8>>, LineProblem> {
    match (text, base64) {
        (None, None) => Ok(None),
        (Some(text), None) => Ok(Some(text.into_bytes())),
        (None, Some(base64)) => STANDARD
            .decode(base64)
            .map(Some)
            .map_err(|error| LineProblem::field(&format!("{name}_base64"), error)),
        (Some(_), Some(_)) => Err(LineProblem::field(name, "given twice, as text and in base64")),
    }
}

/// Also one in the future: the clock that was ahead may be that of the machine which accepted the event, and then the
/// event can be taken over in no other way.
fn received_at(text: &str) -> Result<Timestamp, LineProblem> {
    let parsed: jiff::Timestamp = text.parse().map_err(|error| LineProblem::field("received_at", error))?;
    let at = Timestamp::from_micros(parsed.as_microsecond());
    if at < Timestamp::default() {
        return Err(LineProblem::new(
            "time",
            format!("`received_at`: `{at}` lies before 1970"),
            EXPORT_AGAIN,
        ));
    }
    Ok(at)
}

/// The query and the fields, every one of which must be one that a request can have.
fn headers(query: Option<&[u8]>, fields: &[HeaderField]) -> Result<RawHeaders, LineProblem> {
    let query = query.map(RawQuery::new).transpose().map_err(|error| LineProblem::field("query", error))?;
    let mut read = Vec::with_capacity(fields.len());
    for HeaderField { name, value, value_base64 } in fields {
        let value = base64_or_text("headers", value.clone(), value_base64.clone())?;
        read.push((
            name.as_str(),
            value.ok_or_else(|| LineProblem::field("headers", "a field has no value"))?,
        ));
    }
    let headers = RawHeaders::from_request(query, read.iter().map(|(name, value)| (*name, value.as_slice())));
    if !headers.fields().eq(read.iter().map(|(name, value)| (*name, value.as_slice()))) {
        return Err(LineProblem::field("headers", "a name or a value that no request can have"));
    }
    match headers.as_block().len() {
        bytes if bytes > IMPORT_HEADERS_BYTES_MAX => {
            Err(LineProblem::field("headers", format!("{bytes} bytes, more than {IMPORT_HEADERS_BYTES_MAX}")))
        }
        _ => Ok(headers),
    }
}

fn bounded(name: &str, text: Option<String>) -> Result<Option<String>, LineProblem> {
    match text.as_ref().map_or(0, String::len) {
        bytes if bytes > IDENTITY_PART_BYTES_MAX => {
            Err(LineProblem::field(name, format!("{bytes} bytes, more than {IDENTITY_PART_BYTES_MAX}")))
        }
        _ => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = b"{\"a\":1}\n\xff";

    fn inbox() -> Inbox {
        Inbox::builder().source(Source::recorded("conf".parse().unwrap())).open().unwrap()
    }

    fn line() -> String {
        serde_json::json!({
            "format": FORMAT, "id": "x", "seq": 1, "source": "conf", "provider_event_id": null,
            "provider_event_id_base64": "/w==", "scope_base64": "NDI=", "type": "t", "account": null,
            "received_from": "::1", "verified_by": null, "received_at": "2026-01-01T00:00:00.5Z",
            "committed_at": "2026-01-01T00:00:01Z", "digest": Digest::of(BODY).to_string(), "bytes": BODY.len(),
            "erased_at": null, "headers": [{ "name": "a", "value": null, "value_base64": "/w==" }],
            "body_base64": STANDARD.encode(BODY), "what another version adds": [1],
        })
        .to_string()
    }

    fn event(line: &str) -> Import {
        match parse_line(line.as_bytes(), &inbox()).unwrap() {
            ParsedLine::Event(event) => *event,
            ParsedLine::Erased => panic!("an event"),
        }
    }

    #[test]
    fn what_an_inbox_takes_from_a_request_is_taken_whatever_its_length_and_time() {
        let (kind, account) = ("t".repeat(60_000), "a".repeat(60_000));
        let mut long: serde_json::Value = serde_json::from_str(&line()).unwrap();
        long["type"] = kind.as_str().into();
        long["account"] = account.as_str().into();
        long["received_at"] = "2099-01-01T00:00:00Z".into();
        let event = event(&long.to_string());
        assert_eq!((event.event_type, event.account), (Some(kind), Some(account)));
        assert_eq!(event.received_at.to_string(), "2099-01-01T00:00:00Z");
    }

    #[test]
    fn bytes_that_are_no_text_come_back() {
        let event = event(&line());
        assert_eq!((event.id.as_bytes(), event.scope.as_bytes()), (&b"\xff"[..], &b"42"[..]));
        assert_eq!(event.headers.fields().collect::<Vec<_>>(), [("a", &b"\xff"[..])]);
        assert_eq!((&event.body[..], event.received_at.to_string()), (BODY, "2026-01-01T00:00:00.5Z".into()));
    }

    /// A line that was damaged anywhere is refused, or it is an event with the bytes that were exported.
    #[test]
    fn no_changed_bit_gives_another_body() {
        let (inbox, good) = (inbox(), line().into_bytes());
        let mut refused = 0;
        for bit in 0..good.len() * 8 {
            let mut spoilt = good.clone();
            spoilt[bit / 8] ^= 1 << (bit % 8);
            match parse_line(&spoilt, &inbox) {
                Ok(ParsedLine::Event(event)) => assert_eq!(&event.body[..], BODY, "bit {bit}"),
                Ok(ParsedLine::Erased) => panic!("bit {bit}: the body was not erased"),
                Err(problem) => {
                    assert!(!problem.reason.is_empty() && !problem.fix.is_empty());
                    refused += 1;
                }
            }
        }
        assert!(refused > good.len(), "{refused} of {}", good.len() * 8);
    }

    #[test]
    fn a_line_that_ends_anywhere_is_cut_off() {
        let (inbox, good) = (inbox(), line().into_bytes());
        for end in 1..good.len() {
            let problem = parse_line(&good[..end], &inbox).unwrap_err();
            assert_eq!(problem.code, "cut-off", "after {end} bytes");
        }
    }
}
