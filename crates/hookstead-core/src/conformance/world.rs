//! The world of a case: one empty store, a clock that moves when told to, and short ways to say what a case
//! does and to look at what came of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::backend::{Backend, Instance};
use super::draft::Draft;
use super::picture::Picture;
use crate::attempt::Attempt;
use crate::delivery::{Delivery, DeliveryState};
use crate::error::StoreError;
use crate::event::{AcceptReceipt, Acceptance, Body, Conflict, Decision, Event};
use crate::id::{DeliveryId, DestinationNumber, EventId, RedeliveryId, Seq, SourceNumber};
use crate::lease::{Extension, Lease, LeaseToken, Settlement, Verdict};
use crate::query::{
    BodySelector, ConflictFilter, DeliveryFilter, EventFilter, EventSelector, List, Order, Page,
};
use crate::redelivery::{Redelivery, RedeliveryPlan};
use crate::retention::{RetentionRule, Swept};
use crate::retry::RetryPolicy;
use crate::run::RunOutcome;
use crate::store::{
    Claim, Extend, RecordRun, Redeliver, Register, Registered, Resolve, Resolved, Settle, Store, Subject,
    Sweep, Write, Written,
};
use crate::time::{Clock, ManualClock, Timestamp};

/// When every world begins.
pub(super) const START: Timestamp = Timestamp::from_secs(1_770_000_000);

/// How long the leases of [`World::claim`] last.
pub(super) const LEASE: Duration = Duration::from_secs(60);

/// A second, by which most cases move the clock.
pub(super) const SECOND: Duration = Duration::from_secs(1);

/// The policy of [`World::destination`]: at once, then 10 s, then 100 s; three attempts, an hour.
pub(super) fn policy() -> RetryPolicy {
    RetryPolicy { schedule_s: vec![0, 10, 100], attempts_max: 3, age_max_s: 3600, jitter_percent: 0 }
}

/// One empty store, and a clock.
pub(super) struct World {
    instance: Box<dyn Instance>,
    clock: ManualClock,
    entropy: AtomicU64,
}

impl World {
    pub(super) fn open(backend: &dyn Backend) -> Self {
        Self { instance: backend.open(), clock: ManualClock::new(START), entropy: AtomicU64::new(1) }
    }

    /// The store. A case drops it before it reopens.
    pub(super) fn store(&self) -> Arc<dyn Store> {
        self.instance.store()
    }

    pub(super) fn reopen(&mut self) {
        self.instance.reopen();
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn advance(&self, duration: Duration) {
        self.clock.advance(duration);
    }

    /// Everything that readers see, but for redeliveries.
    pub(super) fn picture(&self) -> Picture {
        Picture::of(&*self.store(), &[])
    }

    // Writing.

    pub(super) fn try_apply(&self, writes: &[Write]) -> Result<Vec<Written>, StoreError> {
        let written = self.store().apply(writes, self.now())?;
        assert_eq!(written.len(), writes.len(), "each write has one answer");
        Ok(written)
    }

    pub(super) fn apply(&self, writes: &[Write]) -> Vec<Written> {
        self.try_apply(writes).expect("the batch is legal")
    }

    /// Applies one write.
    pub(super) fn write(&self, write: Write) -> Written {
        self.apply(&[write]).remove(0)
    }

    pub(super) fn register(&self, register: Register) -> Registered {
        match self.write(Write::Register(register)) {
            Written::Registered(registered) => registered,
            other => panic!("registering was answered {other:?}"),
        }
    }

    pub(super) fn source(&self, name: &str) -> SourceNumber {
        let name = name.parse().expect("the case uses a legal name");
        match self.register(Register::Source { name, identity_fingerprint: "id-v1".into() }) {
            Registered::Source { row, .. } => row.number,
            other @ Registered::Destination(_) => panic!("a source was registered as {other:?}"),
        }
    }

    pub(super) fn destination(&self, name: &str) -> DestinationNumber {
        self.destination_with(name, policy())
    }

    pub(super) fn destination_with(&self, name: &str, retry: RetryPolicy) -> DestinationNumber {
        let name = name.parse().expect("the case uses a legal name");
        match self.register(Register::Destination { name, fingerprint: "to-v1".into(), retry }) {
            Registered::Destination(row) => row.number,
            other @ Registered::Source { .. } => panic!("a destination was registered as {other:?}"),
        }
    }

    /// Puts a draft together for this store, received now, with an id of its own.
    pub(super) fn acceptance(&self, draft: &Draft) -> Acceptance {
        let mut entropy = [0; 10];
        entropy[..8].copy_from_slice(&self.entropy.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        let mut facts = draft.facts.clone();
        facts.received_at = self.now();
        let key = self.store().facts().identity_key.clone();
        let acceptance = Acceptance::new(&key, draft.identity.clone(), draft.body.clone(), facts, entropy);
        match draft.hash {
            Some(hash) => acceptance.with_identity_hash(hash),
            None => acceptance,
        }
    }

    pub(super) fn accepting(&self, draft: &Draft) -> Write {
        Write::Accept(Box::new(self.acceptance(draft)))
    }

    pub(super) fn accept(&self, draft: &Draft) -> AcceptReceipt {
        receipt(&self.write(self.accepting(draft)))
    }

    /// Claims for [`LEASE`].
    pub(super) fn claim(&self, destination: DestinationNumber, max: u16) -> Vec<Lease> {
        self.claim_for(destination, max, LEASE)
    }

    pub(super) fn claim_for(&self, to: DestinationNumber, max: u16, lease_for: Duration) -> Vec<Lease> {
        leases(&self.write(Write::Claim(Claim { destination: to, max, lease_for })))
    }

    /// Claims the one delivery that is due.
    pub(super) fn claim_one(&self, destination: DestinationNumber) -> Lease {
        let mut leases = self.claim(destination, 10);
        assert_eq!(leases.len(), 1, "exactly one delivery is due");
        leases.remove(0)
    }

    pub(super) fn settle(&self, lease: &Lease, verdict: Verdict) -> Settlement {
        self.settle_as(lease, verdict, None)
    }

    pub(super) fn settle_as(&self, lease: &Lease, verdict: Verdict, attempt: Option<Attempt>) -> Settlement {
        match self.write(settling(lease, verdict, attempt)) {
            Written::Settled(settlement) => settlement,
            other => panic!("a settle was answered {other:?}"),
        }
    }

    pub(super) fn extend(&self, lease: &Lease, lease_for: Duration) -> Extension {
        let Lease { delivery, token, .. } = *lease;
        match self.write(Write::Extend(Extend { delivery, token, lease_for })) {
            Written::Extended(extension) => extension,
            other => panic!("an extension was answered {other:?}"),
        }
    }

    /// Claims what is due for a destination and settles all of it as done.
    pub(super) fn finish(&self, destination: DestinationNumber) {
        let leases = self.claim(destination, 1_000);
        assert!(!leases.is_empty(), "there is something to finish");
        let settles: Vec<_> = leases.iter().map(|lease| settling(lease, Verdict::Done, None)).collect();
        self.apply(&settles);
    }

    pub(super) fn resolve(&self, subject: Subject) -> Resolved {
        match self.write(Write::Resolve(Box::new(Resolve { subject, decision: self.decision() }))) {
            Written::Resolved(resolved) => resolved,
            other => panic!("a decision was answered {other:?}"),
        }
    }

    /// What the person of every case says.
    pub(super) fn decision(&self) -> Decision {
        Decision { by: "ada".into(), note: "looked at it".into(), at: self.now() }
    }

    /// Makes an event of a conflict's variant, owed to `destinations`; its id.
    pub(super) fn revise(&self, event: EventId, variant: u16, destinations: &[DestinationNumber]) -> EventId {
        let subject = self.revising(event, variant, destinations);
        match self.resolve(subject) {
            Resolved::Revised { event, .. } => event,
            other => panic!("accepting a conflict was answered {other:?}"),
        }
    }

    /// The decision to make an event of a conflict's variant, under an id of its own.
    pub(super) fn revising(&self, event: EventId, variant: u16, to: &[DestinationNumber]) -> Subject {
        let mut entropy = [0xee; 10];
        entropy[..8].copy_from_slice(&self.entropy.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        let revision = EventId::new(self.now(), entropy, event.bucket());
        Subject::AcceptConflict { event, variant, revision, destinations: to.to_vec() }
    }

    /// Sweeps leases only.
    pub(super) fn sweep(&self, max: u32) -> Swept {
        self.sweep_by(Vec::new(), max)
    }

    pub(super) fn sweep_by(&self, retention: Vec<RetentionRule>, max: u32) -> Swept {
        match self.write(Write::Sweep(Sweep { retention, max })) {
            Written::Swept(swept) => swept,
            other => panic!("a sweep was answered {other:?}"),
        }
    }

    /// Erases every finished event of a source.
    pub(super) fn erase_finished(&self, source: SourceNumber) -> Swept {
        let before = Some(self.now().plus(SECOND));
        self.sweep_by(vec![RetentionRule { source, finished_before: before, unfinished_before: None }], 1_000)
    }

    pub(super) fn redeliver(&self, plan: &RedeliveryPlan, events_max: u32) -> Redelivery {
        self.redeliver_only(plan, None, events_max)
    }

    pub(super) fn redeliver_only(
        &self,
        plan: &RedeliveryPlan,
        only: Option<Seq>,
        events_max: u32,
    ) -> Redelivery {
        match self.write(Write::Redeliver(Box::new(Redeliver { plan: plan.clone(), only, events_max }))) {
            Written::Redelivered(redelivery) => redelivery,
            other => panic!("a redelivery was answered {other:?}"),
        }
    }

    pub(super) fn run(&self, event: EventId, run: &str, payload: Option<&'static [u8]>) -> RunOutcome {
        match self.write(recording(event, run, payload)) {
            Written::RunRecorded(outcome) => outcome,
            other => panic!("a run was answered {other:?}"),
        }
    }

    // Reading.

    pub(super) fn find(&self, selector: &EventSelector) -> Option<Event> {
        self.store().event(selector).expect("events can be read")
    }

    pub(super) fn event(&self, id: EventId) -> Event {
        self.find(&EventSelector::Id(id)).expect("the event is there")
    }

    pub(super) fn body(&self, id: EventId) -> Option<Body> {
        self.store().body(BodySelector::Event(id)).expect("bodies can be read")
    }

    pub(super) fn variant_body(&self, id: EventId, variant: u16) -> Option<Body> {
        self.store().body(BodySelector::Variant(id, variant)).expect("bodies can be read")
    }

    /// Every event, the oldest first.
    pub(super) fn events(&self) -> Vec<Event> {
        self.list_events(&EventFilter::default(), &Page::first(1_000, Order::OldestFirst)).items
    }

    pub(super) fn list_events(&self, filter: &EventFilter, page: &Page) -> List<Event> {
        self.store().list_events(filter, page).expect("events can be listed")
    }

    pub(super) fn deliveries(&self, filter: &DeliveryFilter) -> Vec<Delivery> {
        self.list_deliveries(filter, &Page::first(1_000, Order::OldestFirst)).items
    }

    pub(super) fn list_deliveries(&self, filter: &DeliveryFilter, page: &Page) -> List<Delivery> {
        self.store().list_deliveries(filter, page).expect("deliveries can be listed")
    }

    pub(super) fn delivery(&self, id: DeliveryId) -> Delivery {
        let filter = DeliveryFilter { event: Some(id.event), ..DeliveryFilter::default() };
        let found = self.deliveries(&filter).into_iter().find(|delivery| delivery.id == id);
        found.expect("the delivery is there")
    }

    pub(super) fn state(&self, id: DeliveryId) -> DeliveryState {
        self.delivery(id).state
    }

    pub(super) fn conflicts(&self, event: EventId) -> Vec<Conflict> {
        let filter = ConflictFilter { event: Some(event), open_only: false };
        self.list_conflicts(&filter, &Page::first(1_000, Order::OldestFirst)).items
    }

    pub(super) fn list_conflicts(&self, filter: &ConflictFilter, page: &Page) -> List<Conflict> {
        self.store().list_conflicts(filter, page).expect("conflicts can be listed")
    }

    pub(super) fn attempts(&self, delivery: DeliveryId) -> Vec<Attempt> {
        self.store().attempts(&delivery).expect("attempts can be read")
    }

    pub(super) fn next_due_to(&self, destination: DestinationNumber) -> Option<Timestamp> {
        self.store().next_due(destination).expect("the next due time can be read")
    }

    pub(super) fn next_expiry(&self) -> Option<Timestamp> {
        self.store().next_expiry().expect("the next end of a lease can be read")
    }

    /// When time alone will make something: of every destination.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        let registry = self.store().registry().expect("the registry can be read");
        let due = registry.destinations.iter().filter_map(|row| self.next_due_to(row.number));
        due.chain(self.next_expiry()).min()
    }
}

/// The first delivery of an event to a destination.
pub(super) fn first_delivery(event: EventId, destination: DestinationNumber) -> DeliveryId {
    DeliveryId { event, destination, generation: 1 }
}

/// The receipt of an accept.
pub(super) fn receipt(written: &Written) -> AcceptReceipt {
    match written {
        Written::Accepted(receipt) => *receipt,
        other => panic!("an accept was answered {other:?}"),
    }
}

/// The leases of a claim.
pub(super) fn leases(written: &Written) -> Vec<Lease> {
    match written {
        Written::Claimed(leases) => leases.clone(),
        other => panic!("a claim was answered {other:?}"),
    }
}

/// A settle by the holder of a lease.
pub(super) fn settling(lease: &Lease, verdict: Verdict, attempt: Option<Attempt>) -> Write {
    Write::Settle(Box::new(Settle { delivery: lease.delivery, token: lease.token, verdict, attempt }))
}

/// A run of an event, with a business id.
pub(super) fn recording(event: EventId, run: &str, payload: Option<&'static [u8]>) -> Write {
    let run = run.parse().expect("the case uses a legal run name");
    let business_id = Some("order-42".to_owned());
    Write::RecordRun(Box::new(RecordRun {
        event,
        run,
        business_id,
        payload: payload.map(bytes::Bytes::from_static),
    }))
}

/// The record of an attempt under a lease.
pub(super) fn attempt(token: LeaseToken, number: u32, started_at: Timestamp) -> Attempt {
    Attempt {
        token,
        number,
        started_at,
        took_us: 1_234,
        status: Some(503),
        excerpt: bytes::Bytes::from_static(b"try\0later\xff"),
        error: Some("the target said 503".into()),
        rule: Some("status.5xx".into()),
    }
}

/// A redelivery of every event to a destination.
pub(super) fn plan(id: u8, destination: DestinationNumber) -> RedeliveryPlan {
    RedeliveryPlan {
        id: RedeliveryId([id; 16]),
        events: EventFilter::default(),
        destination,
        fresh_key: false,
        by: "ada".into(),
        note: "the consumer lost its database".into(),
    }
}
