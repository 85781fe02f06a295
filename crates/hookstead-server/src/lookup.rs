//! Finding one event by the names that people and programs use for it: its id, its short id, `@` for the newest,
//! or `SOURCE:PROVIDER-ID`.
//!
//! A provider's id is unique within its source and scope, and nobody types a scope. So the id is looked up
//! without one first, then under each scope that the source's newest events came with. It knows the store's
//! queries and nothing of HTTP or terminals: the API and the verbs find the same events in the same way.

use std::collections::BTreeSet;
use std::fmt;

use hookstead::core::{
    Event, EventFilter, EventId, EventSelector, Identity, Order, Page, ProviderEventId, Scope, Seq,
    SourceNumber, Store, StoreError,
};

use crate::limits::{LOOKUP_CHOICES_MAX, LOOKUP_EVENTS_MAX, LOOKUP_PAGE};

/// An event's name, before it is known whether there is such an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventName {
    /// Our own key.
    Id(EventId),
    /// The short id.
    Short(Seq),
    /// The newest one.
    Newest,
    /// By what its provider calls it.
    Provider {
        /// The source's name.
        source: String,
        /// The provider's id, under whatever scope.
        id: ProviderEventId,
    },
}

/// Why a name led to no event.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// There is none.
    #[error("there is no such event{}", searched.as_ref().map_or_else(String::new, |searched| format!(": {searched}")))]
    NotFound {
        /// What was searched, where that is more than one look.
        searched: Option<Searched>,
    },
    /// The provider's id stands under several scopes.
    #[error("{} events have this id, each under a scope of its own", .0.len())]
    Ambiguous(Vec<Event>),
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What was searched for a provider's id, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Searched {
    /// The store has never had an event of a source of this name.
    UnknownSource(String),
    /// The id alone, then under the scopes of the newest events.
    Scopes {
        /// The source.
        source: String,
        /// How many different scopes.
        scopes: usize,
        /// In how many of the newest events they were found.
        events: usize,
    },
}

impl EventName {
    /// Reads a name; `None` if the bytes can name no event. A provider's id may be any bytes.
    pub fn parse(name: &[u8]) -> Option<Self> {
        if let Some(colon) = name.iter().position(|byte| *byte == b':') {
            let source = std::str::from_utf8(&name[..colon]).ok()?.to_owned();
            let id = ProviderEventId::new(&name[colon + 1..]).ok()?;
            return Some(Self::Provider { source, id });
        }
        let text = std::str::from_utf8(name).ok()?;
        if text == "@" {
            return Some(Self::Newest);
        }
        text.parse().map(Self::Id).or_else(|_| text.parse().map(Self::Short)).ok()
    }
}

impl fmt::Display for Searched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownSource(source) => {
                write!(f, "searched the sources: no event of a source `{source}` was ever stored")
            }
            Self::Scopes { source, scopes: 0, events } => {
                write!(f, "searched source `{source}`: its newest events ({events}) have no scopes")
            }
            Self::Scopes { source, scopes, events } => write!(
                f,
                "searched source `{source}`: the id without a scope, and under the scopes of its newest events \
                 ({scopes} in {events})"
            ),
        }
    }
}

/// Finds an event. After a revision it is the first one of its identity.
///
/// # Errors
///
/// [`LookupError`]: there is none, there are several, or the store could not be read.
pub fn find(store: &dyn Store, name: &EventName) -> Result<Event, LookupError> {
    let selector = match name {
        EventName::Id(id) => EventSelector::Id(*id),
        EventName::Short(seq) => EventSelector::Seq(*seq),
        EventName::Newest => EventSelector::Newest,
        EventName::Provider { source, id } => return find_by_provider(store, source, id),
    };
    store.event(&selector)?.ok_or(LookupError::NotFound { searched: None })
}

fn find_by_provider(store: &dyn Store, source: &str, id: &ProviderEventId) -> Result<Event, LookupError> {
    let registry = store.registry()?;
    let Some(row) = registry.sources.iter().find(|row| row.name.as_str() == source) else {
        return Err(LookupError::NotFound { searched: Some(Searched::UnknownSource(source.to_owned())) });
    };
    let under = |scope: Scope| {
        store.event(&EventSelector::Identity(Identity { source: row.number, scope, id: id.clone() }))
    };
    if let Some(event) = under(Scope::default())? {
        return Ok(event);
    }
    let seen = scopes(store, row.number)?;
    let mut found = Vec::new();
    let searched =
        Searched::Scopes { source: source.to_owned(), scopes: seen.scopes.len(), events: seen.events };
    for scope in seen.scopes {
        found.extend(under(scope)?);
        if found.len() == LOOKUP_CHOICES_MAX {
            break;
        }
    }
    match found.len() {
        0 => Err(LookupError::NotFound { searched: Some(searched) }),
        1 => Ok(found.remove(0)),
        _ => {
            found.sort_by_key(|event| event.seq);
            Err(LookupError::Ambiguous(found))
        }
    }
}

struct Seen {
    scopes: BTreeSet<Scope>,
    events: usize,
}

/// The scopes of a source's newest events.
fn scopes(store: &dyn Store, source: SourceNumber) -> Result<Seen, StoreError> {
    let filter = EventFilter { source: Some(source), ..EventFilter::default() };
    let mut page = Page::first(LOOKUP_PAGE, Order::NewestFirst);
    let mut seen = Seen { scopes: BTreeSet::new(), events: 0 };
    loop {
        let list = store.list_events(&filter, &page)?;
        seen.events += list.items.len();
        let scopes = list.items.into_iter().map(|event| event.identity.scope);
        seen.scopes.extend(scopes.filter(|scope| !scope.as_bytes().is_empty()));
        match list.next {
            Some(next) if list.more && seen.events < LOOKUP_EVENTS_MAX => page = page.after(next),
            _ => return Ok(seen),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_four_names() {
        let parse = |name: &str| EventName::parse(name.as_bytes()).unwrap();
        assert_eq!(parse("@"), EventName::Newest);
        assert_eq!(parse("0007"), EventName::Short(Seq(7)));
        let id = "0193b0a0-0000-7000-8000-0000000000ff";
        assert_eq!(parse(id), EventName::Id(id.parse().unwrap()));
        let named = EventName::parse(b"a:b/c:\xff\x00").unwrap();
        let id = ProviderEventId::new(*b"b/c:\xff\x00").unwrap();
        assert_eq!(named, EventName::Provider { source: "a".to_owned(), id });
    }

    #[test]
    fn other_names_are_none() {
        for bad in ["", "evt_1", "stripe:", "stripe: ", "x y", "@@"] {
            assert_eq!(EventName::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn what_was_searched_is_said() {
        let said = |scopes| Searched::Scopes { source: "github".to_owned(), scopes, events: 12 }.to_string();
        assert!(said(0).contains("`github`") && said(0).contains("newest events (12) have no scopes"));
        assert!(said(3).contains("(3 in 12)"));
    }
}
