//! A durable inbox for webhooks, as a library.
//!
//! A webhook that is answered before it is stored is lost by the next crash; one whose answer is lost comes
//! twice. An [`Inbox`] stands between: it commits an event durably, then says so, and it recognises the same
//! event when it comes again.
//!
//! ```
//! use hookstead::{Inbox, Outcome, Source};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("inbox.db");
//! # let url = format!("sqlite:{}", path.display());
//! let inbox = Inbox::builder().store(url).source(Source::recorded("reports".parse()?)).open()?;
//! let receipt = inbox.blocking().record("reports", "evt_1", r#"{"export":"ready"}"#)?;
//! assert_eq!(receipt.outcome, Outcome::Stored); // and it is on the disk
//! # Ok(())
//! # }
//! ```
//!
//! What was accepted is owed to whoever wants it: a handler of your own program ([`Inbox::consume`]), a target that it
//! is pushed to or a program that is run for it ([`Dispatcher`]), or somebody who comes for it ([`Inbox::claim`]). It is
//! given at least once, under one idempotency key, until it is done or dead.
//!
//! This crate knows signatures (`hookstead-verify`) and stores (`hookstead-store`) and brings them together;
//! it knows nothing of HTTP serving.

mod clock;
mod clock_skew;
mod commit;
mod conflict;
mod consume;
pub mod destination;
pub mod dispatch;
mod ending;
mod error;
pub mod filter;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod import;
mod inbox;
#[cfg(feature = "push")]
pub mod keys;
mod processor;
mod receive;
mod record;
mod refusals;
mod replay;
mod routes;
mod signals;
pub mod sink;
mod source;
mod success;
mod tail;
mod work;

pub use clock::SystemClock;
pub use clock_skew::SkewFacts;
pub use commit::{CommitLimits, GatherAnswers, Health, News, gather_answers};
pub use conflict::ConflictError;
pub use consume::{Consume, ConsumeError, Consumer, Delivered};
pub use destination::{Destination, DestinationKind, DestinationOptions, PullOptions};
pub use dispatch::Dispatcher;
pub use ending::{Done, Ending, SettleWith, settle_with};
pub use error::{OpenError, RecordError, Refusal, Unavailable};
pub use filter::{Filter, FilterError};
pub use hookstead_core as core;
pub use hookstead_core::{AcceptReceipt, Outcome, SourceName};
pub use hookstead_store as store;
pub use hookstead_verify as verify;
pub use import::{Import, ImportDeliveries};
pub use inbox::{Inbox, InboxBuilder};
pub use processor::Unreadable;
pub use receive::{Incoming, Received};
pub use record::{BlockingInbox, RecordOptions};
pub use refusals::{NotedRefusal, REFUSALS_MAX, Refusals, RefusedRequest};
pub use replay::ReplayError;
pub use routes::{ReconfigureError, Route};
pub use sink::exec::ExecOptions;
#[cfg(feature = "push")]
pub use sink::push::{OnGone, PushOptions};
pub use source::{BODY_BYTES_MAX, OnConflict, Source, SourceOptions, SuccessBody, default_body_reuse};
pub use success::{Placeholder, SuccessTemplate};
pub use tail::{TAIL_PAGE_MAX, Tail, TailError, TailFrom};
pub use work::{LeaseAnswer, LeaseWrite};
