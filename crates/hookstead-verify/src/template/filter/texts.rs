//! Other spellings of a text.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

pub(super) fn base64(bytes: &[u8]) -> Vec<u8> {
    STANDARD.encode(bytes).into_bytes()
}

pub(super) fn base64url(bytes: &[u8]) -> Vec<u8> {
    URL_SAFE_NO_PAD.encode(bytes).into_bytes()
}

/// JSON as PHP writes it: `\uXXXX` for everything beyond ASCII, and `\/` for a slash. Nothing if the bytes are
/// no UTF-8.
pub(super) fn php_escape(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut escaped = String::with_capacity(text.len() + text.len() / 8);
    let mut before = ' ';
    for character in text.chars() {
        match character {
            '/' if before != '\\' => escaped.push_str("\\/"),
            ' '..='~' | '\0'..='\u{1f}' => escaped.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    escaped.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
        before = character;
    }
    Some(escaped.into_bytes())
}

/// The punctuation that HubSpot signs unescaped wherever a sender escaped it; every other escape is signed as it
/// stands.
const UNESCAPED: &[u8] = b":/?@!$'()*,;";

/// An address with the escapes of [`UNESCAPED`] undone, each once: what comes out is not looked at again.
pub(super) fn unescape_punctuation(url: &[u8]) -> Vec<u8> {
    let digit = |at: usize| url.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let escaped = |at: usize| match (url[at], digit(at + 1), digit(at + 2)) {
        (b'%', Some(high), Some(low)) => u8::try_from(high * 16 + low).ok(),
        _ => None,
    };
    let mut plain = Vec::with_capacity(url.len());
    let mut at = 0;
    while at < url.len() {
        match escaped(at).filter(|byte| UNESCAPED.contains(byte)) {
            Some(byte) => {
                plain.push(byte);
                at += 3;
            }
            None => {
                plain.push(url[at]);
                at += 1;
            }
        }
    }
    plain
}

/// An address without its port if it has one, else with the default port of its scheme: some senders sign the
/// one, some the other.
pub(super) fn other_port(url: &[u8]) -> Vec<u8> {
    let Some(start) = url.windows(3).position(|window| window == b"://").map(|at| at + 3) else {
        return url.to_vec();
    };
    let end = url[start..].iter().position(|byte| b"/?#".contains(byte)).map_or(url.len(), |at| start + at);
    let (head, authority, tail) = (&url[..start], &url[start..end], &url[end..]);
    let port = authority
        .iter()
        .rposition(|byte| *byte == b':')
        .filter(|at| authority.len() > at + 1 && authority[at + 1..].iter().all(u8::is_ascii_digit));
    match port {
        Some(colon) => [head, &authority[..colon], tail].concat(),
        None if url.starts_with(b"https:") => [head, authority, b":443", tail].concat(),
        None => [head, authority, b":80", tail].concat(),
    }
}
