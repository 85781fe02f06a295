//! From a secret as a person has it to the bytes of a key: strip, decode, normalize, append, digest.

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use icu_normalizer::DecomposingNormalizerBorrowed as DecomposingNormalizer;
use zeroize::Zeroizing;

use super::Hash;
use crate::record::raw::{self, Coding, Normal};
use crate::secret::{Secret, SecretCoding, SecretError};

/// Secrets are copied by people, so a lost `=` is forgiven; nothing else is.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A record's way from secret to key.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyRule {
    strip: Vec<String>,
    decode: Coding,
    decode_unprefixed: Coding,
    append: Vec<u8>,
    digest: Option<Hash>,
    normalize: Option<Normal>,
    bytes_min: usize,
}

impl KeyRule {
    /// Compiles the record's table; `bytes_min` is the least number of decoded bytes.
    pub(crate) fn compile(raw: &raw::Key, bytes_min: usize) -> Self {
        let decode = raw.decode.unwrap_or_default();
        Self {
            strip: raw.strip.clone(),
            decode,
            decode_unprefixed: raw.decode_unprefixed.unwrap_or(decode),
            append: raw.append.clone().into_bytes(),
            digest: raw.digest,
            normalize: raw.normalize,
            bytes_min,
        }
    }

    /// The key's bytes.
    pub(crate) fn derive(&self, secret: &Secret) -> Result<Zeroizing<Vec<u8>>, SecretError> {
        if secret.expose().starts_with(b"-----BEGIN") {
            return Err(SecretError::WrongKind { prefix: "-----BEGIN", what: "a PEM file" });
        }
        let mut key = Zeroizing::new(self.decoded(secret)?);
        if self.normalize == Some(Normal::Nfkd) {
            let text = std::str::from_utf8(&key).map_err(|_| SecretError::Undecodable("UTF-8"))?;
            let normal = DecomposingNormalizer::new_nfkd().normalize(text);
            key = Zeroizing::new(normal.into_owned().into_bytes());
        }
        if key.len() < self.bytes_min {
            return Err(SecretError::TooShort { bytes: key.len(), bytes_min: self.bytes_min });
        }
        key.extend_from_slice(&self.append);
        Ok(match self.digest {
            None => key,
            Some(hash) => Zeroizing::new(digest::digest(hash.digest(), &key).as_ref().to_vec()),
        })
    }
}

impl KeyRule {
    /// By the coding beside the secret, else by the record's.
    fn decoded(&self, secret: &Secret) -> Result<Vec<u8>, SecretError> {
        let text = secret.expose();
        let bare = |text, prefix: &String| <[u8]>::strip_prefix(text, prefix.as_bytes()).unwrap_or(text);
        let stripped = self.strip.iter().fold(text, bare);
        match secret.coding() {
            None if stripped.len() < text.len() => decode(self.decode, stripped),
            None => decode(self.decode_unprefixed, stripped),
            // As it stands: what a record strips belongs to the text of a secret, and is in the way of a decoder only.
            Some(SecretCoding::Utf8) => decode(Coding::Utf8, text),
            Some(SecretCoding::Base64) => decode(Coding::Base64, stripped),
            Some(SecretCoding::Hex) => decode(Coding::Hex, stripped),
        }
    }
}

fn decode(coding: Coding, text: &[u8]) -> Result<Vec<u8>, SecretError> {
    match coding {
        Coding::Utf8 => Ok(text.to_vec()),
        Coding::Base64 => BASE64.decode(text).map_err(|_| SecretError::Undecodable("base64")),
        Coding::Hex => hex::decode(text).map_err(|_| SecretError::Undecodable("hex digits")),
        // Refused when the record is read: these are codings of public keys.
        Coding::Pem | Coding::SpkiBase64 | Coding::RawHex | Coding::RawBase64 => {
            Err(SecretError::Undecodable("a shared secret"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn derive(table: &str, secret: &str) -> Result<Vec<u8>, SecretError> {
        let raw: raw::Key = toml::from_str(table).unwrap();
        KeyRule::compile(&raw, 4).derive(&Secret::new(secret)?).map(|key| key.to_vec())
    }

    #[test]
    fn a_coding_beside_a_secret_goes_before_that_of_the_record() {
        let derive = |table: &str, secret: &str, coding| {
            let raw: raw::Key = toml::from_str(table).unwrap();
            let secret = Secret::new(secret)?.decoded_as(Some(coding));
            KeyRule::compile(&raw, 4).derive(&secret).map(|key| key.to_vec())
        };
        let record = "strip = ['whsec_']\ndecode = 'base64'\nappend = '&'";
        assert_eq!(derive(record, "whsec_YWJjZA", SecretCoding::Utf8).unwrap(), b"whsec_YWJjZA&");
        assert_eq!(derive(record, "whsec_YWJjZA", SecretCoding::Base64).unwrap(), b"abcd&");
        assert_eq!(derive(record, "whsec_61626364", SecretCoding::Hex).unwrap(), b"abcd&");
        assert_eq!(derive(record, "61626364", SecretCoding::Hex).unwrap(), b"abcd&");
        assert_eq!(derive("", "YWJjZA==", SecretCoding::Base64).unwrap(), b"abcd");
        let too_short = SecretError::TooShort { bytes: 3, bytes_min: 4 };
        assert_eq!(derive(record, "whsec_YWJj", SecretCoding::Base64), Err(too_short.clone()));
        assert_eq!(derive(record, "abc", SecretCoding::Utf8), Err(too_short));
        let undecodable = SecretError::Undecodable("hex digits");
        assert_eq!(derive(record, "whsec_YWJjZA", SecretCoding::Hex), Err(undecodable));
        let undecodable = SecretError::Undecodable("base64");
        assert_eq!(derive("", "abcd%", SecretCoding::Base64), Err(undecodable));
    }

    #[test]
    fn keys_are_derived_step_by_step() {
        assert_eq!(derive("", "abcd").unwrap(), b"abcd");
        assert_eq!(derive("append = '&'", "abcd").unwrap(), b"abcd&");
        assert_eq!(derive("normalize = 'NFKD'", "ﬁé12").unwrap(), "fie\u{301}12".as_bytes());
        assert_eq!(derive("strip = ['v1,', 'whsec_']", "v1,whsec_abcd").unwrap(), b"abcd");
        assert!(derive("", "-----BEGIN PUBLIC KEY-----").is_err());
        let base64 = "strip = ['whsec_']\ndecode = 'base64'";
        assert_eq!(derive(base64, "whsec_YWJjZA==").unwrap(), b"abcd");
        assert_eq!(derive(base64, "YWJjZA").unwrap(), b"abcd");
        assert_eq!(derive(base64, "whsec_YWJ%"), Err(SecretError::Undecodable("base64")));
        assert_eq!(derive(base64, "YWJj"), Err(SecretError::TooShort { bytes: 3, bytes_min: 4 }));
        let either = "strip = ['whsec_']\ndecode = 'base64'\ndecode_unprefixed = 'utf8'";
        assert_eq!(derive(either, "YWJjZA==").unwrap(), b"YWJjZA==");
        assert_eq!(derive("decode = 'hex'", "61626364").unwrap(), b"abcd");
        assert_eq!(derive("decode = 'hex'", "6162636"), Err(SecretError::Undecodable("hex digits")));
        assert_eq!(derive("digest = 'sha1'", "abcd").unwrap().len(), 20);
    }
}
