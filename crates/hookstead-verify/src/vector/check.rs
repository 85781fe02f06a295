//! Runs one vector and says what is not as it must be.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::file::{Expect, Kind, Response, Vector};
use crate::handshake::HandshakeAnswer;
use crate::identity::IdentityRule;
use crate::keys::{KeyAnswer, KeyFormat, KeySource, KeyWanted};
use crate::provider::{Pinned, Provider};
use crate::registry::Registry;
use crate::request::Request;
use crate::secret::Secret;
use crate::verdict::{Reason, Rejection, RejectionClass};
use crate::verifier::{Verified, Verifier, VerifyOptions};

/// What is not as a vector says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch(String);

impl fmt::Display for Mismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Mismatch {}

type Outcome = Result<(), Mismatch>;

impl Vector {
    /// Runs the vector against the registry.
    ///
    /// # Errors
    ///
    /// [`Mismatch`] with the first thing that is not as it must be.
    pub fn check(&self, registry: &Registry) -> Outcome {
        let body = self.body().map_err(Mismatch)?;
        let verifier = self.verifier(registry)?;
        let request = self.request(&body);
        match self.kind {
            Kind::Verify => check_verdict(&self.expect, &verifier.verify(&request, self.now_micros())),
            Kind::Ack => {
                let found = verifier.verify(&request, self.now_micros());
                check_verdict(&self.expect, &found)?;
                check_status(&self.expect, verifier.provider(), &found)
            }
            Kind::Handshake => self.check_handshake(&verifier, &request),
        }
    }

    /// A verifier for the source that the vector describes.
    ///
    /// # Errors
    ///
    /// [`Mismatch`] if there can be no such source.
    pub fn verifier(&self, registry: &Registry) -> Result<Verifier, Mismatch> {
        let provider = self.record(registry)?;
        let keys = VectorKeys { jwks: self.config.jwks.as_ref().map(ToString::to_string), ..self.keys() };
        let default = if provider.has_id() { "provider" } else { "body" };
        let identity: IdentityRule =
            self.config.identity.as_deref().unwrap_or(default).parse().map_err(mismatch)?;
        let known = |name: &str| provider.conf().any(|(known, _, _)| known == name);
        // Where a source says whose requests it takes, a vector that does not takes everybody's.
        let any = provider.pins().map(|name| (name.to_owned(), Pinned::ANY.to_owned()));
        let vars = self.config.vars.clone().into_iter().filter(|(name, _)| known(name));
        let conf = any.chain(vars).collect();
        let options = VerifyOptions {
            url: self.config.url.clone(),
            identity,
            conf,
            key_source: provider.publishes_keys().then(|| Arc::new(keys) as Arc<dyn KeySource>),
            ..VerifyOptions::default()
        };
        // The secret that the provider hands over is taken only while there is none.
        if self.expect.response.as_ref().is_some_and(|response| !response.store.is_empty()) {
            return Verifier::awaiting_secret(provider, options).map_err(mismatch);
        }
        let secrets = self.config.secrets.iter().map(|secret| Secret::new(secret.as_str()));
        let secrets = secrets.collect::<Result<Vec<_>, _>>().map_err(mismatch)?;
        Verifier::new(provider, &secrets, options).map_err(mismatch)
    }

    /// The request with this body.
    pub fn request<'v>(&'v self, body: &'v [u8]) -> Request<'v> {
        let (method, target, _) = self.head();
        Request { method, target, url: None, headers: &self.request.headers, body }
    }

    /// The time at which the request is judged, in Unix microseconds.
    pub fn now_micros(&self) -> i64 {
        self.now.saturating_mul(1_000_000)
    }

    fn record(&self, registry: &Registry) -> Result<Arc<Provider>, Mismatch> {
        if let Some(spec) = &self.config.scheme {
            return spec.provider(&self.provider).map(Arc::new).map_err(mismatch);
        }
        let unknown = || Mismatch(format!("there is no provider `{}`", self.provider));
        let provider = registry.get(&self.provider).ok_or_else(unknown)?;
        // Published examples have secrets that a source would refuse as too short.
        let shortest = self.config.secrets.iter().map(String::len).min();
        let short = shortest.filter(|bytes| *bytes < provider.secret().bytes_min);
        let Some(bytes_min) = self.config.secret_bytes_min.or(short) else { return Ok(Arc::clone(provider)) };
        let toml = registry.toml(&self.provider).ok_or_else(unknown)?;
        let lines = toml.lines().map(|line| match line.starts_with("bytes_min") {
            true => format!("bytes_min = {bytes_min}\n"),
            false => format!("{line}\n"),
        });
        Provider::parse(&self.provider, &lines.collect::<String>()).map(Arc::new).map_err(mismatch)
    }

    fn keys(&self) -> VectorKeys {
        VectorKeys { jwks: None, keys: self.config.keys.clone(), certs: self.config.certs.clone() }
    }

    fn check_handshake(&self, verifier: &Verifier, request: &Request<'_>) -> Outcome {
        let wanted = self.expect.response.as_ref().ok_or_else(|| Mismatch("no response is given".into()))?;
        if let Some(answer) = verifier.handshake(request) {
            return check_answer(wanted, &answer);
        }
        match verifier.verify(request, self.now_micros()) {
            Err(rejection) => equal("status", status_of(verifier.provider(), &rejection), wanted.status),
            Ok(verified) => match verified.handshake() {
                Some(answer) => check_answer(wanted, &answer),
                None => Err(Mismatch("an event and no handshake".into())),
            },
        }
    }
}

fn mismatch(error: impl fmt::Display) -> Mismatch {
    Mismatch(error.to_string())
}

fn equal<T: PartialEq + fmt::Debug + Copy>(what: &str, found: T, wanted: T) -> Outcome {
    if found == wanted { Ok(()) } else { Err(Mismatch(format!("{what}: {found:?} instead of {wanted:?}"))) }
}

/// The verdict in the five words of the vectors.
fn verdict(found: &Result<Verified<'_>, Rejection>) -> &'static str {
    let Err(rejection) = found else { return "valid" };
    match rejection.reason {
        Reason::SignatureDiffers | Reason::CheckDiffers | Reason::ClaimDiffers | Reason::KeyUnknown => {
            "bad_signature"
        }
        Reason::TooOld | Reason::TooNew => "stale",
        Reason::SignatureMissing | Reason::PartMissing | Reason::TimestampMissing | Reason::IdMissing => {
            "missing_header"
        }
        _ => "malformed",
    }
}

fn check_verdict(expect: &Expect, found: &Result<Verified<'_>, Rejection>) -> Outcome {
    let (verdict, wanted) = (verdict(found), expect.verdict.as_deref().unwrap_or_default());
    if verdict != wanted && !expect.also_ok.iter().any(|also| also == verdict) {
        let why = found.as_ref().err().map(ToString::to_string).unwrap_or_default();
        return Err(Mismatch(format!("{verdict} instead of {wanted}: {why}")));
    }
    match found {
        Ok(verified) => check_event(expect, verified),
        Err(rejection) => check_rejection(expect, rejection),
    }
}

fn check_event(expect: &Expect, verified: &Verified<'_>) -> Outcome {
    if expect.secret_index.is_some() {
        equal("secret", verified.secret_index(), expect.secret_index)?;
    }
    if expect.event_id.is_none() && expect.event_type.is_none() && expect.account.is_none() {
        return Ok(());
    }
    let event = verified.identify();
    if let Some(wanted) = &expect.event_id {
        let event = event.as_ref().map_err(mismatch)?;
        let found = event.event_id.as_deref().map(String::from_utf8_lossy);
        equal("event id", found.as_deref(), Some(wanted.as_str()))?;
    }
    // Type and account are there also where a vector has no id.
    let Ok(event) = event else { return Ok(()) };
    if expect.event_type.is_some() {
        equal("event type", &event.event_type, &expect.event_type)?;
    }
    if expect.account.is_some() {
        equal("account", &event.account, &expect.account)?;
    }
    Ok(())
}

fn check_rejection(expect: &Expect, rejection: &Rejection) -> Outcome {
    let class = match rejection.class {
        RejectionClass::NotVerified => "not-verified",
        RejectionClass::Malformed => "malformed",
        RejectionClass::Unavailable => "unavailable",
    };
    // Where a vector names no class, the sender must learn nothing.
    equal("class", class, expect.class.as_deref().unwrap_or("not-verified"))?;
    match &expect.reason {
        Some(reason) => equal("reason", rejection.reason.code(), reason.as_str()),
        None => Ok(()),
    }
}

fn check_status(expect: &Expect, provider: &Provider, found: &Result<Verified<'_>, Rejection>) -> Outcome {
    let Some(wanted) = &expect.response else { return Ok(()) };
    let status = match found {
        Ok(_) => provider.ack().status().unwrap_or(200),
        Err(rejection) => status_of(provider, rejection),
    };
    equal("status", status, wanted.status)
}

fn check_answer(wanted: &Response, answer: &HandshakeAnswer) -> Outcome {
    equal("status", answer.status, wanted.status)?;
    if wanted.content_type.is_some() {
        equal("content type", &answer.content_type, &wanted.content_type)?;
    }
    for (name, value) in &wanted.headers {
        let found = answer.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
        equal(name, found.map(|(_, value)| value.as_slice()), Some(value.as_bytes()))?;
    }
    if let Some(body) = &wanted.body {
        equal("body", String::from_utf8_lossy(&answer.body).as_ref(), body.as_str())?;
    }
    if let Some(json) = &wanted.json {
        let found = serde_json::from_slice::<serde_json::Value>(&answer.body).map_err(mismatch)?;
        equal("body", &found, json)?;
    }
    let secret = answer.secret.as_ref().map(Secret::expose);
    equal("secret", secret, wanted.store.get("secret").map(String::as_bytes))
}

fn status_of(provider: &Provider, rejection: &Rejection) -> u16 {
    match rejection.class {
        RejectionClass::NotVerified => provider.ack().reject.unwrap_or(401),
        RejectionClass::Malformed => 400,
        RejectionClass::Unavailable => 503,
    }
}

/// The published keys of a vector.
#[derive(Debug)]
struct VectorKeys {
    jwks: Option<String>,
    keys: BTreeMap<String, String>,
    certs: BTreeMap<String, String>,
}

impl KeySource for VectorKeys {
    fn keys(&self, wanted: &KeyWanted) -> KeyAnswer {
        let parsed = match wanted.place.format {
            KeyFormat::Jwks => self.jwks.as_ref().map(|text| wanted.place.parse(text.as_bytes())),
            KeyFormat::Key => {
                let key = wanted.key_id.as_ref().and_then(|id| self.keys.get(id));
                key.map(|text| wanted.place.parse_key(text.as_bytes()))
            }
            KeyFormat::Certificate => {
                let certificate = wanted.place.url.as_ref().and_then(|url| self.certs.get(url));
                certificate.map(|text| wanted.place.parse(text.as_bytes()))
            }
        };
        match parsed {
            Some(Ok(keys)) => KeyAnswer::Keys(Arc::new(keys)),
            _ => KeyAnswer::Unknown,
        }
    }
}
