//! What of a request is kept beside its body.

use bytes::Bytes;

/// Room for the fields that most providers send, so that a block is seldom moved while it grows.
const BLOCK_BYTES_USUAL: usize = 512;

/// The header fields of a request, in one block of bytes: a line `name: value` and CR LF for each field.
///
/// The values are the bytes as they came. A block is readable in any database shell, and no value can end
/// its own line, since HTTP allows neither CR nor LF in one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawHeaders(Bytes);

impl RawHeaders {
    /// Joins fields to a block. Fields whose name or value holds CR or LF, or whose name holds a colon,
    /// cannot come from an HTTP parser and are left out.
    pub fn from_fields<'a, N: AsRef<[u8]>>(fields: impl IntoIterator<Item = (N, &'a [u8])>) -> Self {
        let mut block = Vec::with_capacity(BLOCK_BYTES_USUAL);
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

/// Looks at every byte whatever it finds: without a way out in the middle this is done for many bytes at once.
fn is_field(name: &[u8], value: &[u8]) -> bool {
    let ends_line = |ends: bool, byte: &u8| ends | (*byte == b'\r') | (*byte == b'\n');
    let ends_name = |ends: bool, byte: &u8| ends_line(ends, byte) | (*byte == b':');
    !name.is_empty() && !name.iter().fold(false, ends_name) && !value.iter().fold(false, ends_line)
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
    fn a_field_cannot_make_another_line() {
        let headers =
            RawHeaders::from_fields([("a", &b"1\r\nb: 2"[..]), ("c\n", b""), ("", b"x"), ("d", b"4")]);
        assert_eq!(headers.fields().collect::<Vec<_>>(), [("d", &b"4"[..])]);
    }
}
