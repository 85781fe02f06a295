//! Writes out in full what a run says in small numbers: which event, which delivery, which policy.

use bytes::Bytes;

use super::operation::{Events, IDS, Operation, Pick, Rule, Said, Token};
use crate::attempt::Attempt;
use crate::conformance::world::policy;
use crate::delivery::StateName;
use crate::event::{
    Acceptance, AcceptanceFacts, BodyReuse, ComparisonDigest, ConflictState, Decision, Digest,
};
use crate::id::{DeliveryId, DestinationNumber, EventId, RedeliveryId, Seq, SourceNumber};
use crate::identity::{Identity, IdentityKey, ProviderEventId, Scope};
use crate::lease::{LeaseToken, Verdict};
use crate::query::{ConflictFilter, DeliveryFilter, EventFilter, Order, PAGE_MAX, Page};
use crate::redelivery::RedeliveryPlan;
use crate::request::RawHeaders;
use crate::retention::RetentionRule;
use crate::retry::RetryPolicy;
use crate::store::{
    Claim, Extend, RecordRun, Redeliver, Register, Resolve, Settle, Store, Subject, Sweep, Write,
};
use crate::time::Timestamp;

const NOWHERE: SourceNumber = SourceNumber(99);

const UNKNOWN: EventId = EventId::from_bytes([0xee; 16]);

/// What there is before a batch, and what is needed to make writes of it.
pub(super) struct Scribe<'a> {
    key: IdentityKey,
    pub(super) now: Timestamp,
    entropy: &'a mut u64,
    deliveries: Vec<(DeliveryId, LeaseToken, StateName)>,
    conflicts: Vec<(EventId, u16, bool)>,
    pub(super) events: Vec<EventId>,
}

impl<'a> Scribe<'a> {
    pub(super) fn new(store: &dyn Store, now: Timestamp, entropy: &'a mut u64) -> Self {
        let page = Page::first(PAGE_MAX, Order::OldestFirst);
        let deliveries = store.list_deliveries(&DeliveryFilter::default(), &page).expect("deliveries");
        let conflicts = store.list_conflicts(&ConflictFilter::default(), &page).expect("conflicts");
        let events = store.list_events(&EventFilter::default(), &page).expect("events");
        Self {
            key: store.facts().identity_key.clone(),
            now,
            entropy,
            deliveries: deliveries.items.iter().map(|d| (d.id, d.token, d.state_name())).collect(),
            conflicts: conflicts
                .items
                .iter()
                .map(|c| (c.event, c.variant, c.state == ConflictState::Open))
                .collect(),
            events: events.items.iter().map(|event| event.id).collect(),
        }
    }

    pub(super) fn write(&mut self, operation: &Operation) -> Write {
        match operation {
            Operation::Accept { source, id, body, comparison, reuse, to } => {
                let facts = self.facts(*body, *comparison, *reuse, to);
                self.accept(source_number(*source), *id, *body, facts)
            }
            Operation::AcceptFromNowhere { id } => {
                let facts = self.facts(0, None, BodyReuse::Ignore, &[]);
                self.accept(NOWHERE, *id, 0, facts)
            }
            Operation::Claim { to, max, lease_for } => {
                Write::Claim(Claim { destination: number(*to), max: *max, lease_for: *lease_for })
            }
            Operation::Extend { delivery, token, lease_for } => {
                let (delivery, token) = self.lease(*delivery, *token);
                Write::Extend(Extend { delivery, token, lease_for: *lease_for })
            }
            Operation::Settle { delivery, token, verdict, attempt } => {
                let (delivery, token) = self.lease(*delivery, *token);
                let attempt = attempt.map(|seed| tried(token, seed, self.now));
                let verdict = said(*verdict, self.now);
                Write::Settle(Box::new(Settle { delivery, token, verdict, attempt }))
            }
            Operation::Sweep { rules, max } => {
                let retention = rules.iter().map(|rule| retention(rule, self.now)).collect();
                Write::Sweep(Sweep { retention, max: *max })
            }
            Operation::Redeliver { id, to, events, fresh_key, only, events_max } => {
                let plan = RedeliveryPlan {
                    id: redelivery(*id),
                    events: event_filter(events, self.now),
                    destination: number(*to),
                    fresh_key: *fresh_key,
                    by: "ada".into(),
                    note: format!("redelivery {id}"),
                };
                Write::Redeliver(Box::new(Redeliver {
                    plan,
                    only: only.map(|n| Seq(n.into())),
                    events_max: *events_max,
                }))
            }
            Operation::Run { event, run, payload } => self.run(*event, *run, *payload),
            Operation::RegisterSource { source, fingerprint } => register_source(*source, *fingerprint),
            Operation::RegisterDestination { to, fingerprint, policy } => {
                register_destination(*to, *fingerprint, *policy)
            }
            decision => self.decide(decision),
        }
    }

    fn accept(&mut self, source: SourceNumber, id: u8, body: u8, facts: AcceptanceFacts) -> Write {
        let scope: &[u8] = if id + 1 == IDS { b"acct_1" } else { b"" };
        let id = ProviderEventId::new(format!("evt_{id}").into_bytes()).expect("a legal id");
        let identity = Identity { source, scope: Scope::new(scope).expect("a legal scope"), id };
        let entropy = self.fresh_entropy();
        Write::Accept(Box::new(Acceptance::new(&self.key, identity, bytes_of(body), facts, entropy)))
    }

    fn facts(
        &self,
        body: u8,
        comparison: Option<(u32, u8)>,
        body_reuse: BodyReuse,
        to: &[u8],
    ) -> AcceptanceFacts {
        let kinds = [Some("order.paid"), Some("user.new"), None];
        AcceptanceFacts {
            // Before the commit, as it is in life, and each body at its own time.
            received_at: self.now.minus(MICROSECOND * (1 + u32::from(body))),
            destinations: to.iter().map(|to| number(*to)).collect(),
            headers: RawHeaders::from_fields([("x-body", [body].as_slice())]),
            event_type: kinds[usize::from(body) % kinds.len()].map(str::to_owned),
            account: (body == 1).then(|| "acct_1".to_owned()),
            received_from: None,
            verified_by: Some("the model".into()),
            comparison: comparison.map(|(rule_version, steady)| ComparisonDigest {
                rule_version,
                digest: Digest::of(&[steady]),
            }),
            body_reuse,
        }
    }

    fn fresh_entropy(&mut self) -> [u8; 10] {
        *self.entropy += 1;
        let mut entropy = [0; 10];
        entropy[..8].copy_from_slice(&self.entropy.to_be_bytes());
        entropy
    }

    fn run(&self, event: Pick, run: u8, payload: Option<u8>) -> Write {
        let event = match event {
            Pick::Busy(place) | Pick::Any(place) => self.event(place),
            Pick::Unknown => UNKNOWN,
        };
        Write::RecordRun(Box::new(RecordRun {
            event,
            run: format!("run-{run}").parse().expect("a run name"),
            business_id: (run > 0).then(|| format!("order-{run}")),
            payload: payload.map(|payload| Bytes::from(vec![payload])),
        }))
    }

    fn decide(&mut self, operation: &Operation) -> Write {
        let subject = match operation {
            Operation::Hold(pick) => Subject::HoldDelivery(self.delivery(*pick).0),
            Operation::LetGo(pick) => Subject::LetDeliveryGo(self.delivery(*pick).0),
            Operation::MarkDone(pick) => Subject::MarkDeliveryDone(self.delivery(*pick).0),
            Operation::AcceptConflict { conflict, to } => {
                let (event, variant) = self.conflict(*conflict);
                let revision = EventId::new(self.now, self.fresh_entropy(), event.bucket());
                let destinations = to.iter().map(|to| number(*to)).collect();
                Subject::AcceptConflict { event, variant, revision, destinations }
            }
            Operation::DismissConflict { conflict } => {
                let (event, variant) = self.conflict(*conflict);
                Subject::DismissConflict { event, variant }
            }
            Operation::Pause { to } => Subject::PauseDestination(number(*to)),
            Operation::Resume { to } => Subject::ResumeDestination(number(*to)),
            Operation::Cancel { id } => Subject::CancelRedelivery(redelivery(*id)),
            other => panic!("{other:?} is no decision"),
        };
        let decision = Decision { by: "ada".into(), note: "as the model says".into(), at: self.now };
        Write::Resolve(Box::new(Resolve { subject, decision }))
    }

    /// The event at a place, going round; an unknown one if there is none.
    pub(super) fn event(&self, place: u8) -> EventId {
        let place = usize::from(place) % self.events.len().max(1);
        self.events.get(place).copied().unwrap_or(UNKNOWN)
    }

    fn delivery(&self, pick: Pick) -> (DeliveryId, LeaseToken) {
        let unknown = DeliveryId { event: self.event(0), destination: number(0), generation: 77 };
        let is_leased = |state: StateName| state == StateName::Leased;
        let picked = picked(pick, &self.deliveries, |(_, _, state)| is_leased(*state));
        picked.map_or((unknown, LeaseToken(1)), |(id, token, _)| (*id, *token))
    }

    fn lease(&self, pick: Pick, token: Token) -> (DeliveryId, LeaseToken) {
        let (delivery, newest) = self.delivery(pick);
        let token = match token {
            Token::Newest => newest,
            Token::Earlier => LeaseToken(newest.0.saturating_sub(1)),
            Token::Next => newest.next(),
            Token::Wild => LeaseToken(u32::MAX),
        };
        (delivery, token)
    }

    fn conflict(&self, pick: Pick) -> (EventId, u16) {
        let picked = picked(pick, &self.conflicts, |(_, _, is_open)| *is_open);
        picked.map_or((self.event(0), 99), |(event, variant, _)| (*event, *variant))
    }
}

fn picked<T>(pick: Pick, all: &[T], is_busy: impl Fn(&T) -> bool) -> Option<&T> {
    let busy: Vec<&T> = all.iter().filter(|item| is_busy(item)).collect();
    let any: Vec<&T> = all.iter().collect();
    let (place, among) = match pick {
        Pick::Busy(place) if !busy.is_empty() => (place, busy),
        Pick::Busy(place) | Pick::Any(place) => (place, any),
        Pick::Unknown => return None,
    };
    among.get(usize::from(place) % among.len().max(1)).copied()
}

fn source_number(place: u8) -> SourceNumber {
    SourceNumber(u32::from(place) + 1)
}

/// The number of the destination at a place.
pub(super) fn number(place: u8) -> DestinationNumber {
    DestinationNumber(u32::from(place) + 1)
}

/// The id of the redelivery at a place.
pub(super) fn redelivery(place: u8) -> RedeliveryId {
    RedeliveryId([place; 16])
}

pub(super) fn register_source(place: u8, fingerprint: u8) -> Write {
    let name = ["shop", "bank", "mail"][usize::from(place)].parse().expect("a source name");
    Write::Register(Register::Source { name, identity_fingerprint: format!("id-v{fingerprint}") })
}

pub(super) fn register_destination(place: u8, fingerprint: u8, retry: u8) -> Write {
    let name = ["app", "billing", "search"][usize::from(place)].parse().expect("a destination name");
    let fingerprint = format!("to-v{fingerprint}");
    Write::Register(Register::Destination { name, fingerprint, retry: policy_at(retry) })
}

fn policy_at(place: u8) -> RetryPolicy {
    match place {
        0 => policy(),
        1 => RetryPolicy { attempts_max: 1, ..policy() },
        2 => RetryPolicy { age_max_s: 120, jitter_percent: 50, attempts_max: 20, ..policy() },
        _ => RetryPolicy { schedule_s: vec![0, 0, 1_000], attempts_max: 4, ..policy() },
    }
}

pub(super) fn event_filter(events: &Events, now: Timestamp) -> EventFilter {
    let ago = |seconds: u64| now.minus(std::time::Duration::from_secs(seconds));
    EventFilter {
        source: events.source.map(source_number),
        event_type: events.event_type.map(|pattern| pattern.parse().expect("a pattern")),
        committed_from: events.from_s.map(ago),
        committed_before: events.before_s.map(ago),
    }
}

fn retention(rule: &Rule, now: Timestamp) -> RetentionRule {
    // A microsecond later, so that `0` takes what was committed just now.
    let ago = |seconds| now.minus(std::time::Duration::from_secs(seconds)).plus(MICROSECOND);
    RetentionRule {
        source: source_number(rule.source),
        finished_before: rule.finished_s.map(ago),
        unfinished_before: rule.unfinished_s.map(ago),
    }
}

const MICROSECOND: std::time::Duration = std::time::Duration::from_micros(1);

fn said(said: Said, now: Timestamp) -> Verdict {
    match said {
        Said::Done => Verdict::Done,
        Said::RetryIn(wait) => Verdict::Retry { at: now.plus(wait) },
        Said::Dead => Verdict::Dead { reason: "the model gives up".into() },
        Said::Release => Verdict::Release,
    }
}

fn tried(token: LeaseToken, seed: u8, now: Timestamp) -> Attempt {
    Attempt {
        token,
        number: u32::from(seed),
        started_at: now,
        took_us: u64::from(seed) * 1_000,
        status: (seed > 9).then(|| 200 + u16::from(seed)),
        excerpt: Bytes::from(vec![seed; usize::from(seed)]),
        error: (seed % 2 == 1).then(|| format!("error {seed}")),
        rule: (seed % 3 == 1).then(|| format!("rule.{seed}")),
    }
}

fn bytes_of(body: u8) -> Bytes {
    match body {
        0 => Bytes::new(),
        1 => Bytes::from_static(b"{\"n\":1}"),
        2 => Bytes::from_static(b"\0\xff"),
        other => Bytes::from(format!("body {other}")),
    }
}
