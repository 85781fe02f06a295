//! Standard Webhooks' symmetric signature, `v1`: the secret and its text form, and the three headers.
//!
//! It is made afresh for each attempt with the time that is given, so that an attempt days after the event
//! verifies like the first. Which headers go out beside these is not known here.

use std::fmt;

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hookstead_core::Timestamp;
use zeroize::Zeroizing;

/// Most secrets that one destination signs with at a time: the new one, the old one, and room to spare.
pub const SIGNING_SECRETS_MAX: usize = 4;

/// What Standard Webhooks asks of a secret, in bytes.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Bytes of a secret that is made here: those of the digest.
const KEY_BYTES_MADE: usize = 32;

const PREFIX: &str = "whsec_";

/// Bytes of one signature and the space before the next: `v1,` and 32 bytes in base64.
const SIGNATURE_BYTES: usize = 48;

/// A secret that pushes are signed with: 24 to 64 bytes. Wiped on drop, redacted in `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecret(Zeroizing<Vec<u8>>);

/// Why a text is no signing secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SigningSecretError {
    /// It does not begin with `whsec_`.
    #[error("the signing secret does not begin with `{PREFIX}`")]
    Prefix,
    /// What follows is not base64.
    #[error("what follows `{PREFIX}` is not base64")]
    Base64,
    /// It holds too few or too many bytes.
    #[error("the signing secret holds {bytes} bytes, not {} to {}", KEY_BYTES.start(), KEY_BYTES.end())]
    Length {
        /// Bytes in it.
        bytes: usize,
    },
    /// The system has no random bytes.
    #[error("the system gives no random bytes")]
    Random,
}

impl SigningSecretError {
    /// What a person can do about it, as one sentence without a full stop.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Prefix | Self::Base64 | Self::Length { .. } => {
                "give `whsec_` and 24 to 64 random bytes in base64, as `echo whsec_$(openssl rand -base64 32)` does"
            }
            Self::Random => "see that the operating system's random source works",
        }
    }
}

impl SigningSecret {
    /// Reads the text form, `whsec_` and base64.
    ///
    /// # Errors
    ///
    /// [`SigningSecretError`] if it is not that, or not 24 to 64 bytes.
    pub fn parse(text: &str) -> Result<Self, SigningSecretError> {
        let encoded = text.strip_prefix(PREFIX).ok_or(SigningSecretError::Prefix)?;
        let bytes = Zeroizing::new(STANDARD.decode(encoded).map_err(|_| SigningSecretError::Base64)?);
        if KEY_BYTES.contains(&bytes.len()) {
            Ok(Self(bytes))
        } else {
            Err(SigningSecretError::Length { bytes: bytes.len() })
        }
    }

    /// Makes a new one from the system's random bytes.
    ///
    /// # Errors
    ///
    /// [`SigningSecretError::Random`] if there are none.
    pub fn generate() -> Result<Self, SigningSecretError> {
        let mut bytes = Zeroizing::new(vec![0; KEY_BYTES_MADE]);
        let filled = aws_lc_rs::rand::SecureRandom::fill(&SystemRandom::new(), &mut bytes);
        filled.map_err(|_| SigningSecretError::Random)?;
        Ok(Self(bytes))
    }

    /// The text form, to show to whoever sets up the target.
    pub fn expose(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{PREFIX}{}", STANDARD.encode(&*self.0)))
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret([redacted])")
    }
}

/// Makes signatures with a destination's secrets. The keys are prepared once, for all attempts.
pub(super) struct Signer(Vec<hmac::Key>);

impl Signer {
    pub(super) fn new(secrets: &[SigningSecret]) -> Self {
        Self(secrets.iter().map(|secret| hmac::Key::new(hmac::HMAC_SHA256, &secret.0)).collect())
    }

    /// The value of `webhook-signature`: one signature for each secret, the newest first, so that a target that
    /// knows any of them can verify. `id` holds no dot.
    pub(super) fn sign(&self, id: &str, now: Timestamp, body: &[u8]) -> String {
        let head = format!("{id}.{}.", now.as_secs());
        let mut signatures = String::with_capacity(self.0.len() * SIGNATURE_BYTES);
        for key in &self.0 {
            if !signatures.is_empty() {
                signatures.push(' ');
            }
            let mut context = hmac::Context::with_key(key);
            context.update(head.as_bytes());
            context.update(body);
            signatures.push_str("v1,");
            STANDARD.encode_string(context.sign(), &mut signatures);
        }
        signatures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    /// The reference value comes from `openssl dgst -sha256 -mac HMAC`.
    #[test]
    fn the_signature_is_the_hmac_of_id_time_and_body() {
        let secret = SigningSecret::parse(TEXT).expect("a secret");
        let now = Timestamp::from_micros(1_614_265_330_999_999);
        let signature =
            Signer::new(std::slice::from_ref(&secret)).sign("msg_1", now, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,9o7UeFkn1GjVbcY4emAJruJCYqgH2EIf8u/slvVRBZI=");
        let both =
            Signer::new(&[SigningSecret::generate().expect("random bytes"), secret]).sign("msg_1", now, b"");
        assert_eq!(both.split(' ').filter(|one| one.starts_with("v1,")).count(), 2);
    }

    #[test]
    fn the_text_form_goes_both_ways_and_stays_out_of_debug() {
        let made = SigningSecret::generate().expect("random bytes");
        assert_eq!(SigningSecret::parse(&made.expose()), Ok(made.clone()));
        assert_ne!(made, SigningSecret::generate().expect("random bytes"));
        assert_eq!(format!("{made:?}"), "SigningSecret([redacted])");
    }

    #[test]
    fn what_is_no_secret_is_refused() {
        for (text, error) in [
            ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", SigningSecretError::Prefix),
            ("whsec_%%", SigningSecretError::Base64),
            ("whsec_", SigningSecretError::Length { bytes: 0 }),
            ("whsec_c2hvcnQ=", SigningSecretError::Length { bytes: 5 }),
        ] {
            assert_eq!(SigningSecret::parse(text), Err(error), "{text}");
        }
    }
}
