//! What a program is told in its environment.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use crate::sink::contract::Outgoing;

/// What programs inherit of hookstead's own environment.
pub(super) const INHERITED: &[&str] = &["HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ"];

/// What a program is told beside the body. A fact that the event does not have, or that holds a NUL byte and
/// so cannot stand in an environment, is left out.
pub(super) fn facts(outgoing: &Outgoing) -> Vec<(&'static str, OsString)> {
    let event = &outgoing.event;
    let text = |text: String| Some(OsString::from(text));
    let bytes = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    let facts = [
        ("HOOKSTEAD_EVENT", text(event.id.to_string())),
        ("HOOKSTEAD_SOURCE", text(outgoing.source.to_string())),
        ("HOOKSTEAD_TYPE", event.event_type.clone().map(OsString::from)),
        ("HOOKSTEAD_PROVIDER_ID", Some(bytes(event.identity.id.as_bytes()))),
        ("HOOKSTEAD_CONTENT_TYPE", event.headers.value("content-type").map(bytes)),
        ("HOOKSTEAD_QUERY", event.headers.query().map(|query| bytes(query.as_bytes()))),
        ("HOOKSTEAD_IDEMPOTENCY_KEY", text(outgoing.lease.idempotency_key.clone())),
        ("HOOKSTEAD_ATTEMPT", text(outgoing.attempt.to_string())),
        ("HOOKSTEAD_RECEIVED_AT", text(event.received_at.to_string())),
    ];
    let present = facts.into_iter().filter_map(|(name, value)| Some((name, value?)));
    present.filter(|(_, value)| !value.as_bytes().contains(&0)).collect()
}
