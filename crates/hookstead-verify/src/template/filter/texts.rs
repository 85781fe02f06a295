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
