//! A client that sends the bytes it is given and reads answers one by one.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Longer than any time limit of the server: an answer that takes this long is a failure.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(40);

/// One answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// The value of a header; its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether the server announces that it closes the connection.
    pub(crate) fn closes(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {self}"))
    }
}

impl std::fmt::Display for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.status, String::from_utf8_lossy(&self.body))
    }
}

/// One connection, kept open over several requests.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn open(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
        stream.set_write_timeout(Some(ANSWER_TIME_MAX))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// The port of this side, by which a trace of the server tells the connection.
    pub(crate) fn local_port(&self) -> Result<u16> {
        Ok(self.stream.get_ref().local_addr()?.port())
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// The same connection once more, to send from another thread than the one that reads.
    pub(crate) fn sending_half(&self) -> Result<Self> {
        Ok(Self { stream: BufReader::new(self.stream.get_ref().try_clone()?) })
    }

    /// Says that nothing more will be sent; answers can still be read.
    pub(crate) fn finish_sending(&mut self) -> Result<()> {
        self.stream.get_ref().shutdown(Shutdown::Write)
    }

    /// As [`Connection::finish_sending`], where the server may have closed already.
    pub(crate) fn end_sending(&self) {
        drop(self.stream.get_ref().shutdown(Shutdown::Write));
    }

    /// Sends a request and reads its answer.
    pub(crate) fn exchange(&mut self, bytes: &[u8]) -> Result<Reply> {
        self.send(bytes)?;
        self.receive()?.ok_or_else(|| Error::new(ErrorKind::UnexpectedEof, "closed without an answer"))
    }

    /// Whether bytes of an answer are there, which stay unread.
    pub(crate) fn has_an_answer(&self) -> bool {
        self.stream.get_ref().peek(&mut [0]).is_ok_and(|bytes| bytes > 0)
    }

    /// The next answer, or `None` when the connection was closed instead.
    pub(crate) fn receive(&mut self) -> Result<Option<Reply>> {
        let Some(mut reply) = self.receive_head()? else { return Ok(None) };
        reply.body = match (reply.header("content-length"), reply.header("transfer-encoding")) {
            (_, Some("chunked")) => self.chunks()?,
            (Some(length), _) => self.exactly(length.parse().map_err(|_| bad("content-length"))?)?,
            (None, _) if reply.status == 204 || reply.status < 200 => Vec::new(),
            (None, _) => self.rest()?,
        };
        Ok(Some(reply))
    }

    /// As [`Connection::receive`] for a `HEAD` request, whose answer has no body.
    pub(crate) fn receive_head(&mut self) -> Result<Option<Reply>> {
        let Some(status_line) = self.line()? else { return Ok(None) };
        let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| bad("status line"))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?.ok_or_else(|| bad("end within the head"))?;
            if line.is_empty() {
                return Ok(Some(Reply { status, headers, body: Vec::new() }));
            }
            let (name, value) = line.split_once(':').ok_or_else(|| bad("header"))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// Everything up to the end of the connection; a reset counts as the end.
    pub(crate) fn rest(&mut self) -> Result<Vec<u8>> {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => Err(error),
            _ => Ok(rest),
        }
    }

    fn line(&mut self) -> Result<Option<String>> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.strip_suffix("\r\n").ok_or_else(|| bad("line end"))?;
        Ok(Some(line.to_owned()))
    }

    fn exactly(&mut self, length: usize) -> Result<Vec<u8>> {
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(body)
    }

    fn chunks(&mut self) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let size = self.line()?.ok_or_else(|| bad("end within a chunked body"))?;
            let size = usize::from_str_radix(&size, 16).map_err(|_| bad("chunk size"))?;
            body.extend(self.exactly(size)?);
            self.line()?;
            if size == 0 {
                return Ok(body);
            }
        }
    }
}

fn bad(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("answer with a bad {what}"))
}
