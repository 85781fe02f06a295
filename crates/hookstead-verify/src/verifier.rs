//! The two first steps of a request's way: authenticate ([`Verifier::verify`]) and identify
//! ([`Verified::identify`]).
//!
//! This file decides the order of the checks; what a check is stands in the scheme, the freshness and the
//! identity. It reads no clock: `now` is given.

use std::fmt;
use std::sync::Arc;

use crate::handshake::{self, HandshakeAnswer};
use crate::identity::{self, Identified, IdentifyError, IdentityRule};
use crate::provider::{Check, Order, Provider, Variant};
use crate::record::raw::Auth;
use crate::request::Request;
use crate::scheme::{Key, Match, Proof, unresolved_fault};
use crate::secret::{Secret, SecretError};
use crate::template::{Context, Template};
use crate::verdict::{Fault, Reason, Rejection, RejectionClass};

/// Most seconds by which a source may widen its window: beyond a month a signed time says nothing.
pub const TOLERANCE_S_MAX: u32 = 30 * 24 * 60 * 60;

/// Most secrets of one source. Each costs one hash a request.
pub const SECRETS_MAX: usize = 16;

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
}

/// A provider with the secrets and options of one source, ready for requests. Keys are derived once.
pub struct Verifier {
    provider: Arc<Provider>,
    /// For each variant the keys, in the order of the secrets.
    keys: Vec<Vec<Option<Key>>>,
    hints: Vec<String>,
    options: VerifyOptions,
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
        match options.tolerance_s {
            Some(_) if !provider.has_timestamp() => return Err(VerifierError::UselessTolerance(name())),
            Some(tolerance) if tolerance > TOLERANCE_S_MAX => {
                return Err(VerifierError::Tolerance(tolerance));
            }
            _ => {}
        }
        if matches!(options.identity, IdentityRule::Provider) && !provider.has_id() {
            return Err(VerifierError::NoIdentity(name()));
        }
        let keys = provider.variants.iter().map(|variant| keys(variant, secrets)).collect();
        let hints = secrets.iter().map(Secret::hint).collect();
        Ok(Self { provider, keys, hints, options })
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
        handshake::answer(&self.provider.handshakes, Auth::None, &self.context(*request))
    }

    /// Whether the signature covers what identifies the events of this source. If not, whoever can repeat a
    /// request can give it another id.
    pub fn id_covered(&self) -> bool {
        match &self.options.identity {
            IdentityRule::Provider => self.provider.id_covered,
            IdentityRule::Template(template) => self.provider.signs(template),
            IdentityRule::Body => self.provider.signs_body(),
            IdentityRule::None => false,
        }
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
        let (secret_index, signed_at) = match self.provider.order {
            Order::SignatureFirst => self.signature_first(variant, keys, &context, now)?,
            Order::FormFirst => self.form_first(variant, keys, &context, now)?,
        };
        let skew_micros = signed_at.map(|signed_at| now.saturating_sub(signed_at));
        Ok(Verified { verifier: self, request: *request, secret_index, signed_at, skew_micros })
    }

    fn signature_first(
        &self,
        variant: &Variant,
        keys: &[Option<Key>],
        context: &Context<'_>,
        now: i64,
    ) -> Result<Trust, Fault> {
        let Match { secret_index, fields } = authenticate(variant, keys, context)?;
        let fields: Vec<(&str, &[u8])> =
            fields.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
        let context = context.with_fields(&fields);
        for check in &variant.checks {
            if !check.holds(&context)? {
                return Err(Fault::new(Reason::CheckDiffers, check.left.to_string()));
            }
        }
        let Some(freshness) = &variant.freshness else { return Ok((secret_index, None)) };
        let signed_at = freshness.read(&context)?;
        freshness.check(signed_at, now, self.options.tolerance_s)?;
        Ok((secret_index, Some(signed_at.micros())))
    }

    fn form_first(
        &self,
        variant: &Variant,
        keys: &[Option<Key>],
        context: &Context<'_>,
        now: i64,
    ) -> Result<Trust, Fault> {
        self.check_id(context)?;
        let signed_at = variant.freshness.as_ref().map(|freshness| freshness.read(context)).transpose()?;
        self.check_body_length(context.request.body.len())?;
        if let (Some(freshness), Some(signed_at)) = (&variant.freshness, signed_at) {
            freshness.check(signed_at, now, self.options.tolerance_s)?;
        }
        let found = authenticate(variant, keys, context)?;
        for check in &variant.checks {
            if !check.holds(context)? {
                return Err(Fault::new(Reason::CheckDiffers, check.left.to_string()));
            }
        }
        Ok((found.secret_index, signed_at.map(crate::freshness::SignedAt::micros)))
    }

    fn check_id(&self, context: &Context<'_>) -> Result<(), Fault> {
        let form = self.provider.id_form.as_ref();
        let Err(error) = identity::event_id(&IdentityRule::Provider, &self.provider.id, form, context) else {
            return Ok(());
        };
        let part = self.provider.id.iter().next().map(Template::to_string).unwrap_or_default();
        Err(Fault::new(error.reason(), part))
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
        let form = match self.provider.order {
            Order::SignatureFirst => fault.reason == Reason::Method,
            Order::FormFirst => fault.reason.is_form(),
        };
        let class = if form { RejectionClass::Malformed } else { RejectionClass::NotVerified };
        Rejection { reason: fault.reason, class, part: fault.part, age_micros: fault.age_micros }
    }

    fn context<'r>(&'r self, request: Request<'r>) -> Context<'r> {
        Context {
            request,
            registered_url: self.options.url.as_deref(),
            payload: self.provider.payload.as_ref(),
            fields: &[],
        }
    }
}

/// Which secret matched, and when the request was signed.
type Trust = (Option<usize>, Option<i64>);

fn keys(variant: &Variant, secrets: &[Secret]) -> Vec<Option<Key>> {
    // A secret that fits another variant only has no key here; that it fits one was checked before.
    secrets.iter().map(|secret| variant.scheme.derive(secret).ok().flatten()).collect()
}

fn authenticate(variant: &Variant, keys: &[Option<Key>], context: &Context<'_>) -> Result<Match, Fault> {
    match variant.scheme.authenticate(keys, context)? {
        Proof::Held(found) => Ok(found),
        Proof::NotAsked => Ok(Match { secret_index: None, fields: Vec::new() }),
    }
}

impl Check {
    /// Whether both sides give the same bytes. They are not secret, so they are simply compared.
    pub(crate) fn holds(&self, context: &Context<'_>) -> Result<bool, Fault> {
        let side = |template: &Template| {
            template.resolve(context).map(|pieces| pieces.concat()).map_err(unresolved_fault)
        };
        Ok(side(&self.left)? == side(&self.right)?)
    }
}

/// A request that was proved to come from its provider. Only [`Verifier::verify`] makes one.
#[derive(Debug, Clone)]
pub struct Verified<'a> {
    verifier: &'a Verifier,
    request: Request<'a>,
    secret_index: Option<usize>,
    signed_at: Option<i64>,
    skew_micros: Option<i64>,
}

impl<'a> Verified<'a> {
    /// Which of the source's secrets matched; none for a provider that does not sign.
    pub fn secret_index(&self) -> Option<usize> {
        self.secret_index
    }

    /// When the provider signed, in Unix microseconds; none for a provider that signs no time.
    pub fn signed_at(&self) -> Option<i64> {
        self.signed_at
    }

    /// How long before the arrival that was, in microseconds; negative if the sender's clock is ahead.
    pub fn skew_micros(&self) -> Option<i64> {
        self.skew_micros
    }

    /// The request.
    pub fn request(&self) -> &Request<'a> {
        &self.request
    }

    /// The answer to a handshake that has to be signed. Ask before [`identify`](Self::identify): a handshake
    /// is no event.
    pub fn handshake(&self) -> Option<HandshakeAnswer> {
        let handshakes = &self.verifier.provider.handshakes;
        handshake::answer(handshakes, Auth::Signature, &self.verifier.context(self.request))
    }

    /// Which event this is.
    ///
    /// # Errors
    ///
    /// [`IdentifyError`] if the id that the source's rule asks for is not there or cannot be used. There is no
    /// fall-back to another rule.
    pub fn identify(&self) -> Result<Identified, IdentifyError> {
        let Verifier { provider, options, .. } = self.verifier;
        let context = self.verifier.context(self.request);
        let form = provider.id_form.as_ref();
        let event_type = match &options.event_type {
            Some(template) => identity::metadata(std::slice::from_ref(template), &context),
            None => identity::metadata(&provider.kind, &context),
        };
        Ok(Identified {
            scope: provider.id.scope(&context)?,
            event_id: identity::event_id(&options.identity, &provider.id, form, &context)?,
            event_type,
            account: identity::metadata(&provider.account, &context),
        })
    }
}
