//! Every filter, by its name.

use super::{digests, headers, json, pairs, texts};
use crate::template::Context;

/// A filter's name and what it does. The context is there for the few that look at the request or the key.
pub(crate) type Filter = (&'static str, fn(&[u8], &Context<'_>) -> Option<Vec<u8>>);

/// Every filter there is.
pub(crate) const FILTERS: &[Filter] = &[
    ("lower", |bytes, _| Some(bytes.to_ascii_lowercase())),
    ("hex", |bytes, _| Some(hex::encode(bytes).into_bytes())),
    ("base64", |bytes, _| Some(texts::base64(bytes))),
    ("base64url", |bytes, _| Some(texts::base64url(bytes))),
    ("php_escape", |bytes, _| texts::php_escape(bytes)),
    ("other_port", |bytes, _| Some(texts::other_port(bytes))),
    ("unescape_punctuation", |bytes, _| Some(texts::unescape_punctuation(bytes))),
    ("sha1", |bytes, _| Some(digests::sha1(bytes))),
    ("sha256", |bytes, _| Some(digests::sha256(bytes))),
    ("sha512", |bytes, _| Some(digests::sha512(bytes))),
    ("crc32", |bytes, _| Some(digests::crc32(bytes))),
    ("hmac_sha1", digests::hmac_sha1),
    ("hmac_sha256", digests::hmac_sha256),
    ("gunzip", |bytes, _| digests::gunzip(bytes)),
    ("json", |bytes, _| json::escape(bytes)),
    ("sorted_json", |bytes, _| json::sorted(bytes)),
    ("sorted_kv", |bytes, _| Some(pairs::sorted_kv(bytes))),
    ("sorted_kv_all", |bytes, _| Some(pairs::sorted_kv_all(bytes))),
    ("sorted_kv_unique", |bytes, _| Some(pairs::sorted_kv_unique(bytes))),
    ("sorted_amp", |bytes, _| Some(pairs::sorted_amp(bytes))),
    ("sorted_query", |bytes, _| Some(pairs::sorted_query(bytes))),
    ("header_values", headers::values),
    ("signed_headers", headers::signed),
];

/// The filter of that name.
pub(crate) fn find(name: &str) -> Option<Filter> {
    FILTERS.iter().find(|(found, _)| *found == name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Request;

    fn apply(name: &str, input: &[u8]) -> Option<Vec<u8>> {
        let headers = [("x-a", "1"), ("X-B", "2"), ("x-c", "3"), ("x-c", "4"), ("x-d", "5"), ("X-D", "5")];
        let request = Request { method: "POST", target: "/", url: None, headers: &headers, body: b"" };
        let (_, filter) = find(name).unwrap();
        filter(input, &Context::of(request))
    }

    fn check(name: &str, input: &str, expected: &str) {
        let found = apply(name, input.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(found.as_deref(), Some(expected), "{name}({input})");
    }

    #[test]
    fn texts_and_digests() {
        check("lower", "AbÉ", "abÉ");
        check("hex", "\u{1}a", "0161");
        check("base64", "??>", "Pz8+");
        check("base64url", "??>?", "Pz8-Pw");
        check("crc32", "123456789", "3421780262");
        check("php_escape", "a/b\\/é🎉\u{7f}", "a\\/b\\/\\u00e9\\ud83c\\udf89\\u007f");
        assert_eq!(apply("php_escape", b"\xff"), None);
        assert_eq!(apply("hmac_sha256", b"x"), None, "no key is at hand");
        assert!(find("eval").is_none());
    }

    #[test]
    fn addresses() {
        check("other_port", "https://h.example/p?q", "https://h.example:443/p?q");
        check("other_port", "http://h.example", "http://h.example:80");
        check("other_port", "https://h.example:8443/p:1", "https://h.example/p:1");
        check("other_port", "https://[::1]/", "https://[::1]:443/");
        check("other_port", "no address", "no address");
        let all = "%3A%2F%3F%40%21%24%27%28%29%2A%2C%3B";
        check("unescape_punctuation", all, ":/?@!$'()*,;");
        check("unescape_punctuation", &all.to_lowercase(), ":/?@!$'()*,;");
        for kept in ["%20%26%3D%25%23%2B%5B", "%", "%3", "%3G", "a%c3%a9", ""] {
            check("unescape_punctuation", kept, kept);
        }
        check("unescape_punctuation", "%253A%%3A", "%253A%:");
    }

    #[test]
    fn sorted_pairs() {
        check("sorted_kv", "b=2&a=1&b=1&c=%20", "a1b2b1c ");
        check("sorted_kv_all", "b=2&a=1&b=1&b=1&c=", "a1b1b1b2c");
        check("sorted_kv_unique", "b=2&a=1&b=1&b=2&B=", "Ba1b1b2");
        check("sorted_amp", "b=2&a=%26&b=1", "a=&&b=1&b=2");
        check("sorted_query", "b=2&a=%26+é&b=1", "a=%26%20%C3%A9&b=2&b=1");
    }

    #[test]
    fn header_lists() {
        check("header_values", "x-a x-b", "1.2");
        check("header_values", "x-d", "5");
        assert_eq!(apply("header_values", b"x-a x-none"), None);
        assert_eq!(apply("header_values", b"x-c"), None, "two values");
        check("signed_headers", "X-B,x-a", "x-a:1;x-b:2");
        assert_eq!(apply("signed_headers", b"x-a,x-none"), None);
        assert_eq!(apply("signed_headers", "x-a,".repeat(1000).as_bytes()), None, "too many");
    }

    #[test]
    fn json_as_javascript_writes_it() {
        check("json", "a\"\\\n\u{1}é", "a\\\"\\\\\\n\\u0001é");
        check(
            "sorted_json",
            r#"{"b":1.0,"a":[{"z":null,"y":true}],"10":1,"9":2}"#,
            r#"{"9":2,"10":1,"a":[{"y":true,"z":null}],"b":1}"#,
        );
        check(
            "sorted_json",
            "[1e21,1e-7,123456789012345680000,0.1,-0,1.5e300,0.000001]",
            "[1e+21,1e-7,123456789012345680000,0.1,0,1.5e+300,0.000001]",
        );
        check("sorted_json", r#"{"a":"\u00e9\u0001\/"}"#, "{\"a\":\"é\\u0001/\"}");
        for broken in ["", "{", r#""\ud800""#, &format!("{}{}", "[".repeat(200), "]".repeat(200))] {
            assert_eq!(apply("sorted_json", broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn gzip_is_undone_within_bounds() {
        use std::io::Write as _;
        let pack = |bytes: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        assert_eq!(apply("gunzip", b"plain"), Some(b"plain".to_vec()));
        assert_eq!(apply("gunzip", &pack(b"packed")), Some(b"packed".to_vec()));
        assert_eq!(apply("gunzip", &pack(&vec![0; digests::GUNZIPPED_BYTES_MAX + 1])), None, "a bomb");
        assert!(apply("gunzip", &pack(&vec![0; digests::GUNZIPPED_BYTES_MAX])).is_some());
        assert_eq!(apply("gunzip", b"\x1f\x8b\x08garbage"), None);
        let cut = pack(b"packed");
        assert_eq!(apply("gunzip", &cut[..cut.len() - 3]), None);
    }
}
