//! Digests, checksums, and the undoing of gzip.

use std::io::Read as _;

use aws_lc_rs::{digest, hmac};

use crate::template::Context;

/// Most bytes that come out of one gzip stream. The sender that packs its bodies sends at most 1 MiB of JSON.
pub(super) const GUNZIPPED_BYTES_MAX: usize = 8 * 1024 * 1024;

const GZIP_MAGIC: &[u8] = b"\x1f\x8b";

pub(super) fn sha1(bytes: &[u8]) -> Vec<u8> {
    hash(&digest::SHA1_FOR_LEGACY_USE_ONLY, bytes)
}

pub(super) fn sha256(bytes: &[u8]) -> Vec<u8> {
    hash(&digest::SHA256, bytes)
}

pub(super) fn sha512(bytes: &[u8]) -> Vec<u8> {
    hash(&digest::SHA512, bytes)
}

fn hash(algorithm: &'static digest::Algorithm, bytes: &[u8]) -> Vec<u8> {
    digest::digest(algorithm, bytes).as_ref().to_vec()
}

/// CRC-32 (IEEE) in decimal digits.
pub(super) fn crc32(bytes: &[u8]) -> Vec<u8> {
    let mut sum = flate2::Crc::new();
    sum.update(bytes);
    sum.sum().to_string().into_bytes()
}

/// With the key of the source, if its scheme has one of this hash.
pub(super) fn hmac_sha1(bytes: &[u8], context: &Context<'_>) -> Option<Vec<u8>> {
    keyed(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, bytes, context)
}

pub(super) fn hmac_sha256(bytes: &[u8], context: &Context<'_>) -> Option<Vec<u8>> {
    keyed(hmac::HMAC_SHA256, bytes, context)
}

fn keyed(algorithm: hmac::Algorithm, bytes: &[u8], context: &Context<'_>) -> Option<Vec<u8>> {
    let key = context.hmac.filter(|key| key.algorithm() == algorithm)?;
    Some(hmac::sign(key, bytes).as_ref().to_vec())
}

/// What is packed, or the bytes themselves if they are no gzip stream.
pub(super) fn gunzip(bytes: &[u8]) -> Option<Vec<u8>> {
    if !bytes.starts_with(GZIP_MAGIC) {
        return Some(bytes.to_vec());
    }
    let mut plain = Vec::new();
    let limit = u64::try_from(GUNZIPPED_BYTES_MAX).ok()? + 1;
    flate2::read::MultiGzDecoder::new(bytes).take(limit).read_to_end(&mut plain).ok()?;
    (plain.len() <= GUNZIPPED_BYTES_MAX).then_some(plain)
}
