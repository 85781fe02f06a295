//! A public key of one of the three kinds that providers use.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
    VerificationAlgorithm,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::CertificateDer;

use super::der;
use crate::record::raw::Coding;

/// A key whose kind was found out when it was read, so that a signature of another kind cannot be tried on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicKey {
    pub(crate) kind: KeyKind,
    bytes: Vec<u8>,
}

/// The kinds of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyKind {
    Ed25519,
    P256,
    /// Of 2048 bits or more.
    Rsa,
}

impl PublicKey {
    /// A key in a record's coding.
    pub(crate) fn decode(coding: Coding, text: &[u8]) -> Option<Self> {
        match coding {
            Coding::Pem => Self::from_pem(text),
            Coding::SpkiBase64 if text.starts_with(b"-----") => Self::from_pem(text),
            Coding::SpkiBase64 => Self::from_bytes(&STANDARD.decode(text).ok()?),
            Coding::RawHex => Self::of_kind(KeyKind::Ed25519, hex::decode(text).ok()?),
            Coding::RawBase64 => Self::of_kind(KeyKind::Ed25519, STANDARD.decode(text).ok()?),
            Coding::Utf8 | Coding::Base64 | Coding::Hex => None,
        }
    }

    /// The key of a PEM text: a public key, or the one of a certificate.
    pub(crate) fn from_pem(text: &[u8]) -> Option<Self> {
        match der::pem(text)? {
            (label, der) if label == "PUBLIC KEY" || label == "RSA PUBLIC KEY" => Self::from_bytes(&der),
            (label, der) if label == "CERTIFICATE" => Self::from_certificate(&der),
            _ => None,
        }
    }

    /// The key of a certificate. Who signed it is not looked at: it counts because of where it is from.
    fn from_certificate(der: &[u8]) -> Option<Self> {
        let der = CertificateDer::from(der);
        let certificate = webpki::EndEntityCert::try_from(&der).ok()?;
        Self::from_bytes(&certificate.subject_public_key_info())
    }

    /// A `SubjectPublicKeyInfo` or `RSAPublicKey` in DER.
    pub(crate) fn from_bytes(der: &[u8]) -> Option<Self> {
        [KeyKind::Ed25519, KeyKind::P256, KeyKind::Rsa]
            .into_iter()
            .find_map(|kind| Self::of_kind(kind, der.to_vec()))
    }

    /// A key of this kind: in DER, or the bare bytes of a point.
    pub(super) fn of_kind(kind: KeyKind, bytes: Vec<u8>) -> Option<Self> {
        let algorithm: &'static dyn VerificationAlgorithm = match kind {
            KeyKind::Ed25519 => &ED25519,
            KeyKind::P256 => &ECDSA_P256_SHA256_ASN1,
            KeyKind::Rsa => &RSA_PKCS1_2048_8192_SHA256,
        };
        ParsedPublicKey::new(algorithm, bytes.as_slice()).ok().map(|_| Self { kind, bytes })
    }

    /// Whether the signature is this key's. The algorithm has to be one for the key's kind; any other fails.
    pub(crate) fn verifies(
        &self,
        algorithm: &'static dyn VerificationAlgorithm,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        UnparsedPublicKey::new(algorithm, &self.bytes).verify(message, signature).is_ok()
    }
}
