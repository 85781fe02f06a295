//! How an event is named in an address: its id, its short id, `@` for the newest, or `SOURCE:PROVIDER-ID`.

use hookstead::core::{EventId, EventSelector, Identity, ProviderEventId, Registry, Scope, Seq};

use super::error::ApiError;
use crate::problem::Problem;

/// An event's name, before its source's number is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EventName {
    Id(EventId),
    Short(Seq),
    Newest,
    Provider { source: String, id: ProviderEventId },
}

impl EventName {
    /// Reads one segment of a path, percent-encoding and all. A provider event id may be any bytes.
    pub(crate) fn of_segment(segment: &str) -> Result<Self, ApiError> {
        let bytes = percent_decoded(segment).ok_or_else(unreadable)?;
        if let Some(colon) = bytes.iter().position(|byte| *byte == b':') {
            let source = std::str::from_utf8(&bytes[..colon]).map_err(|_| unreadable())?.to_owned();
            let id = ProviderEventId::new(&bytes[colon + 1..]).map_err(|_| unreadable())?;
            return Ok(Self::Provider { source, id });
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| unreadable())?;
        if text == "@" {
            return Ok(Self::Newest);
        }
        let id = text.parse().map(Self::Id);
        id.or_else(|_| text.parse().map(Self::Short)).map_err(|_| unreadable())
    }

    /// The selector; `None` if the store has never seen the source.
    pub(crate) fn selector(self, registry: &Registry) -> Option<EventSelector> {
        Some(match self {
            Self::Id(id) => EventSelector::Id(id),
            Self::Short(seq) => EventSelector::Seq(seq),
            Self::Newest => EventSelector::Newest,
            Self::Provider { source, id } => {
                let row = registry.sources.iter().find(|row| row.name.as_str() == source)?;
                EventSelector::Identity(Identity { source: row.number, scope: Scope::default(), id })
            }
        })
    }
}

fn unreadable() -> ApiError {
    let detail =
        "an event is named by its id, its short id, `@`, or SOURCE:PROVIDER-ID with percent-encoding";
    ApiError::new(Problem::NotFound, detail)
}

/// The bytes of a path segment; `None` for a `%` without two hex digits.
fn percent_decoded(segment: &str) -> Option<Vec<u8>> {
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
    use super::*;

    fn provider(segment: &str) -> (String, Vec<u8>) {
        match EventName::of_segment(segment).unwrap() {
            EventName::Provider { source, id } => (source, id.as_bytes().to_vec()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn events_have_four_names() {
        assert_eq!(EventName::of_segment("@").unwrap(), EventName::Newest);
        assert_eq!(EventName::of_segment("%40").unwrap(), EventName::Newest);
        assert_eq!(EventName::of_segment("0007").unwrap(), EventName::Short(Seq(7)));
        let id = "0193b0a0-0000-7000-8000-0000000000ff";
        assert_eq!(EventName::of_segment(id).unwrap(), EventName::Id(id.parse().unwrap()));
        assert_eq!(provider("stripe:evt_1"), ("stripe".to_owned(), b"evt_1".to_vec()));
        assert_eq!(provider("a%3Ab%2Fc:%ff%00"), ("a".to_owned(), b"b/c:\xff\x00".to_vec()));
    }

    #[test]
    fn other_names_are_refused() {
        for bad in ["", "evt_1", "stripe:", "stripe:%20", "%", "%4", "%zz", "0193b0a0", "x y"] {
            let named = EventName::of_segment(bad);
            assert!(named.is_err() || bad == "0193b0a0", "{bad}: {named:?}");
        }
    }
}
