//! From a record as written to a provider as used: templates compiled, rules checked.
//!
//! What would not be safe is refused here, once, so that nothing has to be asked per request.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;

use super::raw;
use crate::comparison::Volatile;
use crate::freshness::{Freshness, Future};
use crate::handshake::Handshake;
use crate::identity::{IdForm, IdTemplates};
use crate::provider::{Ack, Check, Confidence, Order, Provider, Retry, Sample, SecretFacts, Variant};
use crate::scheme::{Basic, Hmac, KeyRule, Locator, Scheme, Token};
use crate::secret::SECRET_BYTES_MIN;
use crate::template::{Template, TemplateError, Variable};
use crate::when::When;

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
    };
    let variants = record
        .scheme
        .iter()
        .map(|scheme| variant(scheme.get_ref(), secret.bytes_min).at(scheme.span()))
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
        id_form,
        kind: templates(event.kind.as_ref())?,
        account: templates(event.account.as_ref())?,
        volatile: volatile(&event.volatile)?,
        handshakes: handshakes(&record.handshake)?,
        retry: retry(&record.retry),
        ack: ack(record),
        processor: record.run.processor,
        samples: record.sample.iter().map(sample).collect(),
    };
    check_order(&provider).at(0..0)?;
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

fn variant(raw: &raw::Scheme, bytes_min: usize) -> Result<Variant, String> {
    let scheme = scheme(raw, bytes_min)?;
    let freshness = raw.timestamp.as_ref().map(|timestamp| freshness(timestamp, &scheme)).transpose()?;
    Ok(Variant { when: When::compile(&raw.when)?, scheme, checks: checks(&raw.checks)?, freshness })
}

fn scheme(raw: &raw::Scheme, bytes_min: usize) -> Result<Scheme, String> {
    let key = KeyRule::compile(&raw.key, bytes_min);
    let locator = || Locator::compile(raw.sig.as_ref().ok_or("this kind needs `sig`")?);
    match raw.kind {
        raw::Kind::Hmac => {
            let hash = raw.hash.ok_or("hmac needs `hash`")?;
            let contents = raw.content.as_ref().ok_or("hmac needs `content`")?.get_ref();
            let contents = contents.0.iter().map(|text| template(text)).collect::<Result<Vec<_>, _>>()?;
            let scheme = Hmac { hash, locator: locator()?, contents, key };
            check_hmac(&scheme)?;
            Ok(Scheme::Hmac(scheme))
        }
        raw::Kind::Token => Ok(Scheme::Token(Token { locator: locator()?, key })),
        raw::Kind::Basic => Ok(Scheme::Basic(Basic { bytes_min })),
        raw::Kind::None => Ok(Scheme::None),
    }
}

fn check_hmac(scheme: &Hmac) -> Result<(), String> {
    for slot in scheme.contents.iter().flat_map(Template::slots) {
        if let Variable::Signature(field) = &slot.variable
            && !scheme.locator.has_field(field)
        {
            return Err(format!("`{}` needs a signature list with named or positional fields", slot.name));
        }
    }
    Ok(())
}

fn freshness(raw: &raw::Timestamp, scheme: &Scheme) -> Result<Freshness, String> {
    let from = template(raw.from.get_ref())?;
    if from.slots().is_empty() || !scheme.signs(&from) {
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

fn checks(raw: &BTreeMap<String, String>) -> Result<Vec<Check>, String> {
    raw.iter().map(|(left, right)| Ok(Check { left: template(left)?, right: template(right)? })).collect()
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

fn handshakes(raw: &[raw::Handshake]) -> Result<Vec<Handshake>, Misfit> {
    raw.iter().map(|raw| handshake(raw).at(raw.name.span())).collect()
}

fn handshake(raw: &raw::Handshake) -> Result<Handshake, String> {
    let headers = raw.respond.headers.iter();
    Ok(Handshake {
        name: raw.name.get_ref().clone(),
        when: When::compile(&raw.when)?,
        auth: raw.auth,
        checks: checks(&raw.check)?,
        status: raw.respond.status,
        content_type: raw.respond.content_type.clone(),
        headers: headers
            .map(|(name, value)| Ok((name.clone(), template(value)?)))
            .collect::<Result<_, String>>()?,
        body: template(&raw.respond.body)?,
    })
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
        confidence: raw.confidence.unwrap_or(record.confidence),
        note: raw.note.clone(),
    }
}

fn sample(raw: &raw::Sample) -> Sample {
    Sample {
        event: raw.event.clone(),
        content_type: raw.content_type.clone(),
        id: raw.id.clone(),
        body: raw.body.clone(),
    }
}

fn template(text: &str) -> Result<Template, String> {
    text.parse().map_err(|error: TemplateError| error.to_string())
}
