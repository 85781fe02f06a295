//! The admin API of the server under test, over one connection, as a consumer uses it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::child::Server;

/// An answer that takes longer is a failure.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);

/// Above the longest answer that is asked for here: a thousand leases with bodies of 1 KiB.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A connection with the token of the server's own data folder.
pub(super) struct Admin {
    stream: BufReader<TcpStream>,
    /// The fields that every request has.
    fields: String,
}

impl Admin {
    pub(super) fn connect(server: &Server) -> Result<Self> {
        let text = |key: &str| server.ready[key].as_str().with_context(|| format!("it told no `{key}`"));
        let address = text("admin")?.strip_prefix("http://").context("the admin listener has no URL")?;
        let file = Path::new(text("data")?).join("admin.token");
        let token = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let stream = TcpStream::connect(address).context("cannot connect to the admin listener")?;
        stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
        stream.set_read_timeout(Some(ANSWER_TIME_MAX)).context("cannot set a time limit")?;
        let fields = format!("Host: {address}\r\nAuthorization: Bearer {}\r\n", token.trim());
        Ok(Self { stream: BufReader::new(stream), fields })
    }

    pub(super) fn get(&mut self, target: &str) -> Result<Value> {
        self.exchange("GET", target, "")
    }

    pub(super) fn post(&mut self, target: &str, body: &str) -> Result<Value> {
        self.exchange("POST", target, body)
    }

    fn exchange(&mut self, method: &str, target: &str, body: &str) -> Result<Value> {
        let (fields, length) = (&self.fields, body.len());
        let request = format!("{method} {target} HTTP/1.1\r\n{fields}Content-Length: {length}\r\n\r\n{body}");
        self.stream.get_mut().write_all(request.as_bytes()).context("cannot send a request")?;
        let (status, length) = self.head().with_context(|| format!("{method} {target}"))?;
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer).context("cannot read an answer")?;
        let said = || format!("{method} {target}: {status} {}", String::from_utf8_lossy(&answer));
        ensure!(status == 200, said());
        serde_json::from_slice(&answer).with_context(said)
    }

    /// The status, and how long the body is.
    fn head(&mut self) -> Result<(u16, usize)> {
        let status = self.line()?;
        let status = status.split(' ').nth(1).and_then(|status| status.parse().ok()).context("no status")?;
        let mut length = None;
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = Some(value.trim().parse().context("a bad content-length")?);
            }
        }
        let length = length.context("an answer without a content-length")?;
        ensure!(length <= ANSWER_BYTES_MAX, "an answer of {length} bytes");
        Ok((status, length))
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.stream.read_line(&mut line).context("cannot read an answer")? > 0, "closed");
        Ok(line.trim_end().to_owned())
    }
}
