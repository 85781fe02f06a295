//! A provider out of a few keys, for senders that have no record: what a source writes as
//! `scheme = { hmac = "sha256", header = "x-sig", signed = "{timestamp}.{body}", timestamp = "x-ts" }`.
//!
//! Knows how the short keys translate into a record; what a record means is said elsewhere.

use serde::Deserialize;
use toml::Spanned;

use crate::provider::{Confidence, Provider};
use crate::record::{compile, raw};
use crate::scheme::{Compare, Encoding, Hash};
use crate::wire::time::Unit;

/// Seconds of tolerance for a signed time if the source does not say otherwise.
const TOLERANCE_S: u32 = 300;

/// A scheme in a source's own words. Exactly one of `hmac`, `token` and `basic` is set.
///
/// ```
/// use hookstead_verify::SchemeSpec;
///
/// let spec = SchemeSpec {
///     hmac: Some("sha256".into()),
///     header: Some("x-sig".into()),
///     prefix: Some("sha256=".into()),
///     signed: Some("{timestamp}.{body}".into()),
///     timestamp: Some("x-ts".into()),
///     id: Some("/id".into()),
///     ..SchemeSpec::default()
/// };
/// let provider = spec.provider("partner")?;
/// assert!(provider.has_timestamp() && provider.needs_secret());
/// # Ok::<(), hookstead_verify::SpecError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemeSpec {
    /// The hash of an HMAC: `sha1`, `sha256` or `sha512`.
    pub hmac: Option<String>,
    /// The header that carries a shared token.
    pub token: Option<String>,
    /// HTTP Basic authentication; the secret is `user:password`.
    #[serde(default)]
    pub basic: bool,
    /// The header that carries the signature of an HMAC.
    pub header: Option<String>,
    /// How the signature is written: `hex` (the default), `base64` or `base64url`. Either alphabet of base64 is
    /// read, with or without padding; the word says which one is written when we sign.
    pub encoding: Option<String>,
    /// What stands before the signature or the token; blanks between it and a signature do not count.
    pub prefix: Option<String>,
    /// What is signed, as a template; `{timestamp}` stands for the timestamp's header. `{body}` if not given.
    pub signed: Option<String>,
    /// The header that carries the signed time.
    pub timestamp: Option<String>,
    /// How the time is written: `s` (the default), `ms`, `rfc3339` or `http-date`.
    pub timestamp_unit: Option<String>,
    /// Seconds by which the time may be off in either direction; 300 if not given.
    pub tolerance_s: Option<u32>,
    /// How the secret is written: `utf8` (as it is, the default), `base64` or `hex`.
    pub key: Option<String>,
    /// Where the event id is: `/json/pointer`, `header:NAME` or a template.
    pub id: Option<String>,
}

/// Why a specification is no scheme.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("scheme: {0}")]
pub struct SpecError(String);

impl SchemeSpec {
    /// The provider that these keys describe.
    ///
    /// # Errors
    ///
    /// [`SpecError`] if keys are missing or do not belong together, and if the body or the time would not be
    /// covered by the signature.
    pub fn provider(&self, name: &str) -> Result<Provider, SpecError> {
        let scheme = match (&self.hmac, &self.token, self.basic) {
            (Some(hash), None, false) => self.hmac(hash)?,
            (None, Some(header), false) => self.token(header)?,
            (None, None, true) => self.basic()?,
            _ => return Err(error("write exactly one of `hmac`, `token` and `basic`")),
        };
        let id = self.id.as_deref().map(selector).transpose()?;
        let mut provider =
            compile(name, &record(name, scheme, id)).map_err(|misfit| SpecError(misfit.message))?;
        provider.id_covered = provider.has_id() && provider.id.iter().all(|id| provider.signs(id));
        Ok(provider)
    }

    fn hmac(&self, hash: &str) -> Result<raw::Scheme, SpecError> {
        let header =
            self.header.as_deref().ok_or_else(|| error("`hmac` needs `header`, the signature's header"))?;
        let signature = raw::Signature {
            at: format!("header.{header}").as_str().into(),
            encoding: self.encoding.as_deref().map_or(Ok(Encoding::Hex), |word| keyword("encoding", word))?,
            compare: Compare::Bytes,
            prefix: self.prefix.clone().unwrap_or_default(),
            any_spelling: true,
            ..raw::Signature::default()
        };
        let content = self.content()?;
        Ok(raw::Scheme {
            kind: raw::Kind::Hmac,
            hash: Some(keyword::<Hash>("hmac", hash)?),
            sig: Some(signature),
            content: Some(unplaced(content.as_str().into())),
            key: self.key()?,
            timestamp: self.timestamp()?,
            ..bare(raw::Kind::Hmac)
        })
    }

    /// The template of what is signed, which must cover the body and the time.
    fn content(&self) -> Result<String, SpecError> {
        let signed = self.signed.as_deref().unwrap_or("{body}");
        if !signed.contains("{body") {
            return Err(error("`signed` must cover the body: write `{body}` in it"));
        }
        match &self.timestamp {
            Some(header) if signed.contains("{timestamp}") => {
                Ok(signed.replace("{timestamp}", &format!("{{header.{header}}}")))
            }
            Some(_) => Err(error("`signed` must cover the time: write `{timestamp}` in it")),
            None if signed.contains("{timestamp}") => {
                Err(error("`{timestamp}` needs `timestamp`, the header's name"))
            }
            None if self.tolerance_s.is_some() || self.timestamp_unit.is_some() => {
                Err(error("`tolerance_s` and `timestamp_unit` need `timestamp`"))
            }
            None => Ok(signed.to_owned()),
        }
    }

    fn timestamp(&self) -> Result<Option<raw::Timestamp>, SpecError> {
        let Some(header) = &self.timestamp else { return Ok(None) };
        let unit = self
            .timestamp_unit
            .as_deref()
            .map_or(Ok(Unit::Seconds), |word| keyword("timestamp_unit", word))?;
        Ok(Some(raw::Timestamp {
            from: unplaced(format!("{{header.{header}}}")),
            unit,
            canonical: false,
            tolerance: raw::Bound(Some(self.tolerance_s.unwrap_or(TOLERANCE_S))),
            future: None,
            exclusive: false,
        }))
    }

    fn key(&self) -> Result<raw::Key, SpecError> {
        let decode = self.key.as_deref().map(|word| keyword("key", word)).transpose()?;
        Ok(raw::Key { decode, ..raw::Key::default() })
    }

    fn token(&self, header: &str) -> Result<raw::Scheme, SpecError> {
        self.refuse_hmac_keys()?;
        let signature = raw::Signature {
            at: format!("header.{header}").as_str().into(),
            prefix: self.prefix.clone().unwrap_or_default(),
            ..raw::Signature::default()
        };
        Ok(raw::Scheme { sig: Some(signature), ..bare(raw::Kind::Token) })
    }

    fn basic(&self) -> Result<raw::Scheme, SpecError> {
        self.refuse_hmac_keys()?;
        if self.prefix.is_some() {
            return Err(error("`prefix` has no meaning with `basic`"));
        }
        Ok(bare(raw::Kind::Basic))
    }

    /// A key that is ignored would be a false promise.
    fn refuse_hmac_keys(&self) -> Result<(), SpecError> {
        let keys = [
            ("header", self.header.is_some()),
            ("encoding", self.encoding.is_some()),
            ("signed", self.signed.is_some()),
            ("timestamp", self.timestamp.is_some()),
            ("timestamp_unit", self.timestamp_unit.is_some()),
            ("tolerance_s", self.tolerance_s.is_some()),
            ("key", self.key.is_some()),
        ];
        match keys.iter().find(|(_, is_set)| *is_set) {
            Some((key, _)) => Err(SpecError(format!("`{key}` belongs to `hmac`"))),
            None => Ok(()),
        }
    }
}

fn record(name: &str, scheme: raw::Scheme, id: Option<String>) -> raw::Record {
    raw::Record {
        title: name.to_owned(),
        docs: String::new(),
        confidence: Confidence::Own,
        notes: String::new(),
        methods: vec!["POST".to_owned()],
        order: crate::provider::Order::default(),
        payload: None,
        conf: Default::default(),
        multipart: false,
        lets: Default::default(),
        body: raw::Body::default(),
        scheme: vec![unplaced(scheme)],
        secret: raw::SecretRules::default(),
        event: raw::Event { id: id.map(|id| unplaced(id.as_str().into())), ..raw::Event::default() },
        handshake: Vec::new(),
        retry: raw::Retry::default(),
        ack: raw::Ack::default(),
        run: raw::Run::default(),
        sample: Vec::new(),
        headers: Default::default(),
    }
}

fn bare(kind: raw::Kind) -> raw::Scheme {
    raw::Scheme {
        kind,
        hash: None,
        sig: None,
        content: None,
        separator: None,
        alg: None,
        algs: Vec::new(),
        key: raw::Key::default(),
        keysource: None,
        each: None,
        claims: Default::default(),
        claims_if_body: Default::default(),
        require: Vec::new(),
        leeway: 0,
        ignore_pad: false,
        timestamp: None,
        checks: std::collections::BTreeMap::new(),
        pins: std::collections::BTreeMap::new(),
        when: raw::When::default(),
    }
}

fn selector(text: &str) -> Result<String, SpecError> {
    let template = crate::template::Template::from_selector(text);
    template.map(|template| template.to_string()).map_err(|error| SpecError(error.to_string()))
}

/// A word of the record language, such as `sha256`.
fn keyword<'w, T: Deserialize<'w>>(key: &str, word: &'w str) -> Result<T, SpecError> {
    use serde::de::IntoDeserializer as _;
    let deserializer: serde::de::value::StrDeserializer<'_, serde::de::value::Error> =
        word.into_deserializer();
    T::deserialize(deserializer).map_err(|error| SpecError(format!("`{key}`: {error}")))
}

fn unplaced<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

fn error(message: &str) -> SpecError {
    SpecError(message.to_owned())
}
