//! Pure functions that a template may apply to a value: `{body|sha256|hex}`.
//!
//! Each takes bytes and gives bytes, does bounded work and cannot fail. To add one: one line in [`FILTERS`]
//! and the function that it names.

use std::collections::{BTreeMap, BTreeSet};

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use crate::wire::form;

/// A filter's name and what it does.
pub(crate) type Filter = (&'static str, fn(&[u8]) -> Vec<u8>);

/// Every filter there is.
pub(crate) const FILTERS: &[Filter] = &[
    ("lower", <[u8]>::to_ascii_lowercase),
    ("hex", |bytes| hex::encode(bytes).into_bytes()),
    ("base64", |bytes| STANDARD.encode(bytes).into_bytes()),
    ("base64url", |bytes| URL_SAFE_NO_PAD.encode(bytes).into_bytes()),
    ("sha1", |bytes| hash(&digest::SHA1_FOR_LEGACY_USE_ONLY, bytes)),
    ("sha256", |bytes| hash(&digest::SHA256, bytes)),
    ("sha512", |bytes| hash(&digest::SHA512, bytes)),
    ("sorted_kv", sorted_kv),
    ("sorted_kv_unique", sorted_kv_unique),
    ("other_port", other_port),
];

/// The filter of that name.
pub(crate) fn find(name: &str) -> Option<Filter> {
    FILTERS.iter().find(|(found, _)| *found == name).copied()
}

fn hash(algorithm: &'static digest::Algorithm, bytes: &[u8]) -> Vec<u8> {
    digest::digest(algorithm, bytes).as_ref().to_vec()
}

/// The pairs of a form, sorted by name, each name directly followed by its value.
fn sorted_kv(encoded: &[u8]) -> Vec<u8> {
    let mut pairs: Vec<_> = form::pairs(encoded).collect();
    pairs.sort_by(|one, other| one.0.cmp(&other.0));
    pairs.into_iter().flat_map(|(name, value)| [name, value].concat()).collect()
}

/// As [`sorted_kv`], but each value of a name once, and the values of one name sorted.
fn sorted_kv_unique(encoded: &[u8]) -> Vec<u8> {
    let mut sorted = BTreeMap::<_, BTreeSet<_>>::new();
    for (name, value) in form::pairs(encoded) {
        sorted.entry(name).or_default().insert(value);
    }
    let pairs = sorted.iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
    pairs.flat_map(|(name, value)| [name.as_ref(), value.as_ref()].concat()).collect()
}

/// An address without its port if it has one, else with the default port of its scheme: some senders sign the
/// one, some the other.
fn other_port(url: &[u8]) -> Vec<u8> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, input: &str, expected: &str) {
        let (_, filter) = find(name).unwrap();
        assert_eq!(String::from_utf8(filter(input.as_bytes())).unwrap(), expected, "{name}({input})");
    }

    #[test]
    fn filters() {
        check("lower", "AbÉ", "abÉ");
        check("hex", "\u{1}a", "0161");
        check("base64", "??>", "Pz8+");
        check("base64url", "??>?", "Pz8-Pw");
        check("sorted_kv", "b=2&a=1&b=1&c=%20", "a1b2b1c ");
        check("sorted_kv_unique", "b=2&a=1&b=1&b=2&B=", "Ba1b1b2");
        check("other_port", "https://h.example/p?q", "https://h.example:443/p?q");
        check("other_port", "http://h.example", "http://h.example:80");
        check("other_port", "https://h.example:8443/p:1", "https://h.example/p:1");
        check("other_port", "https://[::1]/", "https://[::1]:443/");
        check("other_port", "no address", "no address");
        assert!(find("eval").is_none());
    }
}
