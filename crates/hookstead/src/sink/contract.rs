//! What a sink is given and what it answers.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use hookstead_core::{Effect, Event, Lease, SourceName, Timestamp};

/// An attempt that is being made.
pub type Delivering<'a> = Pin<Box<dyn Future<Output = Tried> + Send + 'a>>;

/// One way of bringing an event to a destination.
pub trait Sink: Send + Sync {
    /// Makes one attempt. It comes to an end within the destination's timeout and never panics on what the
    /// target does; every failure is a [`Tried`]. Dropped before its end it leaves nothing behind that works
    /// on.
    fn deliver<'a>(&'a self, outgoing: &'a Outgoing) -> Delivering<'a>;
}

/// One event on its way out.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The event, [without counts](Event::uncounted).
    pub event: Event,
    /// The name of its source.
    pub source: SourceName,
    /// Its body, as it came.
    pub body: Bytes,
    /// The lease that the attempt is made under.
    pub lease: Lease,
    /// Which attempt it is, from 1.
    pub attempt: u32,
    /// The machine's wall time: what a signature made now has to say.
    pub now: Timestamp,
}

/// What became of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// What it means for the delivery.
    pub verdict: TriedVerdict,
    /// The target's HTTP status or exit code, if there was one.
    pub status: Option<u16>,
    /// The beginning of what the target said, as bytes; at most
    /// [`ATTEMPT_EXCERPT_BYTES_MAX`](hookstead_core::attempt::ATTEMPT_EXCERPT_BYTES_MAX).
    pub excerpt: Bytes,
    /// What went wrong, for people.
    pub error: Option<String>,
    /// The rule that came to the verdict, by name.
    pub rule: &'static str,
    /// What it says of the target itself.
    pub target: TargetHealth,
}

impl Tried {
    /// This verdict, of a target that is up.
    pub fn new(verdict: TriedVerdict, rule: &'static str) -> Self {
        Self { verdict, status: None, excerpt: Bytes::new(), error: None, rule, target: TargetHealth::Up }
    }

    /// The target has the event.
    pub fn done(rule: &'static str) -> Self {
        Self::new(TriedVerdict::Done, rule)
    }

    /// It failed for this event; the schedule says when it is tried again.
    pub fn retry(rule: &'static str, error: impl Into<String>) -> Self {
        Self { error: Some(error.into()), ..Self::new(TriedVerdict::Retry { after: None }, rule) }
    }

    /// It failed because the target is not there: the circuit counts it.
    pub fn down(rule: &'static str, error: impl Into<String>) -> Self {
        Self { target: TargetHealth::Down, ..Self::retry(rule, error) }
    }
}

/// What an attempt means for its delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TriedVerdict {
    /// The target has the event.
    Done,
    /// The target has the event as soon as this is committed, together with `done`; if it fails, it is tried again.
    DoneWith(Effect),
    /// It may be tried again.
    Retry {
        /// The shortest wait that the target asked for; it may lengthen the schedule's, never shorten it.
        after: Option<Duration>,
    },
    /// No further attempt can help, and why.
    Dead(String),
    /// To be kept back until a person looks at it, and why.
    Hold(String),
}

/// What an attempt says of the target, apart from the event: it counts for the destination's circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetHealth {
    /// It answered; what it said may be the event's fault.
    Up,
    /// It cannot be reached, does not answer in time, or says that it cannot serve now.
    Down,
}
