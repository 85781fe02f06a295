//! A provider as one JSON document: everything that its record says, for programs.

use hookstead_verify::{ChosenBy, KeyFacts, Provider, SchemeFacts};
use serde::Serialize;

use super::words;

/// What `providers show --json` prints.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    provider: &'a str,
    title: &'a str,
    docs: &'a str,
    notes: &'a str,
    confidence: &'static str,
    verified: Vec<String>,
    not_verified: Vec<String>,
    schemes: Vec<Scheme>,
    identity: Identity,
    secret: Secret<'a>,
    conf: Vec<Conf<'a>>,
    retry: Retry<'a>,
    ack: Ack<'a>,
    handshakes: Vec<&'a str>,
    body_bytes_max: Option<u64>,
    samples: Vec<&'a str>,
    steps: Vec<String>,
    source: String,
}

#[derive(Serialize)]
struct Scheme {
    algorithm: String,
    places: Vec<String>,
    contents: Vec<String>,
    covers_body: bool,
    covers_url: bool,
    tolerance_s: Option<u32>,
    key: &'static str,
}

#[derive(Serialize)]
struct Identity {
    id: Vec<String>,
    scope: Option<String>,
    r#type: Vec<String>,
    id_covered: bool,
}

#[derive(Serialize)]
struct Secret<'a> {
    needed: bool,
    env: String,
    place: &'a str,
    prefix: &'a str,
    bytes_min: usize,
    chosen_by: Option<&'static str>,
}

#[derive(Serialize)]
struct Conf<'a> {
    name: &'a str,
    what: &'a str,
    needed: bool,
}

#[derive(Serialize)]
struct Retry<'a> {
    automatic: Option<bool>,
    same_id: Option<bool>,
    same_bytes: Option<bool>,
    resigned: Option<bool>,
    horizon_s: Option<u64>,
    volatile: Vec<Volatile<'a>>,
    note: &'a str,
}

#[derive(Serialize)]
struct Volatile<'a> {
    pointer: &'a str,
    confidence: &'static str,
}

#[derive(Serialize)]
struct Ack<'a> {
    success: &'a [u16],
    body: Option<&'a str>,
    timeout_s: Option<u32>,
    reject: Option<u16>,
    confidence: &'static str,
    note: &'a str,
}

impl<'a> Document<'a> {
    pub(super) fn of(provider: &'a Provider) -> Self {
        Self {
            provider: provider.name(),
            title: provider.title(),
            docs: provider.docs(),
            notes: provider.notes(),
            confidence: provider.confidence().as_str(),
            verified: words::verified(provider),
            not_verified: words::not_verified(provider),
            schemes: provider.schemes().map(scheme).collect(),
            identity: Identity {
                id: provider.id_templates(),
                scope: provider.scope_template(),
                r#type: provider.type_templates(),
                id_covered: provider.id_covered(),
            },
            secret: secret(provider),
            conf: provider.conf().map(|(name, what, needed)| Conf { name, what, needed }).collect(),
            retry: retry(provider),
            ack: ack(provider),
            handshakes: provider.handshakes().collect(),
            body_bytes_max: provider.body_bytes_max(),
            samples: super::list::events(provider),
            steps: words::steps(provider),
            source: words::source(provider),
        }
    }
}

fn scheme(facts: SchemeFacts) -> Scheme {
    Scheme {
        tolerance_s: facts.time.and_then(|time| time.past_s),
        key: match facts.key {
            KeyFacts::Shared => "shared",
            KeyFacts::Public => "public",
            KeyFacts::Published => "published",
            KeyFacts::None => "none",
        },
        algorithm: facts.algorithm,
        places: facts.places,
        contents: facts.contents,
        covers_body: facts.covers_body,
        covers_url: facts.covers_url,
    }
}

fn secret(provider: &Provider) -> Secret<'_> {
    let facts = provider.secret();
    Secret {
        needed: provider.needs_secret(),
        env: words::variable(provider),
        place: &facts.place,
        prefix: &facts.prefix,
        bytes_min: facts.bytes_min,
        chosen_by: facts.chosen_by.map(ChosenBy::as_str),
    }
}

fn retry(provider: &Provider) -> Retry<'_> {
    let facts = provider.retry();
    let volatile = provider.volatile().iter();
    Retry {
        automatic: facts.automatic,
        same_id: facts.same_id,
        same_bytes: facts.same_bytes,
        resigned: facts.resigned,
        horizon_s: facts.horizon_s,
        volatile: volatile
            .map(|(pointer, confidence)| Volatile { pointer, confidence: confidence.as_str() })
            .collect(),
        note: &facts.note,
    }
}

fn ack(provider: &Provider) -> Ack<'_> {
    let facts = provider.ack();
    Ack {
        success: &facts.success,
        body: facts.body.as_deref(),
        timeout_s: facts.timeout_s,
        reject: facts.reject,
        confidence: facts.confidence.as_str(),
        note: &facts.note,
    }
}
