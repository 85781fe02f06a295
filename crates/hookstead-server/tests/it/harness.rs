//! A server in this process with a folder of its own, and a client that sends the bytes it is given.

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use hookstead_server::config::{ConfigSource, Overrides};
use hookstead_server::{Config, Server};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) const SECRET: &str = "a secret of the tests, 32 bytes.";

/// The time after which a test counts as stuck. Nothing waits for it in a run that passes.
const STUCK: Duration = Duration::from_secs(30);

/// A running server and its folder.
pub(crate) struct Running {
    pub(crate) server: Server,
    pub(crate) folder: TempDir,
}

/// Starts a server with the source `conf` (`signed-inbox`), and what `more` adds to the configuration.
pub(crate) async fn start(more: &str) -> Running {
    let folder = tempfile::tempdir().unwrap();
    start_in(folder, more).await
}

pub(crate) async fn start_in(folder: TempDir, more: &str) -> Running {
    let server = Server::start(config(folder.path(), more)).await.unwrap();
    Running { server, folder }
}

/// How every configuration begins: listeners wherever there is room, and a store that asks for no free space, which is the
/// machine's matter and not the tests'. Keys of `[server]` may follow.
pub(crate) const BEGIN: &str =
    "[store]\nmin_free = \"0 B\"\n[server]\nintake = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n";

pub(crate) fn config(folder: &Path, more: &str) -> Config {
    let source = "[sources.conf]\nprovider = \"signed-inbox\"\nsecret = { env = \"SECRET\" }\n";
    std::fs::write(folder.join("hookstead.toml"), format!("{BEGIN}{source}{more}")).unwrap();
    let variables =
        [("SECRET", SECRET), ("SLACK", "8f742231b10e8888abcd99yyyzzz85a5"), ("TOKEN", "token-of-the-tests")];
    let source = ConfigSource {
        overrides: Overrides::default(),
        environment: variables.into_iter().collect(),
        folder: folder.to_path_buf(),
    };
    Config::load(&source).unwrap_or_else(|errors| panic!("{errors}"))
}

impl Running {
    pub(crate) async fn connect(&self) -> Client {
        Client::connect(self.server.facts().intake).await
    }

    /// One request on a connection of its own.
    pub(crate) async fn send(&self, request: &[u8]) -> Reply {
        self.connect().await.exchange(request).await
    }

    pub(crate) fn token(&self) -> String {
        let text = std::fs::read_to_string(self.server.facts().data.join("admin.token")).unwrap();
        text.trim().to_owned()
    }

    /// A request to the admin listener with the owner's token.
    pub(crate) async fn admin(&self, target: &str) -> Reply {
        let bearer = format!("Authorization: Bearer {}\r\n", self.token());
        self.admin_with("GET", target, &bearer).await
    }

    pub(crate) async fn admin_with(&self, method: &str, target: &str, headers: &str) -> Reply {
        let request = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        self.admin_raw(request.as_bytes()).await
    }

    /// A `POST` to the admin listener with this token.
    pub(crate) async fn admin_post(&self, token: &str, target: &str, body: &[u8]) -> Reply {
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.admin_raw(&[head.as_bytes(), body].concat()).await
    }

    pub(crate) async fn admin_raw(&self, request: &[u8]) -> Reply {
        Client::connect(self.server.facts().admin).await.exchange(request).await
    }

    /// Waits until bodies take exactly, or at least, so much memory.
    pub(crate) async fn body_memory(&self, holds: impl Fn(u64) -> bool) {
        let reached = async {
            while !holds(self.server.body_memory_in_use()) {
                tokio::task::yield_now().await;
            }
        };
        within(reached).await;
    }
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(STUCK, future).await.expect("stuck")
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// The code of a refusal.
    pub(crate) fn code(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        assert_eq!(self.header("x-content-type-options"), Some("nosniff"));
        self.json()["code"].as_str().unwrap().to_owned()
    }

    pub(crate) fn closes(&self) -> bool {
        self.header("connection") == Some("close")
    }
}

/// A connection.
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(address: std::net::SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, buffer: Vec::new() }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Writes what the server takes; it may answer and close before that is everything.
    pub(crate) async fn write_some(&mut self, bytes: &[u8]) {
        let _closed_early = self.stream.write_all(bytes).await.is_err();
    }

    /// Writes once and says whether the connection still takes anything.
    pub(crate) async fn try_write(&mut self, bytes: &[u8]) -> bool {
        self.stream.write(bytes).await.is_ok()
    }

    pub(crate) async fn finish_writing(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// Closes with a reset instead of an orderly end.
    pub(crate) fn vanish(self) {
        self.stream.set_zero_linger().unwrap();
    }

    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Reply {
        self.write(request).await;
        self.reply().await
    }

    pub(crate) async fn reply(&mut self) -> Reply {
        self.try_reply(true).await.expect("an answer")
    }

    /// The next answer; `None` if the connection ends instead.
    pub(crate) async fn try_reply(&mut self, with_body: bool) -> Option<Reply> {
        let head_end = loop {
            if let Some(at) = self.buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break at + 4;
            }
            if within(self.fill()).await == 0 {
                assert!(
                    self.buffer.is_empty(),
                    "an end within a head: {:?}",
                    String::from_utf8_lossy(&self.buffer)
                );
                return None;
            }
        };
        let head: Vec<u8> = self.buffer.drain(..head_end).collect();
        let head = String::from_utf8(head).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut reply = Reply { status, head, body: Vec::new() };
        let length: usize = reply.header("content-length").map_or(0, |length| length.parse().unwrap());
        if with_body {
            while self.buffer.len() < length {
                assert_ne!(within(self.fill()).await, 0, "an end within a body");
            }
            reply.body = self.buffer.drain(..length).collect();
        }
        Some(reply)
    }

    /// Waits for the end of the connection and asserts that nothing more comes.
    pub(crate) async fn ended(&mut self) {
        while within(self.fill()).await != 0 {}
        assert!(self.buffer.is_empty(), "{:?}", String::from_utf8_lossy(&self.buffer));
    }

    async fn fill(&mut self) -> usize {
        match self.stream.read_buf(&mut self.buffer).await {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("{error}"),
        }
    }
}

/// A `signed-inbox` request to the source `conf`, signed now.
#[derive(Clone)]
pub(crate) struct Signed {
    pub(crate) request_line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Signed {
    pub(crate) fn new(id: &str, body: &[u8]) -> Self {
        Self::at(unix_time(), id, body)
    }

    pub(crate) fn at(time: i64, id: &str, body: &[u8]) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
        let text = [format!("{time}.{id}.").as_bytes(), body].concat();
        let signature = format!("v1={}", hex::encode(hmac::sign(&key, &text)));
        let headers = [
            ("Host", "localhost".to_owned()),
            ("X-Delivery-ID", id.to_owned()),
            ("X-Timestamp", time.to_string()),
            ("X-Signature", signature),
            ("Content-Length", body.len().to_string()),
        ];
        Self {
            request_line: "POST /in/conf HTTP/1.1".to_owned(),
            headers: headers.map(|(name, value)| (name.to_owned(), value)).into(),
            body: body.to_vec(),
        }
    }

    pub(crate) fn line(mut self, request_line: &str) -> Self {
        request_line.clone_into(&mut self.request_line);
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn replacing(self, name: &str, value: &str) -> Self {
        self.without(name).with(name, value)
    }

    /// The same body in chunks of at most 1000 bytes.
    pub(crate) fn chunked(self) -> Self {
        let mut chunks = Vec::new();
        for chunk in self.body.chunks(1000) {
            chunks.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
            chunks.extend(chunk);
            chunks.extend(b"\r\n");
        }
        chunks.extend(b"0\r\n\r\n");
        let mut chunked = self.without("Content-Length").with("Transfer-Encoding", "chunked");
        chunked.body = chunks;
        chunked
    }

    pub(crate) fn head(&self) -> Vec<u8> {
        let mut head = format!("{}\r\n", self.request_line);
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        head.into_bytes()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        [self.head(), self.body.clone()].concat()
    }
}

pub(crate) fn unix_time() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().try_into().unwrap()
}
