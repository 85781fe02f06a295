//! Keyed hashes (HMAC) over a content that a template describes.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::{digest, hmac};
use serde::Deserialize;

use super::{KeyRule, Locator, Match, Proof};
use crate::secret::SecretError;
use crate::template::{Context, Pieces, Template, Unresolved};
use crate::verdict::{Fault, Reason};

/// A hash function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Hash {
    Sha1,
    Sha256,
    Sha512,
}

impl Hash {
    fn hmac(self) -> hmac::Algorithm {
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
    pub(crate) locator: Locator,
    /// Any of these may be what was signed.
    pub(crate) contents: Vec<Template>,
    pub(crate) key: KeyRule,
}

impl Hmac {
    /// The state of the hash after the key: made once a secret.
    pub(crate) fn derive(&self, secret: &[u8]) -> Result<hmac::Key, SecretError> {
        Ok(hmac::Key::new(self.hash.hmac(), &self.key.derive(secret)?))
    }

    /// Compares every candidate with every key over every content, whether one has matched already or not.
    pub(crate) fn authenticate(
        &self,
        keys: &[Option<&hmac::Key>],
        context: &Context<'_>,
    ) -> Result<Proof, Fault> {
        let texts = self.locator.texts(context)?;
        let mut found = None;
        let mut signed = false;
        let mut unresolved = None;
        for group in self.locator.groups(&texts)? {
            let context = context.with_fields(&group.fields);
            for content in &self.contents {
                match content.resolve(&context) {
                    Ok(content) => {
                        signed = true;
                        let key = self.matching_key(keys, &content, &group.candidates);
                        let fields = || group.fields.iter().map(owned).collect();
                        found = found.or(key.map(|key| Match { secret_index: Some(key), fields: fields() }));
                    }
                    Err(missing) => unresolved = Some(missing),
                }
            }
        }
        match (found, unresolved) {
            (Some(found), _) => Ok(Proof::Held(found)),
            (None, Some(missing)) if !signed => Err(fault(missing)),
            (None, _) => Err(self.locator.fault(Reason::SignatureDiffers)),
        }
    }

    fn matching_key(
        &self,
        keys: &[Option<&hmac::Key>],
        content: &Pieces<'_>,
        candidates: &[Vec<u8>],
    ) -> Option<usize> {
        let mut found = None;
        for (index, key) in keys.iter().enumerate() {
            let Some(key) = key else { continue };
            let tag = sign(key, content);
            let expected = self.locator.expected(tag.as_ref());
            for candidate in candidates {
                let equal = verify_slices_are_equal(candidate, &expected).is_ok();
                found = found.or(equal.then_some(index));
            }
        }
        found
    }

    /// The signature over the first content.
    pub(crate) fn sign(&self, key: &hmac::Key, context: &Context<'_>) -> Result<Vec<u8>, Fault> {
        let content =
            self.contents.first().map(|content| content.resolve(context)).transpose().map_err(fault)?;
        Ok(sign(key, &content.unwrap_or_default()).as_ref().to_vec())
    }
}

/// Feeds the pieces into the hash one by one: the body is never copied.
fn sign(key: &hmac::Key, content: &Pieces<'_>) -> hmac::Tag {
    let mut hash = hmac::Context::with_key(key);
    content.iter().for_each(|piece| hash.update(piece));
    hash.sign()
}

fn owned((name, value): &(&str, &[u8])) -> (String, Vec<u8>) {
    ((*name).to_owned(), value.to_vec())
}

pub(crate) fn fault(unresolved: Unresolved) -> Fault {
    match unresolved {
        Unresolved::Absent(part) if part == "url" => Fault::new(Reason::UrlMissing, part),
        Unresolved::Absent(part) => Fault::new(Reason::PartMissing, part),
        Unresolved::Repeated(part) => Fault::new(Reason::PartRepeated, part),
    }
}
