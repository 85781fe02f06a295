//! Ed25519 (RFC 8032).

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, VerificationAlgorithm};

/// The algorithm.
pub(super) fn verification() -> &'static dyn VerificationAlgorithm {
    &ED25519
}

/// A signature with a private key in PKCS#8.
pub(super) fn sign(private: &[u8], message: &[u8]) -> Option<Vec<u8>> {
    let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(private).ok()?;
    Some(pair.sign(message).as_ref().to_vec())
}
