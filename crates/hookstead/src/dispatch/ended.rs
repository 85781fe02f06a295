//! From what a sink said to what is written: pure.

use std::time::Duration;

use bytes::Bytes;
use hookstead_core::attempt::ATTEMPT_EXCERPT_BYTES_MAX;
use hookstead_core::retry::RETRY_WAIT_MAX;
use hookstead_core::{
    Attempt, Decision, Lease, Resolve, RetryPolicy, Settle, Subject, Timestamp, Verdict, Write,
};

use crate::sink::{Tried, TriedVerdict};

/// The longest error and reason that is kept, in bytes.
const ERROR_BYTES_MAX: usize = 1024;

/// Who decides when a target says that it is gone.
const BY: &str = "hookstead";

/// How a lease ended: what is written, in this order and one behind the other.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) lease: Lease,
    pub(super) writes: Vec<Write>,
}

impl Ended {
    /// Given back untried; the attempt is not counted.
    pub(super) fn released(lease: Lease) -> Self {
        Self::settled(lease, Verdict::Release, None)
    }

    /// Tried between two instants.
    pub(super) fn tried(
        lease: Lease,
        tried: Tried,
        policy: &RetryPolicy,
        started_at: Timestamp,
        now: Timestamp,
    ) -> Self {
        let attempt = attempt(&lease, &tried, started_at, now);
        let again = |after| Verdict::Retry { at: due(&lease, policy, after, now) };
        match tried.verdict {
            TriedVerdict::Done => Self::settled(lease, Verdict::Done, Some(attempt)),
            TriedVerdict::DoneWith(effect) => Self::settled(lease, Verdict::DoneWith(effect), Some(attempt)),
            TriedVerdict::Retry { after } => {
                let verdict = again(after);
                Self::settled(lease, verdict, Some(attempt))
            }
            TriedVerdict::Dead(reason) => {
                Self::settled(lease, Verdict::Dead { reason: cut(reason) }, Some(attempt))
            }
            TriedVerdict::Hold(reason) => {
                let verdict = again(None);
                let subject = Subject::HoldDelivery(lease.delivery);
                let decision = Decision { by: BY.to_owned(), note: cut(reason), at: now };
                let mut ended = Self::settled(lease, verdict, Some(attempt));
                ended.writes.push(Write::Resolve(Box::new(Resolve { subject, decision })));
                ended
            }
        }
    }

    fn settled(lease: Lease, verdict: Verdict, attempt: Option<Attempt>) -> Self {
        let settle = Settle { delivery: lease.delivery, token: lease.token, verdict, attempt };
        Self { lease, writes: vec![Write::Settle(Box::new(settle))] }
    }
}

/// When it is tried again: when the schedule says, or later if the target asked for it.
fn due(lease: &Lease, policy: &RetryPolicy, after: Option<Duration>, now: Timestamp) -> Timestamp {
    let scheduled = policy.next_due(&lease.delivery, lease.attempt, now);
    let asked = after.map(|after| now.plus(after.min(RETRY_WAIT_MAX)));
    asked.map_or(scheduled, |asked| asked.max(scheduled))
}

fn attempt(lease: &Lease, tried: &Tried, started_at: Timestamp, now: Timestamp) -> Attempt {
    Attempt {
        token: lease.token,
        number: lease.attempt,
        started_at,
        took_us: u64::try_from(now.since(started_at).as_micros()).unwrap_or(u64::MAX),
        status: tried.status,
        excerpt: Bytes::copy_from_slice(&tried.excerpt[..tried.excerpt.len().min(ATTEMPT_EXCERPT_BYTES_MAX)]),
        error: tried.error.clone().map(cut),
        rule: Some(tried.rule.to_owned()),
    }
}

/// The beginning of a text.
fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(ERROR_BYTES_MAX));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookstead_core::{DeliveryId, DestinationNumber, EventId, LeaseToken};

    const NOW: Timestamp = Timestamp::from_secs(1_000);

    fn lease() -> Lease {
        let event = EventId::from_bytes([1; 16]);
        Lease {
            delivery: DeliveryId { event, destination: DestinationNumber(1), generation: 1 },
            token: LeaseToken(3),
            expires_at: NOW,
            attempt: 1,
            idempotency_key: "key".to_owned(),
        }
    }

    fn settle(tried: Tried) -> Settle {
        let policy = RetryPolicy { jitter_percent: 0, ..RetryPolicy::default() };
        let ended = Ended::tried(lease(), tried, &policy, NOW, NOW.plus(Duration::from_millis(7)));
        match ended.writes.into_iter().next() {
            Some(Write::Settle(settle)) => *settle,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_wait_that_was_asked_for_only_lengthens_and_is_capped() {
        let wait = |after_s: Option<u64>| {
            let after = after_s.map(Duration::from_secs);
            let tried = Tried::new(TriedVerdict::Retry { after }, "status-429");
            match settle(tried).verdict {
                Verdict::Retry { at } => at.since(NOW.plus(Duration::from_millis(7))),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(wait(None), Duration::from_secs(5));
        assert_eq!(wait(Some(0)), Duration::from_secs(5));
        assert_eq!(wait(Some(90)), Duration::from_secs(90));
        assert_eq!(wait(Some(1_000_000_000)), RETRY_WAIT_MAX);
        assert_eq!(wait(Some(u64::MAX)), RETRY_WAIT_MAX);
    }

    #[test]
    fn what_the_target_said_is_kept_up_to_a_cap() {
        let tried =
            Tried { excerpt: vec![b'x'; 10_000].into(), ..Tried::down("status-500", "é".repeat(600)) };
        let attempt = settle(tried).attempt.unwrap();
        assert_eq!(attempt.excerpt.len(), ATTEMPT_EXCERPT_BYTES_MAX);
        assert_eq!(attempt.error.unwrap().len(), ERROR_BYTES_MAX);
        assert_eq!(
            (attempt.number, attempt.took_us, attempt.rule.as_deref()),
            (1, 7_000, Some("status-500"))
        );
    }

    #[test]
    fn a_target_that_is_gone_has_its_delivery_held_behind_the_settle() {
        let tried = Tried::new(TriedVerdict::Hold("the target answered 410".into()), "status-410");
        let ended = Ended::tried(lease(), tried, &RetryPolicy::default(), NOW, NOW);
        let [Write::Settle(settle), Write::Resolve(resolve)] = &ended.writes[..] else { panic!("{ended:?}") };
        assert!(matches!(settle.verdict, Verdict::Retry { .. }));
        assert_eq!(resolve.subject, Subject::HoldDelivery(lease().delivery));
        assert_eq!(resolve.decision.note, "the target answered 410");
    }
}
