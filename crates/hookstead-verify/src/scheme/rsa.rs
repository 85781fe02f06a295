//! RSA with PKCS#1 v1.5 padding, keys of 2048 bits or more.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA512,
    RSA_PKCS1_SHA256, RSA_PKCS1_SHA512, RsaEncoding, RsaKeyPair, VerificationAlgorithm,
};

use crate::record::raw::Algorithm;

/// The algorithm; SHA-256 unless the record says otherwise.
pub(super) fn verification(algorithm: Algorithm) -> &'static dyn VerificationAlgorithm {
    match algorithm {
        Algorithm::RsaSha1 => &RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY,
        Algorithm::RsaSha512 => &RSA_PKCS1_2048_8192_SHA512,
        _ => &RSA_PKCS1_2048_8192_SHA256,
    }
}

/// A signature with a private key in PKCS#8; nothing for SHA-1, with which nothing should be signed.
pub(super) fn sign(algorithm: Algorithm, private: &[u8], message: &[u8]) -> Option<Vec<u8>> {
    let padding: &'static dyn RsaEncoding = match algorithm {
        Algorithm::RsaSha256 => &RSA_PKCS1_SHA256,
        Algorithm::RsaSha512 => &RSA_PKCS1_SHA512,
        _ => return None,
    };
    let pair = RsaKeyPair::from_pkcs8(private).ok()?;
    let mut signature = vec![0; pair.public_modulus_len()];
    pair.sign(padding, &SystemRandom::new(), message, &mut signature).ok()?;
    Some(signature)
}
