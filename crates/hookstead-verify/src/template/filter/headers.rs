//! Lists of names of headers, and the values of those headers.

use crate::template::Context;

/// Most headers that one list may name.
const LISTED_MAX: usize = 64;

/// The values of the headers in a list with blanks, joined by dots.
pub(super) fn values(list: &[u8], context: &Context<'_>) -> Option<Vec<u8>> {
    let found = listed(list, b' ', context)?;
    Some(found.iter().map(|(_, value)| *value).collect::<Vec<_>>().join(&b'.'))
}

/// The headers in a list with commas as `name:value`, in lower case, sorted, and joined by semicolons.
pub(super) fn signed(list: &[u8], context: &Context<'_>) -> Option<Vec<u8>> {
    let mut found = listed(list, b',', context)?;
    found.sort();
    let pairs = found.iter().map(|(name, value)| [name.as_bytes(), b":", value].concat());
    Some(pairs.collect::<Vec<_>>().join(&b';'))
}

/// Each name with its value. Nothing if a header is not there, or there with different values.
fn listed<'r>(list: &[u8], separator: u8, context: &Context<'r>) -> Option<Vec<(String, &'r [u8])>> {
    let names =
        || list.split(|byte| *byte == separator).map(<[u8]>::trim_ascii).filter(|name| !name.is_empty());
    if names().count() > LISTED_MAX {
        return None;
    }
    let pair = |name: &[u8]| {
        let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
        let value = context.request.header_values(&name).next()?;
        let same = context.request.header_values(&name).all(|other| other == value);
        same.then_some((name, value))
    };
    names().map(pair).collect()
}
