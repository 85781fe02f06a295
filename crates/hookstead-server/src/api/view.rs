//! What the API answers, as types: the JSON of every list and item. The command line prints the same types.
//!
//! Fields are only ever added. Times are RFC 3339 in UTC. Ids of providers are bytes: as text where they are
//! UTF-8, and always whole in base64 where they are not.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hookstead::core::{
    Conflict, ConflictState, DeliveryTally, Event, List, SourceRow, Stats, StoreFacts, Timestamp,
};
use serde::{Deserialize, Serialize};

pub use super::delivery_view::{
    AttemptView, DecisionView, DeliveriesView, DeliveryView, DestinationView, DestinationsView, NewDecision,
    NewEventRedelivery, NewRedelivery, RedeliveriesView, RedeliveryView, ReloadView, TailLine,
};
pub use super::doctor_view::{DoctorView, FindingView, OpenFilesView, SourceClockView};
pub use super::import_view::{ImportLimits, ImportView, ImportedLine};
pub use super::lease_view::{
    ExtendedView, LeaseOutcome, LeaseResult, LeaseView, LeasesView, SettleBatch, SettleDetails, SettleItem,
    SettledView,
};
pub use super::proof::{AnswersView, ReceiptView, RunView, RunsView};
pub use super::refusal_view::{RefusalView, RefusalsView};

/// An event without its body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventView {
    /// Our own key, a UUID.
    pub id: String,
    /// The short id, for people.
    pub short_id: String,
    /// The place in the order of commits.
    pub seq: u64,
    /// The source's name.
    pub source: String,
    /// The provider event id; `null` if it is no text.
    pub provider_event_id: Option<String>,
    /// The provider event id in base64, only if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_event_id_base64: Option<String>,
    /// The scope in base64, only if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope_base64: Option<String>,
    /// The provider's type.
    #[serde(rename = "type")]
    pub event_type: Option<String>,
    /// The provider's account.
    pub account: Option<String>,
    /// The address that it came from.
    pub received_from: Option<String>,
    /// How the sender proved itself.
    pub verified_by: Option<String>,
    /// When the request was complete.
    pub received_at: String,
    /// When it was committed.
    pub committed_at: String,
    /// The SHA-256 of the body, in hex.
    pub digest: String,
    /// The length of the body.
    pub bytes: u64,
    /// When retention erased the body.
    pub erased_at: Option<String>,
    /// The id of the event whose conflict was resolved by making this one.
    pub revises: Option<String>,
    /// The id of the event of the same source that had the same signed bytes first, under another id. Only where
    /// there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_body_as: Option<String>,
    /// How often the same event came again.
    pub duplicates: u64,
    /// When it last came again.
    pub last_duplicate_at: Option<String>,
    /// How many other bodies came under its id.
    pub conflicts: u16,
    /// Its deliveries by state.
    pub deliveries: TallyView,
    /// With which status its requests are answered. Only where one event is asked for, and its source is
    /// configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<AnswersView>,
    /// Its deliveries, each with its state; none: stored, and owed to no destination yet. Only where one event is asked
    /// for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owed: Option<Vec<DeliveryView>>,
    /// The query of the address that it came to, without secrets; bytes that are no UTF-8 are replaced by U+FFFD. Only
    /// where there is one, and one event is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// The header fields as they came, without secrets. Only where one event is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Vec<HeaderView>>,
}

/// A header field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeaderView {
    /// Its name, as it came.
    pub name: String,
    /// Its value; bytes that are no UTF-8 are replaced by U+FFFD.
    pub value: String,
}

/// Deliveries by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TallyView {
    /// Waiting.
    pub waiting: u64,
    /// Leased.
    pub leased: u64,
    /// Done.
    pub done: u64,
    /// Dead.
    pub dead: u64,
    /// Held.
    pub held: u64,
}

/// A page of events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsView {
    /// The events.
    pub events: Vec<EventView>,
    /// `after` of the next page, if there may be more now: a page may be short, or empty, and not be the last.
    pub next: Option<String>,
    /// Where this page ended: a follower asks from here, now or later.
    pub cursor: Option<String>,
}

/// Other bytes under an id that was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictView {
    /// The id of the event that holds the identity.
    pub event: String,
    /// Its short id.
    pub short_id: String,
    /// The source's name.
    pub source: String,
    /// The number of these bytes among the event's variants, from 1.
    pub variant: u16,
    /// The SHA-256 of the other bytes, in hex.
    pub digest: String,
    /// Their length.
    pub bytes: u64,
    /// When they came first.
    pub received_at: String,
    /// `open`, `accepted` or `dismissed`.
    pub state: String,
    /// If accepted: the id of the event that was made.
    pub revision: Option<String>,
}

/// A page of conflicts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictsView {
    /// The conflicts.
    pub conflicts: Vec<ConflictView>,
    /// `after` of the next page, if there may be more now: a page may be short, or empty, and not be the last.
    pub next: Option<String>,
    /// Where this page ended.
    pub cursor: Option<String>,
}

/// What the store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatsView {
    /// Events, those with an erased body included.
    pub events: u64,
    /// Events whose body was erased.
    pub erased: u64,
    /// The sum of the lengths of the kept bodies.
    pub body_bytes: u64,
    /// Conflicts that nobody has decided.
    pub conflicts_open: u64,
    /// Deliveries by state.
    pub deliveries: TallyView,
}

/// A source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceView {
    /// Its name.
    pub name: String,
    /// The store's number of it.
    pub number: u32,
    /// 1, and one more for each change of the rule that makes its identities.
    pub generation: u32,
    /// Its provider; `null` if it stands in no configuration any more.
    pub provider: Option<String>,
    /// Where its requests arrive.
    pub url: Option<String>,
    /// Its largest body.
    pub body_bytes_max: Option<u64>,
}

/// All sources that the store has seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourcesView {
    /// The sources, by number.
    pub sources: Vec<SourceView>,
}

/// Whether the server can accept, and what a success rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyView {
    /// Whether events can be accepted now.
    pub ready: bool,
    /// Why not. Only with a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The store. Only with a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreView>,
    /// The program's version. Only with a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// What is true of the store for as long as it is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreView {
    /// Its kind: `sqlite`, `memory`.
    pub kind: String,
    /// Where it is.
    pub location: String,
    /// What a commit rests on.
    pub durability: String,
    /// Whether it outlives the process.
    pub persistent: bool,
}

impl EventView {
    /// With its header fields and its query, and how its source answers.
    pub fn detailed(event: &Event, answers: Option<AnswersView>) -> Self {
        let header = |(name, value): (&str, &[u8])| HeaderView {
            name: name.to_owned(),
            value: String::from_utf8_lossy(value).into_owned(),
        };
        let headers = event.headers.fields().map(header).collect();
        Self { answers, query: query(event), headers: Some(headers), ..Self::from(event) }
    }
}

impl From<&Event> for EventView {
    fn from(event: &Event) -> Self {
        let scope = event.identity.scope.as_bytes();
        let (text, base64) = text_or_base64(event.identity.id.as_bytes());
        Self {
            id: event.id.to_string(),
            short_id: event.seq.to_string(),
            seq: event.seq.0,
            source: event.source.to_string(),
            provider_event_id: text,
            provider_event_id_base64: base64,
            scope_base64: (!scope.is_empty()).then(|| STANDARD.encode(scope)),
            event_type: event.event_type.clone(),
            account: event.account.clone(),
            received_from: event.received_from.clone(),
            verified_by: event.verified_by.clone(),
            received_at: event.received_at.to_string(),
            committed_at: event.committed_at.to_string(),
            digest: event.digest.to_string(),
            bytes: event.body_bytes,
            erased_at: time(event.erased_at),
            revises: event.revises.map(|id| id.to_string()),
            same_body_as: event.same_body_as.map(|id| id.to_string()),
            duplicates: event.duplicates.count,
            last_duplicate_at: time(event.duplicates.last_at),
            conflicts: event.conflicts,
            deliveries: TallyView::from(&event.deliveries),
            answers: None,
            owed: None,
            query: None,
            headers: None,
        }
    }
}

/// The query for people.
pub(super) fn query(event: &Event) -> Option<String> {
    let query = event.headers.query()?;
    Some(String::from_utf8_lossy(query.as_bytes()).into_owned())
}

/// Bytes as text where they are text, else in base64.
pub(crate) fn text_or_base64(bytes: &[u8]) -> (Option<String>, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Some(text.to_owned()), None),
        Err(_) => (None, Some(STANDARD.encode(bytes))),
    }
}

fn time(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| at.to_string())
}

impl From<&DeliveryTally> for TallyView {
    fn from(tally: &DeliveryTally) -> Self {
        let DeliveryTally { waiting, leased, done, dead, held } = *tally;
        Self { waiting, leased, done, dead, held }
    }
}

impl From<&List<Event>> for EventsView {
    fn from(list: &List<Event>) -> Self {
        let (next, cursor) = ends(list);
        Self { events: list.items.iter().map(EventView::from).collect(), next, cursor }
    }
}

fn ends<T>(list: &List<T>) -> (Option<String>, Option<String>) {
    let cursor = list.next.as_ref().map(ToString::to_string);
    (cursor.clone().filter(|_| list.more), cursor)
}

impl From<&Conflict> for ConflictView {
    fn from(conflict: &Conflict) -> Self {
        let (state, revision) = match &conflict.state {
            ConflictState::Open => ("open", None),
            ConflictState::Accepted { revision, .. } => ("accepted", Some(revision.to_string())),
            ConflictState::Dismissed(_) => ("dismissed", None),
        };
        Self {
            event: conflict.event.to_string(),
            short_id: conflict.seq.to_string(),
            source: conflict.source.to_string(),
            variant: conflict.variant,
            digest: conflict.digest.to_string(),
            bytes: conflict.body_bytes,
            received_at: conflict.received_at.to_string(),
            state: state.to_owned(),
            revision,
        }
    }
}

impl From<&List<Conflict>> for ConflictsView {
    fn from(list: &List<Conflict>) -> Self {
        let (next, cursor) = ends(list);
        Self { conflicts: list.items.iter().map(ConflictView::from).collect(), next, cursor }
    }
}

impl From<&Stats> for StatsView {
    fn from(stats: &Stats) -> Self {
        Self {
            events: stats.events,
            erased: stats.erased,
            body_bytes: stats.body_bytes,
            conflicts_open: stats.conflicts_open,
            deliveries: TallyView::from(&stats.deliveries),
        }
    }
}

impl From<&SourceRow> for SourceView {
    fn from(row: &SourceRow) -> Self {
        Self {
            name: row.name.to_string(),
            number: row.number.0,
            generation: row.generation,
            provider: None,
            url: None,
            body_bytes_max: None,
        }
    }
}

impl From<&StoreFacts> for StoreView {
    fn from(facts: &StoreFacts) -> Self {
        Self {
            kind: facts.kind.to_owned(),
            location: facts.location.clone(),
            durability: facts.durability.clone(),
            persistent: facts.persistent,
        }
    }
}
