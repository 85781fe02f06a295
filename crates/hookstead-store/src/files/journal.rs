//! The journal: where a batch becomes durable, with one sync. It holds each batch's line for the log and the
//! records that the batch wrote, until a checkpoint has made the log and the records durable in their own
//! places. It is a row of segments, of which the last is written to; an earlier one goes when its checkpoint is
//! through. It knows lines, records' bytes and sums; what a crash asks for is decided in `replay`.
//!
//! ```text
//! {"journal":5,"log_bytes":4711,"number":7,"sum":"<32 hex>"}           where the log stood when it began
//! {"sum":"<32 hex>","head":{"at":58,"line":120,"records":[["sources/..json",812],..]}}
//! <the log's line> <the records, one behind the other> <line feed>
//! ```
//!
//! The `sum` of a batch is the beginning of the SHA-256 of its head and everything behind it. Only one append
//! is ever unsynced, so only the last batch of the last segment can be torn: what does not read as a batch and
//! has another one behind it is damage, and the store is not opened.

use std::io;

use aws_lc_rs::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::batch::NewFile;
use super::disk::{Disk, WriteError};
use super::layout::{RecordPath, segment};
use super::log::{Chain, Place};
use crate::fs::FsFile;

/// So much is gathered before it is written: a batch of small records is one write, and one of large records
/// is not held in memory a second time.
const WRITE_BYTES: usize = 1024 * 1024;

/// How a batch begins.
const BATCH_BEGINS: &[u8] = b"{\"sum\":\"";

/// The first line of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Begin {
    /// The segment's number.
    pub(super) journal: u64,
    /// How many bytes of the log come before it. They are durable once the segment before it is gone.
    pub(super) log_bytes: u64,
    number: u64,
    sum: String,
}

impl Begin {
    /// A segment that goes on where the log stands now.
    pub(super) fn new(journal: u64, (log_bytes, chain): (u64, &Chain)) -> Self {
        Self { journal, log_bytes, number: chain.number, sum: chain.sum.clone() }
    }

    /// The chain of lines before the segment.
    pub(super) fn chain(&self) -> Chain {
        Chain { sum: self.sum.clone(), number: self.number }
    }
}

/// The line before a batch; the head's text is what the sum is over.
#[derive(Deserialize)]
struct Summed<'a> {
    #[serde(borrow)]
    sum: &'a str,
    #[serde(borrow)]
    head: &'a RawValue,
}

#[derive(Serialize, Deserialize)]
struct Head {
    at: u64,
    line: usize,
    records: Vec<(RecordPath, usize)>,
}

/// What a segment holds.
#[derive(Debug)]
pub(super) struct Segment<'a> {
    pub(super) begin: Begin,
    pub(super) batches: Vec<Journaled<'a>>,
    /// How many bytes of a torn last batch were left out.
    pub(super) torn_bytes: usize,
}

/// A batch in the journal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Journaled<'a> {
    /// Its line of the log, without the line feed.
    pub(super) line: &'a [u8],
    pub(super) records: Vec<(RecordPath, &'a [u8])>,
}

/// Reads a segment; `None` if its making was cut short. The error says what is damaged.
pub(super) fn read(text: &[u8]) -> Result<Option<Segment<'_>>, String> {
    let end = text.iter().position(|byte| *byte == b'\n');
    let begin = end.and_then(|end| Some((serde_json::from_slice::<Begin>(&text[..end]).ok()?, end + 1)));
    let Some((begin, mut at)) = begin else {
        return if has_batch(text, 0) { Err("its first line cannot be read".to_owned()) } else { Ok(None) };
    };
    let mut batches = Vec::new();
    while at < text.len() {
        let Some((batch, next)) = batch_at(text, at) else {
            if has_batch(text, at + 1) {
                return Err(format!("the batch at byte {at} is damaged"));
            }
            break;
        };
        batches.push(batch);
        at = next;
    }
    Ok(Some(Segment { begin, batches, torn_bytes: text.len() - at }))
}

/// Whether there is a whole batch anywhere from `from` on.
fn has_batch(text: &[u8], from: usize) -> bool {
    let mut begins = text.windows(BATCH_BEGINS.len()).enumerate().skip(from);
    begins.any(|(at, begin)| begin == BATCH_BEGINS && batch_at(text, at).is_some())
}

/// The batch that begins at `at`, and where the next one does.
fn batch_at(text: &[u8], at: usize) -> Option<(Journaled<'_>, usize)> {
    let feed = at + text.get(at..)?.iter().position(|byte| *byte == b'\n')?;
    let summed: Summed<'_> = serde_json::from_slice(&text[at..feed]).ok()?;
    let head: Head = serde_json::from_str(summed.head.get()).ok()?;
    let mut end = feed + 1;
    let mut take = |bytes: usize| {
        let part = text.get(end..end.checked_add(bytes)?)?;
        end += bytes;
        Some(part)
    };
    let line = take(head.line)?;
    let parts = head.records.into_iter().map(|(record, bytes)| Some((record, take(bytes)?)));
    let records: Vec<_> = parts.collect::<Option<_>>()?;
    let last = take(1)?;
    let sum = sum(summed.head.get(), line, records.iter().map(|(_, bytes)| *bytes));
    let sound = head.at == at as u64 && last == b"\n" && sum == summed.sum;
    sound.then_some((Journaled { line: line.strip_suffix(b"\n")?, records }, end))
}

fn sum<'a>(head: &str, line: &[u8], records: impl Iterator<Item = &'a [u8]>) -> String {
    let mut context = Context::new(&SHA256);
    context.update(head.as_bytes());
    context.update(line);
    records.for_each(|bytes| context.update(bytes));
    hex::encode(&context.finish().as_ref()[..16])
}

/// A segment of one batch with this line and these records, whatever they are, under the right sum.
#[cfg(feature = "fuzzing")]
pub(super) fn sealed(line: &[u8], records: &[(RecordPath, &[u8])]) -> Vec<u8> {
    let begin = r#"{"journal":0,"log_bytes":0,"number":0,"sum":"x"}"#;
    let named = records.iter().map(|(path, bytes)| (path.clone(), bytes.len())).collect();
    let head = Head { at: begin.len() as u64 + 1, line: line.len() + 1, records: named };
    let head = serde_json::to_string(&head).expect("numbers and texts are JSON");
    let line = [line, b"\n"].concat();
    let sum = sum(&head, &line, records.iter().map(|(_, bytes)| *bytes));
    let first = format!("{begin}\n{{\"sum\":\"{sum}\",\"head\":{head}}}\n");
    let bytes = records.iter().map(|(_, bytes)| *bytes);
    [first.as_bytes(), &line].into_iter().chain(bytes).chain([&b"\n"[..]]).collect::<Vec<_>>().concat()
}

/// The segment that is written to.
#[derive(Debug)]
pub(super) struct Journal {
    name: RecordPath,
    number: u64,
    file: Box<dyn FsFile>,
    place: Place,
    end: u64,
}

/// Why an append failed, and what is on the disk now.
#[derive(Debug)]
pub(super) enum AppendError {
    /// The batch could not be written and was cut off again: nothing happened.
    Undone(io::Error),
    /// The batch may or may not be there.
    Unknown(io::Error),
}

impl Journal {
    /// Makes a segment. When it returns it is durable, its name too. After an error the name may be taken.
    pub(super) fn create(disk: &Disk, begin: &Begin) -> Result<Self, WriteError> {
        let name = segment(begin.journal);
        let mut first = serde_json::to_vec(begin).map_err(|error| WriteError::Write(error.into()))?;
        first.push(b'\n');
        let file = disk.write_unsynced(&name, &first)?;
        file.sync().map_err(WriteError::Sync)?;
        disk.fs.sync_dir(disk.layout.root()).map_err(WriteError::Sync)?;
        let place = Place::new(&disk.fs, &disk.path(&name), file.as_ref()).map_err(WriteError::Write)?;
        Ok(Self { name, number: begin.journal, file, place, end: first.len() as u64 })
    }

    /// Its number.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Its name in the store's folder.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// How long it is.
    pub(super) fn bytes(&self) -> u64 {
        self.end
    }

    /// Whether its name still names it; the error says what is wrong.
    pub(super) fn check_place(&self) -> Result<(), String> {
        self.place.check(self.end)
    }

    /// Appends a batch and makes it durable: the commit point.
    pub(super) fn append(&mut self, line: &[u8], records: &[NewFile]) -> Result<(), AppendError> {
        let bytes = |file: &NewFile| file.bytes.len();
        let named = records.iter().map(|file| (file.record.clone(), bytes(file))).collect();
        let head = Head { at: self.end, line: line.len(), records: named };
        let head = serde_json::to_string(&head).map_err(|error| AppendError::Undone(error.into()))?;
        let sum = sum(&head, line, records.iter().map(|file| &file.bytes[..]));
        let first = format!("{{\"sum\":\"{sum}\",\"head\":{head}}}\n");
        let parts = [first.as_bytes(), line].into_iter();
        let parts = parts.chain(records.iter().map(|file| &file.bytes[..])).chain([&b"\n"[..]]);
        match self.write(parts) {
            Ok(end) => {
                self.file.sync().map_err(AppendError::Unknown)?;
                self.end = end;
                Ok(())
            }
            Err(error) => {
                let cut = self.file.set_len(self.end).and_then(|()| self.file.sync());
                Err(if cut.is_ok() { AppendError::Undone(error) } else { AppendError::Unknown(error) })
            }
        }
    }

    /// Writes behind the last batch; says where that ends.
    fn write<'a>(&self, parts: impl Iterator<Item = &'a [u8]>) -> io::Result<u64> {
        let mut end = self.end;
        let mut gathered = Vec::new();
        let mut flush = |gathered: &mut Vec<u8>| {
            self.file.write_all_at(gathered, end)?;
            end += gathered.len() as u64;
            gathered.clear();
            io::Result::Ok(())
        };
        for part in parts {
            gathered.extend_from_slice(part);
            if gathered.len() >= WRITE_BYTES {
                flush(&mut gathered)?;
            }
        }
        flush(&mut gathered)?;
        Ok(end)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use bytes::Bytes;

    use super::super::layout::Layout;
    use super::*;
    use crate::OsFs;

    const RECORDS: [(&str, &[u8]); 2] = [("a/b.json", b"{\n  \"a\": 1\n}"), ("c.json", b"\n{\"sum\":\"")];

    /// A segment of three batches, and where each of them ends.
    fn written() -> (Vec<u8>, Vec<usize>) {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::new(Arc::new(OsFs), Layout::new(folder.path(), false), [1; 32]).unwrap();
        let begin = Begin::new(5, (4711, &Chain { sum: "ab".to_owned(), number: 7 }));
        let mut journal = Journal::create(&disk, &begin).unwrap();
        let mut ends = vec![usize::try_from(journal.bytes()).unwrap()];
        for line in ["{\"first\":1}\n", "{}\n", "{\"third\":[]}\n"] {
            let file = |(record, bytes): (&str, &'static [u8])| NewFile {
                record: record.to_owned(),
                bytes: Bytes::from_static(bytes),
            };
            journal.append(line.as_bytes(), &RECORDS.map(file)).unwrap();
            ends.push(usize::try_from(journal.bytes()).unwrap());
        }
        (std::fs::read(folder.path().join(Path::new(journal.name()))).unwrap(), ends)
    }

    fn count(text: &[u8]) -> Result<Option<(usize, usize)>, String> {
        read(text).map(|segment| segment.map(|segment| (segment.batches.len(), segment.torn_bytes)))
    }

    #[test]
    fn batches_come_back_as_they_were_written() {
        let (text, _) = written();
        let segment = read(&text).unwrap().unwrap();
        assert_eq!((segment.begin.journal, segment.begin.log_bytes, segment.torn_bytes), (5, 4711, 0));
        assert_eq!(segment.begin.chain(), Chain { sum: "ab".to_owned(), number: 7 });
        let lines: Vec<_> = segment.batches.iter().map(|batch| batch.line).collect();
        assert_eq!(lines, [&b"{\"first\":1}"[..], b"{}", b"{\"third\":[]}"]);
        let records = RECORDS.map(|(record, bytes)| (record.to_owned(), bytes));
        assert!(segment.batches.iter().all(|batch| batch.records == records));
    }

    #[test]
    fn a_torn_last_batch_is_left_out_and_a_torn_beginning_is_no_segment() {
        let (text, ends) = written();
        for cut in 0..text.len() {
            let whole = ends.iter().filter(|end| **end <= cut).count();
            let expected = whole.checked_sub(1).map(|batches| (batches, cut - ends[batches]));
            assert_eq!(count(&text[..cut]), Ok(expected), "cut at {cut}");
        }
        let mut holes = text.clone();
        holes[ends[2] + 3..ends[2] + 40].fill(0);
        assert_eq!(count(&holes), Ok(Some((2, text.len() - ends[2]))));
    }

    #[test]
    fn damage_before_the_last_batch_is_refused() {
        let (text, ends) = written();
        for at in ends[0]..ends[2] {
            let mut bad = text.clone();
            bad[at] ^= 1;
            assert!(count(&bad).is_err(), "a bit at {at}");
        }
        let mut bad = text.clone();
        bad[3] = 0;
        assert!(count(&bad).is_err(), "the first line");
        let moved = [&text[..ends[0]], &text[ends[1]..]].concat();
        assert_eq!(count(&moved), Ok(Some((0, moved.len() - ends[0]))), "a batch that is elsewhere is none");
    }
}
