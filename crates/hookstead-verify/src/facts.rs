//! What a record proves of a request and what it does not, as values for whoever shows it to people.
//!
//! Read off the compiled schemes, so that a page cannot say anything that verifying does not do. Knows no wording
//! of pages: sentences are made by the caller.

use crate::freshness::Future;
use crate::provider::{Confidence, Provider, Variant};
use crate::record::raw::{Algorithm, JwtAlgorithm};
use crate::scheme::{BASIC_HEADER, Hash, Scheme};
use crate::template::{Slot, Template, Variable};

/// One scheme of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemeFacts {
    /// The algorithm in words: `HMAC-SHA256`, `Ed25519`, `JSON web token (ES256)`, `shared token`.
    pub algorithm: String,
    /// Where the proof is, as templates name it: `header.Stripe-Signature`. Empty if nothing is proved.
    pub places: Vec<String>,
    /// What is signed: templates, any of which may have been. Empty for a token, which signs nothing.
    pub contents: Vec<String>,
    /// Whether the proof covers the body as a whole.
    pub covers_body: bool,
    /// Whether the public address is part of what is signed.
    pub covers_url: bool,
    /// The pointer of the array whose items carry a proof each.
    pub each: Option<String>,
    /// What has to be equal beside the proof, both sides as templates, a pair each. A side that is a value of the
    /// source's configuration counts only where the source gives it, unless [`Provider::conf`] says it is needed.
    pub checks: Vec<(String, String)>,
    /// The claims that a token must make, by name, with the values that they may have.
    pub claims: Vec<(String, Vec<String>)>,
    /// The signed time, if there is one.
    pub time: Option<TimeFacts>,
    /// Where the key is from.
    pub key: KeyFacts,
}

/// A signed time and how far it may be off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeFacts {
    /// The template that gives it.
    pub from: String,
    /// Seconds into the past; `None` for no limit.
    pub past_s: Option<u32>,
    /// Seconds into the future; `None` for no limit.
    pub future_s: Option<u32>,
}

/// Where the key of a scheme is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFacts {
    /// A secret that both sides have.
    Shared,
    /// A public key that the source is given in place of a secret.
    Public,
    /// Keys that the provider publishes; they are fetched.
    Published,
    /// None: nothing is proved.
    None,
}

impl Provider {
    /// Its schemes, in the order in which they are tried.
    pub fn schemes(&self) -> impl Iterator<Item = SchemeFacts> {
        self.variants.iter().map(facts)
    }

    /// The templates of the event id, the first of which that gives one counts. Empty if it names its events
    /// nowhere.
    pub fn id_templates(&self) -> Vec<String> {
        self.id.iter().map(Template::to_string).collect()
    }

    /// The template of the scope, where that is part of the identity.
    pub fn scope_template(&self) -> Option<String> {
        self.id.scope_template().map(Template::to_string)
    }

    /// The templates of the event type.
    pub fn type_templates(&self) -> Vec<String> {
        self.kind.iter().map(Template::to_string).collect()
    }

    /// The names of the requests that are no events and are answered at once: challenges, probes.
    pub fn handshakes(&self) -> impl Iterator<Item = &str> {
        self.handshakes.iter().map(|handshake| handshake.name.as_str())
    }
}

impl Confidence {
    /// As records and JSON write it: `official-docs`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OfficialSdk => "official-sdk",
            Self::OfficialDocs => "official-docs",
            Self::ThirdParty => "third-party",
            Self::Recalled => "recalled",
            Self::Own => "own",
        }
    }

    /// What the word means, as a sentence without a full stop.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::OfficialSdk => "the provider's own SDK accepted what we sign, and we accept what it signs",
            Self::OfficialDocs => "read in the provider's documents or source",
            Self::ThirdParty => "from a third party's code or text",
            Self::Recalled => "from memory, not looked up again; try a real request before you rely on it",
            Self::Own => "our own definition",
        }
    }
}

fn facts(variant: &Variant) -> SchemeFacts {
    let scheme = &variant.scheme;
    let slots: Vec<&Slot> = scheme.templates().into_iter().flat_map(Template::slots).collect();
    let check = |check: &crate::provider::Check| (check.left.to_string(), check.right.to_string());
    let pin = |pin: &crate::provider::Pinned| (pin.part.to_string(), format!("{{conf.{}}}", pin.conf));
    SchemeFacts {
        algorithm: algorithm(scheme),
        places: places(scheme),
        contents: scheme.contents().iter().map(Template::to_string).collect(),
        covers_body: scheme.signs_body(),
        covers_url: slots.iter().any(|slot| matches!(slot.variable, Variable::Url | Variable::UrlBase)),
        each: variant.each.as_ref().map(ToString::to_string),
        checks: variant.checks.iter().map(check).chain(variant.pins.iter().map(pin)).collect(),
        claims: claims(scheme),
        time: variant.freshness.as_ref().map(|freshness| TimeFacts {
            from: freshness.from.to_string(),
            past_s: freshness.tolerance_s,
            future_s: match freshness.future {
                Future::AsTolerance => freshness.tolerance_s,
                Future::Seconds(seconds) => Some(seconds),
                Future::Unbounded => None,
            },
        }),
        key: key(scheme),
    }
}

fn places(scheme: &Scheme) -> Vec<String> {
    match scheme {
        Scheme::Basic(_) => vec![format!("header.{BASIC_HEADER}")],
        other => {
            let places = other.locator().into_iter().flat_map(|locator| locator.places());
            places.map(|place| place.name.clone()).collect()
        }
    }
}

fn claims(scheme: &Scheme) -> Vec<(String, Vec<String>)> {
    let Scheme::Jwt(token) = scheme else { return Vec::new() };
    let claims = token.claims.iter().chain(&token.claims_if_body);
    claims.map(|claim| (claim.name.clone(), claim.values.iter().map(Template::to_string).collect())).collect()
}

fn key(scheme: &Scheme) -> KeyFacts {
    match scheme {
        Scheme::None => KeyFacts::None,
        scheme if scheme.key_finder().is_some() => KeyFacts::Published,
        scheme if scheme.shares_secret() => KeyFacts::Shared,
        _ => KeyFacts::Public,
    }
}

fn algorithm(scheme: &Scheme) -> String {
    match scheme {
        Scheme::Hmac(scheme) => format!("HMAC-{}", hash(scheme.hash)),
        Scheme::Hash(scheme) => format!("{} over a text with the secret in it", hash(scheme.hash)),
        Scheme::Asymmetric(scheme) => asymmetric(scheme.algorithm).to_owned(),
        Scheme::Jwt(scheme) => {
            let names: Vec<&str> = scheme.algorithms.iter().map(|algorithm| jwt(*algorithm)).collect();
            format!("JSON web token ({})", names.join(", "))
        }
        Scheme::Token(_) => "shared token".to_owned(),
        Scheme::Basic(_) => "HTTP Basic authentication".to_owned(),
        Scheme::None => "nothing".to_owned(),
    }
}

fn hash(hash: Hash) -> &'static str {
    match hash {
        Hash::Sha1 => "SHA1",
        Hash::Sha256 => "SHA256",
        Hash::Sha512 => "SHA512",
    }
}

fn asymmetric(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Ed25519 => "Ed25519",
        Algorithm::EcdsaP256Sha1 => "ECDSA P-256 with SHA1",
        Algorithm::EcdsaP256Sha256 => "ECDSA P-256 with SHA256",
        Algorithm::RsaSha1 => "RSA with SHA1",
        Algorithm::RsaSha256 => "RSA with SHA256",
        Algorithm::RsaSha512 => "RSA with SHA512",
    }
}

fn jwt(algorithm: JwtAlgorithm) -> &'static str {
    match algorithm {
        JwtAlgorithm::HS256 => "HS256",
        JwtAlgorithm::HS384 => "HS384",
        JwtAlgorithm::HS512 => "HS512",
        JwtAlgorithm::RS256 => "RS256",
        JwtAlgorithm::ES256 => "ES256",
        JwtAlgorithm::EdDSA => "EdDSA",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    fn scheme(name: &str) -> SchemeFacts {
        Registry::builtin().get(name).unwrap().schemes().next().unwrap()
    }

    #[test]
    fn facts_are_those_of_the_record() {
        let stripe = scheme("stripe");
        assert_eq!(stripe.algorithm, "HMAC-SHA256");
        assert_eq!(stripe.places, ["header.Stripe-Signature"]);
        assert_eq!(stripe.contents, ["{sig.t}.{body}"]);
        let time = stripe.time.unwrap();
        assert_eq!((time.past_s, time.future_s), (Some(300), Some(3_600)));
        assert!(stripe.covers_body && !stripe.covers_url);

        let graph = scheme("ms-graph");
        assert_eq!((graph.algorithm.as_str(), graph.key), ("shared token", KeyFacts::Shared));
        assert_eq!(graph.each.as_deref(), Some("/value"));
        assert!(!graph.covers_body && graph.contents.is_empty());

        let plaid = scheme("plaid");
        assert_eq!(plaid.key, KeyFacts::Published);
        assert!(plaid.claims.iter().any(|(name, _)| name == "request_body_sha256"));
        assert!(scheme("twilio").covers_url);
        assert_eq!(scheme("discord").key, KeyFacts::Public);
        assert_eq!(scheme("none").key, KeyFacts::None);
    }
}
