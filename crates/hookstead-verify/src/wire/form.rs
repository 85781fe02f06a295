//! URL-encoded pairs (query strings and form bodies), decoded to bytes.
//!
//! Decoding stays with bytes: a lossy decoding to text would let two different bodies sign the same string.

use std::borrow::Cow;

/// A decoded name and value.
pub(crate) type Pair<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// All pairs of an encoded text, in order; a pair without `=` has an empty value, an empty pair is skipped.
pub(crate) fn pairs(encoded: &[u8]) -> impl Iterator<Item = Pair<'_>> {
    encoded.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()).map(|pair| {
        let cut = pair.iter().position(|byte| *byte == b'=');
        let (name, value) = cut.map_or((pair, &[] as &[u8]), |at| (&pair[..at], &pair[at + 1..]));
        (decode(name), decode(value))
    })
}

/// All decoded values of a name.
pub(crate) fn values<'a>(encoded: &'a [u8], name: &str) -> impl Iterator<Item = Cow<'a, [u8]>> {
    pairs(encoded).filter(move |(found, _)| found.as_ref() == name.as_bytes()).map(|(_, value)| value)
}

/// An encoded text without the pairs whose decoded name is left out; everything else stays as it came.
///
/// ```
/// use hookstead_verify::query_without;
///
/// let kept = query_without(b"id=7&%74oken=abc&x=+", |name| name == b"token");
/// assert_eq!(kept.as_ref(), b"id=7&x=+");
/// ```
pub fn query_without(encoded: &[u8], leave_out: impl Fn(&[u8]) -> bool) -> Cow<'_, [u8]> {
    let is_left_out = |pair: &[u8]| pairs(pair).any(|(name, _)| leave_out(&name));
    let parts = || encoded.split(|byte| *byte == b'&');
    if !parts().any(is_left_out) {
        return Cow::Borrowed(encoded);
    }
    let kept: Vec<&[u8]> = parts().filter(|pair| !is_left_out(pair)).collect();
    Cow::Owned(kept.join(&b'&'))
}

/// Turns `+` into a blank and `%XX` into its byte; a broken escape stays as it is.
fn decode(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.iter().any(|byte| matches!(byte, b'+' | b'%')) {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [high, low, after @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => {
                    bytes.push(high << 4 | low);
                    rest = after;
                }
                _ => bytes.push(b'%'),
            },
            (byte, _) => bytes.push(*byte),
        }
    }
    Cow::Owned(bytes)
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(encoded: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
        pairs(encoded.as_bytes()).map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
    }

    #[test]
    fn what_is_left_out_leaves_the_rest_as_it_came() {
        let check = |encoded: &str, expected: &str| {
            let kept = query_without(encoded.as_bytes(), |name| name == b"t k");
            assert_eq!(String::from_utf8_lossy(&kept), expected, "{encoded}");
        };
        check("", "");
        check("a=%41&&b", "a=%41&&b");
        check("t+k=1", "");
        check("a=1&t%20k&t+k=2&&%62=t+k&", "a=1&&%62=t+k&");
        check("%74%20%6b=x&tk=1", "tk=1");
    }

    #[test]
    fn pairs_are_decoded_to_bytes() {
        let pair = |name: &[u8], value: &[u8]| (name.to_vec(), value.to_vec());
        assert_eq!(
            decoded("a=1&&b&c==&d=%ff%00+%2B&e=%zz%4"),
            [
                pair(b"a", b"1"),
                pair(b"b", b""),
                pair(b"c", b"="),
                pair(b"d", b"\xff\0 +"),
                pair(b"e", b"%zz%4")
            ]
        );
        assert_eq!(decoded(""), []);
    }
}
