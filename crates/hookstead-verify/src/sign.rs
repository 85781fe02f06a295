//! The inverse of verifying: a request as the provider would send it, made from the same record. For trying out
//! a source, and for tests.
//!
//! What a provider puts into the body (an id, a time) is the caller's to put there: [`Sample::render`] does it
//! for the built-in samples.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use crate::provider::{Check, Provider, Sample, Variant};
use crate::request::Request;
use crate::scheme::{BASIC_HEADER, Basic, Locator, Place, Scheme};
use crate::secret::{Secret, SecretError};
use crate::template::{Context, Part, Template, Variable};
use crate::verdict::Fault;
use crate::wire::time::Unit;

/// What is to be sent.
#[derive(Debug, Clone, Copy)]
pub struct SignRequest<'a> {
    /// The method; `POST` unless there is a reason.
    pub method: &'a str,
    /// The full address that will be called.
    pub url: &'a str,
    /// The body, which must already hold the id and the time that this provider writes there, and `@signature@`
    /// where it writes a signature there.
    pub body: &'a [u8],
    /// The content type of the body; empty for none.
    pub content_type: &'a str,
    /// The event id, for providers that send it in a header.
    pub event_id: &'a str,
    /// The event type, for providers that send it in a header.
    pub event_type: Option<&'a str>,
    /// The secret to sign with, or for a provider that signs with a private key that key in PEM (PKCS#8); none for
    /// a provider that does not sign.
    pub secret: Option<&'a Secret>,
    /// The time to write, in Unix microseconds.
    pub now_unix_micros: i64,
}

/// A request that the provider's verifier accepts. Headers and query may hold the secret itself, so `Debug`
/// shows neither.
#[derive(Clone, PartialEq, Eq)]
pub struct SignedRequest {
    /// The method.
    pub method: String,
    /// The address, with what the provider adds to the query.
    pub url: String,
    /// All headers that belong to the event, the content type among them.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body.
    pub body: Vec<u8>,
}

impl fmt::Debug for SignedRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_request().fmt(formatter)
    }
}

impl SignedRequest {
    /// Path and query of the address.
    pub fn target(&self) -> &str {
        target(&self.url)
    }

    /// The same as something that can be verified.
    pub fn as_request(&self) -> Request<'_> {
        let Self { method, url, headers, body } = self;
        Request { method, target: target(url), url: Some(url), headers, body }
    }
}

/// Why a request cannot be signed as this provider would.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// The provider signs, and no secret is given.
    #[error("a secret is needed to sign as this provider does")]
    NoSecret,
    /// The secret is not of the provider's form.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A text that cannot stand in a header.
    #[error("`{0}` cannot be sent in a header")]
    Header(String),
    /// Something that is signed is not in the request.
    #[error("`{0}` is signed, and it is not in the request")]
    Part(String),
    /// The record puts a value where only the provider can put it.
    #[error("cannot put a value into `{0}`")]
    Place(String),
    /// The provider signs with a key of its own, and the secret is no private key for it.
    #[error("this provider signs with a private key: give one in PEM (PKCS#8) that fits its algorithm")]
    NoPrivateKey,
    /// No scheme of the provider would be used for such a request.
    #[error("this provider would not send such a request")]
    NoVariant,
}

impl Provider {
    /// Signs a request as this provider does, with the first of its schemes that a receiver would choose and
    /// that the secret fits.
    ///
    /// # Errors
    ///
    /// [`SignError`]: see its variants.
    pub fn sign(&self, request: &SignRequest<'_>) -> Result<SignedRequest, SignError> {
        self.sign_with(request, &BTreeMap::new())
    }

    /// As [`sign`](Self::sign), with the values that the provider's [`conf`](Self::conf) names.
    ///
    /// # Errors
    ///
    /// [`SignError`]: see its variants.
    pub fn sign_with(
        &self,
        request: &SignRequest<'_>,
        conf: &BTreeMap<String, String>,
    ) -> Result<SignedRequest, SignError> {
        let mut first = None;
        for additions in [Additions::None, Additions::Query] {
            for (index, variant) in self.variants.iter().enumerate() {
                match self.draft(variant, request, conf, additions) {
                    Ok(signed) if self.chooses(index, &signed) => return Ok(signed),
                    Ok(_) => {}
                    Err(error) => first = first.or(Some(error)),
                }
            }
        }
        Err(first.unwrap_or(SignError::NoVariant))
    }

    fn draft(
        &self,
        variant: &Variant,
        request: &SignRequest<'_>,
        conf: &BTreeMap<String, String>,
        additions: Additions,
    ) -> Result<SignedRequest, SignError> {
        let mut draft = SignedRequest {
            method: request.method.to_owned(),
            url: request.url.to_owned(),
            headers: Vec::new(),
            body: request.body.to_vec(),
        };
        if !request.content_type.is_empty() {
            add_header(&mut draft, "Content-Type", request.content_type)?;
        }
        self.add_id(&mut draft, variant, request.event_id)?;
        match (request.event_type, self.kind.iter().find_map(header), self.kind.first()) {
            (Some(event_type), Some(name), _) => add_header(&mut draft, name, event_type)?,
            (Some(event_type), None, Some(template)) => {
                if let Some(Variable::QueryPart(name)) = template.only_variable() {
                    add_query(&mut draft, name, event_type);
                }
            }
            _ => {}
        }
        self.headers.iter().try_for_each(|(name, value)| add_header(&mut draft, name, value))?;
        if additions == Additions::Query {
            variant.checks.iter().try_for_each(|check| self.add_query(&mut draft, check))?;
        }
        let fields = add_time(&mut draft, variant, request.now_unix_micros)?;
        let beside = variant.scheme.locator().into_iter().flat_map(Locator::beside);
        let beside = beside.map(|(name, value)| (name, value.as_bytes().to_vec()));
        let fields: Vec<_> = fields.into_iter().chain(beside).collect();
        let written = self.proof(&draft, variant, request, conf, &fields)?;
        match (written, variant.scheme.locator()) {
            (None, _) => {}
            (Some(written), Some(locator)) => put(&mut draft, locator, written)?,
            (Some(written), None) => put_header(&mut draft, BASIC_HEADER, written)?,
        }
        Ok(draft)
    }

    /// Puts the id where the provider sends it, unless that is in the body. Of an id of several parts each part
    /// goes to its own place.
    fn add_id(&self, draft: &mut SignedRequest, variant: &Variant, event_id: &str) -> Result<(), SignError> {
        let Some(template) = self.id_template(variant) else { return Ok(()) };
        let mut rest = event_id;
        let mut parts = template.parts.iter().peekable();
        while let Some(part) = parts.next() {
            let Part::Slot(slot) = part else { continue };
            let value = match parts.peek() {
                Some(Part::Literal(separator)) => {
                    let separator = String::from_utf8_lossy(separator);
                    let Some((value, after)) = rest.split_once(separator.as_ref()) else { return Ok(()) };
                    rest = after;
                    value
                }
                _ => rest,
            };
            match (&slot.variable, slot.name.strip_prefix("header.")) {
                (Variable::Header(_), Some(name)) => add_header(draft, name, value)?,
                (Variable::QueryPart(name), _) => add_query(draft, name, value),
                _ => {}
            }
        }
        Ok(())
    }

    /// The template of the id: one that the scheme signs, else the first of the record.
    fn id_template(&self, variant: &Variant) -> Option<&Template> {
        let signed = |template: &&Template| {
            let slots = variant.scheme.contents().iter().flat_map(Template::slots);
            slots.into_iter().any(|slot| Some(&slot.variable) == template.only_variable())
        };
        self.id.iter().find(signed).or_else(|| self.id.iter().next())
    }

    /// A check whose left side is a query part is fulfilled by adding that part.
    fn add_query(&self, draft: &mut SignedRequest, check: &Check) -> Result<(), SignError> {
        let slots = check.left.slots();
        let [slot] = slots[..] else { return Err(SignError::Place(check.left.to_string())) };
        let Variable::QueryPart(name) = &slot.variable else {
            return Err(SignError::Place(slot.name.clone()));
        };
        let value = resolve(&check.right, &self.context(draft, &[]))?;
        let value = String::from_utf8(value).map_err(|_| SignError::Place(slot.name.clone()))?;
        add_query(draft, name, &value);
        Ok(())
    }

    /// The text that proves the request, nothing for a provider that does not sign.
    fn proof(
        &self,
        draft: &SignedRequest,
        variant: &Variant,
        request: &SignRequest<'_>,
        conf: &BTreeMap<String, String>,
        fields: &[(&str, Vec<u8>)],
    ) -> Result<Option<Vec<u8>>, SignError> {
        let fields: Vec<(&str, &[u8])> =
            fields.iter().map(|(name, value)| (*name, value.as_slice())).collect();
        let secret = match (&variant.scheme, request.secret) {
            (Scheme::None, _) => return Ok(None),
            (_, None) => return Err(SignError::NoSecret),
            (_, Some(secret)) => secret,
        };
        let item = only_item(draft, variant)?;
        let context = Context { item: item.as_deref(), conf: Some(conf), ..self.context(draft, &fields) };
        let signature = signature(&variant.scheme, secret, request, &context)?;
        Ok(Some(match variant.scheme.locator() {
            Some(locator) => locator.write(&fields, &signature, &context),
            None => signature,
        }))
    }

    /// Whether a receiver would check the request by this variant.
    fn chooses(&self, index: usize, signed: &SignedRequest) -> bool {
        let context = self.context(signed, &[]);
        self.variants.iter().position(|variant| variant.when.holds(&context)) == Some(index)
    }

    fn context<'r>(&'r self, draft: &'r SignedRequest, fields: &'r [(&'r str, &'r [u8])]) -> Context<'r> {
        Context { payload: self.payload.as_ref(), fields, ..Context::of(draft.as_request()) }
    }
}

/// The item of a batch of one; nothing for a scheme that looks at the whole.
fn only_item(draft: &SignedRequest, variant: &Variant) -> Result<Option<Vec<u8>>, SignError> {
    let Some(pointer) = &variant.each else { return Ok(None) };
    match pointer.items(&draft.body, 1) {
        Some(mut items) if items.len() == 1 => Ok(items.pop()),
        _ => Err(SignError::Part("an array of one item".to_owned())),
    }
}

/// The signature of a scheme, or the credentials that it sends.
fn signature(
    scheme: &Scheme,
    secret: &Secret,
    request: &SignRequest<'_>,
    context: &Context<'_>,
) -> Result<Vec<u8>, SignError> {
    let part = |fault: Fault| SignError::Part(fault.part);
    let exposed = secret.expose();
    Ok(match scheme {
        Scheme::Hmac(scheme) => scheme.sign(&scheme.derive(secret)?, context).map_err(part)?,
        Scheme::Hash(scheme) => scheme.sign(&scheme.derive(secret)?, context).map_err(part)?,
        Scheme::Token(scheme) => {
            scheme.derive(secret)?;
            exposed.to_vec()
        }
        Scheme::Basic(scheme) => {
            scheme.derive(exposed)?;
            Basic::write(exposed)
        }
        Scheme::Asymmetric(scheme) => {
            scheme.sign(exposed, context).map_err(part)?.ok_or(SignError::NoPrivateKey)?
        }
        Scheme::Jwt(scheme) => {
            let now_s = request.now_unix_micros.div_euclid(1_000_000);
            let token = scheme.sign(secret, request.event_id, now_s, context).map_err(part)?;
            token.ok_or(SignError::NoPrivateKey)?
        }
        Scheme::None => Vec::new(),
    })
}

/// Whether a check may add to the query.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Additions {
    None,
    Query,
}

const FORM: &str = "application/x-www-form-urlencoded";

impl Sample {
    /// The body with this event id and time in their places.
    pub fn render(&self, event_id: &str, now_unix_micros: i64) -> Vec<u8> {
        let inner = event_id.strip_prefix(self.before.as_str()).unwrap_or(event_id);
        let inner = inner.strip_suffix(self.after.as_str()).unwrap_or(inner);
        let id = if self.content_type == FORM { Cow::Borrowed(inner) } else { json_text(inner) };
        let body = self.body.replace("@id@", &id);
        let body = body.replace("@unix@", &Unit::Seconds.format(now_unix_micros));
        let body = body.replace("@unix_ms@", &Unit::Millis.format(now_unix_micros));
        body.replace("@rfc3339@", &Unit::Rfc3339.format(now_unix_micros)).into_bytes()
    }

    /// A realistic event id for the number-th event.
    pub fn event_id(&self, number: u64) -> String {
        format!("{}{}{number:012}{}", self.before, self.id, self.after)
    }
}

impl Provider {
    /// The body of a sample event; the first one if no name is given, nothing for a name that is not there.
    pub fn sample(&self, event: Option<&str>) -> Option<&Sample> {
        self.samples.iter().find(|sample| event.is_none_or(|event| sample.event == event))
    }
}

/// The text as it stands between the quotation marks of a JSON string.
fn json_text(text: &str) -> Cow<'_, str> {
    let quoted = serde_json::Value::from(text).to_string();
    Cow::Owned(quoted[1..quoted.len() - 1].to_owned())
}

/// Writes the signed time where the record has it. Fields beside the signature are given back; a time in the
/// body is already there.
fn add_time<'v>(
    draft: &mut SignedRequest,
    variant: &'v Variant,
    now: i64,
) -> Result<Vec<(&'v str, Vec<u8>)>, SignError> {
    let Some(freshness) = &variant.freshness else { return Ok(Vec::new()) };
    let time = freshness.unit.format(now);
    match freshness.from.only_variable() {
        Some(Variable::Header(_)) => {
            add_header(draft, header(&freshness.from).unwrap_or_default(), &time)?;
            Ok(Vec::new())
        }
        Some(Variable::Signature(name)) => Ok(vec![(name, time.into_bytes())]),
        Some(Variable::Claim(_)) => Ok(Vec::new()),
        Some(variable) if variable.is_in_body() => Ok(Vec::new()),
        _ => Err(SignError::Place(freshness.from.to_string())),
    }
}

/// Stands in a body where the provider writes the signature.
const PLACEHOLDER: &str = "@signature@";

/// Puts a signature in its first place.
fn put(draft: &mut SignedRequest, locator: &Locator, written: Vec<u8>) -> Result<(), SignError> {
    let place = locator.place();
    match (&place.variable, place.name.split_once('.')) {
        // A place with numbers: the first of them.
        (Variable::Header(_), Some((_, name))) => put_header(draft, &name.replace('*', "1"), written),
        (Variable::QueryPart(name), _) => {
            let value = String::from_utf8(written).map_err(|_| SignError::Place(place.name.clone()))?;
            add_query(draft, name, &value);
            Ok(())
        }
        (Variable::Body, _) => {
            draft.body = written;
            Ok(())
        }
        (Variable::FormField(_), _) => fill(draft, place, percent_encoded, &written),
        (Variable::Json(_) | Variable::Item(_), _) => {
            fill(draft, place, |value| json_text(value).into_owned(), &written)
        }
        _ => Err(SignError::Place(place.name.clone())),
    }
}

/// Writes a signature over the placeholder in the body.
fn fill(
    draft: &mut SignedRequest,
    place: &Place,
    encode: impl Fn(&str) -> String,
    written: &[u8],
) -> Result<(), SignError> {
    let unplaced = || SignError::Place(place.name.clone());
    let body = std::str::from_utf8(&draft.body).map_err(|_| unplaced())?;
    let value = std::str::from_utf8(written).map_err(|_| unplaced())?;
    if body.matches(PLACEHOLDER).count() != 1 {
        return Err(unplaced());
    }
    draft.body = body.replace(PLACEHOLDER, &encode(value)).into_bytes();
    Ok(())
}

fn add_query(draft: &mut SignedRequest, name: &str, value: &str) {
    let separator = if draft.url.contains('?') { '&' } else { '?' };
    draft.url = format!("{}{separator}{name}={}", draft.url, percent_encoded(value));
}

fn percent_encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn add_header(draft: &mut SignedRequest, name: &str, value: &str) -> Result<(), SignError> {
    put_header(draft, name, value.as_bytes().to_vec())
}

/// Adds a header unless it is there already, as when an id is also the type.
fn put_header(draft: &mut SignedRequest, name: &str, value: Vec<u8>) -> Result<(), SignError> {
    let plain = value.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t' | 0x80..));
    let trimmed = value.trim_ascii().len() == value.len() && !value.is_empty();
    if !plain || !trimmed {
        return Err(SignError::Header(name.to_owned()));
    }
    if !draft.headers.iter().any(|(found, _)| found.eq_ignore_ascii_case(name)) {
        draft.headers.push((name.to_owned(), value));
    }
    Ok(())
}

/// The header, if a template is nothing but one header.
fn header(template: &Template) -> Option<&str> {
    let slots = template.slots();
    match template.only_variable()? {
        Variable::Header(_) => slots.first().and_then(|slot| slot.name.strip_prefix("header.")),
        _ => None,
    }
}

fn resolve(template: &Template, context: &Context<'_>) -> Result<Vec<u8>, SignError> {
    let pieces = template.resolve(context);
    pieces.map(|pieces| pieces.concat()).map_err(|unresolved| SignError::Part(unresolved.into_part()))
}

/// Path and query of an address.
fn target(url: &str) -> &str {
    let url = url.split('#').next().unwrap_or(url);
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find(['/', '?']).map_or("/", |at| &rest[at..])
}
