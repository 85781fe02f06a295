//! One connection of the sink: requests one after the other, each answered with success.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use anyhow::{Context, Result, ensure};

pub(super) const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// Above any head that is pushed here.
const HEAD_BYTES_MAX: usize = 16 * 1024;

pub(super) struct Connection {
    stream: TcpStream,
    /// What was read of a head that has not ended yet.
    head: Vec<u8>,
    /// Bytes of a body that are still to come; the request is answered at its end.
    missing: Option<usize>,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, head: Vec::new(), missing: None }
    }

    /// Reads once and answers what has ended: how many requests; `None` when the connection has.
    pub(super) fn serve(&mut self, buffer: &mut [u8]) -> Result<Option<u64>> {
        let length = match self.stream.read(buffer) {
            Ok(0) => return Ok(None),
            Ok(length) => length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(Some(0));
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
            Err(error) => return Err(error).context("cannot read a request"),
        };
        let answered = self.feed(&buffer[..length])?;
        for _ in 0..answered {
            // An answer is far shorter than any socket's buffer.
            if self.stream.write_all(ANSWER).is_err() {
                return Ok(None);
            }
        }
        Ok(Some(answered))
    }

    /// How many requests end within these bytes.
    fn feed(&mut self, mut bytes: &[u8]) -> Result<u64> {
        let mut ended = 0;
        while !bytes.is_empty() {
            let missing = match self.missing {
                Some(missing) => missing,
                None => match self.feed_head(&mut bytes)? {
                    Some(length) => length,
                    None => break,
                },
            };
            let here = missing.min(bytes.len());
            bytes = &bytes[here..];
            self.missing = Some(missing - here).filter(|missing| *missing > 0);
            ended += u64::from(self.missing.is_none());
        }
        Ok(ended)
    }

    /// Takes the bytes of the head; the length of its body once it has ended.
    fn feed_head(&mut self, bytes: &mut &[u8]) -> Result<Option<usize>> {
        let before = self.head.len();
        self.head.extend_from_slice(bytes);
        let from = before.saturating_sub(3);
        let end = self.head[from..].windows(4).position(|window| window == b"\r\n\r\n");
        let Some(end) = end.map(|at| from + at + 4) else {
            ensure!(self.head.len() <= HEAD_BYTES_MAX, "a push's head has no end");
            *bytes = &[];
            return Ok(None);
        };
        let length = content_length(&self.head[..end])?;
        *bytes = &bytes[end - before..];
        self.head.clear();
        Ok(Some(length))
    }
}

/// hyper writes names in lower case.
fn content_length(head: &[u8]) -> Result<usize> {
    const NAME: &[u8] = b"\r\ncontent-length: ";
    let at = head.windows(NAME.len()).position(|window| window == NAME);
    let value = &head[at.context("a push without a content-length")? + NAME.len()..];
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    Ok(std::str::from_utf8(&value[..digits])?.parse()?)
}
