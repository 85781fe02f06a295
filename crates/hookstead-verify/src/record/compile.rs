//! From a record as written to a provider as used: templates compiled, rules checked.
//!
//! What would not be safe is refused here, once, so that nothing has to be asked per request.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;

use super::raw;
use crate::comparison::Volatile;
use crate::freshness::{Freshness, Future};
use crate::handshake::{Fetch, Handshake};
use crate::identity::{IdForm, IdTemplates};
use crate::keys::{KeyFinder, Pin};
use crate::provider::{
    Ack, Check, Confidence, ListedHeader, Order, Pinned, Provider, Retry, Sample, SecretFacts, Variant,
};
use crate::scheme::{
    Asymmetric, Basic, Claim, Hashed, Hmac, Jwt, KeyRule, Locator, PublicKeyRule, Scheme, Signed, Token,
};
use crate::secret::SECRET_BYTES_MIN;
use crate::separator::Separator;
use crate::template::{Template, TemplateError, Variable};
use crate::when::When;
use crate::wire::json::Pointer;

/// A fault and its place in the record's text.
pub(crate) struct Misfit {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
}

trait At<T> {
    /// Adds the place to a message.
    fn at(self, span: Range<usize>) -> Result<T, Misfit>;
}

impl<T, E: ToString> At<T> for Result<T, E> {
    fn at(self, span: Range<usize>) -> Result<T, Misfit> {
        self.map_err(|message| Misfit { span, message: message.to_string() })
    }
}

/// Translates a record.
pub(crate) fn compile(name: &str, record: &raw::Record) -> Result<Provider, Misfit> {
    let secret = SecretFacts {
        bytes_min: record.secret.bytes_min.unwrap_or(SECRET_BYTES_MIN),
        prefix: record.secret.prefix.clone(),
        place: record.secret.place.clone(),
        env: record.secret.env.clone(),
        chosen_by: record.secret.chosen_by,
    };
    let lets = lets(&record.lets)?;
    let surroundings = Surroundings { provider: name, bytes_min: secret.bytes_min, lets: &lets };
    let variants = record
        .scheme
        .iter()
        .map(|scheme| surroundings.variant(scheme.get_ref()).at(scheme.span()))
        .collect::<Result<Vec<_>, _>>()?;
    if variants.is_empty() {
        return Err("a record needs at least one [[scheme]]").at(0..0);
    }
    let event = &record.event;
    let id_form =
        event.id_form.as_ref().map(|form| IdForm::compile(form.get_ref()).at(form.span())).transpose()?;
    let provider = Provider {
        name: name.to_owned(),
        title: record.title.clone(),
        docs: record.docs.clone(),
        notes: record.notes.clone(),
        confidence: record.confidence,
        methods: record.methods.clone(),
        order: record.order,
        payload: optional(record.payload.as_ref(), Variable::parse)?,
        headers: record.headers.clone().into_iter().collect(),
        body_bytes_min: record.body.bytes_min,
        body_bytes_max: record.body.bytes_max,
        variants,
        secret,
        id: id_templates(event)?,
        id_covered: event.id_covered,
        multipart: record.multipart,
        id_form,
        kind: templates(event.kind.as_ref())?,
        account: templates(event.account.as_ref())?,
        volatile: volatile(&event.volatile)?,
        handshakes: surroundings.handshakes(&record.handshake)?,
        conf: record.conf.clone(),
        retry: retry(&record.retry),
        ack: ack(record),
        processor: record.run.processor,
        samples: record.sample.iter().map(sample).collect(),
    };
    check_order(&provider).at(0..0)?;
    check_conf(&provider).at(0..0)?;
    check_multipart(&provider).at(0..0)?;
    if event.id_covered && !id_can_be_covered(&provider) {
        let span = event.id.as_ref().map_or(0..0, Spanned::span);
        return Err("`id_covered = true`, but no scheme signs this id").at(span);
    }
    Ok(provider)
}

/// Whether each template of the id is signed by some scheme. Which scheme goes with which template is the
/// record's to know.
fn id_can_be_covered(provider: &Provider) -> bool {
    let covered =
        |template: &Template| provider.variants.iter().any(|variant| variant.scheme.signs(template));
    !provider.id.is_empty() && provider.id.iter().all(covered)
}

/// What the tables of a record have in common.
struct Surroundings<'r> {
    provider: &'r str,
    bytes_min: usize,
    lets: &'r BTreeMap<String, Template>,
}

impl Surroundings<'_> {
    fn variant(&self, raw: &raw::Scheme) -> Result<Variant, String> {
        let scheme = self.scheme(raw)?;
        let listed = listed_header(raw, &scheme)?;
        let freshness = raw
            .timestamp
            .as_ref()
            .map(|timestamp| freshness(timestamp, &scheme, listed.is_some()))
            .transpose()?;
        let separator = raw.separator.as_ref().map(|raw| Separator::compile(raw, &scheme)).transpose()?;
        let each = raw.each.as_ref().map(|each| Pointer::parse(each.get_ref())).transpose()?;
        Ok(Variant {
            when: When::compile(&raw.when)?,
            scheme,
            separator,
            checks: self.checks(&raw.checks)?,
            pins: self.pins(&raw.pins)?,
            freshness,
            each,
            listed,
        })
    }

    fn scheme(&self, raw: &raw::Scheme) -> Result<Scheme, String> {
        let key = || shared_key(raw, self.bytes_min);
        let signed = || Signed::compile(raw, self.lets);
        let hash = || raw.hash.ok_or("this kind needs `hash`");
        Ok(match raw.kind {
            raw::Kind::Hmac => Scheme::Hmac(Hmac { hash: hash()?, signed: signed()?, key: key()? }),
            raw::Kind::Hash => Scheme::Hash(Hashed { hash: hash()?, signed: signed()?, key: key()? }),
            raw::Kind::Ed25519 | raw::Kind::Ecdsa | raw::Kind::Rsa => {
                let key = self.public_key(raw)?.ok_or("this kind needs `key.decode` or `keysource`")?;
                Scheme::Asymmetric(Asymmetric { algorithm: algorithm(raw)?, signed: signed()?, key })
            }
            raw::Kind::Jwt => Scheme::Jwt(self.jwt(raw)?),
            raw::Kind::Token => Scheme::Token(Token { locator: locator(raw)?, key: key()? }),
            raw::Kind::Basic => Scheme::Basic(Basic { bytes_min: self.bytes_min }),
            raw::Kind::None => Scheme::None,
        })
    }

    fn jwt(&self, raw: &raw::Scheme) -> Result<Jwt, String> {
        if raw.algs.is_empty() {
            return Err("jwt needs `algs`, the algorithms that a token may name".to_owned());
        }
        let key = self.public_key(raw)?;
        Ok(Jwt {
            locator: locator(raw)?,
            algorithms: raw.algs.clone(),
            secret: if key.is_some() { KeyRule::default() } else { shared_key(raw, self.bytes_min)? },
            key,
            claims: Claim::compile(&raw.claims)?,
            claims_if_body: Claim::compile(&raw.claims_if_body)?,
            require: raw.require.clone(),
            ignore_pad: raw.ignore_pad,
            leeway_s: raw.leeway,
        })
    }

    /// Where a public key is from; nothing if the scheme has a shared secret.
    fn public_key(&self, raw: &raw::Scheme) -> Result<Option<PublicKeyRule>, String> {
        match (&raw.keysource, raw.key.decode) {
            (Some(source), _) => {
                let finder = KeyFinder::compile(self.provider, source)?;
                Ok(Some(PublicKeyRule::Published(Box::new(finder))))
            }
            (None, Some(coding)) if !is_shared(coding) => {
                Ok(Some(PublicKeyRule::Given { strip: raw.key.strip.clone(), coding }))
            }
            (None, _) => Ok(None),
        }
    }

    fn checks(&self, raw: &BTreeMap<String, String>) -> Result<Vec<Check>, String> {
        let check = |(left, right): (&String, &String)| {
            Ok(Check { left: self.template(left)?, right: self.template(right)? })
        };
        raw.iter().map(check).collect()
    }

    fn pins(&self, raw: &BTreeMap<String, String>) -> Result<Vec<Pinned>, String> {
        let pin =
            |(part, conf): (&String, &String)| Ok(Pinned { part: self.template(part)?, conf: conf.clone() });
        raw.iter().map(pin).collect()
    }

    fn handshakes(&self, raw: &[raw::Handshake]) -> Result<Vec<Handshake>, Misfit> {
        raw.iter().map(|raw| self.handshake(raw).at(raw.name.span())).collect()
    }

    fn handshake(&self, raw: &raw::Handshake) -> Result<Handshake, String> {
        if raw.store.is_some() && raw.auth == raw::Auth::Signature {
            return Err("a secret is handed over before there is a signature: `auth = \"none\"`".to_owned());
        }
        let fetch = |url: &String| {
            Ok::<_, String>(Fetch { url: self.template(url)?, pin: Pin::compile(&raw.fetch_hosts, "")? })
        };
        let headers = raw.respond.headers.iter();
        Ok(Handshake {
            name: raw.name.get_ref().clone(),
            when: When::compile(&raw.when)?,
            auth: raw.auth,
            checks: self.checks(&raw.check)?,
            fail: raw.fail,
            store: raw.store.as_ref().map(|text| self.template(text)).transpose()?,
            fetch: raw.fetch.as_ref().map(fetch).transpose()?,
            status: raw.respond.status,
            content_type: raw.respond.content_type.clone(),
            headers: headers
                .map(|(name, value)| Ok((name.clone(), self.template(value)?)))
                .collect::<Result<_, String>>()?,
            body: self.template(&raw.respond.body)?,
        })
    }

    fn template(&self, text: &str) -> Result<Template, String> {
        template(text)?.bind(self.lets)
    }
}

fn locator(raw: &raw::Scheme) -> Result<Locator, String> {
    Locator::compile(raw.sig.as_ref().ok_or("this kind needs `sig`")?)
}

fn shared_key(raw: &raw::Scheme, bytes_min: usize) -> Result<KeyRule, String> {
    let codings = [raw.key.decode, raw.key.decode_unprefixed];
    if codings.into_iter().flatten().any(|coding| !is_shared(coding)) {
        return Err("this kind has a shared secret: `key.decode` is utf8, base64 or hex".to_owned());
    }
    Ok(KeyRule::compile(&raw.key, bytes_min))
}

fn is_shared(coding: raw::Coding) -> bool {
    matches!(coding, raw::Coding::Utf8 | raw::Coding::Base64 | raw::Coding::Hex)
}

fn algorithm(raw: &raw::Scheme) -> Result<raw::Algorithm, String> {
    use raw::{Algorithm, Kind};
    match (raw.kind, raw.alg.ok_or("this kind needs `alg`")?) {
        (Kind::Ed25519, found @ Algorithm::Ed25519)
        | (Kind::Ecdsa, found @ (Algorithm::EcdsaP256Sha1 | Algorithm::EcdsaP256Sha256))
        | (Kind::Rsa, found @ (Algorithm::RsaSha1 | Algorithm::RsaSha256 | Algorithm::RsaSha512)) => {
            Ok(found)
        }
        _ => Err("`alg` is not of this kind".to_owned()),
    }
}

/// For a content that covers the headers of a list: the list, and the header with the time, which must be on it.
fn listed_header(raw: &raw::Scheme, scheme: &Scheme) -> Result<Option<ListedHeader>, String> {
    let mut lists =
        scheme.contents().iter().flat_map(Template::slots).filter(|slot| slot.has_filter("signed_headers"));
    let Some(list) = lists.next_back() else { return Ok(None) };
    let Some(timestamp) = &raw.timestamp else { return Ok(None) };
    match template(timestamp.from.get_ref())?.only_variable() {
        Some(Variable::Header(header)) => {
            Ok(Some(ListedHeader { list: list.variable.clone(), header: header.clone() }))
        }
        _ => Ok(None),
    }
}

fn freshness(raw: &raw::Timestamp, scheme: &Scheme, listed: bool) -> Result<Freshness, String> {
    let from = template(raw.from.get_ref())?;
    if from.slots().is_empty() || !(listed || scheme.signs(&from)) {
        return Err(format!("the time `{from}` is not part of what is signed, so it proves nothing"));
    }
    let future = match raw.future {
        None => Future::AsTolerance,
        Some(raw::Bound(None)) => Future::Unbounded,
        Some(raw::Bound(Some(seconds))) => Future::Seconds(seconds),
    };
    Ok(Freshness {
        from,
        unit: raw.unit,
        canonical: raw.canonical,
        tolerance_s: raw.tolerance.0,
        future,
        exclusive: raw.exclusive,
    })
}

/// A record that checks the form first must be able to: its time must not hide inside a signature.
fn check_order(provider: &Provider) -> Result<(), String> {
    if provider.order == Order::SignatureFirst {
        return Ok(());
    }
    let inside = |variable: &Variable| matches!(variable, Variable::Signature(_));
    let times = provider.variants.iter().filter_map(|variant| variant.freshness.as_ref());
    if times.flat_map(|freshness| freshness.from.slots()).any(|slot| inside(&slot.variable)) {
        return Err("with `order = \"form-first\"` the time cannot be a field of the signature".to_owned());
    }
    match &provider.variants[..] {
        [_] => Ok(()),
        _ => Err("with `order = \"form-first\"` there can be only one scheme".to_owned()),
    }
}

/// The record's named templates. One that names another is refused, so that none can be endless.
fn lets(raw: &BTreeMap<String, Spanned<String>>) -> Result<BTreeMap<String, Template>, Misfit> {
    let named = |(name, text): (&String, &Spanned<String>)| {
        let template = template(text.get_ref()).at(text.span())?;
        if template.slots().iter().any(|slot| matches!(slot.variable, Variable::Let(_))) {
            return Err("a `let` cannot name another one").at(text.span());
        }
        Ok((name.clone(), template))
    };
    raw.iter().map(named).collect()
}

/// A form that is signed as a whole is an urlencoded one; of a multipart one there would be nothing to sign.
fn check_multipart(provider: &Provider) -> Result<(), String> {
    let templates = provider.variants.iter().flat_map(|variant| variant.scheme.templates());
    let signs_form = templates.flat_map(Template::slots).any(|slot| slot.variable == Variable::Form);
    if provider.multipart && signs_form {
        return Err("`multipart = true`, but a scheme signs `form` as a whole".to_owned());
    }
    Ok(())
}

/// Every `conf.NAME` is explained, so that a person who sets up a source can be asked for it.
fn check_conf(provider: &Provider) -> Result<(), String> {
    let explained = |name: &&str| !provider.conf.contains_key(*name);
    match provider.conf_names().into_iter().find(explained) {
        Some(name) => Err(format!("`conf.{name}` is used, and [conf] does not say what it is")),
        None => Ok(()),
    }
}

fn id_templates(event: &raw::Event) -> Result<IdTemplates, Misfit> {
    let span = event.id.as_ref().map_or(0..0, Spanned::span);
    let scope = optional(event.scope.as_ref(), template)?;
    IdTemplates::compile(templates(event.id.as_ref())?, scope).at(span)
}

fn templates(texts: Option<&raw::Texts>) -> Result<Vec<Template>, Misfit> {
    let Some(texts) = texts else { return Ok(Vec::new()) };
    texts.get_ref().0.iter().map(|text| template(text)).collect::<Result<_, _>>().at(texts.span())
}

fn optional<T, E: ToString>(
    text: Option<&Spanned<String>>,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, Misfit> {
    text.map(|text| parse(text.get_ref()).at(text.span())).transpose()
}

fn volatile(raw: &BTreeMap<Spanned<String>, Confidence>) -> Result<Volatile, Misfit> {
    let span = raw.keys().next().map_or(0..0, Spanned::span);
    let pointers = raw.iter().map(|(pointer, confidence)| (pointer.get_ref().as_str(), *confidence));
    Volatile::with_confidence(pointers).at(span)
}

fn retry(raw: &raw::Retry) -> Retry {
    Retry {
        automatic: raw.automatic,
        same_id: raw.same_id,
        same_bytes: raw.same_bytes,
        resigned: raw.resigned,
        horizon_s: raw.horizon_s,
        note: raw.note.clone(),
    }
}

fn ack(record: &raw::Record) -> Ack {
    let raw = &record.ack;
    Ack {
        success: raw.success.clone(),
        body: raw.body.clone(),
        content_type: raw.content_type.clone(),
        timeout_s: raw.timeout_s,
        reject: raw.reject,
        reject_body: raw.reject_body.clone(),
        confidence: raw.confidence.unwrap_or(record.confidence),
        note: raw.note.clone(),
    }
}

fn sample(raw: &raw::Sample) -> Sample {
    Sample {
        event: raw.event.clone(),
        content_type: raw.content_type.clone(),
        id: raw.id.clone(),
        before: raw.before.clone(),
        after: raw.after.clone(),
        body: raw.body.clone(),
    }
}

fn template(text: &str) -> Result<Template, String> {
    text.parse().map_err(|error: TemplateError| error.to_string())
}
