//! The format of SQLite's write-ahead log, as far as reading it needs: a header, then frames, each with a
//! head and one page, all of them tied together by checksums that run on from one frame to the next. It
//! reads no file and judges nothing.

/// Bytes of the log's header.
pub(super) const LOG_HEADER_BYTES: usize = 32;

/// Bytes of a frame's head.
pub(super) const FRAME_HEAD_BYTES: usize = 24;

/// The bytes of a frame's head that its checksum covers; the page comes after them.
pub(super) const COVERED_BYTES: usize = 8;

/// What the header begins with. Its last bit tells the order of bytes in checksummed words.
const MAGIC: u32 = 0x377f_0682;

/// The page sizes that SQLite can have.
const PAGE_BYTES: std::ops::RangeInclusive<u32> = 512..=65_536;

/// Two random words that tell the frames of one filling of the log from those of the filling before, which
/// lie behind them.
pub(super) type Salts = [u8; 8];

/// In which order the words of what is checksummed have their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    fn word(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    /// A word of what is checksummed, as the big-endian number that it stands for.
    fn number(self, word: u32) -> u32 {
        match self {
            Self::Little => word.swap_bytes(),
            Self::Big => word,
        }
    }

    /// The words of `bytes` in pairs. A rest of fewer than eight bytes, which no page has, is left out.
    fn pairs(self, bytes: &[u8]) -> impl DoubleEndedIterator<Item = (u32, u32)> {
        let (pairs, _) = bytes.as_chunks::<8>();
        pairs.iter().map(move |&[a, b, c, d, e, f, g, h]| (self.word([a, b, c, d]), self.word([e, f, g, h])))
    }
}

/// The checksum of everything from the header up to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checksum(u32, u32);

impl Checksum {
    /// Where the header's begins.
    pub(super) const START: Self = Self(0, 0);

    /// As the log has it.
    fn stored(bytes: &[u8]) -> Self {
        Self(big_endian(bytes, 0), big_endian(bytes, 4))
    }

    /// As the log would have it.
    #[cfg(feature = "fuzzing")]
    pub(super) fn to_bytes(self) -> [u8; 8] {
        ((u64::from(self.0) << 32) | u64::from(self.1)).to_be_bytes()
    }

    /// Goes on over `bytes`.
    pub(super) fn over(self, order: ByteOrder, bytes: &[u8]) -> Self {
        order.pairs(bytes).fold(self, |Self(one, two), (first, second)| {
            let one = one.wrapping_add(first).wrapping_add(two);
            Self(one, two.wrapping_add(second).wrapping_add(one))
        })
    }

    /// Goes back over `bytes`: what it was before them.
    fn back_over(self, order: ByteOrder, bytes: &[u8]) -> Self {
        order.pairs(bytes).rev().fold(self, |Self(one, two), (first, second)| {
            let two = two.wrapping_sub(second).wrapping_sub(one);
            Self(one.wrapping_sub(first).wrapping_sub(two), two)
        })
    }

    /// The two numbers that take the checksum from `self` to `after`: there is always one such pair.
    fn numbers_between(self, order: ByteOrder, after: Self) -> (u32, u32) {
        let first = after.0.wrapping_sub(self.0).wrapping_sub(self.1);
        let second = after.1.wrapping_sub(self.1).wrapping_sub(after.0);
        (order.number(first), order.number(second))
    }
}

/// A header that SQLite accepts.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogHeader {
    pub(super) order: ByteOrder,
    pub(super) page_bytes: usize,
    pub(super) salts: Salts,
    pub(super) checksum: Checksum,
}

impl LogHeader {
    /// `None`: SQLite takes the log for empty.
    pub(super) fn parse(bytes: &[u8; LOG_HEADER_BYTES]) -> Option<Self> {
        let order = match big_endian(bytes, 0) {
            MAGIC => ByteOrder::Little,
            magic if magic == MAGIC | 1 => ByteOrder::Big,
            _ => return None,
        };
        let page_bytes = big_endian(bytes, 8);
        let checksum = Checksum::stored(&bytes[24..]);
        let legal = page_bytes.is_power_of_two() && PAGE_BYTES.contains(&page_bytes);
        if !legal || Checksum::START.over(order, &bytes[..24]) != checksum {
            return None;
        }
        let page_bytes = usize::try_from(page_bytes).ok()?;
        Some(Self { order, page_bytes, salts: salts(bytes, 16), checksum })
    }
}

/// A frame: the head of one page, and the page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    bytes: &'a [u8],
}

impl<'a> Frame<'a> {
    /// `bytes` are the head and the page.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        debug_assert!(bytes.len() > FRAME_HEAD_BYTES, "a frame has a page");
        Self { bytes }
    }

    /// The number of the page, from 1.
    pub(super) fn page_number(self) -> u32 {
        big_endian(self.bytes, 0)
    }

    /// The mark of a commit: the size of the database after it, in pages. 0: the transaction goes on.
    pub(super) fn commit_mark(self) -> u32 {
        big_endian(self.bytes, 4)
    }

    pub(super) fn salts(self) -> Salts {
        salts(self.bytes, 8)
    }

    /// The checksum up to the end of this frame, as it was stored.
    pub(super) fn stored(self) -> Checksum {
        Checksum::stored(&self.bytes[16..24])
    }

    /// The checksum up to the end of this frame, from the one before it.
    pub(super) fn computed(self, order: ByteOrder, before: Checksum) -> Checksum {
        self.computed_with(order, before, self.page())
    }

    /// The same, if its page were `page`.
    pub(super) fn computed_with(self, order: ByteOrder, before: Checksum, page: &[u8]) -> Checksum {
        before.over(order, &self.bytes[..COVERED_BYTES]).over(order, page)
    }

    /// Number of the page and mark of a commit as they must have been for the stored checksum, if everything
    /// else is as it was.
    pub(super) fn numbers_by_checksum(self, order: ByteOrder, before: Checksum) -> (u32, u32) {
        before.numbers_between(order, self.stored().back_over(order, self.page()))
    }

    pub(super) fn page(self) -> &'a [u8] {
        &self.bytes[FRAME_HEAD_BYTES..]
    }
}

fn big_endian(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn salts(bytes: &[u8], at: usize) -> Salts {
    let mut salts = Salts::default();
    salts.copy_from_slice(&bytes[at..at + 8]);
    salts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_goes_forth_and_back_and_tells_what_lies_between() {
        let bytes: Vec<u8> = (0..64).map(|n: u8| n.wrapping_mul(37)).collect();
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let before = Checksum(7, u32::MAX);
            let after = before.over(order, &bytes);
            assert_eq!(after.back_over(order, &bytes), before);
            let between = before.numbers_between(order, before.over(order, &bytes[..8]));
            assert_eq!(between, (big_endian(&bytes, 0), big_endian(&bytes, 4)));
        }
        assert_eq!(Checksum(0, 0).over(ByteOrder::Little, &[1, 0, 0, 0, 2, 0, 0, 0]), Checksum(1, 3));
        assert_eq!(Checksum(0, 0).over(ByteOrder::Big, &[0, 0, 0, 1, 0, 0, 0, 2]), Checksum(1, 3));
    }

    #[test]
    fn a_header_is_accepted_whole_or_not_at_all() {
        let mut bytes = [0; LOG_HEADER_BYTES];
        assert!(LogHeader::parse(&bytes).is_none(), "a log that was never written to");
        bytes[..4].copy_from_slice(&MAGIC.to_be_bytes());
        bytes[8..12].copy_from_slice(&8192_u32.to_be_bytes());
        bytes[16..24].copy_from_slice(b"saltsalt");
        let Checksum(one, two) = Checksum::START.over(ByteOrder::Little, &bytes[..24]);
        bytes[24..28].copy_from_slice(&one.to_be_bytes());
        bytes[28..].copy_from_slice(&two.to_be_bytes());
        let header = LogHeader::parse(&bytes).expect("it is whole");
        assert_eq!((header.page_bytes, &header.salts, header.order), (8192, b"saltsalt", ByteOrder::Little));
        for bit in 0..LOG_HEADER_BYTES * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(LogHeader::parse(&damaged).is_none(), "bit {bit}");
        }
    }
}
