//! JSON web tokens (RFC 7515, RFC 7519) in compact form, over aws-lc-rs.
//!
//! Written here and not taken from a crate because little of a token is needed and that little strictly: the
//! algorithm must be on the record's list *and* fit the kind of the key, claims keep their digits, the clock is
//! given, and nothing in the header chooses a key but `kid`.

use std::collections::BTreeMap;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::asymmetric::{PublicKeyRule, private_key};
use super::{Key, KeyRule, Locator, Match, ecdsa, ed25519, rsa, unresolved_fault};
use crate::keys::PublicKey;
use crate::record::raw::{Algorithm, JwtAlgorithm, OneOrMany};
use crate::secret::{Secret, SecretError};
use crate::template::{Context, Template};
use crate::verdict::{Fault, Reason};
use crate::wire::json::Pointer;

/// Most tokens of one request.
const TOKENS_MAX: usize = 4;

/// How long a token that we sign is good for, in seconds.
const SIGNED_LIFETIME_S: i64 = 300;

/// `kind = "jwt"`.
#[derive(Debug, Clone)]
pub(crate) struct Jwt {
    pub(crate) locator: Locator,
    pub(crate) algorithms: Vec<JwtAlgorithm>,
    pub(crate) secret: KeyRule,
    pub(crate) key: Option<PublicKeyRule>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) claims_if_body: Vec<Claim>,
    pub(crate) require: Vec<String>,
    pub(crate) ignore_pad: bool,
    /// Seconds by which `exp` and `nbf` may be off.
    pub(crate) leeway_s: u32,
}

/// A claim and what it must be.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    pub(crate) name: String,
    pub(crate) optional: bool,
    pub(crate) values: Vec<Template>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    #[serde(default)]
    crit: Option<Box<RawValue>>,
    #[serde(default)]
    b64: Option<bool>,
}

/// A token's parts.
struct Token<'t> {
    header: Header,
    signed: &'t [u8],
    claims: Vec<u8>,
    signature: Vec<u8>,
}

impl Claim {
    pub(crate) fn compile(raw: &BTreeMap<String, OneOrMany>) -> Result<Vec<Self>, String> {
        let claim = |(name, texts): (&String, &OneOrMany)| {
            let values = texts
                .0
                .iter()
                .map(|text| text.parse().map_err(|error: crate::TemplateError| error.to_string()));
            Ok(Self {
                name: name.trim_end_matches('?').to_owned(),
                optional: name.ends_with('?'),
                values: values.collect::<Result<_, String>>()?,
            })
        };
        raw.iter().map(claim).collect()
    }
}

impl Jwt {
    /// The key that a source has: a public one if the text is PEM, else a shared secret.
    pub(crate) fn derive(&self, secret: &Secret) -> Result<Option<Key>, SecretError> {
        let text = secret.expose();
        match &self.key {
            Some(PublicKeyRule::Published(_)) => Ok(None),
            Some(rule) => Ok(rule.derive(text)?.map(Key::Public)),
            None if text.starts_with(b"-----BEGIN") && self.algorithms.iter().any(|one| !is_shared(*one)) => {
                let key = PublicKey::from_pem(text);
                key.map(|key| Some(Key::Public(key))).ok_or(SecretError::Undecodable("a public key in PEM"))
            }
            None => Ok(Some(Key::Secret(self.secret.derive(secret)?))),
        }
    }

    /// Checks the signature, then the claims. The lifetime is the freshness's matter.
    pub(crate) fn authenticate(&self, keys: &[Option<Key>], context: &Context<'_>) -> Result<Match, Fault> {
        let texts = self.locator.texts(context)?;
        let groups = self.locator.groups(&texts, context)?;
        let candidates: Vec<_> = groups.iter().flat_map(|group| &group.candidates).collect();
        if candidates.len() > TOKENS_MAX {
            return Err(self.locator.fault(Reason::TooManySignatures));
        }
        let mut first = Err(self.locator.fault(Reason::SignatureMalformed));
        for candidate in candidates {
            match (&first, self.check(candidate, keys, context)) {
                (Ok(_), _) => {}
                (Err(_), outcome) => first = outcome,
            }
        }
        first
    }

    fn check(&self, text: &[u8], keys: &[Option<Key>], context: &Context<'_>) -> Result<Match, Fault> {
        let token = read(text).ok_or_else(|| self.locator.fault(Reason::SignatureMalformed))?;
        let algorithm = self.allowed(&token.header)?;
        let kid = token.header.kid.as_deref().unwrap_or_default();
        let fields = [("alg", token.header.alg.as_bytes()), ("kid", kid.as_bytes())];
        let fields = if kid.is_empty() { &fields[..1] } else { &fields[..] };
        let secret_index = match &self.key {
            Some(PublicKeyRule::Published(finder)) => {
                let found = finder.find(&context.with_fields(fields))?;
                let mut candidates = found.keys.candidates(found.key_id.as_deref());
                candidates.any(|key| holds(algorithm, key, &token)).then_some(None)
            }
            _ => self.matching_key(algorithm, keys, &token).map(Some),
        };
        let secret_index = secret_index.ok_or_else(|| self.locator.fault(Reason::SignatureDiffers))?;
        self.check_claims(&token.claims, context)?;
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), value.to_vec())).collect();
        Ok(Match { secret_index, fields, claims: Some(token.claims) })
    }

    /// The algorithm that the token names, if the record allows it. `none` is on nobody's list.
    fn allowed(&self, header: &Header) -> Result<JwtAlgorithm, Fault> {
        let mut algorithms = self.algorithms.iter().copied();
        let found = algorithms.find(|algorithm| name(*algorithm) == header.alg);
        let plain = header.crit.is_none() && header.b64 != Some(false);
        found.filter(|_| plain).ok_or_else(|| self.locator.fault(Reason::SignatureMalformed))
    }

    fn matching_key(
        &self,
        algorithm: JwtAlgorithm,
        keys: &[Option<Key>],
        token: &Token<'_>,
    ) -> Option<usize> {
        let mut found = None;
        for (index, key) in keys.iter().enumerate() {
            let held = match key {
                Some(Key::Secret(secret)) => is_mac(algorithm, secret, token),
                Some(Key::Public(key)) => holds(algorithm, key, token),
                _ => false,
            };
            found = found.or(held.then_some(index));
        }
        found
    }

    fn check_claims(&self, claims: &[u8], context: &Context<'_>) -> Result<(), Fault> {
        let part = |name: &str| format!("jwt.{name}");
        for name in &self.require {
            Pointer::of_key(name).read(claims).ok_or_else(|| Fault::new(Reason::PartMissing, part(name)))?;
        }
        let if_body = self.claims_if_body.iter().filter(|_| !context.request.body.is_empty());
        for claim in self.claims.iter().chain(if_body) {
            let Some(found) = Pointer::of_key(&claim.name).read(claims) else {
                if claim.optional {
                    continue;
                }
                return Err(Fault::new(Reason::ClaimDiffers, part(&claim.name)));
            };
            let mut fits = false;
            for value in &claim.values {
                let wanted = value.resolve(context).map_err(unresolved_fault)?.concat();
                fits |= self.trimmed(&wanted) == self.trimmed(&found);
            }
            if !fits {
                return Err(Fault::new(Reason::ClaimDiffers, part(&claim.name)));
            }
        }
        Ok(())
    }

    fn trimmed<'v>(&self, value: &'v [u8]) -> &'v [u8] {
        let padding = value.iter().rev().take_while(|byte| self.ignore_pad && **byte == b'=').count();
        &value[..value.len() - padding]
    }

    /// Every template whose value a claim binds to the token.
    pub(crate) fn bound(&self) -> impl Iterator<Item = &Template> {
        let claims = self.claims.iter().filter(|claim| !claim.optional).chain(&self.claims_if_body);
        claims.flat_map(|claim| &claim.values)
    }

    /// A token as the provider would make it: with a shared secret, or with a private key in PEM.
    pub(crate) fn sign(
        &self,
        secret: &Secret,
        id: &str,
        now_s: i64,
        context: &Context<'_>,
    ) -> Result<Option<Vec<u8>>, Fault> {
        let mut claims = serde_json::Map::new();
        let if_body = self.claims_if_body.iter().filter(|_| !context.request.body.is_empty());
        for claim in self.claims.iter().chain(if_body) {
            let Some(value) = claim.values.first() else { continue };
            let value = value.resolve(context).map_err(unresolved_fault)?.concat();
            claims.insert(claim.name.clone(), String::from_utf8_lossy(&value).into_owned().into());
        }
        for (name, value) in [("iat", now_s), ("nbf", now_s), ("exp", now_s + SIGNED_LIFETIME_S)] {
            claims.insert(name.to_owned(), value.into());
        }
        claims.insert("jti".to_owned(), id.into());
        let Some(algorithm) = self.signing_algorithm(secret.expose()) else { return Ok(None) };
        let header = serde_json::json!({ "alg": name(algorithm), "typ": "JWT" });
        let part = |value: String| URL_SAFE_NO_PAD.encode(value);
        let text =
            format!("{}.{}", part(header.to_string()), part(serde_json::Value::from(claims).to_string()));
        let signature = if is_shared(algorithm) {
            self.secret.derive(secret).ok().map(|secret| mac(algorithm, &secret, text.as_bytes()))
        } else {
            private_key(secret.expose()).and_then(|private| sign_with(algorithm, &private, text.as_bytes()))
        };
        Ok(signature.map(|signature| format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)).into_bytes()))
    }

    /// The first algorithm for this form of secret.
    fn signing_algorithm(&self, secret: &[u8]) -> Option<JwtAlgorithm> {
        let private = private_key(secret);
        let fits = |algorithm: &JwtAlgorithm| match &private {
            None => is_shared(*algorithm),
            Some(private) => sign_with(*algorithm, private, b"").is_some(),
        };
        self.algorithms.iter().copied().find(fits)
    }
}

/// When a token is good, in Unix seconds; what it does not say is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lifetime {
    pub(crate) from_s: Option<i64>,
    pub(crate) until_s: Option<i64>,
}

impl Lifetime {
    /// Reads `nbf` and `exp`; a fraction is cut. Nothing for what is no number.
    pub(crate) fn read(claims: &[u8]) -> Option<Self> {
        let time = |name: &str| match Pointer::of_key(name).read(claims) {
            None => Some(None),
            Some(text) => {
                let text = std::str::from_utf8(&text).ok()?;
                let whole = text.split_once('.').map_or(text, |(whole, _)| whole);
                whole.parse().ok().map(Some)
            }
        };
        Some(Self { from_s: time("nbf")?, until_s: time("exp")? })
    }
}

fn read(text: &[u8]) -> Option<Token<'_>> {
    let mut dots = text.iter().enumerate().filter(|(_, byte)| **byte == b'.').map(|(at, _)| at);
    let (first, second) = (dots.next()?, dots.next()?);
    if dots.next().is_some() {
        return None;
    }
    let decode = |part: &[u8]| URL_SAFE_NO_PAD.decode(part).ok();
    let header = serde_json::from_slice(&decode(&text[..first])?).ok()?;
    let claims = decode(&text[first + 1..second])?;
    // The claims have to be an object; that is all that is known of them before the signature holds.
    serde_json::from_slice::<BTreeMap<String, &RawValue>>(&claims).ok()?;
    Some(Token { header, signed: &text[..second], claims, signature: decode(&text[second + 1..])? })
}

fn name(algorithm: JwtAlgorithm) -> &'static str {
    match algorithm {
        JwtAlgorithm::HS256 => "HS256",
        JwtAlgorithm::HS384 => "HS384",
        JwtAlgorithm::HS512 => "HS512",
        JwtAlgorithm::RS256 => "RS256",
        JwtAlgorithm::ES256 => "ES256",
        JwtAlgorithm::EdDSA => "EdDSA",
    }
}

fn is_shared(algorithm: JwtAlgorithm) -> bool {
    matches!(algorithm, JwtAlgorithm::HS256 | JwtAlgorithm::HS384 | JwtAlgorithm::HS512)
}

fn mac_key(algorithm: JwtAlgorithm, secret: &[u8]) -> hmac::Key {
    let hash = match algorithm {
        JwtAlgorithm::HS384 => hmac::HMAC_SHA384,
        JwtAlgorithm::HS512 => hmac::HMAC_SHA512,
        _ => hmac::HMAC_SHA256,
    };
    hmac::Key::new(hash, secret)
}

fn mac(algorithm: JwtAlgorithm, secret: &Zeroizing<Vec<u8>>, text: &[u8]) -> Vec<u8> {
    hmac::sign(&mac_key(algorithm, secret), text).as_ref().to_vec()
}

fn is_mac(algorithm: JwtAlgorithm, secret: &[u8], token: &Token<'_>) -> bool {
    is_shared(algorithm) && hmac::verify(&mac_key(algorithm, secret), token.signed, &token.signature).is_ok()
}

fn holds(algorithm: JwtAlgorithm, key: &PublicKey, token: &Token<'_>) -> bool {
    let verification = match algorithm {
        JwtAlgorithm::RS256 => rsa::verification(Algorithm::RsaSha256),
        JwtAlgorithm::ES256 => ecdsa::token_verification(),
        JwtAlgorithm::EdDSA => ed25519::verification(),
        JwtAlgorithm::HS256 | JwtAlgorithm::HS384 | JwtAlgorithm::HS512 => return false,
    };
    key.verifies(verification, token.signed, &token.signature)
}

fn sign_with(algorithm: JwtAlgorithm, private: &[u8], text: &[u8]) -> Option<Vec<u8>> {
    match algorithm {
        JwtAlgorithm::RS256 => rsa::sign(Algorithm::RsaSha256, private, text),
        JwtAlgorithm::ES256 => ecdsa::sign_token(private, text),
        JwtAlgorithm::EdDSA => ed25519::sign(private, text),
        JwtAlgorithm::HS256 | JwtAlgorithm::HS384 | JwtAlgorithm::HS512 => None,
    }
}
