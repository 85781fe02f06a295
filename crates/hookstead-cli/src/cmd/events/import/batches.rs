//! Lines of a file in batches that one request takes. It looks at their ends only, not at what is in them, and never
//! holds more than one batch and one line.

use std::io::{self, BufRead, Read};

use hookstead_server::api::view::ImportLimits;

/// Lines that are sent together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    /// The lines, each with an LF.
    pub(super) bytes: Vec<u8>,
    /// The number of each of them in the file, from 1.
    pub(super) numbers: Vec<u64>,
    /// The numbers of lines that are too long to be one, and were left out.
    pub(super) too_long: Vec<u64>,
    /// The number of the last line.
    pub(super) last: u64,
}

/// A file that is read in batches.
pub(super) struct Batches<R> {
    input: R,
    limits: ImportLimits,
    /// The number of the line that was read last.
    at: u64,
    /// A line that did not fit.
    kept: Option<Vec<u8>>,
}

enum Line {
    Whole(Vec<u8>),
    TooLong,
    End,
}

impl<R: BufRead> Batches<R> {
    pub(super) fn new(input: R, limits: ImportLimits) -> Self {
        Self { input, limits, at: 0, kept: None }
    }

    /// The next lines, without blank ones; `None` at the end of the file.
    pub(super) fn next_batch(&mut self) -> io::Result<Option<Batch>> {
        let mut batch = Batch::default();
        if let Some(kept) = self.kept.take() {
            batch.add(&kept, self.at);
        }
        // As many lines left out as lines sent: neither list grows with the file.
        while batch.numbers.len().max(batch.too_long.len()) < self.limits.lines_max {
            match self.line()? {
                Line::End => break,
                Line::TooLong => batch.too_long.push(self.at),
                Line::Whole(line) if line.trim_ascii().is_empty() => {}
                Line::Whole(line) if batch.has_room(&line, self.limits.bytes_max) => {
                    batch.add(&line, self.at);
                }
                Line::Whole(line) => {
                    self.kept = Some(line);
                    break;
                }
            }
        }
        batch.last = self.at - u64::from(self.kept.is_some());
        let is_end = batch.numbers.is_empty() && batch.too_long.is_empty();
        Ok((!is_end).then_some(batch))
    }

    fn line(&mut self) -> io::Result<Line> {
        let mut line = Vec::new();
        let with_end = self.limits.line_bytes_max.saturating_add(1);
        if self.input.by_ref().take(with_end).read_until(b'\n', &mut line)? == 0 {
            return Ok(Line::End);
        }
        self.at += 1;
        if line.last() == Some(&b'\n') {
            line.pop();
            return Ok(Line::Whole(line));
        }
        if line.len() as u64 <= self.limits.line_bytes_max {
            return Ok(Line::Whole(line));
        }
        drop(line);
        self.input.skip_until(b'\n')?;
        Ok(Line::TooLong)
    }
}

impl Batch {
    /// Whether a line and its LF go with the others; the first always does.
    fn has_room(&self, line: &[u8], bytes_max: u64) -> bool {
        self.numbers.is_empty() || ((self.bytes.len() + line.len()) as u64) < bytes_max
    }

    fn add(&mut self, line: &[u8], number: u64) {
        self.bytes.extend_from_slice(line);
        self.bytes.push(b'\n');
        self.numbers.push(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(text: &str) -> Vec<Batch> {
        let limits = ImportLimits { lines_max: 3, bytes_max: 10, line_bytes_max: 12 };
        let mut batches = Batches::new(text.as_bytes(), limits);
        std::iter::from_fn(|| batches.next_batch().unwrap()).collect()
    }

    fn numbers(text: &str) -> Vec<(Vec<u64>, Vec<u64>, u64)> {
        batches(text).into_iter().map(|batch| (batch.numbers, batch.too_long, batch.last)).collect()
    }

    #[test]
    fn lines_go_together_as_far_as_they_fit() {
        assert_eq!(numbers("a\nb\nc\nd\n"), [(vec![1, 2, 3], vec![], 3), (vec![4], vec![], 4)]);
        assert_eq!(numbers("aaaa\nbbbb\ncc\n"), [(vec![1, 2], vec![], 2), (vec![3], vec![], 3)]);
        let bytes: Vec<u8> = batches("a\r\n\n \nb").into_iter().flat_map(|batch| batch.bytes).collect();
        assert_eq!(bytes, b"a\r\nb\n");
    }

    #[test]
    fn a_long_line_comes_alone_and_one_that_is_too_long_is_left_out() {
        let (longest, longer) = ("x".repeat(12), "x".repeat(13));
        let text = format!("a\n{longest}\n{longer}\nb\n{longer}");
        assert_eq!(numbers(&text), [(vec![1], vec![], 1), (vec![2], vec![3], 3), (vec![4], vec![5], 5)]);
    }

    #[test]
    fn nothing_is_no_batch() {
        assert!(batches("").is_empty() && batches("\n\n  \n").is_empty());
    }
}
