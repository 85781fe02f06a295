//! What a memory store holds, and the look-ups that its operations share.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::attempt::Attempt;
use crate::bodies::Bodies;
use crate::delivery::{Delivery, DeliveryTally};
use crate::error::StoreError;
use crate::event::{
    ComparisonDigest, Conflict, ConflictState, Digest, Duplicates, Event, StoredBytes, VARIANTS_MAX,
};
use crate::id::{DeliveryId, DestinationNumber, EventId, RedeliveryId, Seq, SourceNumber};
use crate::identity::{Identity, IdentityKey};
use crate::name::{RunName, SourceName};
use crate::redelivery::Redelivery;
use crate::request::RawHeaders;
use crate::retry::RetryPolicy;
use crate::run::RunReceipt;
use crate::store::Registry;
use crate::time::Timestamp;

/// An event as it is kept: its record, its body and what came under its identity with other bytes.
pub(super) struct StoredEvent {
    pub(super) event: Event,
    pub(super) body: Option<Bytes>,
    pub(super) comparison: Option<ComparisonDigest>,
    pub(super) variants: Vec<Variant>,
}

/// Other bytes under a taken identity.
pub(super) struct Variant {
    pub(super) digest: Digest,
    pub(super) body_bytes: u64,
    pub(super) body: Option<Bytes>,
    pub(super) headers: RawHeaders,
    pub(super) received_at: Timestamp,
    pub(super) state: ConflictState,
}

impl StoredEvent {
    pub(super) fn bytes(&self) -> StoredBytes<'_> {
        StoredBytes {
            digest: self.event.digest,
            body_bytes: self.event.body_bytes,
            body: self.body.as_deref(),
            comparison: self.comparison,
        }
    }

    pub(super) fn conflict(&self, index: usize) -> Conflict {
        let variant = &self.variants[index];
        Conflict {
            event: self.event.id,
            seq: self.event.seq,
            source: self.event.source.clone(),
            variant: number(index),
            digest: variant.digest,
            body_bytes: variant.body_bytes,
            headers: variant.headers.clone(),
            received_at: variant.received_at,
            state: variant.state.clone(),
        }
    }
}

/// The number of a variant from its place.
pub(super) fn number(index: usize) -> u16 {
    u16::try_from(index + 1).unwrap_or(VARIANTS_MAX)
}

/// A delivery and its attempts.
pub(super) struct Work {
    pub(super) delivery: Delivery,
    pub(super) attempts: Vec<Attempt>,
}

/// The order of deliveries in lists: event, destination, generation.
pub(super) type WorkKey = (Seq, DestinationNumber, u32);

#[derive(Default)]
pub(super) struct State {
    pub(super) registry: Registry,
    pub(super) events: BTreeMap<Seq, StoredEvent>,
    pub(super) by_id: BTreeMap<EventId, Seq>,
    pub(super) by_identity: BTreeMap<Identity, Seq>,
    pub(super) by_body: Bodies,
    pub(super) work: BTreeMap<WorkKey, Work>,
    pub(super) runs: BTreeMap<(EventId, RunName), RunReceipt>,
    pub(super) redeliveries: BTreeMap<RedeliveryId, Redelivery>,
    pub(super) is_closed: bool,
}

impl State {
    pub(super) fn newest(&self) -> Seq {
        self.events.last_key_value().map_or(Seq(0), |(seq, _)| *seq)
    }

    pub(super) fn source_name(&self, number: SourceNumber) -> Result<SourceName, StoreError> {
        let row = self.registry.sources.iter().find(|row| row.number == number);
        row.map(|row| row.name.clone()).ok_or_else(|| unknown("source", number.0))
    }

    pub(super) fn check_destination(&self, number: DestinationNumber) -> Result<(), StoreError> {
        let known = self.registry.destinations.iter().any(|row| row.number == number);
        if known { Ok(()) } else { Err(unknown("destination", number.0)) }
    }

    pub(super) fn retry_policy(&self, number: DestinationNumber) -> RetryPolicy {
        let row = self.registry.destinations.iter().find(|row| row.number == number);
        row.map(|row| row.retry.clone()).unwrap_or_default()
    }

    pub(super) fn is_paused(&self, number: DestinationNumber) -> bool {
        self.registry.destinations.iter().any(|row| row.number == number && row.paused)
    }

    pub(super) fn stored(&self, id: &EventId) -> Option<&StoredEvent> {
        self.by_id.get(id).and_then(|seq| self.events.get(seq))
    }

    pub(super) fn stored_mut(&mut self, id: &EventId) -> Option<&mut StoredEvent> {
        self.by_id.get(id).and_then(|seq| self.events.get_mut(seq))
    }

    pub(super) fn work_key(&self, id: &DeliveryId) -> Option<WorkKey> {
        self.by_id.get(&id.event).map(|seq| (*seq, id.destination, id.generation))
    }

    pub(super) fn work_mut(&mut self, id: &DeliveryId) -> Option<&mut Work> {
        let key = self.work_key(id)?;
        self.work.get_mut(&key)
    }

    pub(super) fn work_of(&self, seq: Seq) -> impl Iterator<Item = &Work> {
        let from = (seq, DestinationNumber(0), 0);
        let to = (seq, DestinationNumber(u32::MAX), u32::MAX);
        self.work.range(from..=to).map(|(_, work)| work)
    }

    pub(super) fn tally(&self, seq: Seq) -> DeliveryTally {
        let mut tally = DeliveryTally::default();
        self.work_of(seq).for_each(|work| tally.add(work.delivery.state_name()));
        tally
    }

    /// The event's record with what is derived from elsewhere filled in.
    pub(super) fn event(&self, stored: &StoredEvent) -> Event {
        let mut event = stored.event.clone();
        event.deliveries = self.tally(event.seq);
        event.conflicts = u16::try_from(stored.variants.len()).unwrap_or(VARIANTS_MAX);
        event
    }

    pub(super) fn add_event(
        &mut self,
        new: NewEvent,
        destinations: &[DestinationNumber],
        now: Timestamp,
    ) -> Seq {
        let seq = Seq(self.newest().0 + 1);
        let NewEvent { mut event, body, comparison } = new;
        event.seq = seq;
        event.duplicates = Duplicates::default();
        self.by_id.insert(event.id, seq);
        for destination in destinations {
            let id = DeliveryId { event: event.id, destination: *destination, generation: 1 };
            self.work
                .entry((seq, *destination, 1))
                .or_insert_with(|| Work { delivery: Delivery::new(id, now, now), attempts: Vec::new() });
        }
        self.events.insert(seq, StoredEvent { event, body: Some(body), comparison, variants: Vec::new() });
        seq
    }
}

/// An event that is about to be kept.
pub(super) struct NewEvent {
    pub(super) event: Event,
    pub(super) body: Bytes,
    pub(super) comparison: Option<ComparisonDigest>,
}

fn unknown(what: &str, number: u32) -> StoreError {
    let reason = format!("{what} number {number} was never registered");
    StoreError::backend(format!("look up a {what}"), reason)
}

/// The key of a memory store and where it came from.
pub(super) fn key_from(bytes: [u8; 32]) -> IdentityKey {
    IdentityKey::from_bytes(&bytes)
}
