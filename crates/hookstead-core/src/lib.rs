//! The words of hookstead as types, the pure rules that move them, and the contract that every store keeps.
//!
//! This crate does no I/O, starts no thread and reads no clock: `now` and randomness are always given. It
//! knows nothing of signatures, SQL or HTTP. Its heart is [`Store`]; [`MemoryStore`] is that contract as the
//! shortest correct code, and the feature `conformance` holds the suite that every other store must pass.

pub mod attempt;
pub mod bodies;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod delivery;
pub mod effect;
pub mod error;
pub mod event;
pub mod id;
pub mod identity;
pub mod lease;
pub mod memory;
pub mod name;
pub mod query;
pub mod redelivery;
pub mod request;
pub mod retention;
pub mod retry;
pub mod run;
pub mod store;
pub mod time;

pub use attempt::Attempt;
pub use bodies::Bodies;
pub use delivery::{DeadReason, Delivery, DeliveryState, DeliveryTally, StateName};
pub use effect::{Effect, EffectFailure};
pub use error::StoreError;
pub use event::{
    AcceptReceipt, Acceptance, AcceptanceFacts, Body, BodyReuse, ComparisonDigest, Conflict, ConflictState,
    Decision, Digest, Duplicates, Event, Fetched, Outcome, StoredBytes,
};
pub use id::{Bucket, DeliveryId, DestinationNumber, EventId, IdError, RedeliveryId, Seq, SourceNumber};
pub use identity::{Identity, IdentityError, IdentityHash, IdentityKey, ProviderEventId, Scope};
pub use lease::{Extension, Lease, LeaseToken, Settled, Settlement, Verdict};
pub use memory::MemoryStore;
pub use name::{DestinationName, NameError, RunName, SourceName};
pub use query::{
    BodySelector, ChangeMark, ConflictFilter, Cursor, DeliveryFilter, EventFilter, EventSelector, List,
    Order, Page, QueryError, TypePattern,
};
pub use redelivery::{Redelivery, RedeliveryPlan, RedeliveryState};
pub use request::{QUERY_BYTES_MAX, RawHeaders, RawQuery, RawQueryError};
pub use retention::{RetentionRule, Swept};
pub use retry::RetryPolicy;
pub use run::{RunOutcome, RunReceipt};
pub use store::{
    CheckProblem, CheckProgress, CheckReport, Claim, DestinationRow, Extend, RecordRun, Redeliver, Register,
    Registered, Registry, Resolve, Resolved, Settle, SourceRow, Stats, Store, StoreFacts, Subject, Sweep,
    Write, Written,
};
pub use time::{Clock, ManualClock, Timestamp};
