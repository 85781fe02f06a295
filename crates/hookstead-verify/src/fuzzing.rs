//! What the fuzz targets of `fuzz/` call: every way in which bytes of strangers reach this crate, with what must hold
//! whatever the bytes are. Each function panics if it does not. It is there only with the feature `fuzzing`, promises
//! nothing to anybody else, and proves no request: nothing here gives out a [`Verified`](crate::Verified).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::identity::EVENT_ID_BYTES_MAX;
use crate::keys::{KeyFormat, KeyPlace, PublishedKeys};
use crate::provider::Provider;
use crate::registry::Registry;
use crate::request::Request;
use crate::secret::Secret;
use crate::template::{Context, Template};
use crate::vector::Vector;
use crate::verdict::Reason;
use crate::verifier::{Verified, Verifier, VerifyOptions};

/// What stands before a request in an input: which source it is for, and how many seconds later it comes.
const HEAD_BYTES: usize = 2 + 4;

/// Longest body that becomes a seed, in bytes: a mutation of a longer one seldom changes what is read of it.
const SEED_BODY_BYTES_MAX: usize = 4 * 1024;

/// Sources of every provider, as the vectors describe them.
pub struct Requests(Vec<Setup>);

struct Setup {
    verifier: Verifier,
    now: i64,
}

/// A request that is read from an input.
struct Parts<'a> {
    method: Cow<'a, str>,
    target: Cow<'a, str>,
    headers: Vec<(&'a [u8], &'a [u8])>,
    body: &'a [u8],
}

impl Requests {
    /// The sources of these vectors, and an input for each of them: its request, at its time. Those that describe no
    /// source are left out.
    pub fn new(vectors: &[Vector]) -> (Self, Vec<Vec<u8>>) {
        let (mut setups, mut seeds) = (Vec::new(), Vec::new());
        for vector in vectors {
            let Ok(verifier) = vector.verifier(Registry::builtin()) else { continue };
            let body = vector.body().unwrap_or_default();
            if let Ok(index) = u16::try_from(setups.len())
                && body.len() <= SEED_BODY_BYTES_MAX
            {
                seeds.push([&index.to_be_bytes()[..], &[0; 4], &written(vector, &body)].concat());
            }
            setups.push(Setup { verifier, now: vector.now_micros() });
        }
        (Self(setups), seeds)
    }

    /// Judges the request of an input, and reads of it what is read of a proved one.
    pub fn run(&self, input: &[u8]) {
        let Some((head, rest)) = input.split_first_chunk::<HEAD_BYTES>() else { return };
        let [source_high, source_low, later @ ..] = *head;
        let source = usize::from(u16::from_be_bytes([source_high, source_low]));
        let setup = &self.0[source % self.0.len()];
        let now = setup.now.saturating_add(i64::from(i32::from_be_bytes(later)) * 1_000_000);
        let parts = Parts::read(rest);
        let request = parts.request();
        match setup.verifier.verify(&request, now) {
            Ok(verified) => read_all(&verified),
            Err(rejection) => {
                assert!(!rejection.to_string().is_empty());
                assert_eq!(Reason::from_code(rejection.reason.code()), Some(rejection.reason));
            }
        }
        if let Some(answer) = setup.verifier.handshake(&request) {
            assert!((100..1000).contains(&answer.status), "{answer:?}");
        }
        setup.verifier.as_if_proved(request, now, read_all);
    }
}

/// What is read of a request once it is proved.
fn read_all(verified: &Verified<'_>) {
    verified.handshake();
    if let Ok(event) = verified.identify() {
        let id = event.event_id.as_deref();
        assert!(id.is_none_or(|id| !id.trim_ascii().is_empty()), "a blank id");
        assert!(
            id.is_none_or(|id| id.len() <= EVENT_ID_BYTES_MAX),
            "an id of {:?} bytes",
            id.map(<[u8]>::len)
        );
    }
    let (provider, body) = (verified.provider(), verified.request().body);
    assert_eq!(provider.comparison_digest(body), provider.comparison_digest(body));
}

fn written(vector: &Vector, body: &[u8]) -> Vec<u8> {
    let (method, target, headers) = vector.head();
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    [format!("{method} {target}\n{lines}\n").as_bytes(), body].concat()
}

impl<'a> Parts<'a> {
    /// A line with method and target, a line for each header, an empty line, the body.
    fn read(text: &'a [u8]) -> Self {
        let (first, mut rest) = line(text);
        let space = first.iter().position(|byte| *byte == b' ').unwrap_or(first.len());
        let (method, target) = (&first[..space], first.get(space + 1..).unwrap_or_default());
        let mut headers = Vec::new();
        loop {
            let (field, after) = line(rest);
            rest = after;
            if field.is_empty() {
                break;
            }
            let colon = field.windows(2).position(|pair| pair == b": ").unwrap_or(field.len());
            headers.push((&field[..colon], field.get(colon + 2..).unwrap_or_default()));
        }
        let text = String::from_utf8_lossy;
        Self { method: text(method), target: text(target), headers, body: rest }
    }

    fn request(&self) -> Request<'_> {
        Request {
            method: &self.method,
            target: &self.target,
            url: None,
            headers: &self.headers,
            body: self.body,
        }
    }
}

/// The text up to a line feed, and what comes after it.
fn line(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
    (&text[..end], text.get(end + 1..).unwrap_or_default())
}

/// A template, a NUL, and a request that it is resolved over.
pub fn template(input: &[u8]) {
    let end = input.iter().position(|byte| *byte == 0).unwrap_or(input.len());
    let Ok(text) = std::str::from_utf8(&input[..end]) else { return };
    for template in [text.parse::<Template>(), Template::from_selector(text)] {
        let template = match template {
            Ok(template) => template,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                continue;
            }
        };
        let parts = Parts::read(input.get(end + 1..).unwrap_or_default());
        let conf = BTreeMap::from([("account".to_owned(), "acct_1".to_owned())]);
        let context = Context {
            conf: Some(&conf),
            registered_url: Some("https://example.com/in/x"),
            ..Context::of(parts.request())
        };
        let resolve = || template.resolve(&context).map(|pieces| pieces.concat());
        assert_eq!(resolve(), resolve(), "`{template}`");
    }
}

/// The record of a provider, and what such a provider makes of a request of its own.
pub fn record(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let provider = match Provider::parse("fuzzed", text) {
        Ok(provider) => Arc::new(provider),
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let facts = (provider.schemes().count(), provider.id_templates(), provider.type_templates());
    assert!(facts.0 > 0, "a record without a scheme");
    let secret = Secret::new("0123456789abcdef0123456789abcdef").expect("a secret of this length is one");
    let secrets = if provider.needs_secret() { vec![secret] } else { Vec::new() };
    let options =
        VerifyOptions { url: Some("https://example.com/in/x".to_owned()), ..VerifyOptions::default() };
    let Ok(verifier) = Verifier::new(provider, &secrets, options) else { return };
    let headers = [("content-type", "application/json"), ("x-signature", "sha256=00"), ("x-id", "1")];
    let body = br#"{"id":"evt_1","type":"order.paid","items":[{"id":1}]}"#;
    let request = Request { method: "POST", target: "/in/x?id=1", url: None, headers: &headers, body };
    let now = 1_760_000_000_000_000;
    if let Ok(verified) = verifier.verify(&request, now) {
        read_all(&verified);
    }
    verifier.as_if_proved(request, now, read_all);
}

/// A document with public keys, of each format.
pub fn keys(input: &[u8]) {
    for format in [KeyFormat::Jwks, KeyFormat::Key, KeyFormat::Certificate] {
        let place = KeyPlace::of("fuzzed", format);
        for parsed in [place.parse(input), place.parse_key(input)] {
            match parsed {
                Ok(keys) => assert_ne!(keys, PublishedKeys::default(), "a document without a key"),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
}
