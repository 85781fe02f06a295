//! Keyed hashes (HMAC) over a content that a template describes.

use std::borrow::Cow;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::{digest, hmac};
use serde::Deserialize;

use super::{KeyRule, Match, Signed};
use crate::secret::{Secret, SecretError};
use crate::template::{Context, Pieces};
use crate::verdict::Fault;

/// A hash function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Hash {
    Sha1,
    Sha256,
    Sha512,
}

impl Hash {
    pub(crate) fn hmac(self) -> hmac::Algorithm {
        match self {
            Self::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha512 => hmac::HMAC_SHA512,
        }
    }

    pub(crate) fn digest(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => &digest::SHA256,
            Self::Sha512 => &digest::SHA512,
        }
    }
}

/// `kind = "hmac"`.
#[derive(Debug, Clone)]
pub(crate) struct Hmac {
    pub(crate) hash: Hash,
    pub(crate) signed: Signed,
    pub(crate) key: KeyRule,
}

impl Hmac {
    /// The state of the hash after the key: made once a secret.
    pub(crate) fn derive(&self, secret: &Secret) -> Result<hmac::Key, SecretError> {
        Ok(hmac::Key::new(self.hash.hmac(), &self.key.derive(secret)?))
    }

    /// Compares every candidate with every key over every content.
    pub(crate) fn authenticate(
        &self,
        keys: &[Option<&hmac::Key>],
        context: &Context<'_>,
    ) -> Result<Match, Fault> {
        self.signed.find(context, |content, candidates| self.matching_key(keys, content, candidates))
    }

    fn matching_key(
        &self,
        keys: &[Option<&hmac::Key>],
        content: &Pieces<'_>,
        candidates: &[Cow<'_, [u8]>],
    ) -> Option<usize> {
        let mut found = None;
        for (index, key) in keys.iter().enumerate() {
            let Some(key) = key else { continue };
            let tag = sign(key, content);
            let expected = self.signed.locator.expected(tag.as_ref());
            for candidate in candidates {
                let equal = verify_slices_are_equal(candidate, &expected).is_ok();
                found = found.or(equal.then_some(index));
            }
        }
        found
    }

    /// The signature over the first content.
    pub(crate) fn sign(&self, key: &hmac::Key, context: &Context<'_>) -> Result<Vec<u8>, Fault> {
        Ok(sign(key, &self.signed.content(context)?).as_ref().to_vec())
    }
}

/// Feeds the pieces into the hash one by one: the body is never copied.
fn sign(key: &hmac::Key, content: &Pieces<'_>) -> hmac::Tag {
    let mut hash = hmac::Context::with_key(key);
    content.iter().for_each(|piece| hash.update(piece));
    hash.sign()
}
