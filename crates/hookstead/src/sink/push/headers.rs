//! The header fields of a push: the provider's own, ours beside them.
//!
//! What belongs to the connection that the event came by, and what is a secret between the sender and
//! hookstead, stays behind. Where a name is ours, ours wins and the original moves aside, so that nobody
//! outside can pass something off as hookstead's word.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::uri::InvalidUri;
use http::{Request, Uri};

use super::signature::{SigningSecret, sign};
use super::url::PushUrl;
use crate::sink::contract::Outgoing;

/// In front of the name of an original field whose name is ours.
const MOVED: &str = "hookstead-original-";

/// In front of what is hookstead's word alone.
const OWN_PREFIX: &str = "hookstead-";

/// Names that every push sets.
const OWN: &[&str] = &["idempotency-key", "webhook-id", "webhook-signature", "webhook-timestamp"];

/// Fields of the connection or the message frame, of the sender's negotiation about an answer that hookstead
/// has given, and of the sender's secrets.
const LEFT_BEHIND: &[&str] = &[
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The whole request.
pub(super) fn request<B>(
    url: &PushUrl,
    secrets: &[SigningSecret],
    outgoing: &Outgoing,
    body: B,
) -> Result<Request<B>, InvalidUri> {
    let mut request = Request::new(body);
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = url.target().parse::<Uri>()?;
    let fields = request.headers_mut();
    set(fields, "host", &url.authority());
    set(fields, "content-length", &outgoing.body.len().to_string()); // hyper names none for an empty body
    pass_on(fields, outgoing);
    set_own(fields, secrets, outgoing);
    if !fields.contains_key("user-agent") {
        set(fields, "user-agent", concat!("hookstead/", env!("CARGO_PKG_VERSION")));
    }
    Ok(request)
}

fn pass_on(fields: &mut HeaderMap, outgoing: &Outgoing) {
    let original = &outgoing.event.headers;
    let named = original.fields().filter(|(name, _)| name.eq_ignore_ascii_case("connection"));
    let of_connection: Vec<String> = named.flat_map(|(_, value)| tokens(value)).collect();
    for (name, value) in original.fields() {
        let name = name.to_ascii_lowercase();
        if LEFT_BEHIND.contains(&name.as_str()) || of_connection.contains(&name) {
            continue;
        }
        let is_own = OWN.contains(&name.as_str()) || name.starts_with(OWN_PREFIX);
        let name = if is_own { format!("{MOVED}{name}") } else { name };
        // A field that HTTP cannot carry cannot have come by HTTP; there is nothing to pass on.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_bytes(value)) {
            fields.append(name, value);
        }
    }
}

/// The field names in a `Connection` field.
fn tokens(value: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(value).to_ascii_lowercase();
    text.split(',').map(|token| token.trim().to_owned()).collect()
}

fn set_own(fields: &mut HeaderMap, secrets: &[SigningSecret], outgoing: &Outgoing) {
    let key = outgoing.lease.idempotency_key.as_str();
    set(fields, "idempotency-key", key);
    set(fields, "webhook-id", key);
    set(fields, "webhook-timestamp", &outgoing.now.as_secs().to_string());
    set(fields, "webhook-signature", &sign(secrets, key, outgoing.now, &outgoing.body));
    set(fields, "hookstead-event", &outgoing.event.id.to_string());
    set(fields, "hookstead-source", outgoing.source.as_str());
    set(fields, "hookstead-attempt", &outgoing.attempt.to_string());
    set(fields, "hookstead-received-at", &outgoing.event.received_at.to_string());
}

/// Every value that is set here is visible ASCII: ids, names, numbers, times, base64 and a parsed host.
fn set(fields: &mut HeaderMap, name: &'static str, value: &str) {
    let value = HeaderValue::from_str(value);
    debug_assert!(value.is_ok(), "`{name}` is visible ASCII");
    if let Ok(value) = value {
        fields.insert(HeaderName::from_static(name), value);
    }
}
