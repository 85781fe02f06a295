//! How an event is named in an address: as everywhere, with percent-encoding.

use super::error::ApiError;
use crate::lookup::EventName;
use crate::problem::Problem;

/// Reads one segment of a path, percent-encoding and all. A provider's id may be any bytes.
pub(crate) fn event_name(segment: &str) -> Result<EventName, ApiError> {
    percent_decoded(segment).and_then(|name| EventName::parse(&name)).ok_or_else(unreadable)
}

fn unreadable() -> ApiError {
    let detail =
        "an event is named by its id, its short id, `@`, or SOURCE:PROVIDER-ID with percent-encoding";
    ApiError::new(Problem::NotFound, detail)
}

/// The bytes of a path segment; `None` for a `%` without two hex digits.
pub(super) fn percent_decoded(segment: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let digits = after.get(..2)?;
            let mut byte = [0];
            hex::decode_to_slice(digits, &mut byte).ok()?;
            bytes.push(byte[0]);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use hookstead::core::{ProviderEventId, Seq};

    use super::*;

    #[test]
    fn names_are_decoded() {
        assert_eq!(event_name("%40").unwrap(), EventName::Newest);
        assert_eq!(event_name("0007").unwrap(), EventName::Short(Seq(7)));
        let id = ProviderEventId::new(*b"b/c:\xff\x00").unwrap();
        let named = EventName::Provider { source: "a".to_owned(), id };
        assert_eq!(event_name("a%3Ab%2Fc:%ff%00").unwrap(), named);
    }

    #[test]
    fn other_names_are_refused() {
        for bad in ["", "evt_1", "stripe:", "stripe:%20", "%", "%4", "%zz", "x y"] {
            assert!(event_name(bad).is_err(), "{bad}");
        }
    }
}
