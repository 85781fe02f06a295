//! Claim, extend, settle, redeliver: what moves deliveries.

use super::state::{State, Work, WorkKey};
use crate::attempt::ATTEMPTS_KEPT_MAX;
use crate::delivery::{Delivery, DeliveryState, StateName};
use crate::id::{DeliveryId, DestinationNumber, Seq};
use crate::lease::{CLAIM_MAX, Extension, Lease, Settlement};
use crate::redelivery::{REDELIVERY_STEP_MAX, Redelivery, RedeliveryState};
use crate::store::{Claim, Extend, Redeliver, Settle};
use crate::time::Timestamp;

impl State {
    pub(super) fn claim(&mut self, claim: &Claim, now: Timestamp) -> Vec<Lease> {
        if self.is_paused(claim.destination) {
            return Vec::new();
        }
        let mut due: Vec<(Timestamp, WorkKey)> = self
            .work
            .iter()
            .filter(|((_, destination, _), _)| *destination == claim.destination)
            .filter_map(|(key, work)| match work.delivery.state {
                DeliveryState::Waiting { due } if due <= now => Some((due, *key)),
                _ => None,
            })
            .collect();
        due.sort_unstable();
        due.truncate(usize::from(claim.max.min(CLAIM_MAX)));
        due.iter().filter_map(|(_, key)| self.lease(key, claim, now)).collect()
    }

    fn lease(&mut self, key: &WorkKey, claim: &Claim, now: Timestamp) -> Option<Lease> {
        let delivery = &mut self.work.get_mut(key)?.delivery;
        if !delivery.claim(claim.lease_for, now) {
            return None;
        }
        Some(Lease {
            delivery: delivery.id,
            token: delivery.token,
            expires_at: delivery.due_at()?,
            attempt: delivery.attempts,
            idempotency_key: delivery.idempotency_key(),
        })
    }

    pub(super) fn extend(&mut self, extend: &Extend, now: Timestamp) -> Extension {
        let Some(work) = self.work_mut(&extend.delivery) else { return Extension::Unknown };
        work.delivery.extend(extend.token, extend.lease_for, now)
    }

    pub(super) fn settle(&mut self, settle: &Settle, now: Timestamp) -> Settlement {
        let policy = self.retry_policy(settle.delivery.destination);
        let Some(work) = self.work_mut(&settle.delivery) else { return Settlement::Unknown };
        let before = work.delivery.last_settled.clone();
        let settlement = work.delivery.settle(settle.token, &settle.verdict, &policy, now);
        let is_new = work.delivery.last_settled != before;
        if let (true, Some(attempt)) = (is_new, &settle.attempt) {
            work.attempts.push(attempt.clone());
            let surplus = work.attempts.len().saturating_sub(ATTEMPTS_KEPT_MAX);
            work.attempts.drain(..surplus);
        }
        settlement
    }

    pub(super) fn redeliver(&mut self, step: &Redeliver, now: Timestamp) -> Redelivery {
        let newest = self.newest();
        let known = self.redeliveries.get(&step.plan.id).cloned();
        let mut redelivery =
            known.unwrap_or_else(|| Redelivery::new(step.plan.clone(), step.only, newest, now));
        if redelivery.state == RedeliveryState::Running {
            self.continue_redelivery(&mut redelivery, step.events_max.min(REDELIVERY_STEP_MAX), now);
        }
        self.redeliveries.insert(redelivery.plan.id, redelivery.clone());
        redelivery
    }

    fn continue_redelivery(&mut self, redelivery: &mut Redelivery, events_max: u32, now: Timestamp) {
        let rest =
            (std::ops::Bound::Excluded(redelivery.cursor), std::ops::Bound::Included(redelivery.until));
        let step: Vec<Seq> = self.events.range(rest).take(events_max as usize).map(|(seq, _)| *seq).collect();
        for seq in step {
            redelivery.cursor = seq;
            let wanted =
                self.events.get(&seq).is_some_and(|stored| redelivery.plan.events.matches(&stored.event));
            if !wanted {
                continue;
            }
            if self.redeliver_one(redelivery, seq, now) {
                redelivery.made += 1;
            } else {
                redelivery.skipped += 1;
            }
        }
        if redelivery.cursor >= redelivery.until {
            redelivery.state = RedeliveryState::Complete;
        }
    }

    fn redeliver_one(&mut self, redelivery: &Redelivery, seq: Seq, now: Timestamp) -> bool {
        let destination = redelivery.plan.destination;
        let Some(stored) = self.events.get(&seq) else { return false };
        let event = stored.event.id;
        let earlier: Vec<&Delivery> = self.earlier(seq, destination).collect();
        let unfinished = earlier.iter().any(|delivery| {
            matches!(delivery.state_name(), StateName::Waiting | StateName::Leased | StateName::Held)
        });
        if stored.body.is_none() || unfinished {
            return false;
        }
        let generation = earlier.iter().map(|delivery| delivery.id.generation).max().unwrap_or(0) + 1;
        let key = earlier.iter().map(|delivery| delivery.key_generation).max();
        let mut delivery = Delivery::new(DeliveryId { event, destination, generation }, now, now);
        delivery.key_generation = match key {
            Some(key) if redelivery.plan.fresh_key => key + 1,
            Some(key) => key,
            None => 1,
        };
        delivery.redelivery = Some(redelivery.plan.id);
        self.work.insert((seq, destination, generation), Work { delivery, attempts: Vec::new() });
        true
    }

    fn earlier(&self, seq: Seq, destination: DestinationNumber) -> impl Iterator<Item = &Delivery> {
        self.work_of(seq)
            .map(|work| &work.delivery)
            .filter(move |delivery| delivery.id.destination == destination)
    }
}
