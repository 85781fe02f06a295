//! The rows that a store keeps in memory, and the changes of them that the log is made of. A change says
//! what came out, never what was asked, so that a log reads the same whatever the rules are by then.

use std::sync::Arc;

use hookstead_core::{
    Attempt, ComparisonDigest, Conflict, ConflictState, Delivery, DestinationNumber, DestinationRow, Digest,
    Duplicates, Event, RawHeaders, Redelivery, RunName, Seq, SourceRow, Timestamp,
};

/// The order of deliveries in lists: event, destination, generation.
pub(super) type WorkKey = (Seq, DestinationNumber, u32);

/// An event without its body, and what came under its identity with other bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EventRow {
    /// The event; its tally and the number of its conflicts are filled in when it is read.
    pub(super) event: Event,
    pub(super) comparison: Option<ComparisonDigest>,
    /// Whether its body is looked out for under other identities.
    pub(super) body_watched: bool,
    pub(super) variants: Vec<VariantRow>,
}

/// Other bytes under a taken identity, without them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct VariantRow {
    pub(super) digest: Digest,
    pub(super) body_bytes: u64,
    pub(super) erased: bool,
    pub(super) headers: RawHeaders,
    pub(super) received_at: Timestamp,
    pub(super) state: ConflictState,
}

impl EventRow {
    /// Whether its body is kept.
    pub(super) fn is_kept(&self) -> bool {
        self.event.erased_at.is_none()
    }

    /// The variant of a number, from 1.
    pub(super) fn variant(&self, number: u16) -> Option<&VariantRow> {
        self.variants.get(usize::from(number).checked_sub(1)?)
    }

    /// How many variants nobody has decided about.
    pub(super) fn open_conflicts(&self) -> u64 {
        self.variants.iter().filter(|variant| variant.state == ConflictState::Open).count() as u64
    }

    /// A variant as readers see it.
    pub(super) fn conflict(&self, number: u16) -> Option<Conflict> {
        let variant = self.variant(number)?;
        Some(Conflict {
            event: self.event.id,
            seq: self.event.seq,
            source: self.event.source.clone(),
            variant: number,
            digest: variant.digest,
            body_bytes: variant.body_bytes,
            headers: variant.headers.clone(),
            received_at: variant.received_at,
            state: variant.state.clone(),
        })
    }
}

/// What is known of a run beside its receipt's file: enough to tell a damaged receipt.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RunRow {
    pub(super) digest: Digest,
    pub(super) processed_at: Timestamp,
    pub(super) business_id: Option<String>,
    /// The digest of the payload, if there is one.
    pub(super) payload: Option<Digest>,
}

/// One change of the tables.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Row {
    /// A source is this now.
    Source(SourceRow),
    /// A destination is this now.
    Destination(DestinationRow),
    /// A new event.
    Event(Arc<EventRow>),
    /// An event has one variant more.
    Variant(Seq, VariantRow),
    /// A variant is in this state now.
    VariantState(Seq, u16, ConflictState),
    /// An event and its variants lost bodies and headers.
    Erased(Seq, Timestamp),
    /// An event came again so often.
    Duplicates(Seq, Duplicates),
    /// A delivery is this now.
    Delivery(Seq, Delivery),
    /// A delivery has one attempt more.
    Attempt(WorkKey, Attempt),
    /// A new run.
    Run(Seq, RunName, RunRow),
    /// A redelivery is this now.
    Redelivery(Redelivery),
}

/// The place of a delivery in the order.
pub(super) fn work_key(seq: Seq, delivery: &Delivery) -> WorkKey {
    (seq, delivery.id.destination, delivery.id.generation)
}
