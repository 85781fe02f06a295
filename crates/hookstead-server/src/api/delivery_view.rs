//! Destinations, deliveries and redeliveries as JSON.

use serde::{Deserialize, Serialize};

use super::view::TallyView;

/// A destination that the store has seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DestinationView {
    /// Its name.
    pub name: String,
    /// The store's number of it.
    pub number: u32,
    /// `push`, `pull`, `exec`; `null` if it stands in no configuration any more.
    pub kind: Option<String>,
    /// Where a push goes, without the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The program that is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// The sources that it takes events of; empty: every source.
    pub sources: Vec<String>,
    /// The types that it takes; empty: every type.
    pub types: Vec<String>,
    /// How long a lease lasts, such as `1m`.
    pub lease: Option<String>,
    /// Whether a person paused it.
    pub paused: bool,
    /// Whether the target of a push or exec is there: `closed` while it is, `open` while it rests, `half-open` while one
    /// delivery finds out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuit: Option<String>,
    /// Until when a target that is not there is left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rests_until: Option<String>,
    /// Attempts that are being made now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<usize>,
    /// Why it is not worked at all, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// When the next delivery is due, if one waits; in the past if it is late.
    pub next_due: Option<String>,
    /// 1, and one more for each change of its configuration.
    pub generation: u32,
    /// After so many attempts a delivery is dead.
    pub max_attempts: u32,
    /// Its unfinished deliveries. Only where one destination is asked for; each count stops at
    /// [`COUNT_MAX`](crate::limits::PAGE_COUNT_MAX).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<TallyView>,
}

/// All destinations that the store has seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DestinationsView {
    /// The destinations, by number.
    pub destinations: Vec<DestinationView>,
}

/// One event owed to one destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryView {
    /// `EVENT:DESTINATION:GENERATION`, with the event's short id. Without the generation it names the newest.
    pub id: String,
    /// The event's short id.
    pub event: String,
    /// Our own key of the event, a UUID.
    pub event_id: String,
    /// The source's name.
    pub source: String,
    /// The provider's type.
    #[serde(rename = "type")]
    pub event_type: Option<String>,
    /// The destination's name.
    pub destination: String,
    /// 1, and one more for each redelivery.
    pub generation: u32,
    /// `waiting`, `leased`, `done`, `dead` or `held`.
    pub state: String,
    /// When one that waits is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
    /// When the lease of one that is leased ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<String>,
    /// Since when it is done or dead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Why it is dead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What a person decided, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<DecisionView>,
    /// When it was made.
    pub made_at: String,
    /// Attempts that count.
    pub attempts: u32,
    /// What the consumer deduplicates by.
    pub idempotency_key: String,
    /// The redelivery that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redelivery: Option<String>,
    /// The attempts, oldest first. Only where one delivery is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Vec<AttemptView>>,
}

/// What a person decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionView {
    /// Who.
    pub by: String,
    /// Why.
    pub note: String,
    /// When.
    pub at: String,
}

/// One try of a delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptView {
    /// Which attempt it was, from 1.
    pub number: u32,
    /// When it began.
    pub started_at: String,
    /// How long it took, in microseconds.
    pub took_us: u64,
    /// The target's HTTP status or exit code.
    pub status: Option<u16>,
    /// What went wrong.
    pub error: Option<String>,
    /// The rule that turned the answer into a verdict.
    pub rule: Option<String>,
    /// The beginning of the target's answer, if it is text.
    pub excerpt: Option<String>,
    /// The beginning of the target's answer in base64, only if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt_base64: Option<String>,
}

/// A page of deliveries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveriesView {
    /// The deliveries.
    pub deliveries: Vec<DeliveryView>,
    /// `cursor` of the next page, if there may be more now: a page may be short, or empty, and not be the last.
    pub next: Option<String>,
    /// Where this page ended.
    pub cursor: Option<String>,
}

/// What a person says with a decision about a delivery or destination.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewDecision {
    /// Why, for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What one event is delivered again with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewEventRedelivery {
    /// The destination.
    pub to: String,
    /// Whether it gets an idempotency key of its own.
    #[serde(default)]
    pub fresh_key: bool,
    /// Why, for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What many events are delivered again with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewRedelivery {
    /// The redelivery's id, a UUID of the caller's choice: asked twice with one id, it happens once. Made if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The destination.
    pub to: String,
    /// Only events of this source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Only events whose type this pattern matches.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// Only events that were committed at or after this instant, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Only events that were committed before this instant, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Whether the deliveries get an idempotency key of their own.
    #[serde(default)]
    pub fresh_key: bool,
    /// Why, for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// How far a redelivery is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedeliveryView {
    /// Its id.
    pub id: String,
    /// The destination's name.
    pub to: String,
    /// `running`, `complete` or `cancelled`.
    pub state: String,
    /// Deliveries made so far.
    pub made: u64,
    /// Events passed over, since they are erased or their delivery to this destination is still unfinished.
    pub skipped: u64,
    /// The short id of the last event that it has looked at.
    pub looked_at: String,
    /// The short id of the last event that it looks at.
    pub until: String,
    /// Whether its deliveries have keys of their own.
    pub fresh_key: bool,
    /// Who asked.
    pub by: String,
    /// Why.
    pub note: String,
    /// When it was asked for.
    pub made_at: String,
}

/// A page of redeliveries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedeliveriesView {
    /// The redeliveries, the newest first.
    pub redeliveries: Vec<RedeliveryView>,
    /// `cursor` of the next page, if there may be more now: a page may be short, or empty, and not be the last.
    pub next: Option<String>,
    /// Where this page ended.
    pub cursor: Option<String>,
}

/// What a reload came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadView {
    /// The sources in force, sorted.
    pub sources: Vec<String>,
    /// The destinations in force, sorted.
    pub destinations: Vec<String>,
    /// Keys whose new value waits for a restart; the old one stays in force.
    pub restart_needed: Vec<String>,
}

/// One line of a tail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TailLine {
    /// An event.
    Event {
        /// The event.
        event: Box<super::view::EventView>,
    },
    /// The last line of an answer: where the next one begins.
    End {
        /// `cursor` of the next request.
        cursor: String,
        /// Whether there is more already.
        more: bool,
    },
}
