//! Claims, leases and how they end, as JSON: what a consumer sends and gets.

use serde::{Deserialize, Serialize};

/// What a claim took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeasesView {
    /// The leases, the longest due first; none if nothing was due within the wait.
    pub leases: Vec<LeaseView>,
}

/// The right to work one delivery, with everything that it takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseView {
    /// The lease, for settling it; opaque.
    pub lease: String,
    /// The event's short id, for people.
    pub event: String,
    /// Our own key of the event, a UUID.
    pub event_id: String,
    /// The source's name.
    pub source: String,
    /// The provider's type.
    #[serde(rename = "type")]
    pub event_type: Option<String>,
    /// The provider event id; `null` if it is no text.
    pub provider_id: Option<String>,
    /// The provider event id in base64, only if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id_base64: Option<String>,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// What to deduplicate by: the same on every attempt.
    pub idempotency_key: String,
    /// Until when the right lasts.
    pub lease_until: String,
    /// The `Content-Type` as it came.
    pub content_type: Option<String>,
    /// The query of the address that it came to, without secrets; bytes that are no UTF-8 are replaced. Only where
    /// there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// The header fields as they came, without secrets: name and value; bytes that are no UTF-8 are replaced.
    pub headers: Vec<(String, String)>,
    /// The body, byte for byte.
    pub body_base64: String,
}

/// A lease that was extended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtendedView {
    /// The lease.
    pub lease: String,
    /// Until when it lasts now.
    pub lease_until: String,
}

/// How a lease ends, or that it lasts longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeaseOutcome {
    /// The destination has the event.
    Done,
    /// It failed and may be tried again.
    Retry,
    /// It failed and no further attempt can help.
    Dead,
    /// Given back untried: the attempt is not counted.
    Release,
    /// It is still worked.
    Extend,
}

/// What is said with the end of a lease. All of it may be absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettleDetails {
    /// `retry`: not before this instant, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// `retry`: not before this has passed, such as `30s`. Without either the destination's schedule says when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// `retry`: what went wrong, for people. `dead`: why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `extend`: how long it lasts from now on, such as `60s`; the destination's own time if absent.
    #[serde(default, rename = "for", alias = "lease", skip_serializing_if = "Option::is_none")]
    pub lease_for: Option<String>,
}

/// Many ends at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettleBatch {
    /// Each lease and how it ends.
    pub settle: Vec<SettleItem>,
}

/// One lease of a batch and how it ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettleItem {
    /// The lease.
    pub lease: String,
    /// How it ends.
    pub outcome: LeaseOutcome,
    /// See [`SettleDetails::at`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// See [`SettleDetails::after`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// See [`SettleDetails::reason`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// See [`SettleDetails::lease_for`].
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lease_for: Option<String>,
}

impl SettleItem {
    /// What is said with the end.
    pub fn details(&self) -> SettleDetails {
        let Self { at, after, reason, lease_for, .. } = self.clone();
        SettleDetails { at, after, reason, lease_for }
    }
}

/// What became of each lease of a batch, in its order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettledView {
    /// One result a lease.
    pub results: Vec<LeaseResult>,
}

/// What became of one lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseResult {
    /// The lease.
    pub lease: String,
    /// `settled`, `extended`; or why not, as the code of the refusal that the lease alone would have got:
    /// `lease-lost`, `lease-settled`, `unknown-lease`, `forbidden`, `not-durable` ...
    pub result: String,
    /// The state of the delivery after a settle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// When a delivery that waits again is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
    /// Until when an extended lease lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<String>,
}
