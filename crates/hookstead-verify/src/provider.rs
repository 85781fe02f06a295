//! A provider: one record of the registry, compiled. Immutable data; everything that is done with it (verify,
//! sign, identify) is elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::comparison::{ComparisonDigest, Volatile};
use crate::freshness::Freshness;
use crate::handshake::Handshake;
use crate::identity::{IdForm, IdTemplates, IdentityRule};
use crate::keys::KeyDocumentError;
use crate::record::{ProviderError, compile, raw};
use crate::request::Lookup;
use crate::scheme::Scheme;
use crate::secret::{Secret, SecretError};
use crate::separator::Separator;
use crate::template::{Context, Template, Variable};
use crate::when::When;
use crate::wire::json::Pointer;

/// A third party's way of signing and identifying.
///
/// ```
/// use hookstead_verify::Registry;
///
/// let stripe = Registry::builtin().get("stripe").expect("stripe is built in");
/// assert_eq!(stripe.title(), "Stripe");
/// assert!(stripe.needs_secret() && stripe.id_covered());
/// ```
#[derive(Debug, Clone)]
pub struct Provider {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) docs: String,
    pub(crate) notes: String,
    pub(crate) confidence: Confidence,
    pub(crate) methods: Vec<String>,
    pub(crate) order: Order,
    pub(crate) payload: Option<Variable>,
    /// What stands in every request beside the proof, the id and the type.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body_bytes_min: Option<u64>,
    pub(crate) body_bytes_max: Option<u64>,
    pub(crate) variants: Vec<Variant>,
    pub(crate) secret: SecretFacts,
    pub(crate) id: IdTemplates,
    pub(crate) id_covered: bool,
    /// Whether its forms may come as multipart ones.
    pub(crate) multipart: bool,
    pub(crate) id_form: Option<IdForm>,
    pub(crate) kind: Vec<Template>,
    pub(crate) account: Vec<Template>,
    pub(crate) volatile: Volatile,
    pub(crate) handshakes: Vec<Handshake>,
    pub(crate) conf: BTreeMap<String, String>,
    pub(crate) retry: Retry,
    pub(crate) ack: Ack,
    pub(crate) processor: Option<Processor>,
    pub(crate) samples: Vec<Sample>,
}

/// One way in which a provider proves its requests.
#[derive(Debug, Clone)]
pub(crate) struct Variant {
    pub(crate) when: When,
    pub(crate) scheme: Scheme,
    pub(crate) separator: Option<Separator>,
    pub(crate) checks: Vec<Check>,
    pub(crate) pins: Vec<Pinned>,
    pub(crate) freshness: Option<Freshness>,
    /// Where the array is whose items carry a proof each.
    pub(crate) each: Option<Pointer>,
    pub(crate) listed: Option<ListedHeader>,
}

/// A part of the request that has to be what the source's configuration says.
#[derive(Debug, Clone)]
pub(crate) struct Pinned {
    pub(crate) part: Template,
    /// The name of the value: one text, several with commas between them, or [`ANY`](Self::ANY).
    pub(crate) conf: String,
}

impl Pinned {
    /// The value of a source that takes every one, written out so that nobody does by leaving it away.
    pub(crate) const ANY: &str = "any";
}

/// A header that is signed only if a list, which is signed, names it.
#[derive(Debug, Clone)]
pub(crate) struct ListedHeader {
    pub(crate) list: Variable,
    pub(crate) header: String,
}

impl ListedHeader {
    /// Whether the list of this request, with commas, has the header.
    pub(crate) fn holds(&self, context: &Context<'_>) -> bool {
        let Lookup::One(list) = self.list.resolve(context) else { return false };
        let mut names = list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        names.any(|name| name.eq_ignore_ascii_case(self.header.as_bytes()))
    }
}

/// Two templates that must give the same bytes.
#[derive(Debug, Clone)]
pub(crate) struct Check {
    pub(crate) left: Template,
    pub(crate) right: Template,
}

/// How sure a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// The provider's own SDK accepted what we sign, and we accept what it signs.
    OfficialSdk,
    /// Read in the provider's documents or source.
    OfficialDocs,
    /// From a third party's code or text.
    ThirdParty,
    /// From memory; not looked up again.
    Recalled,
    /// Our own definition.
    Own,
}

/// What is checked first, and so what a refusal may tell the sender.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Signature, then checks, then time: every refusal is [`NotVerified`](crate::RejectionClass::NotVerified).
    #[default]
    SignatureFirst,
    /// Id, time and body length by their form ([`Malformed`](crate::RejectionClass::Malformed)), then the
    /// window, then the signature.
    FormFirst,
}

/// What a processing run reads from a body, beside recording that it happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Processor {
    /// The body is a JSON object with a text `eventId`, which names the business event, and a `data`.
    EventIdAndData,
}

/// What a record says of secrets, for the place where a person enters one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretFacts {
    /// Fewest bytes of key.
    pub bytes_min: usize,
    /// With what the provider's secrets start, or empty.
    pub prefix: String,
    /// Where in the provider's pages it is found.
    pub place: String,
    /// The environment variable in which it is usually kept.
    pub env: String,
    /// Who chooses it; `None` where that is not known, or where it may be either.
    pub chosen_by: Option<ChosenBy>,
}

/// Who chooses the secret of a provider's webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChosenBy {
    /// The provider makes it and shows it: no other one can be entered there.
    Provider,
    /// Whoever receives makes it up, and enters it at the provider.
    You,
}

impl ChosenBy {
    /// As records and JSON write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::You => "you",
        }
    }
}

/// What is known of a provider's retries; `None` where it is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retry {
    /// Whether the provider tries again by itself.
    pub automatic: Option<bool>,
    /// Whether a retry keeps the event id.
    pub same_id: Option<bool>,
    /// Whether a retry keeps the bytes of the body.
    pub same_bytes: Option<bool>,
    /// Whether a retry is signed anew, with a new time.
    pub resigned: Option<bool>,
    /// For how long retries may come, in seconds after the first try.
    pub horizon_s: Option<u64>,
    /// More in words.
    pub note: String,
}

/// The answer that a provider wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ack {
    /// Status codes that count as success; empty if every 2xx does.
    pub success: Vec<u16>,
    /// The body that it wants; `None` if any will do.
    pub body: Option<String>,
    /// The content type of that body.
    pub content_type: Option<String>,
    /// How long it waits, in seconds.
    pub timeout_s: Option<u32>,
    /// The status that it wants for a signature that does not hold, where that is not 401.
    pub reject: Option<u16>,
    /// The body of the answer to a signature that does not hold; `None` if any will do.
    pub reject_body: Option<String>,
    /// How sure these facts and those of [`Retry`] are.
    pub confidence: Confidence,
    /// More in words.
    pub note: String,
}

impl Ack {
    /// The status to answer instead of our own 202 and 200: the first of a list that has not both.
    pub fn status(&self) -> Option<u16> {
        let ours = self.success.is_empty() || (self.success.contains(&202) && self.success.contains(&200));
        if ours { None } else { self.success.first().copied() }
    }
}

/// Made-up event data for trying out a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The event's type.
    pub event: String,
    /// The body's content type.
    pub content_type: String,
    /// Start of a realistic event id.
    pub(crate) id: String,
    /// What stands before and after the part of the id that is in the body, where an id has several parts.
    pub(crate) before: String,
    pub(crate) after: String,
    /// The body with placeholders.
    pub(crate) body: String,
}

impl Provider {
    /// Reads a record from its TOML.
    ///
    /// # Errors
    ///
    /// [`ProviderError`] for a key that is not known, a template that cannot be compiled, and a record that
    /// would not be safe, such as a time that no signature covers.
    pub fn parse(name: &str, toml: &str) -> Result<Self, ProviderError> {
        let record: raw::Record = toml::from_str(toml)
            .map_err(|error| ProviderError::at(name, toml, error.span(), error.message().to_owned()))?;
        compile(name, &record).map_err(|fault| ProviderError::at(name, toml, Some(fault.span), fault.message))
    }

    /// The name in the registry and in `provider = "..."`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name for people.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The address of the provider's own description, or empty.
    pub fn docs(&self) -> &str {
        &self.docs
    }

    /// What else is worth knowing, or empty.
    pub fn notes(&self) -> &str {
        &self.notes
    }

    /// How sure the scheme is.
    pub fn confidence(&self) -> Confidence {
        self.confidence
    }

    /// The methods with which it calls, those of handshakes among them.
    pub fn methods(&self) -> impl Iterator<Item = &str> {
        let handshakes = self.handshakes.iter().flat_map(|handshake| handshake.when.methods());
        let further = handshakes.filter(|method| !self.methods.contains(method)).collect::<BTreeSet<_>>();
        self.methods.iter().chain(further).map(String::as_str)
    }

    /// Whether a method is one of [`methods`](Self::methods).
    pub fn calls_with(&self, method: &str) -> bool {
        let has = |methods: &[String]| methods.iter().any(|known| known == method);
        has(&self.methods) || self.handshakes.iter().any(|handshake| has(handshake.when.methods()))
    }

    /// What a source has to give beside secrets: each value's name, what it is, and whether requests are
    /// checked with it. Without the others, only the handshakes that ask for them are refused.
    pub fn conf(&self) -> impl Iterator<Item = (&str, &str, bool)> {
        let needed = self.scheme_conf();
        self.conf
            .iter()
            .map(move |(name, what)| (name.as_str(), what.as_str(), needed.contains(name.as_str())))
    }

    /// Whether it signs with keys that it publishes, so that a source needs a
    /// [`KeySource`](crate::KeySource).
    pub fn publishes_keys(&self) -> bool {
        self.variants.iter().any(|variant| variant.scheme.key_finder().is_some())
    }

    /// Whether a public key that its customers are shown can be used: PEM or DER in base64, or a JWK set where that is
    /// what it publishes.
    ///
    /// # Errors
    ///
    /// The [`KeyDocumentError`] of the first scheme if no scheme can use the key.
    pub fn check_given_key(&self, text: &[u8]) -> Result<(), KeyDocumentError> {
        let mut first = Ok(());
        for finder in self.variants.iter().filter_map(|variant| variant.scheme.key_finder()) {
            match finder.check_given(text) {
                Ok(()) => return Ok(()),
                Err(error) => first = first.and(Err(error)),
            }
        }
        first
    }

    /// Whether some scheme of it has a secret that both sides share, so that anybody can make one up and sign
    /// with it. Otherwise what a source has is a public key.
    pub fn shares_secret(&self) -> bool {
        self.variants.iter().any(|variant| variant.scheme.shares_secret())
    }

    /// Whether it can hand over the secret by itself:
    /// [`Verifier::awaiting_secret`](crate::Verifier::awaiting_secret).
    pub fn hands_over_secret(&self) -> bool {
        self.handshakes.iter().any(|handshake| handshake.store.is_some())
    }

    /// Names of configuration values that some scheme needs.
    pub(crate) fn scheme_conf(&self) -> BTreeSet<&str> {
        let templates = self.variants.iter().flat_map(|variant| variant.scheme.templates());
        let locators = self.variants.iter().filter_map(|variant| variant.scheme.locator());
        let names = locators.flat_map(|locator| locator.conf_names());
        templates.flat_map(conf_names).chain(names).chain(self.pins()).collect()
    }

    /// Names of all configuration values.
    pub(crate) fn conf_names(&self) -> BTreeSet<&str> {
        let handshakes = self.handshakes.iter().flat_map(|handshake| {
            let checks = handshake.checks.iter().flat_map(|check| [&check.left, &check.right]);
            checks.chain([&handshake.body]).chain(handshake.headers.iter().map(|(_, value)| value))
        });
        handshakes.flat_map(conf_names).chain(self.scheme_conf()).collect()
    }

    /// Names of the configuration values that a part of a request has to be one of. `any` is for them.
    pub fn pins(&self) -> impl Iterator<Item = &str> {
        self.variants.iter().flat_map(|variant| &variant.pins).map(|pin| pin.conf.as_str())
    }

    /// What is checked first.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Fewest bytes of a body, if it says so.
    pub fn body_bytes_min(&self) -> Option<u64> {
        self.body_bytes_min
    }

    /// Most bytes of a body, if it says so.
    pub fn body_bytes_max(&self) -> Option<u64> {
        self.body_bytes_max
    }

    /// Whether requests have to prove anything at all.
    pub fn checks_requests(&self) -> bool {
        self.variants.iter().any(|variant| !matches!(variant.scheme, Scheme::None))
    }

    /// Whether a source of this provider must have a secret.
    pub fn needs_secret(&self) -> bool {
        self.variants.iter().any(|variant| variant.scheme.needs_secret())
    }

    /// Whether the public address is part of what is signed.
    pub fn needs_url(&self) -> bool {
        let templates = self.variants.iter().flat_map(|variant| variant.scheme.templates());
        let mut slots = templates.flat_map(Template::slots);
        slots.any(|slot| matches!(slot.variable, Variable::Url | Variable::UrlBase))
    }

    /// Whether it signs the time of a request.
    pub fn has_timestamp(&self) -> bool {
        self.variants.iter().any(|variant| variant.freshness.is_some())
    }

    /// Whether it signs a time, and there is a limit for its age.
    pub fn limits_time(&self) -> bool {
        let limits = |freshness: &Freshness| freshness.tolerance_s.is_some();
        self.variants.iter().any(|variant| variant.freshness.as_ref().is_some_and(limits))
    }

    /// Whether the signature covers the event id. If not, whoever can repeat a request can give it another id.
    pub fn id_covered(&self) -> bool {
        self.id_covered
    }

    /// Whether every scheme covers all that the template names.
    pub(crate) fn signs(&self, template: &Template) -> bool {
        self.variants.iter().all(|variant| variant.scheme.signs(template))
    }

    /// Whether the signature covers what identifies an event by this rule. Never by [`IdentityRule::None`].
    pub fn covers_identity(&self, rule: &IdentityRule) -> bool {
        match rule {
            IdentityRule::Provider => self.id_covered,
            IdentityRule::Template(template) => self.signs(template),
            IdentityRule::Body => self.signs_body(),
            IdentityRule::None => false,
        }
    }

    /// Whether the signature covers the body as a whole, whichever scheme is used.
    pub fn body_covered(&self) -> bool {
        self.signs_body()
    }

    /// Whether every scheme covers the body as a whole.
    pub(crate) fn signs_body(&self) -> bool {
        self.variants.iter().all(|variant| variant.scheme.signs_body())
    }

    /// Whether it names its events. If not, a source must say what identifies them.
    pub fn has_id(&self) -> bool {
        !self.id.is_empty()
    }

    /// The JSON values that may differ between two sendings of one event.
    pub fn volatile(&self) -> &Volatile {
        &self.volatile
    }

    /// The digest of what a body says apart from its [`volatile`](Self::volatile) values: two bodies of one
    /// event that have the same one are duplicates. `None` where only equal bytes are the same.
    pub fn comparison_digest(&self, body: &[u8]) -> Option<ComparisonDigest> {
        self.volatile.digest(body)
    }

    /// What its secrets look like.
    pub fn secret(&self) -> &SecretFacts {
        &self.secret
    }

    /// What is known of its retries.
    pub fn retry(&self) -> &Retry {
        &self.retry
    }

    /// The answer that it wants.
    pub fn ack(&self) -> &Ack {
        &self.ack
    }

    /// What a processing run reads from a body; `None`: nothing.
    pub fn processor(&self) -> Option<Processor> {
        self.processor
    }

    /// Made-up events for trying it out.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Headers that *are* the secret, in the case of the record: drop them before a request is stored.
    pub fn sensitive_headers(&self) -> Vec<&str> {
        let basic = self.variants.iter().any(|variant| matches!(variant.scheme, Scheme::Basic(_)));
        let headers = self.token_places().filter_map(|place| place.strip_prefix("header."));
        headers.chain(basic.then_some(crate::scheme::BASIC_HEADER)).collect()
    }

    /// Query parts that are the secret, or the proof that was made with it: drop them before a query is stored. An
    /// address with its proof in it is as good as a secret wherever the proof covers nothing else.
    pub fn sensitive_query(&self) -> Vec<&str> {
        let locators = self.variants.iter().filter_map(|variant| variant.scheme.locator());
        let places = locators.flat_map(|locator| locator.places());
        places.filter_map(|place| place.name.strip_prefix("query.")).collect()
    }

    fn token_places(&self) -> impl Iterator<Item = &str> {
        let tokens = self.variants.iter().filter(|variant| matches!(variant.scheme, Scheme::Token(_)));
        let places =
            tokens.filter_map(|variant| variant.scheme.locator()).flat_map(|locator| locator.places());
        places.map(|place| place.name.as_str())
    }

    /// Whether a secret is of this provider's form: long enough, and in the coding that a scheme wants.
    ///
    /// # Errors
    ///
    /// The [`SecretError`] of the first scheme if no scheme can use the secret.
    pub fn check_secret(&self, secret: &Secret) -> Result<(), SecretError> {
        let mut first = Ok(());
        for variant in &self.variants {
            match variant.scheme.derive(secret) {
                Ok(_) => return Ok(()),
                Err(error) => first = first.and(Err(error)),
            }
        }
        first
    }
}

fn conf_names(template: &Template) -> Vec<&str> {
    template
        .slots()
        .into_iter()
        .filter_map(|slot| match &slot.variable {
            Variable::Conf(name) => Some(name.as_str()),
            _ => None,
        })
        .collect()
}
