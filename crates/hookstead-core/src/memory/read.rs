//! The readers.

use super::state::{State, Work, WorkKey};
use crate::attempt::Attempt;
use crate::delivery::{Delivery, DeliveryState};
use crate::error::StoreError;
use crate::event::{Body, Conflict, ConflictState, Digest, Event, Fetched};
use crate::id::{DeliveryId, DestinationNumber, EventId, RedeliveryId, Seq};
use crate::query::{
    BodySelector, ConflictFilter, Cursor, DeliveryFilter, EventFilter, EventSelector, List, Order, Page,
    QueryError,
};
use crate::redelivery::{Redelivery, RedeliveryState};
use crate::run::RunReceipt;
use crate::store::{CheckProblem, CheckReport, Stats};
use crate::time::Timestamp;

impl State {
    pub(super) fn select(&self, selector: &EventSelector) -> Option<Event> {
        let stored = match selector {
            EventSelector::Id(id) => self.stored(id),
            EventSelector::Seq(seq) => self.events.get(seq),
            EventSelector::Identity(identity) => {
                self.by_identity.get(identity).and_then(|seq| self.events.get(seq))
            }
            EventSelector::Newest => self.events.values().next_back(),
        };
        stored.map(|stored| self.event(stored))
    }

    pub(super) fn body(&self, selector: BodySelector) -> Option<Body> {
        let kept = |body: &Option<bytes::Bytes>| body.clone().map_or(Body::Erased, Body::Kept);
        match selector {
            BodySelector::Event(id) => self.stored(&id).map(|stored| kept(&stored.body)),
            BodySelector::Variant(id, variant) => {
                let index = usize::from(variant).checked_sub(1)?;
                self.stored(&id)?.variants.get(index).map(|variant| kept(&variant.body))
            }
        }
    }

    pub(super) fn fetch(&self, id: &EventId, fits: &mut dyn FnMut(u64) -> bool) -> Fetched {
        let Some(stored) = self.stored(id) else { return Fetched::Unknown };
        if !fits(stored.event.body_bytes) {
            return Fetched::TooLarge;
        }
        let body = stored.body.clone().map_or(Body::Erased, Body::Kept);
        Fetched::Whole(Box::new(stored.event.clone().uncounted()), body)
    }

    pub(super) fn list_events(&self, filter: &EventFilter, page: &Page) -> Result<List<Event>, StoreError> {
        let matching = self.events.iter().filter(|(_, stored)| filter.matches(&stored.event));
        let keyed = matching.map(|(seq, stored)| ([seq.0, 0, 0], self.event(stored)));
        paged(keyed, page)
    }

    pub(super) fn list_deliveries(
        &self,
        filter: &DeliveryFilter,
        page: &Page,
    ) -> Result<List<Delivery>, StoreError> {
        let matching = self.work.iter().filter(|(_, work)| filter.matches(&work.delivery));
        paged(matching.map(|(key, work)| (place(key), work.delivery.clone())), page)
    }

    pub(super) fn list_conflicts(
        &self,
        filter: &ConflictFilter,
        page: &Page,
    ) -> Result<List<Conflict>, StoreError> {
        let all = self
            .events
            .values()
            .flat_map(|stored| (0..stored.variants.len()).map(move |index| stored.conflict(index)));
        let matching = all.filter(|conflict| filter.matches(conflict));
        paged(matching.map(|conflict| ([conflict.seq.0, u64::from(conflict.variant), 0], conflict)), page)
    }

    pub(super) fn list_redeliveries(
        &self,
        state: Option<RedeliveryState>,
        page: &Page,
    ) -> Result<List<Redelivery>, StoreError> {
        let matching =
            self.redeliveries.iter().filter(|(_, known)| state.is_none_or(|state| state == known.state));
        paged(matching.map(|(id, known)| (place_of_id(id), known.clone())), page)
    }

    pub(super) fn attempts(&self, id: &DeliveryId) -> Vec<Attempt> {
        let work = self.work_key(id).and_then(|key| self.work.get(&key));
        work.map(|work| work.attempts.clone()).unwrap_or_default()
    }

    pub(super) fn runs(&self, event: &EventId) -> Vec<RunReceipt> {
        self.runs.iter().filter(|((of, _), _)| of == event).map(|(_, receipt)| receipt.clone()).collect()
    }

    pub(super) fn next_due(&self, destination: DestinationNumber) -> Option<Timestamp> {
        let due = |work: &Work| match work.delivery.state {
            DeliveryState::Waiting { due } if work.delivery.id.destination == destination => Some(due),
            _ => None,
        };
        if self.is_paused(destination) { None } else { self.work.values().filter_map(due).min() }
    }

    pub(super) fn next_expiry(&self) -> Option<Timestamp> {
        let expiry = |work: &Work| match work.delivery.state {
            DeliveryState::Leased { expires_at } => Some(expires_at),
            _ => None,
        };
        self.work.values().filter_map(expiry).min()
    }

    pub(super) fn stats(&self) -> Stats {
        let mut stats = Stats { events: self.events.len() as u64, ..Stats::default() };
        for stored in self.events.values() {
            stats.erased += u64::from(stored.body.is_none());
            stats.body_bytes += stored.body.as_ref().map_or(0, |body| body.len() as u64);
            let open = stored.variants.iter().filter(|variant| variant.state == ConflictState::Open);
            stats.conflicts_open += open.count() as u64;
        }
        self.work.values().for_each(|work| stats.deliveries.add(work.delivery.state_name()));
        stats
    }

    pub(super) fn check(&self) -> CheckReport {
        let mut report = CheckReport { events: self.events.len() as u64, ..CheckReport::default() };
        for stored in self.events.values() {
            let variants = stored.variants.iter().map(|variant| (&variant.body, variant.digest));
            let bodies = std::iter::once((&stored.body, stored.event.digest)).chain(variants);
            for (body, digest) in bodies {
                let Some(body) = body else { continue };
                report.bodies += 1;
                if Digest::of(body) != digest {
                    let what = format!("the body of event {} differs from its digest", stored.event.seq);
                    report.add_problem(CheckProblem { event: Some(stored.event.id), what });
                }
            }
        }
        report
    }
}

/// A place in a list: up to three numbers, compared in order.
type Place = [u64; 3];

fn place_of_id(id: &RedeliveryId) -> [u64; 3] {
    let [first, last] = id.halves();
    [first, last, 0]
}

fn place((Seq(seq), DestinationNumber(destination), generation): &WorkKey) -> Place {
    [*seq, u64::from(*destination), u64::from(*generation)]
}

fn paged<T>(items: impl Iterator<Item = (Place, T)>, page: &Page) -> Result<List<T>, StoreError> {
    let after = page.after.as_ref().map(parse).transpose()?;
    let mut items: Vec<(Place, T)> = items.collect();
    if page.order == Order::NewestFirst {
        items.reverse();
    }
    let beyond = |place: &Place| match (after, page.order) {
        (None, _) => true,
        (Some(after), Order::OldestFirst) => *place > after,
        (Some(after), Order::NewestFirst) => *place < after,
    };
    items.retain(|(place, _)| beyond(place));
    let more = items.len() > page.limit();
    items.truncate(page.limit());
    let end = items.last().map(|(place, _)| cursor(*place)).or_else(|| page.after.clone());
    Ok(List { items: items.into_iter().map(|(_, item)| item).collect(), next: end, more })
}

fn cursor([a, b, c]: Place) -> Cursor {
    Cursor::from_text(format!("{a}.{b}.{c}"))
}

fn parse(cursor: &Cursor) -> Result<Place, StoreError> {
    let error = || StoreError::backend("read a cursor", QueryError::Cursor);
    let numbers: Result<Vec<u64>, _> = cursor.as_str().split('.').map(str::parse).collect();
    numbers.ok().and_then(|numbers| Place::try_from(numbers).ok()).ok_or_else(error)
}
