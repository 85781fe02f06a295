//! A source: one configured way in, ready for requests.

use std::sync::{Arc, OnceLock};

use hookstead_core::{BodyReuse, SourceName, SourceNumber};
use hookstead_verify::{IdentityRule, Processor, Provider, Secret, Verifier, VerifierError, VerifyOptions};

use crate::clock_skew::{ClockSkew, SkewFacts};
use crate::refusals::Refusals;
use crate::success::SuccessTemplate;

/// The largest body of a source whose provider and configuration say nothing else, in bytes.
pub const BODY_BYTES_MAX: u64 = 1024 * 1024;

/// One configured way in: a name, a provider's scheme, secrets and policy. Its address is `/in/<name>`.
#[derive(Debug)]
pub struct Source {
    name: SourceName,
    way: Way,
    options: SourceOptions,
    /// What the options or the provider say of these, worked out once.
    success: SuccessTemplate,
    body_reuse: BodyReuse,
    number: OnceLock<SourceNumber>,
    skew: Arc<ClockSkew>,
    refusals: Arc<Refusals>,
}

/// Header fields that are secrets of the sender's, whatever the provider.
const SENSITIVE_HEADERS: [&str; 3] = ["authorization", "proxy-authorization", "cookie"];

/// Query parts that are, or are as good as, secrets of the sender's, whatever the provider: people put tokens into
/// addresses that check nothing by them, and a signed address works for whoever has it. `code` is none of them: where it
/// is a key the provider's record says so, and elsewhere it is a status or a country.
const SENSITIVE_QUERY: [&str; 7] = ["api-key", "api_key", "apikey", "auth", "key", "password", "sig"];

/// The same, by how their names end: each kind of address has a prefix of its own for them.
const SENSITIVE_QUERY_ENDS: [&str; 3] = ["secret", "signature", "token"];

#[derive(Debug)]
enum Way {
    /// By requests that prove themselves.
    Verified(Box<Verified>),
    /// By calls of the program that holds the inbox, which answers for them.
    Recorded,
}

/// What verifies a source's requests, and what every event of it needs; made once.
#[derive(Debug)]
struct Verified {
    verifier: Verifier,
    /// Names of header fields that are never stored, beside [`SENSITIVE_HEADERS`].
    hidden_headers: Vec<String>,
    /// Names of query parts that are never stored, beside [`SENSITIVE_QUERY`] and [`SENSITIVE_QUERY_ENDS`].
    hidden_query: Vec<String>,
    /// For each secret how a request that it signed has proved itself, for people; last, for one that is not signed.
    proofs: Vec<String>,
    /// Whether the provider has still to hand over the secret.
    is_open: bool,
}

impl Verified {
    fn new(verifier: Verifier) -> Self {
        let provider = verifier.provider();
        let hidden_headers = provider.sensitive_headers().into_iter().map(str::to_owned).collect();
        let hidden_query = provider.sensitive_query().into_iter().map(str::to_owned).collect();
        let name = provider.name();
        let hints = (0..).map_while(|index| verifier.secret_hint(index));
        let signed = hints.map(|hint| format!("{name}, secret {hint}"));
        let proofs = signed.chain([format!("{name}, not signed")]).collect();
        Self { verifier, hidden_headers, hidden_query, proofs, is_open: false }
    }
}

/// The policy of a source.
#[derive(Clone, Debug, Default)]
pub struct SourceOptions {
    /// Tolerance, public address and identity rule.
    pub verify: VerifyOptions,
    /// The largest body, in bytes; `None`: what the provider's record says, else [`BODY_BYTES_MAX`].
    pub body_bytes_max: Option<u64>,
    /// What a sender is told of a conflict.
    pub on_conflict: OnConflict,
    /// What is made of a body that came before under another id; `None`: [`default_body_reuse`].
    pub body_reuse: Option<BodyReuse>,
    /// The status of a success, instead of the provider's or our own.
    pub success_status: Option<u16>,
    /// The body of a success, instead of the provider's or our own.
    pub success_body: Option<SuccessBody>,
}

/// What a sender wants to read in a success. The placeholders of a provider's record are filled: `@outcome@`,
/// `@event@`, `@new@`, `@sha256@` and `@header.NAME@`; everything else stays as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuccessBody {
    /// The text.
    pub text: String,
    /// Its `Content-Type`.
    pub content_type: String,
}

/// What a sender is told of a conflict. The other bytes are kept for review either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// 409.
    #[default]
    Refuse,
    /// The success status: for senders that switch an endpoint off when it refuses.
    Hold,
}

/// What is made of a body that comes again under another id, if the source says nothing: an event that has it is
/// flagged where the signature covers the body and not the id, since whoever repeats a request can then give it
/// another one. Where there is no id, or the signature covers it, nothing is made of it.
pub fn default_body_reuse(provider: &Provider, identity: &IdentityRule) -> BodyReuse {
    let has_id = match identity {
        IdentityRule::Provider => provider.has_id(),
        IdentityRule::Template(_) => true,
        IdentityRule::Body | IdentityRule::None => false,
    };
    if has_id && provider.body_covered() && !provider.covers_identity(identity) {
        BodyReuse::Flag
    } else {
        BodyReuse::Ignore
    }
}

impl Source {
    /// A source whose requests `provider` signs with one of `secrets`. Fails where requests could not be
    /// judged safely, see [`VerifierError`].
    pub fn new(
        name: SourceName,
        provider: Arc<Provider>,
        secrets: &[Secret],
        options: SourceOptions,
    ) -> Result<Self, VerifierError> {
        let verifier = Verifier::new(provider, secrets, options.verify.clone())?;
        Ok(Self::verified(name, Verified::new(verifier), options))
    }

    /// A source whose secret the provider hands over in its first request. Until it is kept and given by
    /// [`Inbox::give_secret`](crate::Inbox::give_secret), no event is accepted.
    ///
    /// # Errors
    ///
    /// [`VerifierError`], above all for a provider that does not do this.
    pub fn awaiting_secret(
        name: SourceName,
        provider: Arc<Provider>,
        options: SourceOptions,
    ) -> Result<Self, VerifierError> {
        let verifier = Verifier::awaiting_secret(provider, options.verify.clone())?;
        Ok(Self::verified(name, Verified { is_open: true, ..Verified::new(verifier) }, options))
    }

    fn verified(name: SourceName, verified: Verified, options: SourceOptions) -> Self {
        let provider = verified.verifier.provider();
        let of_provider = || SuccessTemplate::of_provider(Some(provider.ack()));
        let success = options.success_body.as_ref().map_or_else(of_provider, SuccessTemplate::from);
        let by_provider = || default_body_reuse(provider, &options.verify.identity);
        let body_reuse = options.body_reuse.unwrap_or_else(by_provider);
        let (number, skew, refusals) = (OnceLock::new(), Arc::default(), Arc::default());
        let way = Way::Verified(Box::new(verified));
        Self { name, way, options, success, body_reuse, number, skew, refusals }
    }

    /// Whether the provider has still to hand over the secret.
    pub fn awaits_secret(&self) -> bool {
        matches!(&self.way, Way::Verified(verified) if verified.is_open)
    }

    /// The same source with this secret.
    pub(crate) fn with_secret(&self, secret: &Secret) -> Result<Self, VerifierError> {
        let provider = self.provider().ok_or_else(|| VerifierError::NoHandover(self.name.to_string()))?;
        let secrets = std::slice::from_ref(secret);
        let source = Self::new(self.name.clone(), provider.clone(), secrets, self.options.clone())?;
        let (skew, refusals) = (Arc::clone(&self.skew), Arc::clone(&self.refusals));
        Ok(Self { number: self.number.clone(), skew, refusals, ..source })
    }

    /// A source that only [`Inbox::record`](crate::Inbox::record) can write to: no request is ever accepted
    /// by it, and whoever calls answers for where the events come from.
    pub fn recorded(name: SourceName) -> Self {
        let (options, number) = (SourceOptions::default(), OnceLock::new());
        let (success, body_reuse) = (SuccessTemplate::of_provider(None), BodyReuse::default());
        let (skew, refusals) = (Arc::default(), Arc::default());
        Self { name, way: Way::Recorded, options, success, body_reuse, number, skew, refusals }
    }

    /// The source's name.
    pub fn name(&self) -> &SourceName {
        &self.name
    }

    /// The provider, unless the source is only recorded to.
    pub fn provider(&self) -> Option<&Arc<Provider>> {
        self.verifier().map(Verifier::provider)
    }

    /// What is made of a body that came before under another id. A source that is only recorded to makes nothing
    /// of it.
    pub fn body_reuse(&self) -> BodyReuse {
        self.body_reuse
    }

    /// The body of a success: that of the policy, else of the provider, else our own.
    pub fn success(&self) -> &SuccessTemplate {
        &self.success
    }

    /// The source's policy.
    pub fn options(&self) -> &SourceOptions {
        &self.options
    }

    /// The largest body that the source takes, in bytes.
    pub fn body_bytes_max(&self) -> u64 {
        let by_provider = || self.provider().and_then(|provider| provider.body_bytes_max());
        self.options.body_bytes_max.or_else(by_provider).unwrap_or(BODY_BYTES_MAX)
    }

    /// The store's number of the source; `None` before the store knows it.
    pub fn number(&self) -> Option<SourceNumber> {
        self.number.get().copied()
    }

    /// How far the signed times of its requests were from their arrival, since the source was configured.
    pub fn skew(&self) -> SkewFacts {
        self.skew.facts()
    }

    /// The newest requests to it that were refused, since the source was configured. Whoever serves the intake takes
    /// note of them; [`Inbox::receive`](crate::Inbox::receive) alone does not.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    pub(crate) fn clock_skew(&self) -> &ClockSkew {
        &self.skew
    }

    pub(crate) fn verifier(&self) -> Option<&Verifier> {
        match &self.way {
            Way::Verified(verified) => Some(&verified.verifier),
            Way::Recorded => None,
        }
    }

    /// How the sender of a request proved itself, for people: the provider, and the end of the secret that matched.
    pub(crate) fn proof(&self, secret_index: Option<usize>) -> &str {
        let Way::Verified(verified) = &self.way else { return "" };
        let proof = secret_index.and_then(|index| verified.proofs.get(index)).or(verified.proofs.last());
        proof.map_or("", String::as_str)
    }

    /// Whether a header field is a secret of the sender's, which is never stored.
    pub(crate) fn hides_header(&self, name: &[u8]) -> bool {
        let is_it = |hidden: &str| hidden.as_bytes().eq_ignore_ascii_case(name);
        let more = match &self.way {
            Way::Verified(verified) => verified.hidden_headers.as_slice(),
            Way::Recorded => &[],
        };
        SENSITIVE_HEADERS.into_iter().any(is_it) || more.iter().any(|hidden| is_it(hidden))
    }

    /// Whether a query part, by its decoded name, is a secret of the sender's, which is never stored.
    pub(crate) fn hides_query(&self, name: &[u8]) -> bool {
        let of_provider = match &self.way {
            Way::Verified(verified) => verified.hidden_query.as_slice(),
            Way::Recorded => &[],
        };
        let is_it = |hidden: &str| hidden.as_bytes().eq_ignore_ascii_case(name);
        SENSITIVE_QUERY.into_iter().any(is_it)
            || SENSITIVE_QUERY_ENDS.into_iter().any(|end| ends_with(name, end))
            || of_provider.iter().any(|hidden| is_it(hidden))
    }

    /// What a processing run reads from the bodies of the source's events.
    pub(crate) fn processor(&self) -> Option<Processor> {
        self.provider().and_then(|provider| provider.processor())
    }

    /// The fingerprint of the rule that makes the source's identities.
    pub(crate) fn identity_fingerprint(&self) -> String {
        match &self.way {
            Way::Verified(verified) => hex::encode(verified.verifier.identity_fingerprint()),
            Way::Recorded => "recorded".to_owned(),
        }
    }

    /// The first number stays: a store never gives a name another one.
    pub(crate) fn set_number(&self, number: SourceNumber) -> SourceNumber {
        *self.number.get_or_init(|| number)
    }
}

/// Whether a name ends so, whatever the case of its letters.
fn ends_with(name: &[u8], end: &str) -> bool {
    let begin = name.len().checked_sub(end.len());
    begin.is_some_and(|begin| name[begin..].eq_ignore_ascii_case(end.as_bytes()))
}
