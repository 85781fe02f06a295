//! Sweep: expired leases, and bodies that retention lets go.

use super::state::{State, WorkKey};
use crate::delivery::DeliveryState;
use crate::id::Seq;
use crate::request::RawHeaders;
use crate::retention::{RetentionRule, SWEEP_STEP_MAX, Swept};
use crate::store::Sweep;
use crate::time::Timestamp;

impl State {
    pub(super) fn sweep(&mut self, sweep: &Sweep, now: Timestamp) -> Swept {
        let budget = sweep.max.min(SWEEP_STEP_MAX);
        let mut swept = Swept { expired: self.expire_leases(budget, now), ..Swept::default() };
        for rule in &sweep.retention {
            swept.erased += self.erase(rule, budget - swept.expired - swept.erased, now);
        }
        swept.more = swept.expired + swept.erased == budget;
        swept
    }

    fn expire_leases(&mut self, max: u32, now: Timestamp) -> u32 {
        let mut expired: Vec<(Timestamp, WorkKey)> = self
            .work
            .iter()
            .filter_map(|(key, work)| match work.delivery.state {
                DeliveryState::Leased { expires_at } if expires_at <= now => Some((expires_at, *key)),
                _ => None,
            })
            .collect();
        expired.sort_unstable();
        expired.truncate(max as usize);
        let mut count = 0;
        for (_, key) in expired {
            let policy = self.retry_policy(key.1);
            if let Some(work) = self.work.get_mut(&key) {
                count += u32::from(work.delivery.expire(&policy, now));
            }
        }
        count
    }

    fn erase(&mut self, rule: &RetentionRule, max: u32, now: Timestamp) -> u32 {
        let may_go: Vec<Seq> = self
            .events
            .iter()
            .filter(|(_, stored)| stored.event.identity.source == rule.source && stored.body.is_some())
            .filter(|(seq, stored)| {
                let finished = self.tally(**seq).is_finished();
                let before = if finished { rule.finished_before } else { rule.unfinished_before };
                before.is_some_and(|before| stored.event.committed_at < before)
            })
            .map(|(seq, _)| *seq)
            .take(max as usize)
            .collect();
        let mut count = 0;
        for seq in may_go {
            let Some(stored) = self.events.get_mut(&seq) else { continue };
            stored.body = None;
            stored.event.erased_at = Some(now);
            stored.event.headers = RawHeaders::default();
            self.by_body.forget(stored.event.identity.source, stored.event.digest, seq);
            for variant in &mut stored.variants {
                variant.body = None;
                variant.headers = RawHeaders::default();
            }
            count += 1;
        }
        count
    }
}
