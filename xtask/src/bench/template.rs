//! A signed delivery as bytes, of which only the id, the time and the signature change. They are patched in place:
//! the generator shares its cores with the server, so it allocates nothing for a request.
//!
//! The scheme is `signed-inbox`: HMAC-SHA256 over time, id and body with dots between them.

use std::ops::Range;

use anyhow::{Result, ensure};
use aws_lc_rs::hmac;

/// What signs every delivery of the bench, in every server.
pub(super) const SECRET: &str = "the secret of the bench, 32 bytes";

/// The name of that secret's variable in a server's environment.
pub(super) const SECRET_VARIABLE: &str = "BENCH_SECRET";

/// Where the deliveries go.
pub(super) const TARGET: &str = "/in/bench";

const ID: &str = "bench-0000000000000000";
const TIME: &str = "0000000000";
const SIGNATURE: &str = "v1=0000000000000000000000000000000000000000000000000000000000000000";
const BODY_START: &str = "{\"eventId\":\"";
const BODY_MIDDLE: &str = "\",\"data\":{\"text\":\"";
const BODY_END: &str = "\"}}\n";

/// The smallest body that can be asked for.
pub(super) const BODY_BYTES_MIN: usize = BODY_START.len() + ID.len() + BODY_MIDDLE.len() + BODY_END.len();

/// The ids of a delivery: equal, except in a conflict, where an id that was there comes with another body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ids {
    /// The provider event id.
    pub(super) event: u64,
    /// What makes the body another one.
    pub(super) body: u64,
}

/// A request with slots.
#[derive(Clone)]
pub(super) struct Template {
    bytes: Vec<u8>,
    id: Range<usize>,
    time: Range<usize>,
    signature: Range<usize>,
    id_in_body: Range<usize>,
    body: Range<usize>,
    key: hmac::Key,
}

impl Template {
    /// A request with a body of `body_bytes`, at least [`BODY_BYTES_MIN`]; `filler` makes its text.
    pub(super) fn new(host: &str, body_bytes: usize, filler: &mut impl FnMut() -> u64) -> Result<Self> {
        ensure!(body_bytes >= BODY_BYTES_MIN, "a body has {BODY_BYTES_MIN} bytes at least");
        let mut bytes = Vec::new();
        let line = format!("POST {TARGET} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n");
        append(&mut bytes, &line);
        append(&mut bytes, &format!("Content-Length: {body_bytes}\r\nX-Delivery-ID: "));
        let id = append(&mut bytes, ID);
        append(&mut bytes, "\r\nX-Timestamp: ");
        let time = append(&mut bytes, TIME);
        append(&mut bytes, "\r\nX-Signature: ");
        let signature = append(&mut bytes, SIGNATURE);
        append(&mut bytes, "\r\n\r\n");
        let body_start = bytes.len();
        append(&mut bytes, BODY_START);
        let id_in_body = append(&mut bytes, ID);
        append(&mut bytes, BODY_MIDDLE);
        append(&mut bytes, &text(body_bytes - BODY_BYTES_MIN, filler));
        append(&mut bytes, BODY_END);
        let body = body_start..bytes.len();
        let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
        Ok(Self { bytes, id, time, signature, id_in_body, body, key })
    }

    /// Makes it the delivery with these ids, signed at `unix_time` (seconds, of ten digits).
    pub(super) fn patch(&mut self, ids: Ids, unix_time: u64) {
        put_id(&mut self.bytes[self.id.clone()], ids.event);
        put_id(&mut self.bytes[self.id_in_body.clone()], ids.body);
        put_decimal(&mut self.bytes[self.time.clone()], unix_time);
        let mut signed = hmac::Context::with_key(&self.key);
        signed.update(&self.bytes[self.time.clone()]);
        signed.update(b".");
        signed.update(&self.bytes[self.id.clone()]);
        signed.update(b".");
        signed.update(&self.bytes[self.body.clone()]);
        let digits = self.signature.start + "v1=".len()..self.signature.end;
        hex::encode_to_slice(signed.sign().as_ref(), &mut self.bytes[digits])
            .expect("the slot has two digits for each byte of SHA-256");
    }

    /// The request.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Adds text and says where it lies.
fn append(bytes: &mut Vec<u8>, text: &str) -> Range<usize> {
    let start = bytes.len();
    bytes.extend_from_slice(text.as_bytes());
    start..bytes.len()
}

/// Hexadecimal digits, so that the text compresses about as well as JSON does and no better.
fn text(length: usize, filler: &mut impl FnMut() -> u64) -> String {
    let mut text = String::with_capacity(length + 16);
    while text.len() < length {
        text += &format!("{:016x}", filler());
    }
    text.truncate(length);
    text
}

fn put_id(slot: &mut [u8], id: u64) {
    let digits = slot.len() - 16;
    hex::encode_to_slice(id.to_be_bytes(), &mut slot[digits..]).expect("an id ends with 16 digits");
}

fn put_decimal(slot: &mut [u8], mut number: u64) {
    for digit in slot.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).expect("a digit");
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(body_bytes: usize) -> Template {
        Template::new("127.0.0.1:1", body_bytes, &mut || 0x0123_4567_89ab_cdef).unwrap()
    }

    fn parts(template: &Template) -> (String, String) {
        let text = String::from_utf8(template.bytes().to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    #[test]
    fn a_patched_request_is_signed_over_what_it_carries() {
        let mut template = template(1024);
        template.patch(Ids { event: 1, body: 1 }, 1_700_000_000);
        template.patch(Ids { event: 0xabc, body: 0xdef }, 1_770_000_000);
        let (head, body) = parts(&template);
        assert_eq!(body.len(), 1024);
        assert!(
            body.starts_with("{\"eventId\":\"bench-0000000000000def\",\"data\":{\"text\":\"01234567"),
            "{body}"
        );
        let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
        let signed = format!("1770000000.bench-0000000000000abc.{body}");
        let signature = hex::encode(hmac::sign(&key, signed.as_bytes()));
        let wanted = [
            "POST /in/bench HTTP/1.1",
            "Host: 127.0.0.1:1",
            "Content-Type: application/json",
            "Content-Length: 1024",
            "X-Delivery-ID: bench-0000000000000abc",
            "X-Timestamp: 1770000000",
            &format!("X-Signature: v1={signature}"),
        ];
        assert_eq!(head.split("\r\n").collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn patching_leaves_no_trace_of_the_request_before() {
        let mut used = template(BODY_BYTES_MIN);
        used.patch(Ids { event: u64::MAX, body: u64::MAX }, 9_999_999_999);
        let mut fresh = template(BODY_BYTES_MIN);
        for template in [&mut used, &mut fresh] {
            template.patch(Ids { event: 5, body: 5 }, 1_770_000_000);
        }
        assert_eq!(parts(&used), parts(&fresh));
    }

    #[test]
    fn a_body_that_cannot_hold_its_id_is_refused() {
        assert!(Template::new("h", BODY_BYTES_MIN - 1, &mut || 0).is_err());
    }
}
