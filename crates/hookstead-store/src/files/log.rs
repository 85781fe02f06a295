//! The log of work: an append-only file of JSON lines, each the outcome of one batch. It knows lines and sums;
//! what the rows mean is not its business.
//!
//! ```text
//! {"sum":"<32 hex>","bytes":<length of the batch>,"batch":{"number":7,"rows":[..]}}
//! ```
//!
//! `sum` is the beginning of the SHA-256 over the sum of the line before and the batch's text, so that a line
//! that is cut, changed, moved or missing is told from one that was written. The first line chains to the
//! text `hookstead work.log 1`, and its number is 0; the numbers follow each other without a gap. The first
//! line also says which segment of the journal goes on from it.
//!
//! A batch is durable when the journal has its line (`journal`); here the line is only written, and becomes
//! durable with the next checkpoint. So what follows the journal's beginning may be anything after a power cut,
//! and is read from the journal instead. Without a journal all lines are durable but for the last one, which
//! may be torn.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::codec::RowJson;
use super::row::Row;
use crate::fs::{FileFacts, Fs, FsFile};
use crate::place;

const SEED: &str = "hookstead work.log 1";

/// How many rows of a snapshot share a line: enough to make the lines' frames cheap, few enough that a line
/// stays small beside the largest entry.
const SNAPSHOT_ROWS: usize = 256;

/// One line.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) rows: Vec<Row>,
    /// The number of the journal's segment that goes on from here; in the first line of a log.
    pub(super) journal: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct BatchJson {
    number: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    journal: Option<u64>,
    rows: Vec<RowJson>,
}

#[derive(Deserialize)]
struct Line<'a> {
    sum: &'a str,
    bytes: usize,
    #[serde(borrow)]
    batch: &'a RawValue,
}

/// Where the chain of lines stands: the sum of the last one, and the number of the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) sum: String,
    pub(super) number: u64,
}

impl Chain {
    /// Before the first line.
    pub(super) fn new() -> Self {
        Self { sum: SEED.to_owned(), number: 0 }
    }

    /// The line of a batch, and the chain after it.
    pub(super) fn line(&self, batch: &Batch) -> io::Result<(Vec<u8>, Self)> {
        let rows = batch.rows.iter().map(RowJson::from).collect();
        let json = BatchJson { number: self.number, rows, journal: batch.journal };
        let text = serde_json::to_string(&json)?;
        let next = self.after(&text);
        let line = format!("{{\"sum\":\"{}\",\"bytes\":{},\"batch\":{text}}}\n", next.sum, text.len());
        Ok((line.into_bytes(), next))
    }

    /// The batch of a line (without its line feed), and the chain after it.
    pub(super) fn read(&self, line: &[u8]) -> Result<(Batch, Self), String> {
        let line: Line<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        let text = line.batch.get();
        let next = self.after(text);
        if line.sum != next.sum || line.bytes != text.len() {
            return Err("its checksum is another".to_owned());
        }
        let json: BatchJson = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if json.number != self.number {
            return Err(format!("it is batch {} where {} belongs", json.number, self.number));
        }
        let rows = json.rows.into_iter().map(Row::try_from).collect::<Result<_, _>>()?;
        Ok((Batch { rows, journal: json.journal }, next))
    }

    fn after(&self, text: &str) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(self.sum.as_bytes());
        context.update(text.as_bytes());
        Self { sum: hex::encode(&context.finish().as_ref()[..16]), number: self.number + 1 }
    }
}

/// The first line of a log that has this text for its batch, whatever it is, under the right sum.
#[cfg(feature = "fuzzing")]
pub(super) fn sealed(batch: &str) -> Vec<u8> {
    let sum = Chain::new().after(batch).sum;
    format!("{{\"sum\":\"{sum}\",\"bytes\":{},\"batch\":{batch}}}\n", batch.len()).into_bytes()
}

/// What a log held.
#[derive(Debug)]
pub(super) struct Replay {
    /// How many bytes of a torn last line were left out.
    pub(super) torn_bytes: usize,
    /// Where its lines end.
    pub(super) chain: Chain,
}

/// Reads a log's text batch by batch. The error names the line that is damaged.
pub(super) fn replay(
    text: &[u8],
    mut each: impl FnMut(Batch) -> Result<(), String>,
) -> Result<Replay, String> {
    let mut chain = Chain::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'\n');
        let (line, after) = match end {
            Some(end) => (&rest[..end], &rest[end + 1..]),
            None => return Ok(Replay { torn_bytes: rest.len(), chain }),
        };
        match chain.read(line) {
            Ok((batch, next)) => {
                each(batch).map_err(|error| format!("line {}: {error}", chain.number + 1))?;
                chain = next;
            }
            Err(_) if after.is_empty() => return Ok(Replay { torn_bytes: rest.len(), chain }),
            Err(error) => return Err(format!("line {}: {error}", chain.number + 1)),
        }
        rest = after;
    }
    Ok(Replay { torn_bytes: 0, chain })
}

/// The number of the journal's segment that goes on from a log. The error names the damage of its first line.
pub(super) fn journal_of(text: &[u8]) -> Result<u64, String> {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let (batch, _) = Chain::new().read(line).map_err(|error| format!("line 1: {error}"))?;
    Ok(batch.journal.unwrap_or(0))
}

/// An open log that is appended to.
#[derive(Debug)]
pub(super) struct WorkLog {
    file: Box<dyn FsFile>,
    place: Place,
    end: u64,
    chain: Chain,
    /// Lines that the journal has and this file not yet.
    behind: Vec<u8>,
}

impl WorkLog {
    /// Writes a log that holds `rows` under `temporary` and then gives it its name, in place of any other;
    /// the segment `journal` of the journal is to go on from it. When it returns the log is complete and
    /// durable, its name too.
    pub(super) fn create(
        fs: &Arc<dyn Fs>,
        path: &Path,
        temporary: &Path,
        snapshot: impl Iterator<Item = Row>,
        journal: u64,
    ) -> io::Result<Self> {
        let file = fs.create_new(temporary)?;
        let place = Place::new(fs, path, file.as_ref())?;
        let mut log = Self { file, place, end: 0, chain: Chain::new(), behind: Vec::new() };
        let mut batch = Batch { rows: Vec::new(), journal: Some(journal) };
        for row in snapshot {
            batch.rows.push(row);
            if batch.rows.len() == SNAPSHOT_ROWS {
                log.write(&std::mem::take(&mut batch))?;
            }
        }
        log.write(&batch)?;
        log.file.sync()?;
        fs.rename(temporary, path)?;
        if let Some(folder) = path.parent() {
            fs.sync_dir(folder)?;
        }
        Ok(log)
    }

    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        let (line, next) = self.line(batch)?;
        self.add(&line, next);
        self.write_down()
    }

    /// The line of a batch, and the chain after it. Nothing is changed.
    pub(super) fn line(&self, batch: &Batch) -> io::Result<(Vec<u8>, Chain)> {
        self.chain.line(batch)
    }

    /// Takes a line that the journal has, to be written down.
    pub(super) fn add(&mut self, line: &[u8], next: Chain) {
        self.behind.extend_from_slice(line);
        self.chain = next;
    }

    /// Writes down what was added; nothing is synced. After an error it can be tried again.
    pub(super) fn write_down(&mut self) -> io::Result<()> {
        if self.behind.is_empty() {
            return Ok(());
        }
        self.file.write_all_at(&self.behind, self.end)?;
        self.end += self.behind.len() as u64;
        self.behind.clear();
        Ok(())
    }

    /// Whether something was added and is not written down.
    pub(super) fn is_behind(&self) -> bool {
        !self.behind.is_empty()
    }

    /// How many bytes are written down, and where the chain stands after all lines.
    pub(super) fn position(&self) -> (u64, &Chain) {
        (self.end, &self.chain)
    }

    /// Whether the path still names the file that is appended to; the error says what is wrong.
    pub(super) fn check_place(&self) -> Result<(), String> {
        self.place.check(self.end)
    }
}

/// The name of an open file, which must stay its.
#[derive(Debug)]
pub(super) struct Place {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    opened: FileFacts,
}

impl Place {
    pub(super) fn new(fs: &Arc<dyn Fs>, path: &Path, file: &dyn FsFile) -> io::Result<Self> {
        Ok(Self { fs: Arc::clone(fs), path: path.to_owned(), opened: file.facts()? })
    }

    /// Whether the path still names the file, with at least `bytes` bytes; the error says what is wrong.
    pub(super) fn check(&self, bytes: u64) -> Result<(), String> {
        place::check(&self.path, &self.opened, bytes, self.fs.facts(&self.path)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use hookstead_core::{Seq, Timestamp};

    use super::*;

    fn batch(number: u64) -> Batch {
        let rows = vec![Row::Erased(Seq(number), Timestamp::from_secs(5))];
        Batch { rows, journal: (number == 0).then_some(4) }
    }

    fn lines(count: u64) -> Vec<Vec<u8>> {
        let mut chain = Chain::new();
        let mut lines = Vec::new();
        for number in 0..count {
            let (line, next) = chain.line(&batch(number)).unwrap();
            lines.push(line);
            chain = next;
        }
        lines
    }

    fn read(text: &[u8]) -> Result<(usize, usize), String> {
        let mut count = 0;
        let replay = replay(text, |batch| {
            assert_eq!(batch.rows.len(), 1);
            count += 1;
            Ok(())
        })?;
        Ok((count, replay.torn_bytes))
    }

    #[test]
    fn lines_come_back_in_order_and_each_is_json() {
        let lines = lines(3);
        assert_eq!(read(&lines.concat()), Ok((3, 0)));
        let json: serde_json::Value = serde_json::from_slice(&lines[2]).unwrap();
        assert_eq!(json["batch"]["number"], 2);
        assert_eq!(read(b""), Ok((0, 0)));
        assert_eq!(journal_of(&lines.concat()), Ok(4));
        assert!(journal_of(b"").is_err());
    }

    #[test]
    fn a_torn_tail_is_cut_wherever_it_was_torn() {
        let lines = lines(3);
        let whole = lines.concat();
        for cut in lines[..2].concat().len()..whole.len() {
            let kept = if cut == whole.len() { 3 } else { 2 };
            assert_eq!(read(&whole[..cut]).unwrap().0, kept, "cut at {cut}");
        }
        let mut holes = whole.clone();
        let at = lines[..2].concat().len() + 20;
        holes[at..at + 30].fill(0);
        assert_eq!(read(&holes), Ok((2, lines[2].len())));
    }

    #[test]
    fn damage_before_the_last_line_is_refused() {
        let lines = lines(3);
        for (name, text) in [
            ("missing", [&lines[0][..], &lines[2], &lines[2]].concat()),
            ("swapped", [&lines[1][..], &lines[0], &lines[2]].concat()),
            ("twice", [&lines[0][..], &lines[0], &lines[1]].concat()),
        ] {
            assert!(read(&text).is_err(), "{name}");
        }
        for at in 0..lines[0].len() {
            let mut text = lines.concat();
            text[at] ^= 1;
            assert!(read(&text).is_err(), "a bit at {at}");
        }
    }
}
