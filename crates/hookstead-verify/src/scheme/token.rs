//! A shared token that is sent as it is. It proves only that the sender knows the token: no byte of the body is
//! covered.

use super::key::KeyRule;
use super::{Locator, Match};
use crate::scheme::dispatch::TokenKey;
use crate::secret::{Secret, SecretError};
use crate::template::Context;
use crate::verdict::{Fault, Reason};

/// `kind = "token"`.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) locator: Locator,
    pub(crate) key: KeyRule,
}

impl Token {
    pub(crate) fn derive(&self, secret: &Secret) -> Result<TokenKey, SecretError> {
        Ok(TokenKey::new(&self.key.derive(secret)?))
    }

    pub(crate) fn authenticate(
        &self,
        keys: &[Option<&TokenKey>],
        context: &Context<'_>,
    ) -> Result<Match, Fault> {
        let texts = self.locator.texts(context)?;
        let groups = self.locator.groups(&texts, context)?;
        let mut found = None;
        for candidate in groups.iter().flat_map(|group| &group.candidates) {
            found = found.or(TokenKey::matching(keys, candidate));
        }
        match found {
            Some(key) => Ok(Match::with_fields(key, &[])),
            None => Err(self.locator.fault(Reason::SignatureDiffers)),
        }
    }
}
