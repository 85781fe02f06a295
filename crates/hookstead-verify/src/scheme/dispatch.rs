//! The one match over schemes. A new scheme is a file beside this one and an arm in each function here.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::{digest, hmac};

use super::{Basic, Hmac, Locator, Token};
use crate::secret::{Secret, SecretError};
use crate::template::{Context, Slot, Template, Variable};
use crate::verdict::Fault;

/// A compiled scheme.
#[derive(Debug, Clone)]
pub(crate) enum Scheme {
    Hmac(Hmac),
    Token(Token),
    Basic(Basic),
    None,
}

/// A key made for one scheme from one secret. No `Debug`, so that it cannot be logged.
#[derive(Clone)]
pub(crate) enum Key {
    Hmac(Box<hmac::Key>),
    Token(TokenKey),
}

/// What proved a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Match {
    /// Which secret, where there are secrets.
    pub(crate) secret_index: Option<usize>,
    /// The fields that stood beside the signature which matched.
    pub(crate) fields: Vec<(String, Vec<u8>)>,
}

/// That a request is authentic, as far as its scheme can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Proof {
    /// A signature held.
    Held(Match),
    /// The scheme asks for none.
    NotAsked,
}

impl Scheme {
    /// Whether a source needs at least one secret.
    pub(crate) fn needs_secret(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// The key for a secret; none if the scheme takes none.
    pub(crate) fn derive(&self, secret: &Secret) -> Result<Option<Key>, SecretError> {
        match self {
            Self::Hmac(scheme) => scheme.derive(secret.expose()).map(|key| Some(Key::Hmac(Box::new(key)))),
            Self::Token(scheme) => scheme.derive(secret.expose()).map(|key| Some(Key::Token(key))),
            Self::Basic(scheme) => scheme.derive(secret.expose()).map(|key| Some(Key::Token(key))),
            Self::None => Ok(None),
        }
    }

    /// Whether one of the keys proves the request. A key that a secret cannot give is `None` in the list.
    pub(crate) fn authenticate(&self, keys: &[Option<Key>], context: &Context<'_>) -> Result<Proof, Fault> {
        match self {
            Self::Hmac(scheme) => scheme.authenticate(&each(keys, Key::hmac), context),
            Self::Token(scheme) => scheme.authenticate(&each(keys, Key::token), context),
            Self::Basic(scheme) => scheme.authenticate(&each(keys, Key::token), context),
            Self::None => Ok(Proof::NotAsked),
        }
    }

    /// Where signatures are, for schemes that have a place for them.
    pub(crate) fn locator(&self) -> Option<&Locator> {
        match self {
            Self::Hmac(scheme) => Some(&scheme.locator),
            Self::Token(scheme) => Some(&scheme.locator),
            Self::Basic(_) | Self::None => None,
        }
    }

    /// Whether everything that the template names is covered by the signature, whichever content matched.
    pub(crate) fn signs(&self, template: &Template) -> bool {
        let contents = self.contents();
        let covers = |content: &Template, variable: &Variable| {
            let mut slots = content.slots().into_iter();
            slots.any(|slot| {
                slot.variable == *variable || (slot.variable == Variable::Body && variable.is_in_body())
            })
        };
        let signed = |slot: &&Slot| contents.iter().all(|content| covers(content, &slot.variable));
        !contents.is_empty() && template.slots().iter().all(signed)
    }

    /// The templates of what is signed.
    pub(crate) fn contents(&self) -> &[Template] {
        match self {
            Self::Hmac(scheme) => &scheme.contents,
            Self::Token(_) | Self::Basic(_) | Self::None => &[],
        }
    }
}

impl Key {
    fn hmac(&self) -> Option<&hmac::Key> {
        match self {
            Self::Hmac(key) => Some(key),
            Self::Token(_) => None,
        }
    }

    fn token(&self) -> Option<&TokenKey> {
        match self {
            Self::Token(key) => Some(key),
            Self::Hmac(_) => None,
        }
    }
}

fn each<'k, T>(keys: &'k [Option<Key>], pick: impl Fn(&'k Key) -> Option<&'k T>) -> Vec<Option<&'k T>> {
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
