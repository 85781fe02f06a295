//! The little of PEM and DER that keys need.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Longest PEM text, in bytes: RSA with 8192 bits has a fifth of it.
const PEM_BYTES_MAX: usize = 16 * 1024;

/// The label and the DER of the first block of a PEM text. A line feed may be written as `\n`, as it is in
/// environment variables.
pub(crate) fn pem(text: &[u8]) -> Option<(String, Vec<u8>)> {
    if text.len() > PEM_BYTES_MAX {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?.replace("\\n", "\n");
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (inside, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let digits: String = inside.chars().filter(|character| !character.is_ascii_whitespace()).collect();
    Some((label.to_owned(), STANDARD.decode(digits).ok()?))
}

/// An `RSAPublicKey` (RFC 8017) of modulus and exponent, both big-endian.
pub(super) fn rsa_public_key(modulus: &[u8], exponent: &[u8]) -> Vec<u8> {
    tagged(0x30, &[unsigned(modulus), unsigned(exponent)].concat())
}

fn unsigned(number: &[u8]) -> Vec<u8> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    let digits = &number[zeros..];
    let sign: &[u8] = if digits.first().is_none_or(|byte| *byte >= 0x80) { &[0] } else { &[] };
    tagged(0x02, &[sign, digits].concat())
}

fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let length: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
    let mut der = vec![tag];
    match length[..] {
        [] => der.push(0),
        [short] if short < 0x80 => der.push(short),
        _ => {
            // At most eight bytes, since they come from a `usize`.
            der.push(0x80 | u8::try_from(length.len()).unwrap_or_default());
            der.extend_from_slice(&length);
        }
    }
    der.extend_from_slice(content);
    der
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pem_blocks() {
        let block = |text: &str| pem(text.as_bytes());
        let found = Some(("PUBLIC KEY".to_owned(), b"abc".to_vec()));
        assert_eq!(block("-----BEGIN PUBLIC KEY-----\nYW\nJj\n-----END PUBLIC KEY-----\n"), found);
        assert_eq!(block("-----BEGIN PUBLIC KEY-----\\nYWJj\\n-----END PUBLIC KEY-----"), found);
        for broken in ["", "YWJj", "-----BEGIN X-----\nYWJj", "-----BEGIN X-----\nY-J\n-----END X-----"] {
            assert_eq!(block(broken), None, "{broken}");
        }
        assert_eq!(pem(&vec![b'-'; PEM_BYTES_MAX + 1]), None);
    }

    #[test]
    fn numbers_are_written_as_der_has_them() {
        assert_eq!(rsa_public_key(&[0, 1, 2], &[1]), [0x30, 7, 2, 2, 1, 2, 2, 1, 1]);
        assert_eq!(unsigned(&[0x80]), [2, 2, 0, 0x80]);
        assert_eq!(unsigned(&[]), [2, 1, 0]);
        assert_eq!(tagged(4, &[7; 200])[..4], [4, 0x81, 200, 7]);
        assert_eq!(tagged(4, &[7; 300])[..5], [4, 0x82, 1, 44, 7]);
    }
}
