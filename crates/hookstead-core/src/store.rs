//! The Store contract: everything that a backend must do, in the words of the domain.
//!
//! A store knows nothing of signatures, HTTP, queues or threads. It is given `now`; it reads no clock. Its
//! calls block: whoever must not block calls them from a thread of their own.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::attempt::Attempt;
use crate::delivery::{Delivery, DeliveryTally};
use crate::error::StoreError;
use crate::event::{AcceptReceipt, Acceptance, Body, Conflict, Decision, Event, Fetched};
use crate::id::{DeliveryId, DestinationNumber, EventId, RedeliveryId, Seq, SourceNumber};
use crate::identity::IdentityKey;
use crate::lease::{Extension, Lease, LeaseToken, Settlement, Verdict};
use crate::name::{DestinationName, RunName, SourceName};
use crate::query::{
    BodySelector, ChangeMark, ConflictFilter, DeliveryFilter, EventFilter, EventSelector, List, Page,
};
use crate::redelivery::{Redelivery, RedeliveryPlan, RedeliveryState};
use crate::retention::{RetentionRule, Swept};
use crate::retry::RetryPolicy;
use crate::run::{RunOutcome, RunReceipt};
use crate::time::Timestamp;

/// A durable store of events and of the work that is owed for them.
///
/// **Writing** is [`Store::apply`] alone (and [`Store::probe`], which writes nothing that anybody reads), so
/// a backend has one place where durability is decided. **Reading** sees every commit that was acknowledged
/// before the call began. All methods may be called from any thread at any time.
pub trait Store: Send + Sync {
    /// What is true of this store for as long as it is open.
    fn facts(&self) -> &StoreFacts;

    /// Carries out `writes` as if one after the other, in one commit, and says what each came to, in order.
    ///
    /// When it returns `Ok`, all of it is durable: it survives a crash of the process and a loss of power.
    /// This includes answers that needed no write: a [`crate::Outcome::Duplicate`] rests on a commit of this
    /// process, or on a durability barrier of the same strength that this process saw succeed.
    ///
    /// When it returns `Err`, nothing of it is acknowledged and nothing of it will be visible later, except
    /// after [`StoreError::Poisoned`], where the disk alone knows. After a power cut at any point inside it,
    /// either all of it is there or nothing.
    ///
    /// A source or destination number that no [`Register`] gave out is a [`StoreError::Backend`] and fails
    /// the batch before anything is written.
    fn apply(&self, writes: &[Write], now: Timestamp) -> Result<Vec<Written>, StoreError>;

    /// Proves that the store can commit again after a failure: commits a probe and reads it back through
    /// another connection or handle. Changes nothing that a reader sees.
    fn probe(&self, now: Timestamp) -> Result<(), StoreError>;

    /// Writes down what was only counted in memory and lets go of locks. Later writes fail.
    fn close(&self, now: Timestamp) -> Result<(), StoreError>;

    /// An event, without its body.
    fn event(&self, selector: &EventSelector) -> Result<Option<Event>, StoreError>;

    /// A body, after its digest was checked; [`StoreError::Corrupt`] if it does not hold.
    fn body(&self, selector: BodySelector) -> Result<Option<Body>, StoreError>;

    /// Events with their bodies, for whoever delivers them: an answer for each id, in their order. What is wrong with
    /// one is its own answer and keeps no other from being read.
    ///
    /// Before a body is read, `fits` is asked whether it is wanted now, by its place among the ids and its length in
    /// bytes. It may be asked about one of them more than once.
    ///
    /// # Errors
    ///
    /// If the store cannot be read for a reason that is no event's: it is [`StoreError::Busy`], say, or closed. What is
    /// wrong with an event is told of that event, also where it is wrong with each.
    fn fetch(
        &self,
        events: &[EventId],
        fits: &mut dyn FnMut(usize, u64) -> bool,
    ) -> Result<Vec<Fetched>, StoreError>;

    /// Events, by sequence number. A reader that follows [`crate::Order::OldestFirst`] with the cursors that
    /// it gets sees every event exactly once, also those whose commits land after it began.
    fn list_events(&self, filter: &EventFilter, page: &Page) -> Result<List<Event>, StoreError>;

    /// Deliveries, by the event's sequence number, destination and generation.
    fn list_deliveries(&self, filter: &DeliveryFilter, page: &Page) -> Result<List<Delivery>, StoreError>;

    /// The attempts of a delivery, oldest first; at most [`crate::attempt::ATTEMPTS_KEPT_MAX`].
    fn attempts(&self, delivery: &DeliveryId) -> Result<Vec<Attempt>, StoreError>;

    /// Conflicts, by the event's sequence number and the variant's number.
    fn list_conflicts(&self, filter: &ConflictFilter, page: &Page) -> Result<List<Conflict>, StoreError>;

    /// The receipts of an event's runs, by run name.
    fn runs(&self, event: &EventId) -> Result<Vec<RunReceipt>, StoreError>;

    /// How far a redelivery is.
    fn redelivery(&self, id: &RedeliveryId) -> Result<Option<Redelivery>, StoreError>;

    /// Redeliveries, by the bytes of their ids; those in one state, or all.
    fn list_redeliveries(
        &self,
        state: Option<RedeliveryState>,
        page: &Page,
    ) -> Result<List<Redelivery>, StoreError>;

    /// The sources and destinations that were ever registered, by number.
    fn registry(&self) -> Result<Registry, StoreError>;

    /// The earliest instant at which a delivery to this destination can be claimed. It may lie in the past.
    /// `None`: none waits, or the destination is paused or unknown.
    fn next_due(&self, destination: DestinationNumber) -> Result<Option<Timestamp>, StoreError>;

    /// The earliest instant at which a lease of any destination expires. It may lie in the past. `None`: nothing
    /// is leased.
    fn next_expiry(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Counts, for people and metrics.
    fn stats(&self) -> Result<Stats, StoreError>;

    /// Reads everything and compares it with its digests. Calls `progress` now and then.
    fn check(&self, progress: &mut dyn FnMut(CheckProgress)) -> Result<CheckReport, StoreError>;

    /// A mark that differs whenever another process may have made work since it was last read.
    fn changed(&self) -> Result<ChangeMark, StoreError>;
}

/// What is true of a store for as long as it is open.
#[derive(Clone, Debug)]
pub struct StoreFacts {
    /// The kind of store, as in its URL: `memory`, `sqlite`.
    pub kind: &'static str,
    /// Where it is, for people; never with a password.
    pub location: String,
    /// What a returned commit rests on, for people: `WAL, synchronous=EXTRA, log synced`.
    pub durability: String,
    /// Whether what it holds outlives the process.
    pub persistent: bool,
    /// How many batches may be inside [`Store::apply`] at once.
    pub batches_in_flight: NonZeroUsize,
    /// The key of its identity hashes.
    pub identity_key: IdentityKey,
}

/// Everything that can change in a store.
#[derive(Clone, Debug)]
pub enum Write {
    /// Store an event, or find that it is there. Answer: [`Written::Accepted`].
    Accept(Box<Acceptance>),
    /// Take leases of due deliveries. Answer: [`Written::Claimed`].
    Claim(Claim),
    /// Move the end of a lease. Answer: [`Written::Extended`].
    Extend(Extend),
    /// End a lease. Answer: [`Written::Settled`].
    Settle(Box<Settle>),
    /// Record a run. Answer: [`Written::RunRecorded`].
    RecordRun(Box<RecordRun>),
    /// Make and continue a redelivery by a bounded step. Answer: [`Written::Redelivered`].
    Redeliver(Box<Redeliver>),
    /// Carry out what a person decided. Answer: [`Written::Resolved`].
    Resolve(Box<Resolve>),
    /// Take expired leases away and erase what retention lets go, by a bounded step. Answer:
    /// [`Written::Swept`].
    Sweep(Sweep),
    /// Make a source or destination known. Answer: [`Written::Registered`].
    Register(Register),
}

/// What a [`Write`] came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// Of [`Write::Accept`].
    Accepted(AcceptReceipt),
    /// Of [`Write::Claim`]: the leases, in the order of their due times, then of their events; empty if
    /// nothing is due or the destination is paused.
    Claimed(Vec<Lease>),
    /// Of [`Write::Extend`].
    Extended(Extension),
    /// Of [`Write::Settle`].
    Settled(Settlement),
    /// Of [`Write::RecordRun`].
    RunRecorded(RunOutcome),
    /// Of [`Write::Redeliver`].
    Redelivered(Redelivery),
    /// Of [`Write::Resolve`].
    Resolved(Resolved),
    /// Of [`Write::Sweep`].
    Swept(Swept),
    /// Of [`Write::Register`].
    Registered(Registered),
}

/// Take up to `max` leases of deliveries to one destination that are due.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// The destination.
    pub destination: DestinationNumber,
    /// How many at the most; above [`crate::lease::CLAIM_MAX`] it is that.
    pub max: u16,
    /// How long the leases last; above [`crate::lease::LEASE_MAX`] it is that.
    pub lease_for: Duration,
}

/// Let a lease end later (or sooner): `lease_for` from now.
#[derive(Clone, Copy, Debug)]
pub struct Extend {
    /// The leased delivery.
    pub delivery: DeliveryId,
    /// The lease's token.
    pub token: LeaseToken,
    /// How long it lasts from now on; above [`crate::lease::LEASE_MAX`] it is that.
    pub lease_for: Duration,
}

/// End a lease.
#[derive(Clone, Debug)]
pub struct Settle {
    /// The leased delivery.
    pub delivery: DeliveryId,
    /// The lease's token.
    pub token: LeaseToken,
    /// How it ended.
    pub verdict: Verdict,
    /// What was done, for the record. It is kept only if the lease was not lost.
    pub attempt: Option<Attempt>,
}

/// Record a run of an event.
#[derive(Clone, Debug)]
pub struct RecordRun {
    /// The event.
    pub event: EventId,
    /// The run's name.
    pub run: RunName,
    /// See [`RunReceipt::business_id`].
    pub business_id: Option<String>,
    /// See [`RunReceipt::payload`].
    pub payload: Option<bytes::Bytes>,
}

/// Make a redelivery if its id is new, and continue it by one step.
#[derive(Clone, Debug)]
pub struct Redeliver {
    /// What to do. Only the id counts if the redelivery is there already.
    pub plan: RedeliveryPlan,
    /// Only this one event; `None`: every event that there is. Counts only if the redelivery is new.
    pub only: Option<Seq>,
    /// How many events this step looks at; above [`crate::redelivery::REDELIVERY_STEP_MAX`] it is that.
    pub events_max: u32,
}

/// What a person decided.
#[derive(Clone, Debug)]
pub struct Resolve {
    /// About what.
    pub subject: Subject,
    /// Who, why and when.
    pub decision: Decision,
}

/// What a decision is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// waiting → held.
    HoldDelivery(DeliveryId),
    /// held → waiting.
    LetDeliveryGo(DeliveryId),
    /// dead, held or waiting → done.
    MarkDeliveryDone(DeliveryId),
    /// Make an event of a conflict's bytes, which revises the first.
    AcceptConflict {
        /// The event that holds the identity.
        event: EventId,
        /// Which variant.
        variant: u16,
        /// The id of the new event, made by the caller.
        revision: EventId,
        /// Whom the new event is owed to.
        destinations: Vec<DestinationNumber>,
    },
    /// The conflict's bytes are not wanted; they stay as evidence.
    DismissConflict {
        /// The event that holds the identity.
        event: EventId,
        /// Which variant.
        variant: u16,
    },
    /// Give out no more leases for a destination.
    PauseDestination(DestinationNumber),
    /// Give out leases again.
    ResumeDestination(DestinationNumber),
    /// Make no more deliveries.
    CancelRedelivery(RedeliveryId),
}

/// What a decision came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// It was carried out.
    Changed,
    /// It was carried out and made an event.
    Revised {
        /// The new event.
        event: EventId,
        /// Its sequence number.
        seq: Seq,
    },
    /// The subject is in no state in which this can be decided. Nothing changed.
    Unchanged,
    /// There is no such subject.
    Unknown,
}

/// One bounded step of housekeeping: first the leases that have expired, the longest expired first; then,
/// rule by rule, the oldest events that a rule lets go.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Which bodies may go.
    pub retention: Vec<RetentionRule>,
    /// How many leases and events this step touches; above [`crate::retention::SWEEP_STEP_MAX`] it is that.
    pub max: u32,
}

/// Make a source or destination known. The number behind a name never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Register {
    /// A source.
    Source {
        /// Its name.
        name: SourceName,
        /// A fingerprint of the rule that makes its identities. A change re-keys them.
        identity_fingerprint: String,
    },
    /// A destination.
    Destination {
        /// Its name.
        name: DestinationName,
        /// A fingerprint of its configuration.
        fingerprint: String,
        /// When its deliveries are tried again; in force for every delivery at once.
        retry: RetryPolicy,
    },
}

/// What registering came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registered {
    /// A source.
    Source {
        /// Its row, as it is now.
        row: SourceRow,
        /// The fingerprint that it had before, if that was another one: identities were made by another rule.
        previous_fingerprint: Option<String>,
    },
    /// A destination, as it is now.
    Destination(DestinationRow),
}

/// A source that a store has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRow {
    /// Its number, from 1.
    pub number: SourceNumber,
    /// Its name.
    pub name: SourceName,
    /// 1, and one more for each change of the fingerprint.
    pub generation: u32,
    /// The fingerprint of the rule that makes its identities.
    pub identity_fingerprint: String,
}

/// A destination that a store has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DestinationRow {
    /// Its number, from 1.
    pub number: DestinationNumber,
    /// Its name.
    pub name: DestinationName,
    /// 1, and one more for each change of fingerprint or policy.
    pub generation: u32,
    /// The fingerprint of its configuration.
    pub fingerprint: String,
    /// When its deliveries are tried again.
    pub retry: RetryPolicy,
    /// Whether a person paused it.
    pub paused: bool,
}

/// All sources and destinations that a store has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registry {
    /// The sources, by number.
    pub sources: Vec<SourceRow>,
    /// The destinations, by number.
    pub destinations: Vec<DestinationRow>,
}

/// Counts of what a store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Events, tombstones included.
    pub events: u64,
    /// Events whose body was erased.
    pub erased: u64,
    /// The sum of the lengths of the events' bodies that are kept, in bytes.
    pub body_bytes: u64,
    /// Deliveries, by state.
    pub deliveries: DeliveryTally,
    /// Conflicts that nobody has decided.
    pub conflicts_open: u64,
}

/// How far a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckProgress {
    /// Events looked at.
    pub done: u64,
    /// Events to look at, as far as known.
    pub total: u64,
}

/// The most problems that a report names; it counts the others.
pub const CHECK_PROBLEMS_MAX: usize = 1_000;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Events looked at, tombstones included.
    pub events: u64,
    /// Bodies whose digest was compared, variants included.
    pub bodies: u64,
    /// What is wrong; at most [`CHECK_PROBLEMS_MAX`].
    pub problems: Vec<CheckProblem>,
    /// How many problems there are, those beyond the maximum included.
    pub problem_count: u64,
}

impl CheckReport {
    /// Adds a problem: counted always, named while there is room.
    pub fn add_problem(&mut self, problem: CheckProblem) {
        self.problem_count += 1;
        if self.problems.len() < CHECK_PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }
}

/// One thing that is wrong with a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckProblem {
    /// The event that it concerns, if one.
    pub event: Option<EventId>,
    /// What is wrong, for people.
    pub what: String,
}
