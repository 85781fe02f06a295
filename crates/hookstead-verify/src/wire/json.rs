//! Reads single values out of a JSON document by pointer, without building the document.
//!
//! Numbers keep their digits (an id of 64 bits or more must not go through a float), strings come as bytes (a
//! lone surrogate is no reason to lose an event), and of two equal keys the last counts, as it does for the
//! parsers that read the body later. A body that is not one JSON document has no values at all. What is
//! skipped is skipped without recursion, so that deep nesting costs no stack.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// U+FEFF in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A JSON pointer (RFC 6901), split into its unescaped steps.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pointer(Vec<Vec<u8>>);

/// A JSON value that holds no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scalar {
    /// A string, unescaped; lone surrogates as their three bytes.
    Text(Vec<u8>),
    /// A number, in the digits in which it stands there.
    Number(String),
    /// `true` or `false`.
    Bool(bool),
    /// `null`.
    Null,
}

impl fmt::Display for Pointer {
    /// As it is written, with the steps escaped.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|step| {
            let step = String::from_utf8_lossy(step).replace('~', "~0").replace('/', "~1");
            write!(formatter, "/{step}")
        })
    }
}

impl Pointer {
    /// Parses `/a/0/b`; the text must start with a slash.
    ///
    /// # Errors
    ///
    /// What is wrong with the text, for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(steps) = text.strip_prefix('/') else {
            return Err(format!("a JSON pointer starts with `/`, not with `{text}`"));
        };
        Ok(Self(
            steps.split('/').map(|step| step.replace("~1", "/").replace("~0", "~").into_bytes()).collect(),
        ))
    }

    /// The member of that name.
    pub(crate) fn of_key(name: &str) -> Self {
        Self(vec![name.as_bytes().to_vec()])
    }

    /// The items of the array at this place as they are written, at most `most` of them; nothing if there is no
    /// array of at most that length.
    pub(crate) fn items(&self, document: &[u8], most: usize) -> Option<Vec<Vec<u8>>> {
        let items = self.raw(document)?;
        let mut deserializer = serde_json::Deserializer::from_str(items);
        deserializer.deserialize_seq(Items { most }).ok()
    }

    /// The text of a string, number or boolean at this place; nothing for null, objects and arrays.
    /// A byte order mark before the document is skipped, since some senders write one every time.
    pub(crate) fn read(&self, document: &[u8]) -> Option<Vec<u8>> {
        scalar(self.raw(document)?)
    }

    /// The value at this place, if it is one that holds no others; nothing for objects and arrays, and nothing at
    /// all of a body that is not one JSON document. The work is one pass over the document, without recursion.
    pub fn scalar(&self, document: &[u8]) -> Option<Scalar> {
        let raw = self.raw(document)?;
        match raw.as_bytes().first()? {
            b'{' | b'[' => None,
            b'n' => Some(Scalar::Null),
            b't' => Some(Scalar::Bool(true)),
            b'f' => Some(Scalar::Bool(false)),
            b'"' => scalar(raw).map(Scalar::Text),
            _ => Some(Scalar::Number(raw.to_owned())),
        }
    }

    fn raw<'d>(&self, document: &'d [u8]) -> Option<&'d str> {
        let document = document.strip_prefix(BYTE_ORDER_MARK).unwrap_or(document);
        let mut deserializer = serde_json::Deserializer::from_slice(document);
        let raw = Walk(&self.0).deserialize(&mut deserializer).ok()??;
        deserializer.end().ok()?;
        Some(raw.get())
    }
}

fn scalar(raw: &str) -> Option<Vec<u8>> {
    match raw.as_bytes().first()? {
        b'"' => serde_json::Deserializer::from_str(raw).deserialize_bytes(Text).ok(),
        b'{' | b'[' | b'n' => None,
        _ => Some(raw.as_bytes().to_vec()),
    }
}

/// Follows the steps that are left and gives the raw text that stands there.
struct Walk<'s>(&'s [Vec<u8>]);

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        match self.0.split_first() {
            None => <&RawValue as serde::Deserialize>::deserialize(deserializer).map(Some),
            Some((step, rest)) => deserializer.deserialize_any(Step { step, rest }),
        }
    }
}

struct Step<'s> {
    step: &'s [u8],
    rest: &'s [Vec<u8>],
}

impl<'de> Visitor<'de> for Step<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(here) = map.next_key_seed(IsKey(self.step))? {
            if here {
                found = map.next_value_seed(Walk(self.rest))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let wanted = index(self.step);
        let mut found = None;
        for at in 0_usize.. {
            let more = if Some(at) == wanted {
                list.next_element_seed(Walk(self.rest))?.map(|value| found = value)
            } else {
                list.next_element::<IgnoredAny>()?.map(|_| ())
            };
            if more.is_none() {
                break;
            }
        }
        Ok(found)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// Whether an object's key is the wanted one, compared as bytes.
struct IsKey<'s>(&'s [u8]);

impl<'de> DeserializeSeed<'de> for IsKey<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_bytes(self)
    }
}

impl Visitor<'_> for IsKey<'_> {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_bytes<E>(self, key: &[u8]) -> Result<bool, E> {
        Ok(key == self.0)
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(key.as_bytes() == self.0)
    }
}

/// The items of an array, each as it is written.
struct Items {
    most: usize,
}

impl<'de> Visitor<'de> for Items {
    type Value = Vec<Vec<u8>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "an array of at most {} items", self.most)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element::<&RawValue>()? {
            if items.len() == self.most {
                return Err(serde::de::Error::invalid_length(items.len() + 1, &self));
            }
            items.push(item.get().as_bytes().to_vec());
        }
        Ok(items)
    }
}

struct Text;

impl Visitor<'_> for Text {
    type Value = Vec<u8>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_bytes<E>(self, text: &[u8]) -> Result<Vec<u8>, E> {
        Ok(text.to_vec())
    }

    fn visit_str<E>(self, text: &str) -> Result<Vec<u8>, E> {
        Ok(text.as_bytes().to_vec())
    }
}

/// An array index as RFC 6901 has it: digits without a leading zero.
fn index(step: &[u8]) -> Option<usize> {
    let canonical = step == b"0" || !step.starts_with(b"0");
    let digits = !step.is_empty() && step.iter().all(u8::is_ascii_digit);
    (canonical && digits).then(|| std::str::from_utf8(step).ok()?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(document: &[u8], pointer: &str, expected: Option<&[u8]>) {
        let found = Pointer::parse(pointer).unwrap().read(document);
        assert_eq!(found.as_deref(), expected, "{pointer} in {}", String::from_utf8_lossy(document));
    }

    #[test]
    fn scalars_come_as_they_are_written() {
        let document = br#"{"id":123456789012345678901234567890,"f":1.50e3,"t":true,"n":null,"s":"a\u0000\"b","o":{},"a":["x",{"y":"z"}]}"#;
        check(document, "/id", Some(b"123456789012345678901234567890"));
        check(document, "/f", Some(b"1.50e3"));
        check(document, "/t", Some(b"true"));
        check(document, "/n", None);
        check(document, "/s", Some(b"a\0\"b"));
        check(document, "/o", None);
        check(document, "/a/0", Some(b"x"));
        check(document, "/a/1/y", Some(b"z"));
        check(document, "/a/01", None);
        check(document, "/a/-", None);
        check(document, "/id/x", None);
        check(document, "/missing", None);
    }

    #[test]
    fn items_come_as_they_are_written() {
        let items = |document: &str| Pointer::parse("/a").unwrap().items(document.as_bytes(), 2);
        assert_eq!(items(r#"{"a":[{"b": 1},"c"]}"#), Some(vec![b"{\"b\": 1}".to_vec(), b"\"c\"".to_vec()]));
        assert_eq!(items(r#"{"a":[]}"#), Some(Vec::new()));
        assert_eq!(items(r#"{"a":[1,2,3]}"#), None);
        assert_eq!(items(r#"{"a":{}}"#), None);
        assert_eq!(items(r#"{"b":[]}"#), None);
    }

    #[test]
    fn odd_documents_never_panic() {
        check(br#"{"id":"\ud800"}"#, "/id", Some(b"\xed\xa0\x80"));
        check(br#"{"\ud800":1,"id":"a"}"#, "/id", Some(b"a"));
        check(br#"{"id":"first","id":"last"}"#, "/id", Some(b"last"));
        check(b"{\"id\":\"\xff\"}", "/id", None);
        check(b"{\"x\":\"\xff\",\"id\":\"a\"}", "/id", Some(b"a"));
        check(br#"{"id":"a"} trailing"#, "/id", None);
        check(br#"{"id":"a""#, "/id", None);
        check(b"\xef\xbb\xbf{\"id\":\"a\"}", "/id", Some(b"a"));
        check(b"\xef\xbb\xbf\xef\xbb\xbf{\"id\":\"a\"}", "/id", None);
        check(b"", "/id", None);
        check(br#"{"a/b":{"~":"x"}}"#, "/a~1b/~0", Some(b"x"));
    }

    #[test]
    fn deep_nesting_costs_no_stack() {
        let mut document = br#"{"x":"#.to_vec();
        document.extend(std::iter::repeat_n(b'[', 200_000));
        document.extend(std::iter::repeat_n(b']', 200_000));
        document.extend_from_slice(br#","id":"a"}"#);
        check(&document, "/id", Some(b"a"));
    }
}
