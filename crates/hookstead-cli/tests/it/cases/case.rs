//! A case as it stands in `open.jsonl`: what is sent, and what is expected of it. Knows nothing of the server.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

const FILE: &str = include_str!("open.jsonl");

/// The test clock of cases that name none.
const NOW_DEFAULT: i64 = 1_760_000_000;

/// One line of the file.
pub(crate) struct Case(Value);

impl Case {
    /// Every case of the file.
    pub(crate) fn all() -> Vec<Self> {
        let parse = |line: &str| Self(serde_json::from_str(line).expect("every line is a case"));
        FILE.lines().map(parse).collect()
    }

    pub(crate) fn get(id: &str) -> Self {
        Self::all().into_iter().find(|case| case.id() == id).unwrap_or_else(|| panic!("no case {id}"))
    }

    pub(crate) fn id(&self) -> &str {
        text(&self.0["id"])
    }

    pub(crate) fn theme(&self) -> &str {
        text(&self.0["theme"])
    }

    /// The test clock, in Unix seconds.
    pub(crate) fn now(&self) -> i64 {
        self.0["input"]["now"].as_i64().unwrap_or(NOW_DEFAULT)
    }

    /// The sketches of the sources, at least one.
    pub(crate) fn sources(&self) -> Vec<Value> {
        match &self.0["input"]["source"] {
            Value::Array(sources) => sources.clone(),
            one @ Value::Object(_) => vec![one.clone()],
            other => panic!("no source in {other}"),
        }
    }

    /// What is sent, in order.
    pub(crate) fn requests(&self) -> Vec<CaseRequest> {
        if self.0["input"]["raw_http_b64"].is_string() {
            let bytes = self.bytes("/raw_http_b64");
            return vec![CaseRequest { bytes, source: self.source_name(), body: None, at: None }];
        }
        let requests = self.0["input"]["requests"].as_array().map(Vec::as_slice).unwrap_or_default();
        requests.iter().map(CaseRequest::new).collect()
    }

    /// Bytes that stand in base64 at this place of `input`.
    pub(crate) fn bytes(&self, pointer: &str) -> Vec<u8> {
        decode(&self.input(pointer))
    }

    /// A value of `input`.
    pub(crate) fn input(&self, pointer: &str) -> Value {
        self.0["input"].pointer(pointer).unwrap_or_else(|| panic!("{}: no {pointer}", self.id())).clone()
    }

    /// The body that `build` describes.
    pub(crate) fn built_body(&self) -> Vec<u8> {
        self.built("/build/body")
    }

    /// The bytes that are described at this place of `input`, made of parts that are repeated.
    pub(crate) fn built(&self, pointer: &str) -> Vec<u8> {
        let build = self.input(pointer);
        let mut body = Vec::new();
        for part in build["parts"].as_array().expect("a list of parts") {
            let times = part["times"].as_u64().expect("a number of times");
            body.extend(decode(&part["b64"]).repeat(usize::try_from(times).expect("it fits into memory")));
        }
        assert_eq!(Some(body.len() as u64), build["length"].as_u64());
        assert_eq!(sha256(&body), text(&build["sha256"]), "{}", self.id());
        body
    }

    /// The expected statuses, one a request; nothing if they are said in words.
    pub(crate) fn statuses(&self) -> Vec<Value> {
        match &self.0["expected"]["status"] {
            Value::Array(statuses) => statuses.clone(),
            one => vec![one.clone(); self.requests().len().max(1)],
        }
    }

    fn source_name(&self) -> String {
        text(&self.sources()[0]["name"]).to_owned()
    }
}

/// One request, as bytes for a socket.
#[derive(Clone)]
pub(crate) struct CaseRequest {
    pub(crate) bytes: Vec<u8>,
    /// The name of the source at which it arrives.
    pub(crate) source: String,
    /// What must be stored if it is accepted; nothing where the framing has to be undone first.
    pub(crate) body: Option<Vec<u8>>,
    /// Where the test clock is moved to before it is sent.
    pub(crate) at: Option<i64>,
}

impl CaseRequest {
    fn new(request: &Value) -> Self {
        let (method, path) = (text(&request["method"]), text(&request["path"]));
        let headers = request["headers"].as_array().expect("a list of headers");
        let headers: Vec<_> = headers.iter().map(|header| (text(&header[0]), text(&header[1]))).collect();
        let body = decode(&request["body_b64"]);
        let path_alone = path.split('?').next().unwrap_or_default();
        let source = path_alone.trim_matches('/').strip_prefix("in/").expect("an intake");
        Self {
            bytes: wire(method, path, &headers, &body),
            source: source.to_owned(),
            body: Some(body),
            at: request["at"].as_i64(),
        }
    }
}

/// The bytes of a request; `Host` and `Content-Length` are added where they are not given.
pub(crate) fn wire(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    let has = |name: &str| headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    if !has("Host") {
        head += "Host: hook.example\r\n";
    }
    if !has("Content-Length") && !has("Transfer-Encoding") {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    [head.as_bytes(), b"\r\n", body].concat()
}

/// The signature that the generic source of most cases wants: HMAC-SHA256 of the body in hex.
pub(crate) fn hmac_hex(secret: &str, body: &[u8]) -> String {
    use aws_lc_rs::hmac;
    hex::encode(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), body))
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    use aws_lc_rs::digest;
    hex::encode(digest::digest(&digest::SHA256, bytes))
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}"))
}

fn decode(value: &Value) -> Vec<u8> {
    STANDARD.decode(text(value)).expect("base64")
}
