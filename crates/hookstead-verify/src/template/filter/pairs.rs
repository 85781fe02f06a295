//! Forms and queries in a fixed order.

use std::collections::{BTreeMap, BTreeSet};

use crate::wire::form::{self, Pair};

/// The pairs of a form, sorted by name, each name directly followed by its value.
pub(super) fn sorted_kv(encoded: &[u8]) -> Vec<u8> {
    let mut pairs: Vec<_> = form::pairs(encoded).collect();
    pairs.sort_by(|one, other| one.0.cmp(&other.0));
    pairs.into_iter().flat_map(|(name, value)| [name, value].concat()).collect()
}

/// As [`sorted_kv`], the values of one name sorted too.
pub(super) fn sorted_kv_all(encoded: &[u8]) -> Vec<u8> {
    sorted(encoded).into_iter().flat_map(|(name, value)| [name, value].concat()).collect()
}

/// As [`sorted_kv_all`], but each value of a name once.
pub(super) fn sorted_kv_unique(encoded: &[u8]) -> Vec<u8> {
    let mut sorted = BTreeMap::<_, BTreeSet<_>>::new();
    for (name, value) in form::pairs(encoded) {
        sorted.entry(name).or_default().insert(value);
    }
    let pairs = sorted.iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
    pairs.flat_map(|(name, value)| [name.as_ref(), value.as_ref()].concat()).collect()
}

/// The decoded pairs as `name=value`, sorted and joined by `&`.
pub(super) fn sorted_amp(encoded: &[u8]) -> Vec<u8> {
    let pairs = sorted(encoded).into_iter().map(|(name, value)| [&*name, b"=", &*value].concat());
    pairs.collect::<Vec<_>>().join(&b'&')
}

/// The pairs sorted by name, each encoded again as `encodeURIComponent` does.
pub(super) fn sorted_query(encoded: &[u8]) -> Vec<u8> {
    let mut pairs: Vec<_> = form::pairs(encoded).collect();
    pairs.sort_by(|one, other| one.0.cmp(&other.0));
    let pairs =
        pairs.into_iter().map(|(name, value)| [component(&name), b"=".to_vec(), component(&value)].concat());
    pairs.collect::<Vec<_>>().join(&b'&')
}

fn sorted(encoded: &[u8]) -> Vec<Pair<'_>> {
    let mut pairs: Vec<_> = form::pairs(encoded).collect();
    pairs.sort();
    pairs
}

fn component(text: &[u8]) -> Vec<u8> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte);
    let encoded = |byte: &u8| match *byte {
        byte if plain(byte) => vec![byte],
        byte => format!("%{byte:02X}").into_bytes(),
    };
    text.iter().flat_map(encoded).collect()
}
