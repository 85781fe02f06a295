//! Reads answers of HTTP/1.1 as they come in, in pieces of any size: the status, and where the answer ends. It keeps
//! nothing else of them.

use anyhow::{Context, Result, bail, ensure};

/// More than any server here sends as a head.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// One complete answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Whether the server closes the connection after it.
    pub(super) closes: bool,
}

/// Where in an answer a connection is.
#[derive(Default)]
pub(super) struct ResponseReader {
    /// The head so far, when it came in pieces.
    head: Vec<u8>,
    /// The answer whose body is being read, and how many bytes of it are still to come.
    body: Option<(Answer, usize)>,
}

impl ResponseReader {
    /// Takes the bytes that came. One request is in flight at a time, so that bytes after its answer are an error.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<Option<Answer>> {
        let Some((answer, missing)) = self.body.take() else { return self.feed_head(bytes) };
        self.feed_body(answer, missing, bytes)
    }

    fn feed_head(&mut self, bytes: &[u8]) -> Result<Option<Answer>> {
        // Mostly the whole answer comes at once and is read where it lies.
        if self.head.is_empty()
            && let Some(end) = end_of_head(bytes)
        {
            let (answer, length) = parse_head(&bytes[..end])?;
            return self.feed_body(answer, length, &bytes[end..]);
        }
        let before = self.head.len();
        self.head.extend_from_slice(bytes);
        let Some(end) = end_of_head(&self.head) else {
            ensure!(self.head.len() <= HEAD_BYTES_MAX, "an answer's head has no end");
            return Ok(None);
        };
        let (answer, length) = parse_head(&self.head[..end])?;
        self.head.clear();
        self.feed_body(answer, length, &bytes[end - before..])
    }

    fn feed_body(&mut self, answer: Answer, missing: usize, bytes: &[u8]) -> Result<Option<Answer>> {
        ensure!(bytes.len() <= missing, "{} bytes after the end of an answer", bytes.len() - missing);
        if bytes.len() == missing {
            return Ok(Some(answer));
        }
        self.body = Some((answer, missing - bytes.len()));
        Ok(None)
    }
}

/// The place after the blank line.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}

/// The answer that a head begins, and the length of its body.
fn parse_head(head: &[u8]) -> Result<(Answer, usize)> {
    let head = std::str::from_utf8(head).context("an answer's head is no text")?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")).and_then(|rest| rest.get(..3));
    let status = status.and_then(|status| status.parse().ok()).context("an answer has no status line")?;
    let mut length = None;
    let mut closes = false;
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            length = Some(value.parse().context("an answer has a bad content-length")?);
        } else if name.eq_ignore_ascii_case("connection") {
            closes = value.eq_ignore_ascii_case("close");
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            bail!("answers in chunks are not read");
        }
    }
    let bodyless = status == 204 || status == 304;
    let length = length.or(bodyless.then_some(0)).context("an answer has no content-length")?;
    Ok((Answer { status, closes }, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORED: &[u8] =
        b"HTTP/1.1 202 Accepted\r\ncontent-type: text/plain\r\nContent-Length: 5\r\n\r\nhello";

    #[test]
    fn an_answer_is_read_however_it_is_split() {
        let answer = Answer { status: 202, closes: false };
        for first in 0..STORED.len() {
            for second in first..STORED.len() {
                let mut reader = ResponseReader::default();
                let pieces = [&STORED[..first], &STORED[first..second], &STORED[second..]];
                let read = pieces.map(|piece| reader.feed(piece).unwrap());
                assert_eq!(read, [None, None, Some(answer)], "split at {first} and {second}");
                assert_eq!(reader.feed(STORED).unwrap(), Some(answer), "the next after {first} and {second}");
            }
        }
    }

    #[test]
    fn a_body_may_be_absent_and_a_connection_may_end() {
        let read = |bytes: &[u8]| ResponseReader::default().feed(bytes).unwrap();
        let closing = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nConnection: Close\r\n\r\n";
        assert_eq!(read(closing), Some(Answer { status: 503, closes: true }));
        assert_eq!(read(b"HTTP/1.1 204 No Content\r\n\r\n"), Some(Answer { status: 204, closes: false }));
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let refused = |bytes: &[u8]| ResponseReader::default().feed(bytes).unwrap_err().to_string();
        assert_eq!(refused(b"HTTP/2 200\r\n\r\n"), "an answer has no status line");
        assert_eq!(refused(b"HTTP/1.1 200 OK\r\n\r\n"), "an answer has no content-length");
        assert_eq!(
            refused(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"),
            "answers in chunks are not read"
        );
        assert_eq!(refused(&[STORED, b"!"].concat()), "1 bytes after the end of an answer");
        assert_eq!(refused(&[b'x'; HEAD_BYTES_MAX + 1]), "an answer's head has no end");
    }
}
