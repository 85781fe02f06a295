//! Writes that never wait. Whoever reads the log may have stopped reading; an event must not wait for him. What the
//! pipe does not take at once is left out and counted, and the next line that gets through says how much is missing.

use std::io::{self, Write};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A pipe that says that it is ready takes so many bytes (POSIX's `PIPE_BUF` on Linux).
const PIECE_BYTES_MAX: usize = 4096;

/// A writer that leaves out what would have to wait. A line is one call of `write`.
#[derive(Debug)]
pub(crate) struct ReadyWriter<W> {
    inner: W,
    lines_lost: u64,
}

impl<W: Write + AsFd> ReadyWriter<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, lines_lost: 0 }
    }

    /// Whether the next piece can be written without waiting. A file always can.
    fn is_ready(&self) -> bool {
        let mut polled = [PollFd::new(&self.inner, PollFlags::OUT)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // What cannot be asked is not written to either.
        poll(&mut polled, Some(&at_once)).is_ok_and(|ready| ready > 0)
    }

    /// Writes all of it, or as much as goes without waiting; nothing where the reader is gone for good. False: some of
    /// it is missing.
    fn write_ready(&mut self, line: &[u8]) -> bool {
        line.chunks(PIECE_BYTES_MAX).all(|piece| self.is_ready() && self.inner.write_all(piece).is_ok())
    }

    /// Says how many lines are missing, where lines are JSON in the same form.
    fn tell_of_the_lost(&mut self, json: bool) -> bool {
        let (lost, level) = (self.lines_lost, "WARN");
        let message = "log lines were left out: nobody read them";
        let line = if json {
            format!("{{\"level\":\"{level}\",\"message\":\"{message}\",\"log.lost\":{lost}}}\n")
        } else {
            format!("{level} {message} log.lost={lost}\n")
        };
        self.write_ready(line.as_bytes())
    }
}

impl<W: Write + AsFd> Write for ReadyWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.lines_lost > 0 && self.tell_of_the_lost(line.starts_with(b"{")) {
            self.lines_lost = 0;
        }
        if self.lines_lost > 0 || !self.write_ready(line) {
            self.lines_lost += 1;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    #[test]
    fn a_pipe_that_nobody_reads_takes_what_it_holds_and_the_rest_is_counted() {
        let (reader, writer) = io::pipe().unwrap();
        let mut log = ReadyWriter::new(writer);
        let line = |number: usize| format!("{{\"line\":{number},\"text\":\"{}\"}}\n", "x".repeat(100));
        for number in 0..5000 {
            log.write_all(line(number).as_bytes()).unwrap();
        }
        let lost = log.lines_lost;
        assert!(lost > 0, "a pipe holds less");

        let mut read = BufReader::new(reader).lines().map(Result::unwrap);
        for number in 0..5000 - usize::try_from(lost).unwrap() {
            assert_eq!(format!("{}\n", read.next().unwrap()), line(number));
        }
        log.write_all(line(5000).as_bytes()).unwrap();
        let told: serde_json::Value = serde_json::from_str(&read.next().unwrap()).unwrap();
        assert_eq!(told["log.lost"], lost);
        assert_eq!(format!("{}\n", read.next().unwrap()), line(5000));
        assert_eq!(log.lines_lost, 0);
    }

    #[test]
    fn a_long_line_is_cut_and_not_waited_for() {
        let (_reader, writer) = io::pipe().unwrap();
        let mut log = ReadyWriter::new(writer);
        log.write_all(&vec![b'x'; 10 * 1024 * 1024]).unwrap();
        assert_eq!(log.lines_lost, 1);
    }
}
