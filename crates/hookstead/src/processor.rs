//! What the processor of the `signed-inbox` scheme reads from a body: `eventId` and `data` (contract R51, R52).
//! Nothing is re-serialised: the payload is a slice of the body.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

/// How deep arrays and objects may be nested (rule R51). Reading them costs no stack whatever their depth.
const DEPTH_MAX: usize = 10_000;

/// What a body says of the business event that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Business {
    /// The value of `eventId`, not empty.
    pub(crate) id: String,
    /// The value of `data`, as its bytes.
    pub(crate) payload: Bytes,
}

/// The body is no JSON object with a non-empty text `eventId` and a `data`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body is not a JSON object with a non-empty text `eventId` and a `data`")]
pub struct Unreadable;

/// Reads a body. Names match in any case, of repeated names the last wins, and bytes that are no UTF-8 are
/// tolerated within texts: in the id they become U+FFFD, in the payload they stay as they are.
pub(crate) fn read(body: &Bytes) -> Result<Business, Unreadable> {
    let text = match std::str::from_utf8(body) {
        Ok(text) => Text { json: Cow::Borrowed(text), coding: Coding::Utf8 },
        Err(_) => Text {
            json: Cow::Owned(body.iter().map(|byte| char::from(*byte)).collect()),
            coding: Coding::ByteAsChar,
        },
    };
    if depth(&text.json) > DEPTH_MAX {
        return Err(Unreadable);
    }
    let fields: Fields<'_> = serde_json::from_str(&text.json).map_err(|_| Unreadable)?;
    let (Some(id), Some(data)) = (fields.event_id, fields.data) else { return Err(Unreadable) };
    let id = unescaped(&text.bytes(id.get())).ok_or(Unreadable)?;
    if id.is_empty() {
        return Err(Unreadable);
    }
    Ok(Business { id, payload: text.slice(body, data.get()) })
}

/// The deepest nesting of a JSON text; of a text that is no JSON, something.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut in_text, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// A body as text in which JSON can be found.
struct Text<'a> {
    json: Cow<'a, str>,
    coding: Coding,
}

/// How the text stands for the body's bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Coding {
    /// It is the body.
    Utf8,
    /// Each byte of the body became the character of that number. All that JSON is built of is ASCII, so the
    /// structure is the same and every part leads back to its bytes.
    ByteAsChar,
}

impl Text<'_> {
    /// The body's bytes behind a part of the text.
    fn bytes(&self, part: &str) -> Vec<u8> {
        match self.coding {
            Coding::Utf8 => part.as_bytes().to_vec(),
            Coding::ByteAsChar => part.chars().filter_map(|c| u8::try_from(u32::from(c)).ok()).collect(),
        }
    }

    /// The same as a slice of the body, where that costs no copy.
    fn slice(&self, body: &Bytes, part: &str) -> Bytes {
        match self.coding {
            Coding::Utf8 => body.slice_ref(part.as_bytes()),
            Coding::ByteAsChar => self.bytes(part).into(),
        }
    }
}

/// The text in a JSON string literal; lone surrogates and bytes that are no UTF-8 become U+FFFD.
fn unescaped(literal: &[u8]) -> Option<String> {
    let bytes: Wtf8 = serde_json::from_slice(literal).ok()?;
    Some(String::from_utf8_lossy(&bytes.0).into_owned())
}

/// A JSON string as bytes: serde_json gives lone surrogates and foreign bytes only to those who ask for bytes.
struct Wtf8(Vec<u8>);

impl<'de> Deserialize<'de> for Wtf8 {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = Wtf8;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Wtf8, E> {
                Ok(Wtf8(bytes.to_vec()))
            }
        }

        deserializer.deserialize_bytes(Reader)
    }
}

#[derive(Default)]
struct Fields<'a> {
    event_id: Option<&'a RawValue>,
    data: Option<&'a RawValue>,
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Fields::default();
                while let Some(Wtf8(name)) = map.next_key()? {
                    let value: &'de RawValue = map.next_value()?;
                    if name.eq_ignore_ascii_case(b"eventId") {
                        fields.event_id = Some(value);
                    } else if name.eq_ignore_ascii_case(b"data") {
                        fields.data = Some(value);
                    }
                }
                Ok(fields)
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &[u8], id: &str, payload: &[u8]) {
        let business =
            read(&Bytes::copy_from_slice(body)).unwrap_or_else(|_| panic!("{}", body.escape_ascii()));
        assert_eq!((business.id.as_str(), &business.payload[..]), (id, payload), "{}", body.escape_ascii());
    }

    fn refused(body: &[u8]) {
        assert_eq!(read(&Bytes::copy_from_slice(body)), Err(Unreadable), "{}", body.escape_ascii());
    }

    #[test]
    fn the_payload_is_the_bytes_of_data() {
        check(br#"{"eventId":"b-1","data":{ "n": 1.0e2,  "n":2 }}"#, "b-1", br#"{ "n": 1.0e2,  "n":2 }"#);
        check(b" {\"data\" : null, \"eventId\":\"b\"}\n", "b", b"null");
        check(br#"{"eventId":"b","data":"<&>"}"#, "b", br#""<&>""#);
    }

    #[test]
    fn names_match_in_any_case_and_the_last_wins() {
        check(br#"{"EVENTID":"a","eventid":"b","DATA":1,"data":2}"#, "b", b"2");
        check(br#"{"\u0065ventId":"a","data":1}"#, "a", b"1");
    }

    #[test]
    fn foreign_bytes_are_tolerated_within_texts() {
        check(b"{\"eventId\":\"a\xff\",\"data\":\"\xfe\xe9\"}", "a\u{fffd}", b"\"\xfe\xe9\"");
        check(br#"{"eventId":"a\ud800","data":"\ud800"}"#, "a\u{fffd}\u{fffd}\u{fffd}", br#""\ud800""#);
        check("{\"eventId\":\"é\",\"data\":\"é\"}".as_bytes(), "é", "\"é\"".as_bytes());
    }

    #[test]
    fn what_is_not_such_an_object_is_refused() {
        for body in [&b""[..], b"[]", b"1", b"{}", b"{\"eventId\":\"a\"}", b"{\"data\":1}"] {
            refused(body);
        }
        for id in ["", "null", "1", "\"\"", "[\"a\"]", "{}"] {
            refused(format!("{{\"eventId\":{id},\"data\":1}}").as_bytes());
        }
        refused(b"\xef\xbb\xbf{\"eventId\":\"a\",\"data\":1}");
        refused(br#"{"eventId":"a","data":1} x"#);
        refused(br#"{"eventId":"a","data":}"#);
    }

    #[test]
    fn r51_nesting_has_an_end() {
        let nested = |depth: usize| {
            format!("{{\"eventId\":\"a\",\"data\":{}{}}}", "[".repeat(depth), "]".repeat(depth))
        };
        assert!(read(&nested(DEPTH_MAX - 1).into()).is_ok());
        assert!(read(&nested(DEPTH_MAX).into()).is_err());
        let brackets = "[".repeat(2 * DEPTH_MAX);
        check(
            format!(r#"{{"eventId":"a","data":"\"{brackets}"}}"#).as_bytes(),
            "a",
            format!(r#""\"{brackets}""#).as_bytes(),
        );
    }

    #[test]
    fn d2_depth_costs_no_more_than_length() {
        let deep = format!("{{\"eventId\":\"a\",\"data\":{}{}}}", "[".repeat(9000), "]".repeat(9000));
        check(deep.as_bytes(), "a", &deep.as_bytes()[22..deep.len() - 1]);
    }
}
