//! A delivery: one event owed to one destination, and the pure rules by which its state moves.
//!
//! Every store moves deliveries by these functions alone: it reads a row, applies one, writes it back.

use std::time::Duration;

use crate::event::Decision;
use crate::id::{DeliveryId, RedeliveryId};
use crate::lease::{Extension, LEASE_MAX, LeaseToken, Settled, Settlement, Verdict};
use crate::retry::RetryPolicy;
use crate::time::Timestamp;

/// The farthest that a retry may lie ahead: the longest wait with the longest jitter.
const RETRY_DUE_MAX: Duration = Duration::from_hours(24 * 14);

/// How far ahead a delivery may be due before its time can only be another clock's: twice the farthest that one is ever
/// set, so that a clock that was set back by days takes nobody's wait away.
const WAIT_AHEAD_MAX: Duration = Duration::from_hours(24 * 28);

/// The same of the end of a lease: the longest lease, and a day by which the clock may have been set back.
const LEASE_AHEAD_MAX: Duration = LEASE_MAX.saturating_add(Duration::from_hours(24));

/// The state of a delivery.
///
/// ```text
///            made with its event, or by a redelivery
///                            |
///                            v           hold
///   +---- retry, release, -> waiting <----------> held
///   |     expiry             |   ^      let go      |
///   |                  claim |   |                  | mark done
///   |                        v   |                  |
///   +----------------------- leased                 |
///                            |    |                 |
///              settle Done   |    | settle Dead,    |
///                            v    v attempts or age |
///                          done  dead  used up      |
///                            ^     |                |
///                            +-----+----------------+
///                              mark done (dead, held, waiting)
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    /// Owed, and nobody is at it.
    Waiting {
        /// From when on it may be claimed.
        due: Timestamp,
    },
    /// Somebody has the time-limited right to work it.
    Leased {
        /// Until when; afterwards a sweep takes the lease away.
        expires_at: Timestamp,
    },
    /// The destination has it.
    Done {
        /// Since when.
        at: Timestamp,
        /// If a person said so instead of the destination.
        decision: Option<Decision>,
    },
    /// Given up, until a person has it delivered again.
    Dead {
        /// Since when.
        at: Timestamp,
        /// Why.
        reason: DeadReason,
    },
    /// Kept back, by a person or because the target said that it is gone.
    Held {
        /// Who, when and why.
        decision: Decision,
    },
}

/// A [`DeliveryState`] without its particulars, for filters and counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateName {
    /// See [`DeliveryState::Waiting`].
    Waiting,
    /// See [`DeliveryState::Leased`].
    Leased,
    /// See [`DeliveryState::Done`].
    Done,
    /// See [`DeliveryState::Dead`].
    Dead,
    /// See [`DeliveryState::Held`].
    Held,
}

impl StateName {
    /// Every state, as a delivery goes through them.
    pub const ALL: [Self; 5] = [Self::Waiting, Self::Leased, Self::Done, Self::Dead, Self::Held];

    /// The state with this [word](Self::as_str).
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// The state's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Leased => "leased",
            Self::Done => "done",
            Self::Dead => "dead",
            Self::Held => "held",
        }
    }
}

/// Why a delivery is dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadReason {
    /// The consumer said that no further attempt can help.
    Refused(String),
    /// As many attempts as the destination's policy allows have been made.
    AttemptsUsedUp,
    /// It has been owed for as long as the destination's policy allows.
    AgeUsedUp,
}

/// One event owed to one destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Which event, to whom, the how-many-eth time.
    pub id: DeliveryId,
    /// Where it stands.
    pub state: DeliveryState,
    /// When it was made.
    pub made_at: Timestamp,
    /// Attempts that count: begun, and not given back by a release.
    pub attempts: u32,
    /// The token of the newest claim; 0 before the first.
    pub token: LeaseToken,
    /// What became of the newest lease that was settled, so that the same settle is answered the same again.
    pub last_settled: Option<(LeaseToken, Settled)>,
    /// 1, and one more for each redelivery that asked for a fresh idempotency key.
    pub key_generation: u32,
    /// The redelivery that made it.
    pub redelivery: Option<RedeliveryId>,
}

impl Delivery {
    /// A delivery as it is made: waiting, due at `due`.
    pub fn new(id: DeliveryId, made_at: Timestamp, due: Timestamp) -> Self {
        Self {
            id,
            state: DeliveryState::Waiting { due },
            made_at,
            attempts: 0,
            token: LeaseToken(0),
            last_settled: None,
            key_generation: 1,
            redelivery: None,
        }
    }

    /// What a consumer deduplicates by: the same on every attempt, and on a redelivery unless it asked for a
    /// fresh one. It holds no dot, so that it can be a `webhook-id`.
    pub fn idempotency_key(&self) -> String {
        let DeliveryId { event, destination, .. } = self.id;
        match self.key_generation {
            1 => format!("{event}-{}", destination.0),
            again => format!("{event}-{}-{again}", destination.0),
        }
    }

    /// The state's name.
    pub fn state_name(&self) -> StateName {
        match self.state {
            DeliveryState::Waiting { .. } => StateName::Waiting,
            DeliveryState::Leased { .. } => StateName::Leased,
            DeliveryState::Done { .. } => StateName::Done,
            DeliveryState::Dead { .. } => StateName::Dead,
            DeliveryState::Held { .. } => StateName::Held,
        }
    }

    /// When time alone will make something of it: a claim possible, or a lease expired.
    pub fn due_at(&self) -> Option<Timestamp> {
        match self.state {
            DeliveryState::Waiting { due } => Some(due),
            DeliveryState::Leased { expires_at } => Some(expires_at),
            DeliveryState::Done { .. } | DeliveryState::Dead { .. } | DeliveryState::Held { .. } => None,
        }
    }

    /// waiting and due → leased: the attempt is counted, the token is new. `false`: nothing to claim.
    pub fn claim(&mut self, lease_for: Duration, now: Timestamp) -> bool {
        let DeliveryState::Waiting { due } = self.state else { return false };
        if due > now {
            return false;
        }
        self.attempts = self.attempts.saturating_add(1);
        self.token = self.token.next();
        self.state = DeliveryState::Leased { expires_at: now.plus(lease_for.min(LEASE_MAX)) };
        true
    }

    /// Moves the end of a lease. Only its holder can, also late, as long as nobody has taken it away.
    pub fn extend(&mut self, token: LeaseToken, lease_for: Duration, now: Timestamp) -> Extension {
        if !self.is_leased_by(token) {
            return Extension::LeaseLost;
        }
        let expires_at = now.plus(lease_for.min(LEASE_MAX));
        self.state = DeliveryState::Leased { expires_at };
        Extension::Extended { expires_at }
    }

    /// Ends a lease as its holder says, within what `policy` allows.
    pub fn settle(
        &mut self,
        token: LeaseToken,
        verdict: &Verdict,
        policy: &RetryPolicy,
        now: Timestamp,
    ) -> Settlement {
        if let Some((settled_token, settled)) = &self.last_settled
            && *settled_token == token
        {
            return Settlement::Settled(settled.clone());
        }
        if !self.is_leased_by(token) {
            return Settlement::LeaseLost;
        }
        let settled = match verdict {
            Verdict::Done | Verdict::DoneWith(_) => Settled::Done,
            Verdict::Dead { reason } => Settled::Dead(DeadReason::Refused(reason.clone())),
            Verdict::Release => Settled::Released,
            Verdict::Retry { at } => self.again_or_dead(*at, policy, now),
        };
        if settled == Settled::Released {
            self.attempts = self.attempts.saturating_sub(1);
        }
        self.state = state_after(&settled, now);
        self.last_settled = Some((token, settled.clone()));
        Settlement::Settled(settled)
    }

    /// Ends a lease whose effect failed: it is tried again at the policy's next step, as far as `policy` allows.
    pub fn settle_undone(&mut self, token: LeaseToken, policy: &RetryPolicy, now: Timestamp) -> Settlement {
        let at = policy.next_due(&self.id, self.attempts, now);
        self.settle(token, &Verdict::Retry { at }, policy, now)
    }

    /// leased and past its end → waiting for the policy's next step, or dead. The attempt stays counted.
    /// `false`: the lease has not expired.
    pub fn expire(&mut self, policy: &RetryPolicy, now: Timestamp) -> bool {
        let DeliveryState::Leased { expires_at } = self.state else { return false };
        if expires_at > now {
            return false;
        }
        let due = policy.next_due(&self.id, self.attempts, now);
        self.state = state_after(&self.again_or_dead(due, policy, now), now);
        true
    }

    /// waiting or leased until a time so far ahead that only another clock can have set it → waiting for now, or after a
    /// lease for the policy's next step, or dead. Without this, what one run under a clock that was years ahead left
    /// behind would be stuck for as long. `false`: the time may be the present clock's.
    pub fn bring_back(&mut self, policy: &RetryPolicy, now: Timestamp) -> bool {
        self.state = match self.state {
            DeliveryState::Waiting { due } if due > Self::due_ahead_max(now) => {
                DeliveryState::Waiting { due: now }
            }
            DeliveryState::Leased { expires_at } if expires_at > Self::expiry_ahead_max(now) => {
                let due = policy.next_due(&self.id, self.attempts, now);
                state_after(&self.again_or_dead(due, policy, now), now)
            }
            _ => return false,
        };
        true
    }

    /// The latest time for which a delivery can wait under the present clock; see [`Delivery::bring_back`].
    pub fn due_ahead_max(now: Timestamp) -> Timestamp {
        now.plus(WAIT_AHEAD_MAX)
    }

    /// The latest end of a lease under the present clock; see [`Delivery::bring_back`].
    pub fn expiry_ahead_max(now: Timestamp) -> Timestamp {
        now.plus(LEASE_AHEAD_MAX)
    }

    /// waiting → held. `false`: it is not waiting.
    pub fn hold(&mut self, decision: Decision) -> bool {
        let waiting = matches!(self.state, DeliveryState::Waiting { .. });
        if waiting {
            self.state = DeliveryState::Held { decision };
        }
        waiting
    }

    /// held → waiting, due now. `false`: it is not held.
    pub fn let_go(&mut self, now: Timestamp) -> bool {
        let held = matches!(self.state, DeliveryState::Held { .. });
        if held {
            self.state = DeliveryState::Waiting { due: now };
        }
        held
    }

    /// dead, held or waiting → done, because a person says so. `false`: it is leased or done.
    pub fn mark_done(&mut self, decision: Decision) -> bool {
        let open = matches!(
            self.state,
            DeliveryState::Waiting { .. } | DeliveryState::Dead { .. } | DeliveryState::Held { .. }
        );
        if open {
            self.state = DeliveryState::Done { at: decision.at, decision: Some(decision) };
        }
        open
    }

    fn is_leased_by(&self, token: LeaseToken) -> bool {
        matches!(self.state, DeliveryState::Leased { .. }) && self.token == token
    }

    fn again_or_dead(&self, due: Timestamp, policy: &RetryPolicy, now: Timestamp) -> Settled {
        if policy.attempts_used_up(self.attempts) {
            return Settled::Dead(DeadReason::AttemptsUsedUp);
        }
        if policy.age_used_up(self.made_at, now) {
            return Settled::Dead(DeadReason::AgeUsedUp);
        }
        Settled::Retry { due: due.min(now.plus(RETRY_DUE_MAX)) }
    }
}

fn state_after(settled: &Settled, now: Timestamp) -> DeliveryState {
    match settled {
        Settled::Done => DeliveryState::Done { at: now, decision: None },
        Settled::Retry { due } => DeliveryState::Waiting { due: *due },
        Settled::Dead(reason) => DeliveryState::Dead { at: now, reason: reason.clone() },
        Settled::Released => DeliveryState::Waiting { due: now },
    }
}

/// How many deliveries there are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryTally {
    /// In [`DeliveryState::Waiting`].
    pub waiting: u64,
    /// In [`DeliveryState::Leased`].
    pub leased: u64,
    /// In [`DeliveryState::Done`].
    pub done: u64,
    /// In [`DeliveryState::Dead`].
    pub dead: u64,
    /// In [`DeliveryState::Held`].
    pub held: u64,
}

impl DeliveryTally {
    /// Counts one delivery more.
    pub fn add(&mut self, state: StateName) {
        let count = match state {
            StateName::Waiting => &mut self.waiting,
            StateName::Leased => &mut self.leased,
            StateName::Done => &mut self.done,
            StateName::Dead => &mut self.dead,
            StateName::Held => &mut self.held,
        };
        *count += 1;
    }

    /// Whether there are deliveries and all of them are done.
    pub fn is_finished(&self) -> bool {
        self.done > 0 && self.waiting + self.leased + self.dead + self.held == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{DestinationNumber, EventId};

    const MADE: Timestamp = Timestamp::from_secs(100);
    const MINUTE: Duration = Duration::from_secs(60);

    fn waiting() -> Delivery {
        let event = EventId::from_bytes([9; 16]);
        let id = DeliveryId { event, destination: DestinationNumber(2), generation: 1 };
        Delivery::new(id, MADE, MADE)
    }

    fn leased() -> Delivery {
        let mut delivery = waiting();
        assert!(delivery.claim(MINUTE, MADE));
        delivery
    }

    fn decision() -> Decision {
        Decision { by: "ada".into(), note: "seen".into(), at: MADE }
    }

    fn policy() -> RetryPolicy {
        RetryPolicy { schedule_s: vec![0, 5], attempts_max: 2, age_max_s: 3600, jitter_percent: 0 }
    }

    #[test]
    fn a_claim_needs_a_due_delivery() {
        let mut delivery = waiting();
        delivery.state = DeliveryState::Waiting { due: MADE.plus(MINUTE) };
        assert!(!delivery.claim(MINUTE, MADE));
        assert!(delivery.claim(MINUTE, MADE.plus(MINUTE)));
        assert!(!delivery.claim(MINUTE, MADE.plus(MINUTE)));
        assert_eq!((delivery.attempts, delivery.token), (1, LeaseToken(1)));
    }

    #[test]
    fn a_settle_is_answered_the_same_again_and_an_old_token_is_lost() {
        let mut delivery = leased();
        let retry = Verdict::Retry { at: MADE.plus(MINUTE) };
        let first = delivery.settle(LeaseToken(1), &retry, &policy(), MADE);
        assert_eq!(first, Settlement::Settled(Settled::Retry { due: MADE.plus(MINUTE) }));
        assert_eq!(delivery.settle(LeaseToken(1), &Verdict::Done, &policy(), MADE), first);
        assert!(delivery.claim(MINUTE, MADE.plus(MINUTE)));
        assert_eq!(delivery.settle(LeaseToken(7), &Verdict::Done, &policy(), MADE), Settlement::LeaseLost);
        assert_eq!(delivery.state_name(), StateName::Leased);
    }

    #[test]
    fn attempts_and_age_end_a_delivery() {
        let mut delivery = leased();
        delivery.attempts = 2;
        let retry = Verdict::Retry { at: MADE };
        let settlement = delivery.settle(LeaseToken(1), &retry, &policy(), MADE);
        assert_eq!(settlement, Settlement::Settled(Settled::Dead(DeadReason::AttemptsUsedUp)));
        let mut old = leased();
        let late = MADE.plus(Duration::from_hours(1));
        assert!(old.expire(&policy(), late));
        assert_eq!(old.state, DeliveryState::Dead { at: late, reason: DeadReason::AgeUsedUp });
    }

    #[test]
    fn a_release_gives_the_attempt_back_and_an_expiry_does_not() {
        let mut released = leased();
        released.settle(LeaseToken(1), &Verdict::Release, &policy(), MADE);
        assert_eq!((released.attempts, released.due_at()), (0, Some(MADE)));
        let mut expired = leased();
        assert!(!expired.expire(&policy(), MADE));
        assert!(expired.expire(&policy(), MADE.plus(MINUTE)));
        assert_eq!(expired.attempts, 1);
        assert_eq!(expired.due_at(), Some(MADE.plus(MINUTE).plus(Duration::from_secs(5))));
    }

    #[test]
    fn what_another_clock_left_far_ahead_is_brought_back_and_nothing_else() {
        const DAY: Duration = Duration::from_hours(24);
        let decade = Duration::from_hours(24 * 3652);
        let mut late = waiting();
        late.state = DeliveryState::Waiting { due: MADE.plus(DAY * 28) };
        assert!(!late.bring_back(&policy(), MADE));
        late.state = DeliveryState::Waiting { due: MADE.plus(decade) };
        assert!(late.bring_back(&policy(), MADE));
        assert_eq!((late.due_at(), late.attempts), (Some(MADE), 0));

        let mut held = waiting();
        assert!(held.claim(LEASE_MAX, MADE));
        assert!(!held.bring_back(&policy(), MADE.minus(DAY)), "a clock that was set back by a day");
        held.state = DeliveryState::Leased { expires_at: MADE.plus(decade) };
        assert!(held.bring_back(&policy(), MADE));
        assert_eq!((held.due_at(), held.attempts), (Some(MADE.plus(Duration::from_secs(5))), 1));
        assert_eq!(held.settle(LeaseToken(1), &Verdict::Done, &policy(), MADE), Settlement::LeaseLost);

        let mut last = waiting();
        last.attempts = 2;
        last.state = DeliveryState::Leased { expires_at: MADE.plus(decade) };
        assert!(last.bring_back(&policy(), MADE));
        assert_eq!(last.state, DeliveryState::Dead { at: MADE, reason: DeadReason::AttemptsUsedUp });
        assert!(!last.bring_back(&policy(), MADE));
    }

    #[test]
    fn people_move_only_what_the_table_lets_them() {
        let mut delivery = waiting();
        assert!(!delivery.let_go(MADE));
        assert!(delivery.hold(decision()) && !delivery.hold(decision()));
        assert!(delivery.let_go(MADE));
        assert!(delivery.mark_done(decision()) && !delivery.mark_done(decision()));
        let mut busy = leased();
        assert!(!busy.hold(decision()) && !busy.mark_done(decision()) && !busy.let_go(MADE));
    }

    #[test]
    fn idempotency_keys_change_only_when_asked() {
        let mut delivery = waiting();
        let key = delivery.idempotency_key();
        delivery.id.generation = 2;
        assert_eq!(delivery.idempotency_key(), key);
        delivery.key_generation = 2;
        assert_ne!(delivery.idempotency_key(), key);
        assert!(!key.contains('.'));
    }

    #[test]
    fn nothing_owed_is_not_finished() {
        let mut tally = DeliveryTally::default();
        assert!(!tally.is_finished());
        tally.add(StateName::Done);
        assert!(tally.is_finished());
        tally.add(StateName::Dead);
        assert!(!tally.is_finished());
    }

    #[test]
    fn words_name_their_states() {
        use crate::redelivery::RedeliveryState;
        for state in StateName::ALL {
            assert_eq!(StateName::from_word(state.as_str()), Some(state));
        }
        for state in RedeliveryState::ALL {
            assert_eq!(RedeliveryState::from_word(state.as_str()), Some(state));
        }
        assert_eq!((StateName::from_word("Done"), RedeliveryState::from_word("")), (None, None));
    }
}
