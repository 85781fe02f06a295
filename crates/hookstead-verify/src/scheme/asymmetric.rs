//! Signatures with a private key that only the provider has. The algorithms are each in a file of their own.

use super::{Match, Signed, ecdsa, ed25519, rsa};
use crate::keys::{KeyFinder, PublicKey, pem};
use crate::record::raw::{Algorithm, Coding};
use crate::secret::SecretError;
use crate::template::Context;
use crate::verdict::Fault;

/// `kind = "ed25519"`, `"ecdsa"` or `"rsa"`.
#[derive(Debug, Clone)]
pub(crate) struct Asymmetric {
    pub(crate) algorithm: Algorithm,
    pub(crate) signed: Signed,
    pub(crate) key: PublicKeyRule,
}

/// Where the public key is from.
#[derive(Debug, Clone)]
pub(crate) enum PublicKeyRule {
    /// The source has it in place of a secret.
    Given {
        /// What stands before it.
        strip: Vec<String>,
        /// How it is written.
        coding: Coding,
    },
    /// The provider publishes it.
    Published(Box<KeyFinder>),
}

impl PublicKeyRule {
    /// The key that a source has.
    pub(crate) fn derive(&self, secret: &[u8]) -> Result<Option<PublicKey>, SecretError> {
        match self {
            Self::Published(_) => Ok(None),
            Self::Given { strip, coding } => {
                let bare =
                    |text, prefix: &String| <[u8]>::strip_prefix(text, prefix.as_bytes()).unwrap_or(text);
                let text = strip.iter().fold(secret, bare);
                PublicKey::decode(*coding, text).map(Some).ok_or(SecretError::Undecodable(form(*coding)))
            }
        }
    }
}

fn form(coding: Coding) -> &'static str {
    match coding {
        Coding::RawHex => "the provider's public key, 64 hex digits",
        Coding::RawBase64 => "the provider's public key, 32 bytes in base64",
        Coding::SpkiBase64 => "the provider's public key in base64",
        _ => "the provider's public key in PEM",
    }
}

impl Asymmetric {
    /// Tries every candidate with every key over every content.
    pub(crate) fn authenticate(
        &self,
        keys: &[Option<&PublicKey>],
        context: &Context<'_>,
    ) -> Result<Match, Fault> {
        let verification = match self.algorithm {
            Algorithm::Ed25519 => ed25519::verification(),
            Algorithm::EcdsaP256Sha1 | Algorithm::EcdsaP256Sha256 => ecdsa::verification(self.algorithm),
            Algorithm::RsaSha1 | Algorithm::RsaSha256 | Algorithm::RsaSha512 => {
                rsa::verification(self.algorithm)
            }
        };
        let try_keys = |keys: &[Option<&PublicKey>], context: &Context<'_>| {
            self.signed.find(context, |content, candidates| {
                let message = content.concat();
                let holds = |key: &Option<&PublicKey>| {
                    let mut candidates = candidates.iter();
                    key.is_some_and(|key| {
                        candidates.any(|candidate| key.verifies(verification, &message, candidate))
                    })
                };
                keys.iter().position(holds)
            })
        };
        match &self.key {
            PublicKeyRule::Given { .. } => try_keys(keys, context),
            PublicKeyRule::Published(finder) => {
                // That there is a signature, and what stands beside it, is looked at before any key is asked for.
                let texts = self.signed.locator.texts(context)?;
                let groups = self.signed.locator.groups(&texts, context)?;
                let fields = groups.first().map(|group| group.fields.as_slice()).unwrap_or_default();
                let found = finder.find(&context.with_fields(fields))?;
                let keys: Vec<_> = found.keys.candidates(found.key_id.as_deref()).map(Some).collect();
                let held = try_keys(&keys, context)?;
                Ok(Match { secret_index: None, ..held })
            }
        }
    }

    /// The signature over the first content, with a private key in PEM.
    pub(crate) fn sign(&self, private: &[u8], context: &Context<'_>) -> Result<Option<Vec<u8>>, Fault> {
        let message = self.signed.content(context)?.concat();
        let Some(private) = private_key(private) else { return Ok(None) };
        Ok(match self.algorithm {
            Algorithm::Ed25519 => ed25519::sign(&private, &message),
            Algorithm::EcdsaP256Sha1 | Algorithm::EcdsaP256Sha256 => {
                ecdsa::sign(self.algorithm, &private, &message)
            }
            Algorithm::RsaSha1 | Algorithm::RsaSha256 | Algorithm::RsaSha512 => {
                rsa::sign(self.algorithm, &private, &message)
            }
        })
    }
}

/// The PKCS#8 document of a PEM text.
pub(super) fn private_key(text: &[u8]) -> Option<Vec<u8>> {
    pem(text).filter(|(label, _)| label == "PRIVATE KEY").map(|(_, der)| der)
}
