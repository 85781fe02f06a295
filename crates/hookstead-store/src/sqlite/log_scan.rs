//! Whether the write-ahead log has lost a transaction that was acknowledged. It reads the files and writes
//! nothing; it does not know what a page means.
//!
//! **The danger.** SQLite reads a log up to the first frame that does not hold, and takes the rest for what
//! a power cut left of a commit. If a frame was damaged after its commit, then every later transaction is
//! gone, without a word; and the frames before it hide newer pages, which a checkpoint may have put into the
//! database already.
//!
//! **What a power cut can leave.** With `synchronous = EXTRA` a commit returns after its frames were synced,
//! and only then does the one writer write the next frame. So, on a sound disk, everything up to the end of
//! the last transaction but one is whole, and only frames of the last one can be missing, old or torn, in any
//! combination. A log that began anew has a header that was synced before its first frame was written; behind
//! its last frame lie those of an earlier filling, with other salts. What a batch wrote before it was rolled
//! back can lie there with the same salts, and no checksum leads to it.
//!
//! **The rule.** Let B be the first frame that does not hold. The log is damaged if one of these is true,
//! and none of them can be after a power cut:
//!
//! 1. *A later transaction follows.* At B or behind it there is a frame that ends a transaction, and the
//!    frame after it has the salts of the header and a checksum that goes on from the first one's. Whoever
//!    wrote it had seen the transaction before it synced. The end of a transaction is known by its mark, or,
//!    for B itself, by the mark that its checksum asks for. (A last frame that SQLite repeats, to fill a
//!    sector, begins no transaction.)
//! 2. *The database is newer.* The database has the page of every frame of the last transaction, which does
//!    not hold (B itself may have lost its own), and the log before it has another version of one of them: a
//!    checkpoint has been there, and a checkpoint takes nothing that was not synced. One such page alone
//!    would not do: a transaction can bring a page back to what it was.
//! 3. *No header, and yet frames.* The header is written first and never taken away.
//!
//! **What is left.** Damage inside the last transaction of a log that was not checkpointed looks like a torn
//! write, and the transaction is dropped as one. That is why the last transaction of a clean stop carries
//! nothing (see [`super::writer::Writer::close`]), and why a start moves what it finds into the database
//! before it commits anything. The window is from a crash to the next start, for the last commit alone.
//! Beyond that, two damages at once can hide each other, or one and a crash in the middle of a checkpoint of
//! that last transaction (the check then names what does not fit together); and a foreign process that writes
//! without syncs can leave what looks like damage.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::Path;

use super::connect::PAGE_BYTES;
use super::log_format::{Checksum, FRAME_HEAD_BYTES, Frame, LOG_HEADER_BYTES, LogHeader, Salts};
use crate::fs::{Fs, FsFile};

/// About how much of the log is read at once, in bytes.
const READ_BYTES: usize = 1024 * 1024;

/// What a log holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Scan {
    /// The frames that SQLite reads from it: up to the last commit before the first frame that does not hold.
    pub(super) committed: u32,
    /// Why it must have held more.
    pub(super) damage: Option<LogDamage>,
}

/// What proves that a log has lost a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LogDamage {
    /// Frames without a header.
    Header { frame: u32 },
    /// A frame that does not hold, and one behind it that was written after its transaction was synced.
    LaterTransaction { broken: u32, later: u32 },
    /// A frame that does not hold, and a page of its transaction that a checkpoint put into the database.
    NewerDatabase { broken: u32, page: u32 },
}

impl fmt::Display for LogDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header { frame } => {
                write!(f, "its header does not match its checksum, and it has frames (number {frame})")
            }
            Self::LaterTransaction { broken, later } => write!(
                f,
                "frame {broken} does not match its checksum, and frame {later} belongs to a later transaction"
            ),
            Self::NewerDatabase { broken, page } => write!(
                f,
                "frame {broken} does not match its checksum, and the database has a page of its transaction \
                 ({page})"
            ),
        }?;
        f.write_str("; SQLite would go on without events that were acknowledged")
    }
}

/// Reads the log `log` of `database`. Without the database rule 2 is left out: a process that has it open
/// must not open it a second time, because closing it takes SQLite's locks away.
pub(super) fn scan(fs: &dyn Fs, log: &Path, database: Option<&Path>) -> io::Result<Scan> {
    let nothing = Scan { committed: 0, damage: None };
    let Some(facts) = fs.facts(log)? else { return Ok(nothing) };
    let file = fs.open_read(log)?;
    let mut header = [0; LOG_HEADER_BYTES];
    if file.read_at(&mut header, 0)? < LOG_HEADER_BYTES {
        return Ok(nothing);
    }
    let Some(header) = LogHeader::parse(&header) else {
        let page_bytes = usize::try_from(PAGE_BYTES).unwrap_or(usize::MAX);
        let found = any_frame(&mut Frames::new(file, page_bytes, facts.bytes))?;
        return Ok(Scan { damage: found.map(|frame| LogDamage::Header { frame }), ..nothing });
    };
    let mut log = Log { frames: Frames::new(file, header.page_bytes, facts.bytes), header };
    let whole = log.whole_part()?;
    let Some(broken) = &whole.broken else { return Ok(Scan { committed: whole.committed, damage: None }) };
    let damage = match log.later_transaction(broken)? {
        Some(later) => Some(LogDamage::LaterTransaction { broken: broken.number, later }),
        None => match database {
            Some(database) => log
                .page_in_database(&whole, broken, fs.open_read(database)?.as_ref())?
                .map(|page| LogDamage::NewerDatabase { broken: broken.number, page }),
            None => None,
        },
    };
    Ok(Scan { committed: whole.committed, damage })
}

/// The first version of a page that SQLite would read from the log; `None`: it has none.
pub(super) fn first_of(fs: &dyn Fs, log: &Path, page_number: u32) -> io::Result<Option<Vec<u8>>> {
    let Some(facts) = fs.facts(log)? else { return Ok(None) };
    let file = fs.open_read(log)?;
    let mut header = [0; LOG_HEADER_BYTES];
    let read = file.read_at(&mut header, 0)?;
    let Some(header) = LogHeader::parse(&header).filter(|_| read == LOG_HEADER_BYTES) else {
        return Ok(None);
    };
    let mut frames = Frames::new(file, header.page_bytes, facts.bytes);
    let mut checksum = header.checksum;
    for number in 1..=frames.count {
        let frame = frames.get(number)?;
        if !header.continues(frame, checksum) {
            break;
        }
        if frame.page_number() == page_number {
            return Ok(Some(frame.page().to_vec()));
        }
        checksum = frame.stored();
    }
    Ok(None)
}

/// The first thing that looks like a frame, in a log whose header says nothing.
fn any_frame(frames: &mut Frames) -> io::Result<Option<u32>> {
    for number in 1..=frames.count {
        let frame = frames.get(number)?;
        if frame.page_number() != 0 && frame.salts() != Salts::default() {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// A log with a header.
struct Log {
    header: LogHeader,
    frames: Frames,
}

/// What SQLite reads from a log.
struct Whole {
    /// Up to the last commit.
    committed: u32,
    /// The checksum there.
    checksum: Checksum,
    /// The newest frame of each page up to there.
    pages: HashMap<u32, u32>,
    /// The first frame that does not hold.
    broken: Option<Broken>,
}

/// The first frame that does not hold.
struct Broken {
    number: u32,
    /// The checksum before it.
    before: Checksum,
}

impl Log {
    /// Goes along as SQLite does.
    fn whole_part(&mut self) -> io::Result<Whole> {
        let mut whole =
            Whole { committed: 0, checksum: self.header.checksum, pages: HashMap::new(), broken: None };
        let mut checksum = self.header.checksum;
        let mut uncommitted = Vec::new();
        for number in 1..=self.frames.count {
            let frame = self.frames.get(number)?;
            if !self.header.continues(frame, checksum) {
                whole.broken = Some(Broken { number, before: checksum });
                break;
            }
            checksum = frame.stored();
            uncommitted.push((frame.page_number(), number));
            if frame.commit_mark() != 0 {
                (whole.committed, whole.checksum) = (number, checksum);
                whole.pages.extend(uncommitted.drain(..));
            }
        }
        Ok(whole)
    }

    /// Rule 1: the first frame of a transaction that was begun after the broken one's was synced.
    fn later_transaction(&mut self, broken: &Broken) -> io::Result<Option<u32>> {
        let mut end: Option<End> = None;
        for number in broken.number..=self.frames.count {
            let frame = self.frames.get(number)?;
            let goes_on = |end: &End| end.checksums.iter().any(|sum| self.header.continues(frame, *sum));
            if end.as_ref().is_some_and(|end| goes_on(end) && !end.is_repeated_by(frame)) {
                return Ok(Some(number));
            }
            end = if number == broken.number {
                self.header.end_of_broken(frame, broken.before)
            } else {
                End::of(frame, &[frame.stored()])
            };
        }
        Ok(None)
    }

    /// Rule 2: a page of the transaction behind the last commit, all of whose pages the database has already,
    /// of which the log before it has another version.
    fn page_in_database(
        &mut self,
        whole: &Whole,
        broken: &Broken,
        database: &dyn FsFile,
    ) -> io::Result<Option<u32>> {
        let mut before = vec![whole.checksum];
        let mut in_database = vec![0; self.header.page_bytes];
        let mut newer = None;
        for number in whole.committed + 1..=self.frames.count {
            let frame = self.frames.get(number)?;
            if number > broken.number && frame.salts() != self.header.salts {
                break;
            }
            let page = frame.page_number();
            let held = self.header.held_by(frame, &before, database, &mut in_database)?;
            if !held && number != broken.number {
                return Ok(None);
            }
            let ends = number >= broken.number && frame.commit_mark() != 0;
            before = vec![frame.stored()];
            if number == broken.number {
                before.push(frame.computed(self.header.order, broken.before));
            }
            if let Some(older) = whole.pages.get(&page).filter(|_| held)
                && self.frames.get(*older)?.page() != in_database
            {
                newer = Some(page);
            }
            if ends {
                break;
            }
        }
        Ok(newer)
    }
}

impl LogHeader {
    /// Whether SQLite takes `frame` for the one after that with the checksum `before`.
    fn continues(&self, frame: Frame<'_>, before: Checksum) -> bool {
        frame.salts() == self.salts
            && frame.page_number() != 0
            && frame.computed(self.order, before) == frame.stored()
    }

    /// Whether the broken frame ended a transaction. What is damaged of it may be its page, its stored
    /// checksum or the mark itself, so that each is tried with the help of the others.
    fn end_of_broken(&self, frame: Frame<'_>, before: Checksum) -> Option<End> {
        let checksums = [frame.stored(), frame.computed(self.order, before)];
        let (page_number, mark) = frame.numbers_by_checksum(self.order, before);
        if page_number == frame.page_number() && mark != 0 {
            return Some(End { checksums: checksums.to_vec(), repeated: None });
        }
        End::of(frame, &checksums)
    }

    /// Whether the database has the page that `frame` was written with, which is read into `page`.
    fn held_by(
        &self,
        frame: Frame<'_>,
        before: &[Checksum],
        database: &dyn FsFile,
        page: &mut [u8],
    ) -> io::Result<bool> {
        let Some(index) = frame.page_number().checked_sub(1) else { return Ok(false) };
        if database.read_at(page, u64::from(index) * page.len() as u64)? < page.len() {
            return Ok(false);
        }
        let with = |before: &Checksum| frame.computed_with(self.order, *before, page) == frame.stored();
        Ok(before.iter().any(with))
    }
}

/// The last frame of a transaction.
struct End {
    /// What the next frame's checksum may go on from.
    checksums: Vec<Checksum>,
    /// Number, mark and page of the frame, to know it again.
    repeated: Option<(u32, u32, Vec<u8>)>,
}

impl End {
    fn of(frame: Frame<'_>, checksums: &[Checksum]) -> Option<Self> {
        let mark = frame.commit_mark();
        let repeated = Some((frame.page_number(), mark, frame.page().to_vec()));
        (mark != 0).then(|| Self { checksums: checksums.to_vec(), repeated })
    }

    /// SQLite fills a sector with copies of the last frame where a disk does not write sectors whole.
    fn is_repeated_by(&self, frame: Frame<'_>) -> bool {
        self.repeated.as_ref().is_some_and(|(page_number, mark, page)| {
            (*page_number, *mark) == (frame.page_number(), frame.commit_mark()) && page == frame.page()
        })
    }
}

/// The frames of a log, read in pieces. Only whole ones count.
struct Frames {
    file: Box<dyn FsFile>,
    frame_bytes: usize,
    count: u32,
    /// What was read last, and the number of its first frame; 0: nothing yet.
    piece: Vec<u8>,
    first: u32,
}

impl Frames {
    fn new(file: Box<dyn FsFile>, page_bytes: usize, log_bytes: u64) -> Self {
        let frame_bytes = FRAME_HEAD_BYTES + page_bytes;
        let count = log_bytes.saturating_sub(LOG_HEADER_BYTES as u64) / frame_bytes as u64;
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        Self { file, frame_bytes, count, piece: Vec::new(), first: 0 }
    }

    /// A frame, numbered from 1 up to `count`. One after the other is quick.
    fn get(&mut self, number: u32) -> io::Result<Frame<'_>> {
        let read = self.piece.len() / self.frame_bytes;
        if self.first == 0 || number < self.first || (number - self.first) as usize >= read {
            self.read_from(number)?;
        }
        let at = (number - self.first) as usize * self.frame_bytes;
        match self.piece.get(at..at + self.frame_bytes) {
            Some(bytes) => Ok(Frame::new(bytes)),
            None => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the log was cut while it was read")),
        }
    }

    fn read_from(&mut self, number: u32) -> io::Result<()> {
        let left = (self.count.saturating_sub(number) + 1) as usize;
        let frames = (READ_BYTES / self.frame_bytes).clamp(1, left);
        self.piece.resize(frames * self.frame_bytes, 0);
        let at = LOG_HEADER_BYTES as u64 + u64::from(number - 1) * self.frame_bytes as u64;
        let count = self.file.read_at(&mut self.piece, at)?;
        self.piece.truncate(count);
        self.first = number;
        Ok(())
    }
}
