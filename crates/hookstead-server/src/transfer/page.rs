//! A store as pages of lines, the oldest event first. An export ends at the event that was the newest when it began, so
//! that it ends also beside a server that goes on accepting.

use hookstead::core::{
    Body, BodySelector, Cursor, Event, EventFilter, EventId, EventSelector, List, Order, Page, Seq, Store,
    StoreError,
};
use serde::{Deserialize, Serialize};

use super::line::EventLine;
use crate::limits::{EXPORT_BODY_BYTES_MAX, EXPORT_EVENTS_MAX};

/// Which page of which events.
#[derive(Clone, Debug, Default)]
pub struct ExportRequest {
    /// Which events.
    pub filter: EventFilter,
    /// Where the page before ended.
    pub after: Option<Cursor>,
    /// [`ExportEnd::until`] of the page before.
    pub until: Option<u64>,
}

/// A page of an export.
#[derive(Clone, Debug)]
pub struct ExportPage {
    /// The lines, each with its LF.
    pub lines: Vec<u8>,
    /// What follows them.
    pub end: ExportEnd,
}

/// How a page ended. In an answer of the API it is the last line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportEnd {
    /// How many events the page has.
    pub events: u64,
    /// Of these, how many have a body no more.
    pub erased: u64,
    /// Events that are damaged, and so are on no page: what was stored of them does not fit its digest.
    pub damaged: Vec<String>,
    /// `after` of the next page.
    pub cursor: Option<String>,
    /// `until` of the next page: the place of the last event of this export.
    pub until: u64,
    /// Whether there is a next page.
    pub more: bool,
}

/// The next page. Bodies are read one at a time, and each is compared with its digest; a damaged one is named in place
/// of its line.
///
/// # Errors
///
/// The store cannot be read.
pub fn export_page(store: &dyn Store, request: &ExportRequest) -> Result<ExportPage, StoreError> {
    let mut written = Written::default();
    let Some(until) = request.until.map_or_else(|| newest(store), |until| Ok(Some(until)))? else {
        return Ok(written.end(None, 0, false));
    };
    let list = list(store, request, EXPORT_EVENTS_MAX)?;
    let mut taken = 0;
    for event in list.items.iter().take_while(|event| event.seq.0 <= until) {
        if taken > 0 && written.body_bytes.saturating_add(event.body_bytes) > EXPORT_BODY_BYTES_MAX {
            // A cursor stands between two items: the one behind the items that fitted is asked for again.
            let fitted = self::list(store, request, taken)?;
            return Ok(written.end(fitted.next.as_ref(), until, true));
        }
        written.add(store, event)?;
        taken += 1;
    }
    let more = list.more && usize::from(taken) == list.items.len();
    Ok(written.end(list.next.as_ref(), until, more))
}

/// An event as it is in a line now.
///
/// # Errors
///
/// The store cannot be read; [`StoreError::Corrupt`] if the body does not fit its digest.
pub fn event_line(store: &dyn Store, event: &Event) -> Result<EventLine, StoreError> {
    match store.body(BodySelector::Event(event.id))? {
        Some(Body::Kept(body)) => Ok(EventLine::of(event, Some(&body))),
        // Retention may have come between the two looks: its time is read with what it left.
        Some(Body::Erased) => Ok(EventLine::of(&again(store, event.id)?, None)),
        None => Err(gone(event.id)),
    }
}

fn again(store: &dyn Store, id: EventId) -> Result<Event, StoreError> {
    store.event(&EventSelector::Id(id))?.ok_or_else(|| gone(id))
}

fn gone(id: EventId) -> StoreError {
    StoreError::Corrupt { what: format!("the event {id} was listed and is not found by its id") }
}

fn newest(store: &dyn Store) -> Result<Option<u64>, StoreError> {
    let newest = store.event(&EventSelector::Newest)?;
    Ok(newest.map(|Event { seq: Seq(seq), .. }| seq))
}

fn list(store: &dyn Store, request: &ExportRequest, items_max: u16) -> Result<List<Event>, StoreError> {
    let page = Page { items_max, after: request.after.clone(), order: Order::OldestFirst };
    store.list_events(&request.filter, &page)
}

#[derive(Default)]
struct Written {
    lines: Vec<u8>,
    body_bytes: u64,
    end: ExportEnd,
}

impl Written {
    fn add(&mut self, store: &dyn Store, event: &Event) -> Result<(), StoreError> {
        let line = match event_line(store, event) {
            Err(StoreError::Corrupt { what }) => {
                self.end.damaged.push(format!("{}: {what}", event.id));
                return Ok(());
            }
            line => line?,
        };
        self.end.events += 1;
        self.end.erased += u64::from(line.body_base64.is_none());
        self.body_bytes = self.body_bytes.saturating_add(event.body_bytes);
        line.write_to(&mut self.lines).map_err(|error| StoreError::Corrupt { what: error.to_string() })
    }

    fn end(self, cursor: Option<&Cursor>, until: u64, more: bool) -> ExportPage {
        let cursor = cursor.map(ToString::to_string);
        ExportPage { lines: self.lines, end: ExportEnd { cursor, until, more, ..self.end } }
    }
}

#[cfg(test)]
mod tests {
    use hookstead::core::{
        Acceptance, AcceptanceFacts, Identity, MemoryStore, ProviderEventId, Register, RetentionRule, Scope,
        SourceNumber, Sweep, Timestamp, Write,
    };
    use serde_json::Value;

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_770_000_000);

    /// A store with an event of this number for each body.
    fn store(bodies: &[usize]) -> MemoryStore {
        let store = MemoryStore::new([7; 32]);
        let (name, identity_fingerprint) = ("conf".parse().unwrap(), String::new());
        store.apply(&[Write::Register(Register::Source { name, identity_fingerprint })], NOW).unwrap();
        (1..).zip(bodies).for_each(|(number, bytes)| add(&store, number, *bytes));
        store
    }

    fn add(store: &MemoryStore, number: usize, bytes: usize) {
        let id = ProviderEventId::new(number.to_string().into_bytes()).unwrap();
        let identity = Identity { source: SourceNumber(1), scope: Scope::default(), id };
        let facts = AcceptanceFacts { received_at: NOW, ..AcceptanceFacts::default() };
        let body = vec![b'x'; bytes].into();
        let entropy = [u8::try_from(number % 251).unwrap(); 10];
        let event = Acceptance::new(&store.facts().identity_key, identity, body, facts, entropy);
        store.apply(&[Write::Accept(Box::new(event))], NOW).unwrap();
    }

    fn next(page: &ExportPage) -> ExportRequest {
        let after = page.end.cursor.as_ref().map(|cursor| cursor.parse().unwrap());
        ExportRequest { after, until: Some(page.end.until), ..ExportRequest::default() }
    }

    /// How many events each page has; each event is on one page, and in its place.
    fn pages(store: &MemoryStore) -> Vec<u64> {
        let (mut counts, mut seen) = (Vec::new(), Vec::new());
        let mut request = ExportRequest::default();
        loop {
            let page = export_page(store, &request).unwrap();
            counts.push(page.end.events);
            let lines = page.lines.split_inclusive(|byte| *byte == b'\n');
            seen.extend(lines.map(|line| serde_json::from_slice::<EventLine>(line).unwrap().seq));
            if !page.end.more {
                let all: Vec<u64> = (1..=page.end.until).collect();
                assert_eq!(seen, all);
                return counts;
            }
            request = next(&page);
        }
    }

    #[test]
    fn a_page_is_bounded_by_its_events_and_by_its_bodies() {
        let most = usize::from(EXPORT_EVENTS_MAX);
        let bytes_max = usize::try_from(EXPORT_BODY_BYTES_MAX).unwrap();
        assert_eq!(pages(&store(&[])), [0]);
        assert_eq!(pages(&store(&vec![1; most])), [u64::from(EXPORT_EVENTS_MAX)]);
        assert_eq!(pages(&store(&vec![0; most + 1])), [u64::from(EXPORT_EVENTS_MAX), 1]);
        assert_eq!(pages(&store(&[bytes_max, 1, bytes_max + 1, 0, 1, 1])), [1, 1, 1, 3]);
        assert_eq!(pages(&store(&[bytes_max / 2, bytes_max / 2, 1])), [2, 1]);
    }

    #[test]
    fn an_export_ends_at_what_was_the_newest_event_when_it_began() {
        let store = store(&vec![1; usize::from(EXPORT_EVENTS_MAX) + 1]);
        let first = export_page(&store, &ExportRequest::default()).unwrap();
        (1_000..1_300).for_each(|number| add(&store, number, 1));
        let second = export_page(&store, &next(&first)).unwrap();
        assert_eq!((second.end.events, second.end.more), (1, false));
    }

    #[test]
    fn an_erased_body_is_null_and_counted() {
        let store = store(&[3]);
        let later = NOW.plus(std::time::Duration::from_secs(1));
        let rule =
            RetentionRule { source: SourceNumber(1), finished_before: None, unfinished_before: Some(later) };
        store.apply(&[Write::Sweep(Sweep { retention: vec![rule], max: 10 })], later).unwrap();
        let page = export_page(&store, &ExportRequest::default()).unwrap();
        assert_eq!((page.end.events, page.end.erased), (1, 1));
        let line: Value = serde_json::from_slice(&page.lines).unwrap();
        assert_eq!((&line["body_base64"], &line["bytes"]), (&Value::Null, &Value::from(3)));
        assert_eq!(line["erased_at"], later.to_string());
    }
}
