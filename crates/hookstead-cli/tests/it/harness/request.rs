//! Requests as bytes, and the `signed-inbox` way of signing them.

use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;

/// The source that every test project has.
pub(crate) const SOURCE: &str = "conf";

/// Its secret.
pub(crate) const SECRET: &str = "a secret of the tests, 32 bytes.";

/// A request whose every part can be spoilt.
#[derive(Clone)]
pub(crate) struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    /// A request with a `Host` and nothing else.
    pub(crate) fn new(method: &str, target: &str, host: &str) -> Self {
        let headers = vec![("Host".to_owned(), host.to_owned())];
        Self { method: method.to_owned(), target: target.to_owned(), headers, body: Vec::new() }
    }

    /// A delivery to [`SOURCE`], signed now.
    pub(crate) fn signed(id: &str, body: &[u8]) -> Self {
        Self::signed_at(unix_time(), id, body)
    }

    pub(crate) fn signed_at(time: i64, id: &str, body: &[u8]) -> Self {
        Self::new("POST", &format!("/in/{SOURCE}"), "localhost")
            .with("X-Delivery-ID", id)
            .with("X-Timestamp", &time.to_string())
            .with("X-Signature", &signature(SECRET.as_bytes(), time, id, body))
            .with_body(body)
    }

    /// Adds a header, also when there is one of this name.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    pub(crate) fn replacing(self, name: &str, value: &str) -> Self {
        self.without(name).with(name, value)
    }

    pub(crate) fn with_method(mut self, method: &str) -> Self {
        method.clone_into(&mut self.method);
        self
    }

    pub(crate) fn with_target(mut self, target: &str) -> Self {
        target.clone_into(&mut self.target);
        self
    }

    /// Sets the body and its `Content-Length`, and signs nothing anew.
    pub(crate) fn with_body(mut self, body: &[u8]) -> Self {
        body.clone_into(&mut self.body);
        self.replacing("Content-Length", &body.len().to_string())
    }

    /// The body in one chunk, with a `Content-Length` only if it was asked for again.
    pub(crate) fn chunked(self) -> Self {
        let mut body = format!("{:x}\r\n", self.body.len()).into_bytes();
        body.extend_from_slice(&self.body);
        body.extend_from_slice(b"\r\n0\r\n\r\n");
        let mut chunked = self.without("Content-Length").with("Transfer-Encoding", "chunked");
        chunked.body = body;
        chunked
    }

    /// The request line and the headers, with the blank line after them.
    pub(crate) fn head(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        (head + "\r\n").into_bytes()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        [self.head(), self.body.clone()].concat()
    }
}

/// `v1=` and the hexadecimal HMAC-SHA256 of time, id and body with dots between them.
pub(crate) fn signature(secret: &[u8], time: i64, id: &str, body: &[u8]) -> String {
    let signed = [format!("{time}.{id}.").as_bytes(), body].concat();
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    format!("v1={}", hex::encode(hmac::sign(&key, &signed)))
}

pub(crate) fn unix_time() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    i64::try_from(since.as_secs()).expect("the clock is in this age")
}

#[test]
fn the_signature_is_that_of_the_published_example() {
    let body = b"{\"eventId\":\"business-42\",\"data\":{\"task\":\"review uploaded report\"}}\n";
    assert_eq!(
        signature(b"0123456789abcdef", 1_770_000_000, "delivery-1", body),
        "v1=06ed80d3a128cdf1d26d48915bac7dca559cc4f56de676367b4bd3adf3a815aa"
    );
}
