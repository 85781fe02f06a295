//! A plain hash over a text that has the secret in it. Weaker than an HMAC (with SHA-1 and SHA-2 it can be
//! extended), and what some providers do.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest;
use zeroize::Zeroizing;

use super::{Hash, KeyRule, Match, Signed};
use crate::secret::{Secret, SecretError};
use crate::template::{Context, Pieces};
use crate::verdict::{Fault, Reason};

/// `kind = "hash"`.
#[derive(Debug, Clone)]
pub(crate) struct Hashed {
    pub(crate) hash: Hash,
    pub(crate) signed: Signed,
    pub(crate) key: KeyRule,
}

impl Hashed {
    pub(crate) fn derive(&self, secret: &Secret) -> Result<Zeroizing<Vec<u8>>, SecretError> {
        self.key.derive(secret)
    }

    /// Compares every candidate with every secret over every content.
    pub(crate) fn authenticate(
        &self,
        secrets: &[Option<&[u8]>],
        context: &Context<'_>,
    ) -> Result<Match, Fault> {
        let mut first = Err(self.signed.locator.fault(Reason::SignatureDiffers));
        for (index, secret) in secrets.iter().enumerate() {
            let Some(secret) = secret else { continue };
            let context = Context { secret: Some(secret), ..*context };
            let found = self.signed.find(&context, |content, candidates| {
                let expected = self.digest(content);
                let equal = |candidate: &[u8]| verify_slices_are_equal(candidate, &expected).is_ok();
                candidates.iter().fold(false, |any, candidate| any | equal(candidate)).then_some(index)
            });
            first = match (first, found) {
                (Ok(found), _) | (Err(_), Ok(found)) => Ok(found),
                (Err(_), Err(fault)) => Err(fault),
            };
        }
        first
    }

    /// The signature over the first content.
    pub(crate) fn sign(&self, secret: &[u8], context: &Context<'_>) -> Result<Vec<u8>, Fault> {
        let context = Context { secret: Some(secret), ..*context };
        Ok(self.digest(&self.signed.content(&context)?))
    }

    fn digest(&self, content: &Pieces<'_>) -> Vec<u8> {
        let mut hash = digest::Context::new(self.hash.digest());
        content.iter().for_each(|piece| hash.update(piece));
        hash.finish().as_ref().to_vec()
    }
}
