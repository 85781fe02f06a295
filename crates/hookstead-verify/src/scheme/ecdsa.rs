//! ECDSA on P-256: in ASN.1 as providers send it, in 64 bytes as tokens have it.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA1_ASN1, ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA256_FIXED,
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm, VerificationAlgorithm,
};

use crate::record::raw::Algorithm;

/// The algorithm with ASN.1 signatures; SHA-256 unless the record says SHA-1.
pub(super) fn verification(algorithm: Algorithm) -> &'static dyn VerificationAlgorithm {
    match algorithm {
        Algorithm::EcdsaP256Sha1 => &ECDSA_P256_SHA1_ASN1,
        _ => &ECDSA_P256_SHA256_ASN1,
    }
}

/// The algorithm `ES256` of tokens.
pub(super) fn token_verification() -> &'static dyn VerificationAlgorithm {
    &ECDSA_P256_SHA256_FIXED
}

/// An ASN.1 signature with a private key in PKCS#8; nothing for SHA-1, with which nothing should be signed.
pub(super) fn sign(algorithm: Algorithm, private: &[u8], message: &[u8]) -> Option<Vec<u8>> {
    match algorithm {
        Algorithm::EcdsaP256Sha256 => sign_as(&ECDSA_P256_SHA256_ASN1_SIGNING, private, message),
        _ => None,
    }
}

/// A signature for a token.
pub(super) fn sign_token(private: &[u8], message: &[u8]) -> Option<Vec<u8>> {
    sign_as(&ECDSA_P256_SHA256_FIXED_SIGNING, private, message)
}

fn sign_as(algorithm: &'static EcdsaSigningAlgorithm, private: &[u8], message: &[u8]) -> Option<Vec<u8>> {
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, private).ok()?;
    pair.sign(&SystemRandom::new(), message).ok().map(|signature| signature.as_ref().to_vec())
}
