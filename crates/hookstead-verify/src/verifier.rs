//! The two first steps of a request's way: authenticate ([`Verifier::verify`]) and identify
//! ([`Verified::identify`]).
//!
//! This file decides the order of the checks; what a check is stands in the scheme, the freshness and the
//! identity. It reads no clock: `now` is given.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use aws_lc_rs::hmac;

use crate::freshness::{self, SignedAt};
use crate::handshake::{self, HandshakeAnswer, Stage};
use crate::identity::{self, Identified, IdentifyError, IdentityRule};
use crate::keys::KeySource;
use crate::provider::{Check, Order, Pinned, Provider, Variant};
use crate::request::Request;
use crate::scheme::{Key, Scheme, unresolved_fault};
use crate::secret::{Secret, SecretError};
use crate::template::{Context, Template};
use crate::verdict::{Fault, Reason, Rejection, RejectionClass};
use crate::wire::json::Pointer;

/// Most seconds by which a source may widen its window: beyond a month a signed time says nothing.
pub const TOLERANCE_S_MAX: u32 = 30 * 24 * 60 * 60;

/// Most secrets of one source. Each costs one hash a request.
pub const SECRETS_MAX: usize = 16;

/// Most items of one batch. Each costs a hash; senders stop at a tenth of it.
const ITEMS_MAX: usize = 1_000;

/// What a source adds to its provider.
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    /// Seconds by which a signed time may be off, instead of the record's; at most [`TOLERANCE_S_MAX`].
    pub tolerance_s: Option<u32>,
    /// The public address of the source as it is registered with the provider. Query and fragment are left
    /// out of account: the query of each request takes their place.
    pub url: Option<String>,
    /// What identifies the source's events.
    pub identity: IdentityRule,
    /// Where the type of an event is, instead of where the record says.
    pub event_type: Option<Template>,
    /// The values that the provider's [`conf`](Provider::conf) names.
    pub conf: BTreeMap<String, String>,
    /// Who has the keys of a provider that [publishes](Provider::publishes_keys) them.
    pub key_source: Option<Arc<dyn KeySource>>,
}

/// Why a source cannot be verified at all. Nothing falls back to something weaker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifierError {
    /// The provider signs, and no secret is there.
    #[error("`{0}` signs its requests, and no secret is given")]
    NoSecret(String),
    /// The provider does not sign, and a secret is there: someone believes that it is checked.
    #[error("`{0}` checks no signature, and a secret is given")]
    UselessSecret(String),
    /// More than [`SECRETS_MAX`] secrets.
    #[error("{0} secrets, more than {SECRETS_MAX}")]
    TooManySecrets(usize),
    /// A secret that this provider cannot have given out.
    #[error("secret {} of {name}: {error}", index + 1)]
    Secret {
        /// The provider.
        name: String,
        /// Which of the secrets, from 0.
        index: usize,
        /// What is wrong with it.
        error: SecretError,
    },
    /// A tolerance for a provider that signs no time.
    #[error("`{0}` signs no time, so a tolerance has no meaning")]
    UselessTolerance(String),
    /// More than [`TOLERANCE_S_MAX`].
    #[error("a tolerance of {0} s is more than {TOLERANCE_S_MAX}")]
    Tolerance(u32),
    /// The provider names no event id, and the source does not say what identifies its events.
    #[error("`{0}` has no event id; write `identity = \"body\"`, `\"none\"` or a template")]
    NoIdentity(String),
    /// A value that requests are checked with is not in the source's configuration.
    #[error("`{name}` needs `conf.{key}`: {what}")]
    NoConf {
        /// The provider.
        name: String,
        /// The value's name.
        key: String,
        /// What it is, from the record.
        what: String,
    },
    /// A value that the provider's record does not name.
    #[error("`{name}` has no `conf.{key}`")]
    UnknownConf {
        /// The provider.
        name: String,
        /// The value's name.
        key: String,
    },
    /// The provider publishes its keys, and nobody is there who has them.
    #[error("`{0}` publishes its keys, and there is no source of keys")]
    NoKeySource(String),
    /// The provider does not hand its secret over.
    #[error("`{0}` does not hand over its secret; it has to be given")]
    NoHandover(String),
}

/// A provider with the secrets and options of one source, ready for requests. Keys are derived once.
pub struct Verifier {
    provider: Arc<Provider>,
    /// For each variant the keys, in the order of the secrets.
    keys: Vec<Vec<Option<Key>>>,
    hints: Vec<String>,
    options: Box<VerifyOptions>,
    awaits_secret: bool,
}

impl fmt::Debug for Verifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Verifier")
            .field("provider", &self.provider.name)
            .field("secrets", &self.hints.len())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Verifier {
    /// A verifier for one source. Any of the secrets may match.
    ///
    /// # Errors
    ///
    /// [`VerifierError`] for everything that would leave the source open or dead: see its variants.
    pub fn new(
        provider: Arc<Provider>,
        secrets: &[Secret],
        options: VerifyOptions,
    ) -> Result<Self, VerifierError> {
        let name = || provider.name.clone();
        match (provider.needs_secret(), secrets.len()) {
            (true, 0) => return Err(VerifierError::NoSecret(name())),
            (false, 1..) => return Err(VerifierError::UselessSecret(name())),
            (_, count) if count > SECRETS_MAX => return Err(VerifierError::TooManySecrets(count)),
            _ => {}
        }
        for (index, secret) in secrets.iter().enumerate() {
            let refused = |error| VerifierError::Secret { name: name(), index, error };
            provider.check_secret(secret).map_err(refused)?;
        }
        check_options(&provider, &options)?;
        let keys = provider.variants.iter().map(|variant| keys(variant, secrets)).collect();
        let hints = secrets.iter().map(Secret::hint).collect();
        Ok(Self { provider, keys, hints, options: Box::new(options), awaits_secret: false })
    }

    /// A verifier for a source whose secret the provider hands over in its first request. It proves nothing: its
    /// only use is [`handshake`](Self::handshake), whose answer then has the
    /// [`secret`](HandshakeAnswer::secret). As soon as that is kept, a verifier with the secret has to take its
    /// place, so that nobody else can hand over another.
    ///
    /// # Errors
    ///
    /// [`VerifierError::NoHandover`] for a provider that does not do this, and the errors of options.
    pub fn awaiting_secret(provider: Arc<Provider>, options: VerifyOptions) -> Result<Self, VerifierError> {
        if !provider.hands_over_secret() {
            return Err(VerifierError::NoHandover(provider.name.clone()));
        }
        check_options(&provider, &options)?;
        let keys = provider.variants.iter().map(|_| Vec::new()).collect();
        Ok(Self { provider, keys, hints: Vec::new(), options: Box::new(options), awaits_secret: true })
    }

    /// The provider.
    pub fn provider(&self) -> &Arc<Provider> {
        &self.provider
    }

    /// The options of the source.
    pub fn options(&self) -> &VerifyOptions {
        &self.options
    }

    /// [`Secret::hint`] of the secret at this index.
    pub fn secret_hint(&self, index: usize) -> Option<&str> {
        self.hints.get(index).map(String::as_str)
    }

    /// Checks that a request comes from the provider, at `now_unix_micros` of the receiver's wall clock. Judge
    /// at arrival, once: a stored request must not be judged again at a later time.
    ///
    /// # Errors
    ///
    /// A [`Rejection`] with the precise reason, for the operator, and with the class, which is all that the
    /// sender may learn. A bad signature never shows as a stale time unless the provider's
    /// [`order`](Provider::order) says so.
    pub fn verify<'a>(
        &'a self,
        request: &Request<'a>,
        now_unix_micros: i64,
    ) -> Result<Verified<'a>, Rejection> {
        self.check(request, now_unix_micros).map_err(|fault| self.reject(fault))
    }

    /// The answer to a handshake that needs no signature. Ask before [`verify`](Self::verify); for those that
    /// are signed there is [`Verified::handshake`].
    pub fn handshake(&self, request: &Request<'_>) -> Option<HandshakeAnswer> {
        if self.provider.handshakes.is_empty() {
            return None;
        }
        let stage = if self.awaits_secret { Stage::AwaitingSecret } else { Stage::Open };
        let context = Context { hmac: self.answering_key(None), ..self.context(*request) };
        handshake::answer(&self.provider.handshakes, stage, &context)
    }

    /// Whether the signature covers what identifies the events of this source. If not, whoever can repeat a
    /// request can give it another id.
    pub fn id_covered(&self) -> bool {
        self.provider.covers_identity(&self.options.identity)
    }

    /// A digest of everything that decides which id an event gets. When it changes between two starts, the same
    /// requests may get other identities.
    pub fn identity_fingerprint(&self) -> [u8; 32] {
        identity::fingerprint(&self.provider.name, &self.options.identity, &self.provider.id)
    }

    fn check<'a>(&'a self, request: &Request<'a>, now: i64) -> Result<Verified<'a>, Fault> {
        if !self.provider.methods.iter().any(|method| method == request.method) {
            return Err(Fault::new(Reason::Method, "method"));
        }
        let context = self.context(*request);
        let (variant, keys) = self.variant(&context)?;
        let proof = match (self.provider.order, &variant.each) {
            (Order::FormFirst, _) => self.form_first(variant, keys, &context, now)?,
            (Order::SignatureFirst, None) => self.signature_first(variant, keys, &context, now)?,
            (Order::SignatureFirst, Some(pointer)) => {
                self.each_item(variant, pointer, keys, &context, now)?
            }
        };
        Ok(Verified { verifier: self, request: *request, now, proof })
    }

    fn signature_first(
        &self,
        variant: &Variant,
        keys: &[Option<Key>],
        context: &Context<'_>,
        now: i64,
    ) -> Result<Proof<'static>, Fault> {
        let found = variant.scheme.authenticate(keys, context)?;
        let fields: Vec<(&str, &[u8])> =
            found.fields.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
        let context = Context { claims: found.claims.as_deref(), ..context.with_fields(&fields) };
        run_checks(variant, &context)?;
        if let (Scheme::Jwt(jwt), Some(claims)) = (&variant.scheme, &found.claims) {
            freshness::check_lifetime(claims, now, jwt.leeway_s)?;
        }
        let signed_at = match &variant.freshness {
            None => None,
            Some(freshness) => {
                let signed_at = freshness.read(&context)?;
                freshness.check(signed_at, now, self.options.tolerance_s)?;
                Some(signed_at.micros())
            }
        };
        let (secret_index, claims) = (found.secret_index, found.claims);
        Ok(Proof { secret_index, signed_at, claims, id: None, items: Vec::new() })
    }

    /// Every item of a batch has to be proved; which secret did it is that of the first.
    fn each_item(
        &self,
        variant: &Variant,
        pointer: &Pointer,
        keys: &[Option<Key>],
        context: &Context<'_>,
        now: i64,
    ) -> Result<Proof<'static>, Fault> {
        let items = pointer.items(&context.document(), ITEMS_MAX).filter(|items| !items.is_empty());
        let items = items.ok_or_else(|| Fault::new(Reason::SignatureMissing, "the array of items"))?;
        let mut first = None;
        for item in &items {
            let context = Context { item: Some(item), ..*context };
            let proof = self.signature_first(variant, keys, &context, now)?;
            first.get_or_insert(proof);
        }
        let first = first.ok_or_else(|| Fault::from(Reason::SignatureMissing))?;
        Ok(Proof { items, ..first })
    }

    fn form_first<'r>(
        &'r self,
        variant: &Variant,
        keys: &[Option<Key>],
        context: &Context<'r>,
        now: i64,
    ) -> Result<Proof<'r>, Fault> {
        let id = self.form_id(context)?;
        let signed_at = variant.freshness.as_ref().map(|freshness| freshness.read(context)).transpose()?;
        self.check_body_length(context.request.body.len())?;
        if let (Some(freshness), Some(signed_at)) = (&variant.freshness, signed_at) {
            freshness.check(signed_at, now, self.options.tolerance_s)?;
        }
        let found = variant.scheme.authenticate(keys, context)?;
        run_checks(variant, context)?;
        let signed_at = signed_at.map(SignedAt::micros);
        let (secret_index, claims) = (found.secret_index, found.claims);
        // What claims say may be part of the id, and was not known when it was looked for.
        let id = id.filter(|_| claims.is_none());
        Ok(Proof { secret_index, signed_at, claims, id, items: Vec::new() })
    }

    /// The id that the provider names, which has to be in order whatever the source makes its identities of.
    fn form_id<'r>(&'r self, context: &Context<'r>) -> Result<Option<Cow<'r, [u8]>>, Fault> {
        let form = self.provider.id_form.as_ref();
        let id = identity::event_id(&IdentityRule::Provider, &self.provider.id, form, context);
        id.map_err(|error| {
            let part = self.provider.id.iter().next().map(Template::to_string).unwrap_or_default();
            Fault::new(error.reason(), part)
        })
    }

    fn check_body_length(&self, bytes: usize) -> Result<(), Fault> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let short = self.provider.body_bytes_min.is_some_and(|bytes_min| bytes < bytes_min);
        let long = self.provider.body_bytes_max.is_some_and(|bytes_max| bytes > bytes_max);
        if short || long { Err(Fault::new(Reason::BodyLength, "body")) } else { Ok(()) }
    }

    /// The first variant whose condition holds, with its keys.
    fn variant(&self, context: &Context<'_>) -> Result<(&Variant, &[Option<Key>]), Fault> {
        let variants = self.provider.variants.iter().zip(&self.keys);
        let mut found = variants.filter(|(variant, _)| variant.when.holds(context));
        match found.next() {
            Some((variant, keys)) => Ok((variant, keys)),
            None => Err(self.no_variant(context)),
        }
    }

    fn no_variant(&self, context: &Context<'_>) -> Fault {
        let mut locators = self.provider.variants.iter().filter_map(|variant| variant.scheme.locator());
        if locators.any(|locator| locator.texts(context).is_ok()) {
            Fault::from(Reason::SignatureMalformed)
        } else {
            Fault::from(Reason::SignatureMissing)
        }
    }

    fn reject(&self, fault: Fault) -> Rejection {
        if fault.reason == Reason::KeyNotAtHand {
            let class = RejectionClass::Unavailable;
            return Rejection { reason: fault.reason, class, part: fault.part, age_micros: None };
        }
        let form = match self.provider.order {
            Order::SignatureFirst => fault.reason == Reason::Method,
            Order::FormFirst => fault.reason.is_form(),
        };
        let class = if form { RejectionClass::Malformed } else { RejectionClass::NotVerified };
        Rejection { reason: fault.reason, class, part: fault.part, age_micros: fault.age_micros }
    }

    /// Gives `read` what would be read of this request if it were proved.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn as_if_proved<'a>(
        &'a self,
        request: Request<'a>,
        now: i64,
        read: impl FnOnce(&Verified<'a>),
    ) {
        let proof = Proof { secret_index: None, signed_at: None, claims: None, id: None, items: Vec::new() };
        read(&Verified { verifier: self, request, now, proof });
    }

    fn context<'r>(&'r self, request: Request<'r>) -> Context<'r> {
        Context {
            registered_url: self.options.url.as_deref(),
            payload: self.provider.payload.as_ref(),
            multipart: self.provider.multipart,
            conf: Some(&self.options.conf),
            keys: self.options.key_source.as_deref(),
            ..Context::of(request)
        }
    }

    /// The key for answers that have to show that we know the secret: that of the secret which matched, else of
    /// the first.
    fn answering_key(&self, secret_index: Option<usize>) -> Option<&hmac::Key> {
        let keys = self.keys.iter().flat_map(|keys| keys.get(secret_index.unwrap_or_default()));
        keys.flatten().find_map(Key::hmac)
    }
}

/// How a request was proved.
#[derive(Debug, Clone)]
struct Proof<'r> {
    secret_index: Option<usize>,
    signed_at: Option<i64>,
    claims: Option<Vec<u8>>,
    /// The id that the provider names, where it was looked for before the signature.
    id: Option<Cow<'r, [u8]>>,
    /// The items of a batch, each proved by itself.
    items: Vec<Vec<u8>>,
}

fn check_options(provider: &Provider, options: &VerifyOptions) -> Result<(), VerifierError> {
    let name = || provider.name.clone();
    match options.tolerance_s {
        Some(_) if !provider.has_timestamp() => return Err(VerifierError::UselessTolerance(name())),
        Some(tolerance) if tolerance > TOLERANCE_S_MAX => return Err(VerifierError::Tolerance(tolerance)),
        _ => {}
    }
    if matches!(options.identity, IdentityRule::Provider) && !provider.has_id() {
        return Err(VerifierError::NoIdentity(name()));
    }
    if let Some(key) = options.conf.keys().find(|key| !provider.conf.contains_key(*key)) {
        return Err(VerifierError::UnknownConf { name: name(), key: key.clone() });
    }
    let is_blank = |key: &str| options.conf.get(key).is_none_or(|value| value.trim().is_empty());
    if let Some((key, what, _)) = provider.conf().find(|(key, _, needed)| *needed && is_blank(key)) {
        return Err(VerifierError::NoConf { name: name(), key: key.to_owned(), what: what.to_owned() });
    }
    if provider.publishes_keys() && options.key_source.is_none() {
        return Err(VerifierError::NoKeySource(name()));
    }
    Ok(())
}

fn run_checks(variant: &Variant, context: &Context<'_>) -> Result<(), Fault> {
    if let Some(separator) = &variant.separator {
        separator.check(context)?;
    }
    if variant.listed.as_ref().is_some_and(|listed| !listed.holds(context)) {
        return Err(Fault::new(Reason::TimestampMissing, "the list of signed headers"));
    }
    for check in &variant.checks {
        if !check.holds(context)? {
            return Err(Fault::new(Reason::CheckDiffers, check.left.to_string()));
        }
    }
    for pin in &variant.pins {
        if !pin.holds(context)? {
            return Err(Fault::new(Reason::CheckDiffers, pin.part.to_string()));
        }
    }
    Ok(())
}

fn keys(variant: &Variant, secrets: &[Secret]) -> Vec<Option<Key>> {
    // A secret that fits another variant only has no key here; that it fits one was checked before.
    secrets.iter().map(|secret| variant.scheme.derive(secret).ok().flatten()).collect()
}

impl Check {
    /// Whether both sides give the same bytes. They are not secret, so they are simply compared.
    pub(crate) fn holds(&self, context: &Context<'_>) -> Result<bool, Fault> {
        let left = self.left.value(context).map_err(unresolved_fault)?;
        Ok(left == self.right.value(context).map_err(unresolved_fault)?)
    }
}

impl Pinned {
    /// Whether the part is one of those that the configuration names. Without a value none is; a verifier is not
    /// made then.
    fn holds(&self, context: &Context<'_>) -> Result<bool, Fault> {
        let Some(allowed) = context.conf(&self.conf) else { return Ok(false) };
        if allowed.trim() == Self::ANY {
            return Ok(true);
        }
        let found = self.part.value(context).map_err(unresolved_fault)?;
        let mut texts = allowed.split(',').map(str::trim).filter(|text| !text.is_empty());
        Ok(texts.any(|text| text.as_bytes() == &*found))
    }
}

/// A request that was proved to come from its provider. Only [`Verifier::verify`] makes one.
#[derive(Debug, Clone)]
pub struct Verified<'a> {
    verifier: &'a Verifier,
    request: Request<'a>,
    now: i64,
    proof: Proof<'a>,
}

impl<'a> Verified<'a> {
    /// Which of the source's secrets matched; none for a provider that does not sign, or publishes its keys.
    pub fn secret_index(&self) -> Option<usize> {
        self.proof.secret_index
    }

    /// When the provider signed, in Unix microseconds; none for a provider that signs no time.
    pub fn signed_at(&self) -> Option<i64> {
        self.proof.signed_at
    }

    /// How long before the arrival that was, in microseconds; negative if the sender's clock is ahead.
    pub fn skew_micros(&self) -> Option<i64> {
        self.proof.signed_at.map(|signed_at| self.now.saturating_sub(signed_at))
    }

    /// The request.
    pub fn request(&self) -> &Request<'a> {
        &self.request
    }

    /// Whose it is.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn provider(&self) -> &Provider {
        &self.verifier.provider
    }

    /// The answer to a handshake that has to be signed. Ask before [`identify`](Self::identify): a handshake
    /// is no event.
    pub fn handshake(&self) -> Option<HandshakeAnswer> {
        let handshakes = &self.verifier.provider.handshakes;
        if handshakes.is_empty() {
            return None;
        }
        let hmac = self.verifier.answering_key(self.proof.secret_index);
        handshake::answer(handshakes, Stage::Verified, &Context { hmac, ..self.context() })
    }

    /// Which event this is. A batch whose items have an id each is one event with all of their ids, so that none
    /// is lost.
    ///
    /// # Errors
    ///
    /// [`IdentifyError`] if the id that the source's rule asks for is not there or cannot be used. There is no
    /// fall-back to another rule.
    pub fn identify(&self) -> Result<Identified, IdentifyError> {
        let Verifier { provider, options, .. } = self.verifier;
        let context = self.context();
        let context = Context { item: self.proof.items.first().map(Vec::as_slice), ..context };
        let event_type = match &options.event_type {
            Some(template) => identity::metadata(std::slice::from_ref(template), &context),
            None => identity::metadata(&provider.kind, &context),
        };
        Ok(Identified {
            scope: provider.id.scope(&context)?.into_owned(),
            event_id: self.event_id(&context)?,
            event_type,
            account: identity::metadata(&provider.account, &context),
        })
    }

    fn event_id(&self, context: &Context<'_>) -> Result<Option<Vec<u8>>, IdentifyError> {
        let Verifier { provider, options, .. } = self.verifier;
        if let (IdentityRule::Provider, Some(id)) = (&options.identity, &self.proof.id) {
            return Ok(Some(id.to_vec()));
        }
        let id = |context: &Context<'_>| {
            let form = provider.id_form.as_ref();
            let id = identity::event_id(&options.identity, &provider.id, form, context)?;
            Ok(id.map(Cow::into_owned))
        };
        match &self.proof.items[..] {
            [] | [_] => id(context),
            items => {
                let of = |item: &Vec<u8>| id(&Context { item: Some(item), ..*context });
                let ids = items.iter().map(of).collect::<Result<Option<Vec<_>>, _>>()?;
                Ok(ids.map(|ids| identity::batch(&ids)))
            }
        }
    }

    fn context(&self) -> Context<'_> {
        let equal_repeats = self.verifier.provider.order == Order::SignatureFirst;
        Context { claims: self.proof.claims.as_deref(), equal_repeats, ..self.verifier.context(self.request) }
    }
}
