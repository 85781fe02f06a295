//! What readers may ask a store, in pages that a cursor continues.

use std::fmt;
use std::str::FromStr;

use crate::delivery::{Delivery, StateName};
use crate::event::{Conflict, ConflictState, Event};
use crate::id::{DestinationNumber, EventId, Seq, SourceNumber};
use crate::identity::Identity;
use crate::time::Timestamp;

/// The most items on a page.
pub const PAGE_MAX: u16 = 1_000;

/// How an event is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventSelector {
    /// By our own key.
    Id(EventId),
    /// By its short id.
    Seq(Seq),
    /// By source, scope and the provider's id. After a revision: the first event.
    Identity(Identity),
    /// The newest one.
    Newest,
}

/// Whose body is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodySelector {
    /// An event's.
    Event(EventId),
    /// That of a variant of an event.
    Variant(EventId, u16),
}

/// Which events. All parts must hold; a default filter takes every event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Of this source.
    pub source: Option<SourceNumber>,
    /// Whose type matches.
    pub event_type: Option<TypePattern>,
    /// Committed at or after.
    pub committed_from: Option<Timestamp>,
    /// Committed before.
    pub committed_before: Option<Timestamp>,
}

impl EventFilter {
    /// Whether an event is asked for.
    pub fn matches(&self, event: &Event) -> bool {
        self.source.is_none_or(|source| source == event.identity.source)
            && self.event_type.as_ref().is_none_or(|pattern| pattern.matches(event.event_type.as_deref()))
            && self.committed_from.is_none_or(|from| event.committed_at >= from)
            && self.committed_before.is_none_or(|before| event.committed_at < before)
    }
}

/// A pattern over event types: literal text in which each `*` stands for any run of characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypePattern(String);

/// The longest pattern, in bytes.
pub const TYPE_PATTERN_BYTES_MAX: usize = 256;

impl TypePattern {
    /// The pattern as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a type matches. An event without a type matches only `*`.
    pub fn matches(&self, event_type: Option<&str>) -> bool {
        let Some(text) = event_type else { return self.0 == "*" };
        let mut pieces = self.0.split('*');
        let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else { return false };
        let Some(last) = pieces.next_back() else { return rest.is_empty() };
        for piece in pieces {
            let Some(at) = rest.find(piece) else { return false };
            rest = &rest[at + piece.len()..];
        }
        rest.ends_with(last)
    }
}

impl FromStr for TypePattern {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self, QueryError> {
        if text.is_empty() || text.len() > TYPE_PATTERN_BYTES_MAX {
            return Err(QueryError::TypePattern);
        }
        Ok(Self(text.to_owned()))
    }
}

/// Which deliveries. All parts must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    /// Of this event.
    pub event: Option<EventId>,
    /// To this destination.
    pub destination: Option<DestinationNumber>,
    /// In this state.
    pub state: Option<StateName>,
}

impl DeliveryFilter {
    /// Whether a delivery is asked for.
    pub fn matches(&self, delivery: &Delivery) -> bool {
        self.event.is_none_or(|event| event == delivery.id.event)
            && self.destination.is_none_or(|destination| destination == delivery.id.destination)
            && self.state.is_none_or(|state| state == delivery.state_name())
    }
}

/// Which conflicts. All parts must hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConflictFilter {
    /// Of this event.
    pub event: Option<EventId>,
    /// Only those that nobody has decided.
    pub open_only: bool,
}

impl ConflictFilter {
    /// Whether a conflict is asked for.
    pub fn matches(&self, conflict: &Conflict) -> bool {
        let open = conflict.state == ConflictState::Open;
        self.event.is_none_or(|event| event == conflict.event) && (open || !self.open_only)
    }
}

/// In which order a list is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The newest first, as people look.
    #[default]
    NewestFirst,
    /// The oldest first, as followers read: its cursor never skips what is committed later.
    OldestFirst,
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// How many items at the most; above [`PAGE_MAX`] it is [`PAGE_MAX`]. A page may have fewer, see [`List`].
    pub items_max: u16,
    /// Where the last page ended.
    pub after: Option<Cursor>,
    /// In which order. A cursor is a place between two items, the same for both orders: continued in the other
    /// order, a list goes on with what lies on the other side of it.
    pub order: Order,
}

impl Page {
    /// The first page of at most `items_max` items.
    pub fn first(items_max: u16, order: Order) -> Self {
        Self { items_max, after: None, order }
    }

    /// The page after a list's end.
    #[must_use]
    pub fn after(mut self, cursor: Cursor) -> Self {
        self.after = Some(cursor);
        self
    }

    /// How many items this page may have, 1 to [`PAGE_MAX`].
    pub fn limit(&self) -> usize {
        usize::from(self.items_max.clamp(1, PAGE_MAX))
    }
}

/// A place in a list. Its text is opaque to everybody but the store that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(String);

/// The longest cursor, in bytes.
pub const CURSOR_BYTES_MAX: usize = 128;

impl Cursor {
    /// A cursor whose text a store can read back.
    pub fn from_text(text: String) -> Self {
        Self(text)
    }

    /// The cursor's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Cursor {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self, QueryError> {
        if text.is_empty() || text.len() > CURSOR_BYTES_MAX || !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(QueryError::Cursor);
        }
        Ok(Self(text.to_owned()))
    }
}

/// Why a text is no part of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// Not a pattern.
    #[error("a type pattern has 1 to {TYPE_PATTERN_BYTES_MAX} bytes")]
    TypePattern,
    /// Not a cursor of this list.
    #[error("the cursor is not one that this list gave out")]
    Cursor,
}

/// A page's items and where it ended.
///
/// A store looks at a bounded number of rows for a page. Where a filter takes few of them, a page is short, possibly
/// empty, and yet not the last: only [`List::more`] tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where the page ended: continue from here. `None` only where nothing was ever listed, and never where there is
    /// [more](List::more).
    pub next: Option<Cursor>,
    /// Whether there were items beyond the page when it was read, or rows that were not looked at.
    pub more: bool,
}

/// A running count of changes: it differs whenever another process may have made work since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeMark(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_types() {
        let matches = |pattern: &str, text: &str| pattern.parse::<TypePattern>().unwrap().matches(Some(text));
        for (pattern, text) in [("*", ""), ("invoice.*", "invoice.paid"), ("*.paid", "invoice.paid")] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a*b*c", "a-b-b-c"), ("push", "push"), ("a*a", "aa"), ("**", "x")] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("invoice.*", "Invoice.paid"), ("push", "pushed"), ("a*a", "a"), ("?", "x")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
        assert!("*".parse::<TypePattern>().unwrap().matches(None));
        assert!(!"a*".parse::<TypePattern>().unwrap().matches(None));
    }

    #[test]
    fn cursors_are_bounded() {
        assert!("e:12".parse::<Cursor>().is_ok());
        for bad in ["", "a b", "a\n", &"x".repeat(CURSOR_BYTES_MAX + 1)] {
            assert!(bad.parse::<Cursor>().is_err(), "{bad}");
        }
    }
}
