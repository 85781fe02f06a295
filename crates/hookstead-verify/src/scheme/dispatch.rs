//! The one match over schemes. A new scheme is a file beside this one and an arm in each function here.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::{digest, hmac};
use zeroize::Zeroizing;

use super::{Asymmetric, Basic, Hashed, Hmac, Jwt, Locator, PublicKeyRule, Token};
use crate::keys::{KeyFinder, PublicKey};
use crate::secret::{Secret, SecretError};
use crate::template::{Context, Slot, Template, Variable};
use crate::verdict::Fault;

/// A compiled scheme.
#[derive(Debug, Clone)]
pub(crate) enum Scheme {
    Hmac(Hmac),
    Hash(Hashed),
    Asymmetric(Asymmetric),
    Jwt(Jwt),
    Token(Token),
    Basic(Basic),
    None,
}

/// A key made for one scheme from one secret. No `Debug`, so that it cannot be logged.
#[derive(Clone)]
pub(crate) enum Key {
    Hmac(Box<hmac::Key>),
    Secret(Zeroizing<Vec<u8>>),
    Public(PublicKey),
    Token(TokenKey),
}

/// What proved a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Match {
    /// Which secret, where there are secrets.
    pub(crate) secret_index: Option<usize>,
    /// The fields that stood beside the signature which matched.
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    /// The claims of a token, as JSON.
    pub(crate) claims: Option<Vec<u8>>,
}

impl Match {
    pub(crate) fn with_fields(secret_index: usize, fields: &[(&str, &[u8])]) -> Self {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), value.to_vec())).collect();
        Self { secret_index: Some(secret_index), fields, claims: None }
    }
}

impl Scheme {
    /// Whether a source needs at least one secret, or a public key in its place.
    pub(crate) fn needs_secret(&self) -> bool {
        !matches!(self, Self::None) && self.key_finder().is_none()
    }

    /// Whether the secret is one that both sides have, so that anybody can make one up.
    pub(crate) fn shares_secret(&self) -> bool {
        match self {
            Self::Hmac(_) | Self::Hash(_) | Self::Token(_) | Self::Basic(_) => true,
            Self::Jwt(scheme) => scheme.key.is_none(),
            Self::Asymmetric(_) | Self::None => false,
        }
    }

    /// Whether a key is made from the secret's text, so that there are ways to read one from it.
    fn decodes_secret(&self) -> bool {
        match self {
            Self::Hmac(_) | Self::Hash(_) => true,
            Self::Jwt(scheme) => scheme.key.is_none(),
            Self::Asymmetric(_) | Self::Token(_) | Self::Basic(_) | Self::None => false,
        }
    }

    /// Where the keys are that the provider publishes, if it does.
    pub(crate) fn key_finder(&self) -> Option<&KeyFinder> {
        let rule = match self {
            Self::Asymmetric(scheme) => Some(&scheme.key),
            Self::Jwt(scheme) => scheme.key.as_ref(),
            _ => None,
        };
        match rule? {
            PublicKeyRule::Published(finder) => Some(finder),
            PublicKeyRule::Given { .. } => None,
        }
    }

    /// The key for a secret; none if the scheme takes none.
    pub(crate) fn derive(&self, secret: &Secret) -> Result<Option<Key>, SecretError> {
        if secret.coding().is_some() && !self.decodes_secret() {
            return Err(SecretError::UselessCoding);
        }
        match self {
            Self::Hmac(scheme) => scheme.derive(secret).map(|key| Some(Key::Hmac(Box::new(key)))),
            Self::Hash(scheme) => scheme.derive(secret).map(|key| Some(Key::Secret(key))),
            Self::Asymmetric(scheme) => scheme.key.derive(secret.expose()).map(|key| key.map(Key::Public)),
            Self::Jwt(scheme) => scheme.derive(secret),
            Self::Token(scheme) => scheme.derive(secret).map(|key| Some(Key::Token(key))),
            Self::Basic(scheme) => scheme.derive(secret.expose()).map(|key| Some(Key::Token(key))),
            Self::None => Ok(None),
        }
    }

    /// Whether one of the keys proves the request. A key that a secret cannot give is `None` in the list.
    pub(crate) fn authenticate(&self, keys: &[Option<Key>], context: &Context<'_>) -> Result<Match, Fault> {
        match self {
            Self::Hmac(scheme) => scheme.authenticate(&each(keys, Key::hmac), context),
            Self::Hash(scheme) => scheme.authenticate(&each(keys, Key::secret), context),
            Self::Asymmetric(scheme) => scheme.authenticate(&each(keys, Key::public), context),
            Self::Jwt(scheme) => scheme.authenticate(keys, context),
            Self::Token(scheme) => scheme.authenticate(&each(keys, Key::token), context),
            Self::Basic(scheme) => scheme.authenticate(&each(keys, Key::token), context),
            Self::None => Ok(Match::default()),
        }
    }

    /// Where signatures are, for schemes that have a place for them.
    pub(crate) fn locator(&self) -> Option<&Locator> {
        match self {
            Self::Hmac(scheme) => Some(&scheme.signed.locator),
            Self::Hash(scheme) => Some(&scheme.signed.locator),
            Self::Asymmetric(scheme) => Some(&scheme.signed.locator),
            Self::Jwt(scheme) => Some(&scheme.locator),
            Self::Token(scheme) => Some(&scheme.locator),
            Self::Basic(_) | Self::None => None,
        }
    }

    /// Whether everything that the template names is covered by the signature, whichever content matched.
    pub(crate) fn signs(&self, template: &Template) -> bool {
        let slots = template.slots();
        let is_claim = |slot: &&Slot| matches!(slot.variable, Variable::Claim(_));
        match self {
            Self::Jwt(scheme) => {
                let bound: Vec<_> = scheme.bound().flat_map(Template::slots).collect();
                // A token that is the body covers it all.
                let is_body = scheme.locator.place().variable == Variable::Body;
                let signed = |slot: &&Slot| {
                    is_claim(slot) || (is_body && slot.variable.is_in_body()) || covers(&bound, slot)
                };
                slots.iter().all(signed)
            }
            _ => {
                let contents: Vec<Vec<&Slot>> =
                    self.contents().iter().map(|content| content.slots()).collect();
                let signed = |slot: &&Slot| contents.iter().all(|content| covers(content, slot));
                !contents.is_empty() && slots.iter().all(signed)
            }
        }
    }

    /// Whether the signature covers the body as a whole.
    pub(crate) fn signs_body(&self) -> bool {
        let has_body = |slots: Vec<&Slot>| {
            slots.iter().any(|slot| slot.variable == Variable::Body && !slot.has_filter("crc32"))
        };
        match self {
            Self::Jwt(scheme) => {
                scheme.locator.place().variable == Variable::Body
                    || has_body(scheme.bound().flat_map(Template::slots).collect())
            }
            _ => {
                let contents = self.contents();
                !contents.is_empty() && contents.iter().all(|content| has_body(content.slots()))
            }
        }
    }

    /// The templates of what is signed.
    pub(crate) fn contents(&self) -> &[Template] {
        match self {
            Self::Hmac(scheme) => &scheme.signed.contents,
            Self::Hash(scheme) => &scheme.signed.contents,
            Self::Asymmetric(scheme) => &scheme.signed.contents,
            Self::Jwt(_) | Self::Token(_) | Self::Basic(_) | Self::None => &[],
        }
    }

    /// Every template in it, for what a record has to say about its variables.
    pub(crate) fn templates(&self) -> Vec<&Template> {
        let claims = match self {
            Self::Jwt(scheme) => {
                scheme.claims.iter().chain(&scheme.claims_if_body).flat_map(|claim| &claim.values).collect()
            }
            _ => Vec::new(),
        };
        let finder = self.key_finder().into_iter().flat_map(KeyFinder::templates);
        self.contents().iter().chain(claims).chain(finder).collect()
    }
}

/// Whether a value is among what is signed, or is part of a body that is. A checksum covers nothing: whoever
/// wants to can make another body that has it.
fn covers(content: &[&Slot], wanted: &Slot) -> bool {
    content.iter().filter(|slot| !slot.has_filter("crc32")).any(|slot| {
        slot.variable == wanted.variable
            || (matches!(slot.variable, Variable::Body | Variable::Document) && wanted.variable.is_in_body())
            || (slot.variable == Variable::Form
                && matches!(wanted.variable, Variable::FormField(_) | Variable::Json(_)))
    })
}

impl Key {
    pub(crate) fn hmac(&self) -> Option<&hmac::Key> {
        if let Self::Hmac(key) = self { Some(key) } else { None }
    }

    fn secret(&self) -> Option<&[u8]> {
        if let Self::Secret(key) = self { Some(key) } else { None }
    }

    fn public(&self) -> Option<&PublicKey> {
        if let Self::Public(key) = self { Some(key) } else { None }
    }

    fn token(&self) -> Option<&TokenKey> {
        if let Self::Token(key) = self { Some(key) } else { None }
    }
}

fn each<'k, T: ?Sized>(
    keys: &'k [Option<Key>],
    pick: impl Fn(&'k Key) -> Option<&'k T>,
) -> Vec<Option<&'k T>> {
    keys.iter().map(|key| key.as_ref().and_then(&pick)).collect()
}

/// A secret that is sent as it is, kept as its digest, so that a comparison takes the same time for every
/// length.
#[derive(Clone)]
pub(crate) struct TokenKey([u8; digest::SHA256_OUTPUT_LEN]);

impl TokenKey {
    pub(crate) fn new(token: &[u8]) -> Self {
        let mut key = [0; digest::SHA256_OUTPUT_LEN];
        key.copy_from_slice(digest::digest(&digest::SHA256, token).as_ref());
        Self(key)
    }

    /// The first of the keys that is this token; all are compared.
    pub(crate) fn matching(keys: &[Option<&Self>], token: &[u8]) -> Option<usize> {
        let token = Self::new(token);
        let mut found = None;
        for (index, key) in keys.iter().enumerate() {
            let equal = key.is_some_and(|key| verify_slices_are_equal(&key.0, &token.0).is_ok());
            found = found.or(equal.then_some(index));
        }
        found
    }
}
