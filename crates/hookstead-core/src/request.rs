//! What of a request is kept beside its body.

use bytes::Bytes;

/// What the line of a query begins with.
const QUERY_LINE: u8 = b'?';

/// Room for the fields that most providers send, so that a block is seldom moved while it grows.
const BLOCK_BYTES_USUAL: usize = 512;

/// Longest query that is kept, in bytes: the longest target that the intake takes.
pub const QUERY_BYTES_MAX: usize = 8 * 1024;

/// The query of a request's target, byte for byte as it came: what stands behind the first `?`, without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawQuery<'a>(&'a [u8]);

/// Why bytes are no query that can be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RawQueryError {
    /// More than [`QUERY_BYTES_MAX`] bytes.
    #[error("the query has {bytes} bytes, more than {QUERY_BYTES_MAX}")]
    TooLong {
        /// Bytes in it.
        bytes: usize,
    },
    /// A blank or a control character, which HTTP allows in no target.
    #[error(
        "byte {at} of the query is a blank or a control character; it has to be escaped, as `%20` for a blank"
    )]
    Unescaped {
        /// Where it is, from 0.
        at: usize,
    },
}

impl<'a> RawQuery<'a> {
    /// A query as HTTP can carry one.
    ///
    /// # Errors
    ///
    /// [`RawQueryError`] if it is too long, or has a byte that has to be escaped in a target.
    pub fn new(query: &'a [u8]) -> Result<Self, RawQueryError> {
        if query.len() > QUERY_BYTES_MAX {
            return Err(RawQueryError::TooLong { bytes: query.len() });
        }
        match query.iter().position(|byte| *byte <= b' ' || *byte == 0x7f) {
            Some(at) => Err(RawQueryError::Unescaped { at }),
            None => Ok(Self(query)),
        }
    }

    /// Its bytes.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

/// What of a request's head is kept, in one block of bytes: a line `?query` where it had a query, then for each header
/// field a line `name: value`; each ends in CR LF.
///
/// The values are the bytes as they came. A block is readable in any database shell, and no value can end
/// its own line, since HTTP allows neither CR nor LF in one. A query has no blank in it and a field always has one, so
/// that neither is taken for the other; a request without a query costs no byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawHeaders(Bytes);

impl RawHeaders {
    /// Joins fields to a block. Fields whose name or value holds CR or LF, or whose name holds a colon,
    /// cannot come from an HTTP parser and are left out.
    pub fn from_fields<'a, N: AsRef<[u8]>>(fields: impl IntoIterator<Item = (N, &'a [u8])>) -> Self {
        Self::from_request(None, fields)
    }

    /// Joins a query and fields to a block. An empty query is none; of the fields those are left out that
    /// [`from_fields`](Self::from_fields) leaves out.
    pub fn from_request<'a, N: AsRef<[u8]>>(
        query: Option<RawQuery<'_>>,
        fields: impl IntoIterator<Item = (N, &'a [u8])>,
    ) -> Self {
        let mut block = Vec::with_capacity(BLOCK_BYTES_USUAL);
        if let Some(query) = query.filter(|query| !query.0.is_empty()) {
            block.push(QUERY_LINE);
            block.extend_from_slice(query.0);
            block.extend_from_slice(b"\r\n");
        }
        for (name, value) in fields {
            let name = name.as_ref();
            if !is_field(name, value) {
                continue;
            }
            block.extend_from_slice(name);
            block.extend_from_slice(b": ");
            block.extend_from_slice(value);
            block.extend_from_slice(b"\r\n");
        }
        Self(block.into())
    }

    /// A block as a store kept it.
    pub fn from_block(block: Bytes) -> Self {
        Self(block)
    }

    /// The whole block.
    pub fn as_block(&self) -> &Bytes {
        &self.0
    }

    /// The query, if the request had one that is kept: never empty.
    pub fn query(&self) -> Option<RawQuery<'_>> {
        let (first, rest) = self.0.split_first()?;
        let end = rest.iter().position(|byte| *byte == b'\r').filter(|_| *first == QUERY_LINE)?;
        RawQuery::new(&rest[..end]).ok().filter(|query| !query.0.is_empty())
    }

    /// The fields, in their order. Lines that are no field are passed over.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.split(|byte| *byte == b'\n').filter_map(|line| {
            let line = line.strip_suffix(b"\r")?;
            let colon = line.windows(2).position(|pair| pair == b": ")?;
            Some((std::str::from_utf8(&line[..colon]).ok()?, &line[colon + 2..]))
        })
    }

    /// The first value of a field, its name in any case.
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        self.fields().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// What a byte may not be part of: of a value, of a name.
const OF_NO_VALUE: u8 = 1;
const OF_NO_NAME: u8 = 2;

const BARRED: [u8; 256] = {
    let mut barred = [0; 256];
    barred[b'\r' as usize] = OF_NO_VALUE | OF_NO_NAME;
    barred[b'\n' as usize] = OF_NO_VALUE | OF_NO_NAME;
    barred[b':' as usize] = OF_NO_NAME;
    barred
};

fn is_field(name: &[u8], value: &[u8]) -> bool {
    // Every byte is looked at whatever is found, which takes no branch for each of them.
    let barred = |bytes: &[u8]| bytes.iter().fold(0, |found, byte| found | BARRED[usize::from(*byte)]);
    !name.is_empty() && barred(name) & OF_NO_NAME == 0 && barred(value) & OF_NO_VALUE == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_round_trip_as_bytes() {
        let fields: [(&str, &[u8]); 3] =
            [("Content-Type", b"a: b"), ("x-raw", b"\xff\x00"), ("x-empty", b"")];
        let headers = RawHeaders::from_fields(fields);
        assert_eq!(headers.fields().collect::<Vec<_>>(), fields);
        assert_eq!(headers.value("CONTENT-TYPE"), Some(&b"a: b"[..]));
        assert_eq!(headers.value("absent"), None);
    }

    #[test]
    fn a_query_stands_before_the_fields_and_is_none_of_them() {
        let fields: [(&str, &[u8]); 2] = [("a", b"1"), ("?b", b"2")];
        let query = RawQuery::new(b"data.id=A%20B&x=?y:z=\xff").unwrap();
        let block = RawHeaders::from_request(Some(query), fields);
        assert_eq!(block.as_block(), &b"?data.id=A%20B&x=?y:z=\xff\r\na: 1\r\n?b: 2\r\n"[..]);
        assert_eq!(block.query(), Some(query));
        assert_eq!(block.fields().collect::<Vec<_>>(), fields);
        // A field's name may begin like the line of a query.
        let only_fields = RawHeaders::from_fields([("?b", &b"2"[..])]);
        assert_eq!((only_fields.query(), only_fields.value("?b")), (None, Some(&b"2"[..])));
    }

    #[test]
    fn no_query_costs_no_byte() {
        let fields: [(&str, &[u8]); 1] = [("a", b"1")];
        let without = RawHeaders::from_fields(fields);
        assert_eq!(without.as_block(), &b"a: 1\r\n"[..]);
        assert_eq!(RawHeaders::from_request(RawQuery::new(b"").ok(), fields), without);
        assert_eq!((without.query(), RawHeaders::default().query()), (None, None));
    }

    #[test]
    fn what_http_carries_in_no_target_is_no_query() {
        let long = vec![b'a'; QUERY_BYTES_MAX + 1];
        assert!(RawQuery::new(&long[1..]).is_ok());
        assert_eq!(RawQuery::new(&long), Err(RawQueryError::TooLong { bytes: long.len() }));
        for byte in (0..=b' ').chain([0x7f]) {
            assert_eq!(RawQuery::new(&[b'a', byte]), Err(RawQueryError::Unescaped { at: 1 }));
        }
    }

    #[test]
    fn a_field_cannot_make_another_line() {
        let headers =
            RawHeaders::from_fields([("a", &b"1\r\nb: 2"[..]), ("c\n", b""), ("", b"x"), ("d", b"4")]);
        assert_eq!(headers.fields().collect::<Vec<_>>(), [("d", &b"4"[..])]);
    }
}
