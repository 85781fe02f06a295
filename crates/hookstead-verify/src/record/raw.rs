//! A record as it is written: the keys of `providers/*.toml`, one struct a table.
//!
//! Every table refuses keys that it does not know. Values with a place in the file are kept with it
//! (`Spanned`), so that what is found wrong later still points at its line.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor, value::SeqAccessDeserializer};
use toml::Spanned;

use crate::provider::{ChosenBy, Confidence, Order, Processor};
use crate::scheme::{Compare, Encoding, Hash};
use crate::wire::time::Unit;

/// A text, or a list of texts, with its place.
pub(crate) type Texts = Spanned<OneOrMany>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) docs: String,
    pub(crate) confidence: Confidence,
    #[serde(default)]
    pub(crate) notes: String,
    #[serde(default = "post")]
    pub(crate) methods: Vec<String>,
    #[serde(default)]
    pub(crate) order: Order,
    pub(crate) payload: Option<Spanned<String>>,
    /// Names of values that a source has to give, each with what it is.
    #[serde(default)]
    pub(crate) conf: BTreeMap<String, String>,
    /// Whether `form.NAME` reads multipart forms too. Only where no scheme signs `form` as a whole.
    #[serde(default)]
    pub(crate) multipart: bool,
    /// Named templates.
    #[serde(default, rename = "let")]
    pub(crate) lets: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) body: Body,
    pub(crate) scheme: Vec<Spanned<Scheme>>,
    #[serde(default)]
    pub(crate) secret: SecretRules,
    #[serde(default)]
    pub(crate) event: Event,
    #[serde(default)]
    pub(crate) handshake: Vec<Handshake>,
    #[serde(default)]
    pub(crate) retry: Retry,
    #[serde(default)]
    pub(crate) ack: Ack,
    #[serde(default)]
    pub(crate) run: Run,
    #[serde(default)]
    pub(crate) sample: Vec<Sample>,
}

/// What a processing run reads from a body.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Run {
    pub(crate) processor: Option<Processor>,
}

fn post() -> Vec<String> {
    vec!["POST".to_owned()]
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Body {
    pub(crate) bytes_min: Option<u64>,
    pub(crate) bytes_max: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scheme {
    pub(crate) kind: Kind,
    pub(crate) hash: Option<Hash>,
    pub(crate) alg: Option<Algorithm>,
    /// The algorithms that a JWT may name.
    #[serde(default)]
    pub(crate) algs: Vec<JwtAlgorithm>,
    pub(crate) sig: Option<Signature>,
    pub(crate) content: Option<Texts>,
    pub(crate) separator: Option<Separator>,
    #[serde(default)]
    pub(crate) key: Key,
    pub(crate) keysource: Option<KeySource>,
    /// Where the array is whose items carry a proof each.
    pub(crate) each: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) claims: BTreeMap<String, OneOrMany>,
    #[serde(default)]
    pub(crate) claims_if_body: BTreeMap<String, OneOrMany>,
    #[serde(default)]
    pub(crate) require: Vec<String>,
    #[serde(default)]
    pub(crate) leeway: u32,
    #[serde(default)]
    pub(crate) ignore_pad: bool,
    pub(crate) timestamp: Option<Timestamp>,
    #[serde(default)]
    pub(crate) checks: BTreeMap<String, String>,
    /// Templates that must equal a value of the source's configuration, by its name, unless that is `any`.
    #[serde(default)]
    pub(crate) pins: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) when: When,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Hmac,
    Hash,
    Ed25519,
    Ecdsa,
    Rsa,
    Jwt,
    Token,
    Basic,
    None,
}

/// A signature algorithm with a public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum Algorithm {
    #[serde(rename = "ed25519")]
    Ed25519,
    #[serde(rename = "ecdsa-p256-sha1")]
    EcdsaP256Sha1,
    #[serde(rename = "ecdsa-p256-sha256")]
    EcdsaP256Sha256,
    #[serde(rename = "rsa-pkcs1-sha1")]
    RsaSha1,
    #[serde(rename = "rsa-pkcs1-sha256")]
    RsaSha256,
    #[serde(rename = "rsa-pkcs1-sha512")]
    RsaSha512,
}

/// An algorithm of RFC 7518, or EdDSA of RFC 8037.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum JwtAlgorithm {
    HS256,
    HS384,
    HS512,
    RS256,
    ES256,
    EdDSA,
}

/// Where the keys are that the provider publishes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeySource {
    pub(crate) from: KeyForm,
    pub(crate) kid: Option<String>,
    pub(crate) url: Option<String>,
    #[serde(default)]
    pub(crate) hosts: Vec<String>,
    #[serde(default)]
    pub(crate) suffix: String,
    /// For keys that are fetched one by one: the place of the key in the answer.
    pub(crate) pointer: Option<String>,
}

/// What a document with keys is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum KeyForm {
    #[serde(rename = "jwks")]
    Jwks,
    #[serde(rename = "keyid")]
    KeyId,
    #[serde(rename = "cert_url")]
    CertUrl,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Signature {
    pub(crate) at: OneOrMany,
    #[serde(default)]
    pub(crate) encoding: Encoding,
    #[serde(default)]
    pub(crate) compare: Compare,
    #[serde(default)]
    pub(crate) prefix: String,
    #[serde(default)]
    pub(crate) prefix_ci: bool,
    pub(crate) groups: Option<String>,
    pub(crate) items: Option<String>,
    pub(crate) kv: Option<String>,
    #[serde(default)]
    pub(crate) field: OneOrMany,
    #[serde(default)]
    pub(crate) positional: BTreeMap<String, usize>,
    #[serde(default)]
    pub(crate) from: usize,
    #[serde(default)]
    pub(crate) multi: bool,
    /// Fields that stand beside the signature when we sign.
    #[serde(default)]
    pub(crate) beside: BTreeMap<String, String>,
    /// The text is a JSON object in base64, and its members are the fields.
    pub(crate) wrap: Option<Wrap>,
    /// Whether other spellings of the same bytes count; for senders without a record, whose habits nobody wrote
    /// down.
    #[serde(skip)]
    pub(crate) any_spelling: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Wrap {
    Base64Json,
}

/// What stands between the values of `content`, and so may not stand in them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Separator {
    pub(crate) text: String,
    /// Variables that may hold it all the same.
    #[serde(default)]
    pub(crate) free: OneOrMany,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Key {
    #[serde(default)]
    pub(crate) strip: Vec<String>,
    pub(crate) decode: Option<Coding>,
    pub(crate) decode_unprefixed: Option<Coding>,
    #[serde(default)]
    pub(crate) append: String,
    pub(crate) digest: Option<Hash>,
    pub(crate) normalize: Option<Normal>,
}

/// A normal form of Unicode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum Normal {
    #[serde(rename = "NFKD")]
    Nfkd,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Coding {
    /// The bytes of the text.
    #[default]
    Utf8,
    Base64,
    Hex,
    /// A public key in PEM.
    Pem,
    /// The DER of a `SubjectPublicKeyInfo` in base64, without the lines of PEM.
    SpkiBase64,
    /// The 32 bytes of an Ed25519 key in hex digits.
    RawHex,
    /// The same in base64.
    RawBase64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Timestamp {
    pub(crate) from: Spanned<String>,
    #[serde(default = "seconds")]
    pub(crate) unit: Unit,
    #[serde(default)]
    pub(crate) canonical: bool,
    pub(crate) tolerance: Bound,
    pub(crate) future: Option<Bound>,
    #[serde(default)]
    pub(crate) exclusive: bool,
}

fn seconds() -> Unit {
    Unit::Seconds
}

/// Seconds, or `"unbounded"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bound(pub(crate) Option<u32>);

impl<'de> Deserialize<'de> for Bound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Bound;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("seconds, or \"unbounded\"")
            }

            fn visit_i64<E: serde::de::Error>(self, seconds: i64) -> Result<Bound, E> {
                u32::try_from(seconds).map(|seconds| Bound(Some(seconds))).map_err(E::custom)
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Bound, E> {
                if word == "unbounded" {
                    Ok(Bound(None))
                } else {
                    Err(E::custom("write seconds, or `unbounded`"))
                }
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct When {
    #[serde(default)]
    pub(crate) method: OneOrMany,
    #[serde(default)]
    pub(crate) present: Vec<String>,
    #[serde(default)]
    pub(crate) absent: Vec<String>,
    #[serde(default)]
    pub(crate) equals: BTreeMap<String, OneOrMany>,
    #[serde(default)]
    pub(crate) prefix: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) contains: BTreeMap<String, String>,
    /// JSON pointers of arrays that have nothing in them.
    #[serde(default)]
    pub(crate) empty: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SecretRules {
    pub(crate) bytes_min: Option<usize>,
    #[serde(default)]
    pub(crate) prefix: String,
    #[serde(default)]
    pub(crate) place: String,
    #[serde(default)]
    pub(crate) env: String,
    pub(crate) chosen_by: Option<ChosenBy>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Event {
    pub(crate) id: Option<Texts>,
    #[serde(default)]
    pub(crate) id_covered: bool,
    pub(crate) id_form: Option<Spanned<IdForm>>,
    pub(crate) scope: Option<Spanned<String>>,
    #[serde(rename = "type")]
    pub(crate) kind: Option<Texts>,
    pub(crate) account: Option<Texts>,
    #[serde(default)]
    pub(crate) volatile: BTreeMap<Spanned<String>, Confidence>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IdForm {
    pub(crate) first: String,
    pub(crate) rest: String,
    pub(crate) bytes_max: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Handshake {
    pub(crate) name: Spanned<String>,
    #[serde(default)]
    pub(crate) when: When,
    pub(crate) auth: Auth,
    #[serde(default)]
    pub(crate) check: BTreeMap<String, String>,
    /// The status if a check fails.
    #[serde(default = "forbidden")]
    pub(crate) fail: u16,
    /// The secret that the provider hands over.
    pub(crate) store: Option<String>,
    /// The address to call, which must be on one of `fetch_hosts`.
    pub(crate) fetch: Option<String>,
    #[serde(default)]
    pub(crate) fetch_hosts: Vec<String>,
    pub(crate) respond: Respond,
}

fn forbidden() -> u16 {
    403
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Auth {
    None,
    Signature,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Respond {
    pub(crate) status: u16,
    #[serde(rename = "type")]
    pub(crate) content_type: Option<String>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) body: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Retry {
    pub(crate) automatic: Option<bool>,
    pub(crate) same_id: Option<bool>,
    pub(crate) same_bytes: Option<bool>,
    pub(crate) resigned: Option<bool>,
    pub(crate) horizon_s: Option<u64>,
    #[serde(default)]
    pub(crate) note: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ack {
    #[serde(default)]
    pub(crate) success: Vec<u16>,
    pub(crate) body: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) timeout_s: Option<u32>,
    /// The status that this provider wants for a signature that does not hold.
    pub(crate) reject: Option<u16>,
    /// The body that it wants then.
    pub(crate) reject_body: Option<String>,
    pub(crate) confidence: Option<Confidence>,
    #[serde(default)]
    pub(crate) note: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sample {
    pub(crate) event: String,
    #[serde(default = "json")]
    pub(crate) content_type: String,
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) before: String,
    #[serde(default)]
    pub(crate) after: String,
    pub(crate) body: String,
}

fn json() -> String {
    "application/json".to_owned()
}

/// A text or a list of texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OneOrMany(pub(crate) Vec<String>);

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = OneOrMany;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text or a list of texts")
            }

            fn visit_str<E>(self, text: &str) -> Result<OneOrMany, E> {
                Ok(OneOrMany(vec![text.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<OneOrMany, A::Error> {
                let texts = Vec::<String>::deserialize(SeqAccessDeserializer::new(list))?;
                if texts.is_empty() {
                    Err(A::Error::custom("the list is empty"))
                } else {
                    Ok(OneOrMany(texts))
                }
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl From<&str> for OneOrMany {
    fn from(text: &str) -> Self {
        Self(vec![text.to_owned()])
    }
}
