//! The header fields of a push: the provider's own, ours beside them.
//!
//! What belongs to the connection that the event came by, and what is a secret between the sender and
//! hookstead, stays behind. Where a name is ours, ours wins and the original moves aside, so that nobody
//! outside can pass something off as hookstead's word.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use http::{Request, Uri};

use super::signature::{Signer, SigningSecret};
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

/// Room for the fields of most pushes, so that the map is not moved while it grows.
const FIELDS_USUAL: usize = 32;

/// What all requests to one destination have in common, made once.
pub(super) struct Shape {
    uri: Uri,
    host: HeaderValue,
    signer: Signer,
}

impl Shape {
    /// The shape of requests to a URL, signed with these secrets.
    pub(super) fn new(url: &PushUrl, secrets: &[SigningSecret]) -> Result<Self, http::Error> {
        let (uri, host) = (url.target().parse()?, HeaderValue::from_str(&url.authority())?);
        Ok(Self { uri, host, signer: Signer::new(secrets) })
    }

    /// The whole request.
    pub(super) fn request<B>(&self, outgoing: &Outgoing, body: B) -> Request<B> {
        let mut request = Request::new(body);
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.uri.clone();
        let mut fields = HeaderMap::with_capacity(FIELDS_USUAL);
        fields.insert(HOST, self.host.clone());
        fields.insert(CONTENT_LENGTH, outgoing.body.len().into()); // hyper names none for an empty body
        pass_on(&mut fields, outgoing);
        self.set_own(&mut fields, outgoing);
        fields.entry(USER_AGENT).or_insert(const { HeaderValue::from_static(AGENT) });
        *request.headers_mut() = fields;
        request
    }

    fn set_own(&self, fields: &mut HeaderMap, outgoing: &Outgoing) {
        let (key, event) = (outgoing.lease.idempotency_key.as_str(), &outgoing.event);
        let signature = self.signer.sign(key, outgoing.now, &outgoing.body);
        if let Some(key) = value(key.to_owned()) {
            fields.insert(IDEMPOTENCY_KEY, key.clone());
            fields.insert(WEBHOOK_ID, key);
        }
        fields.insert(WEBHOOK_TIMESTAMP, outgoing.now.as_secs().into());
        fields.insert(HOOKSTEAD_ATTEMPT, outgoing.attempt.into());
        if let Some(query) = query(outgoing) {
            fields.insert(HOOKSTEAD_QUERY, query);
        }
        for (name, text) in [
            (WEBHOOK_SIGNATURE, signature),
            (HOOKSTEAD_EVENT, event.id.to_string()),
            (HOOKSTEAD_SOURCE, outgoing.source.as_str().to_owned()),
            (HOOKSTEAD_RECEIVED_AT, event.received_at.to_string()),
        ] {
            if let Some(value) = value(text) {
                fields.insert(name, value);
            }
        }
    }
}

/// Who pushes, unless the sender said who it is.
const AGENT: &str = concat!("hookstead/", env!("CARGO_PKG_VERSION"));

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
const HOOKSTEAD_EVENT: HeaderName = HeaderName::from_static("hookstead-event");
const HOOKSTEAD_SOURCE: HeaderName = HeaderName::from_static("hookstead-source");
const HOOKSTEAD_ATTEMPT: HeaderName = HeaderName::from_static("hookstead-attempt");
const HOOKSTEAD_QUERY: HeaderName = HeaderName::from_static("hookstead-query");
const HOOKSTEAD_RECEIVED_AT: HeaderName = HeaderName::from_static("hookstead-received-at");

fn pass_on(fields: &mut HeaderMap, outgoing: &Outgoing) {
    let original = &outgoing.event.headers;
    let named = original.fields().filter(|(name, _)| name.eq_ignore_ascii_case("connection"));
    let of_connection: Vec<String> = named.flat_map(|(_, value)| tokens(value)).collect();
    for (name, value) in original.fields() {
        // A field that HTTP cannot carry cannot have come by HTTP; there is nothing to pass on. The name is in lower
        // case from here on.
        let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else { continue };
        if LEFT_BEHIND.contains(&name.as_str()) || of_connection.iter().any(|left| left == name.as_str()) {
            continue;
        }
        // The bytes stay where they are: a value is a piece of the block.
        let Ok(value) = HeaderValue::from_maybe_shared(original.as_block().slice_ref(value)) else {
            continue;
        };
        let is_own = OWN.contains(&name.as_str()) || name.as_str().starts_with(OWN_PREFIX);
        let name = if is_own { HeaderName::try_from(format!("{MOVED}{name}")) } else { Ok(name) };
        if let Ok(name) = name {
            fields.append(name, value);
        }
    }
}

/// The query that the event came with; its bytes stay where they are, like the values of fields.
fn query(outgoing: &Outgoing) -> Option<HeaderValue> {
    let headers = &outgoing.event.headers;
    let query = headers.query()?.as_bytes();
    HeaderValue::from_maybe_shared(headers.as_block().slice_ref(query)).ok()
}

/// The field names in a `Connection` field.
fn tokens(value: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(value).to_ascii_lowercase();
    text.split(',').map(|token| token.trim().to_owned()).collect()
}

/// Every value that is set here is visible ASCII: ids, names, numbers, times and base64.
fn value(text: String) -> Option<HeaderValue> {
    let value = HeaderValue::from_maybe_shared(Bytes::from(text));
    debug_assert!(value.is_ok(), "a value of ours is visible ASCII");
    value.ok()
}
