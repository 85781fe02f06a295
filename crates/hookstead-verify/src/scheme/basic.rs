//! HTTP Basic authentication (RFC 7617); the secret is `user:password`. No byte of the body is covered.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Match;
use super::dispatch::TokenKey;
use crate::request::Lookup;
use crate::secret::SecretError;
use crate::template::Context;
use crate::verdict::{Fault, Reason};

/// The header that carries the proof.
pub(crate) const HEADER: &str = "Authorization";
const PART: &str = "header.Authorization";
const PREFIX: &[u8] = b"Basic ";

/// `kind = "basic"`.
#[derive(Debug, Clone)]
pub(crate) struct Basic {
    /// Fewest bytes of user, colon and password.
    pub(crate) bytes_min: usize,
}

impl Basic {
    pub(crate) fn derive(&self, secret: &[u8]) -> Result<TokenKey, SecretError> {
        if !secret.contains(&b':') {
            return Err(SecretError::Form("user:password"));
        }
        if secret.len() < self.bytes_min {
            return Err(SecretError::TooShort { bytes: secret.len(), bytes_min: self.bytes_min });
        }
        Ok(TokenKey::new(secret))
    }

    pub(crate) fn authenticate(
        &self,
        keys: &[Option<&TokenKey>],
        context: &Context<'_>,
    ) -> Result<Match, Fault> {
        let text = match context.request.header(HEADER) {
            Lookup::Absent => return Err(Fault::new(Reason::SignatureMissing, PART)),
            Lookup::Repeated => return Err(Fault::new(Reason::PartRepeated, PART)),
            Lookup::One(text) => text,
        };
        let credentials = credentials(&text).ok_or_else(|| Fault::new(Reason::SignatureMalformed, PART))?;
        match TokenKey::matching(keys, &credentials) {
            Some(key) => Ok(Match::with_fields(key, &[])),
            None => Err(Fault::new(Reason::SignatureDiffers, PART)),
        }
    }

    /// The header's value for these credentials.
    pub(crate) fn write(secret: &[u8]) -> Vec<u8> {
        [PREFIX, STANDARD.encode(secret).as_bytes()].concat()
    }
}

fn credentials(text: &[u8]) -> Option<Vec<u8>> {
    let (start, rest) = text.split_at_checked(PREFIX.len())?;
    start.eq_ignore_ascii_case(PREFIX).then(|| STANDARD.decode(rest.trim_ascii_start()).ok()).flatten()
}
