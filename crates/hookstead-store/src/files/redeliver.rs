//! Redeliver: new deliveries from old events, step by step.

use std::ops::Bound;

use hookstead_core::redelivery::REDELIVERY_STEP_MAX;
use hookstead_core::{
    Delivery, DeliveryId, Redeliver, Redelivery, RedeliveryState, Seq, StateName, StoreError,
};

use super::batch::Batch;
use super::row::Row;

impl Batch<'_> {
    pub(super) fn redeliver(&mut self, step: &Redeliver) -> Result<Redelivery, StoreError> {
        let known = self.tables.redeliveries.get(&step.plan.id).cloned();
        let newest = self.tables.newest();
        let mut redelivery =
            known.unwrap_or_else(|| Redelivery::new(step.plan.clone(), step.only, newest, self.now));
        if redelivery.state == RedeliveryState::Running {
            self.go_on(&mut redelivery, step.events_max.min(REDELIVERY_STEP_MAX))?;
            self.put(Row::Redelivery(redelivery.clone()))?;
        }
        Ok(redelivery)
    }

    fn go_on(&mut self, redelivery: &mut Redelivery, events_max: u32) -> Result<(), StoreError> {
        let rest = (Bound::Excluded(redelivery.cursor), Bound::Included(redelivery.until));
        let events = self.tables.events.range(rest).take(events_max as usize);
        let step: Vec<_> =
            events.map(|(seq, row)| (*seq, redelivery.plan.events.matches(&row.event))).collect();
        for (seq, wanted) in step {
            redelivery.cursor = seq;
            if !wanted {
                continue;
            }
            if self.redeliver_one(redelivery, seq)? {
                redelivery.made += 1;
            } else {
                redelivery.skipped += 1;
            }
        }
        if redelivery.cursor >= redelivery.until {
            redelivery.state = RedeliveryState::Complete;
        }
        Ok(())
    }

    fn redeliver_one(&mut self, redelivery: &Redelivery, seq: Seq) -> Result<bool, StoreError> {
        let destination = redelivery.plan.destination;
        let Some(row) = self.tables.events.get(&seq) else { return Ok(false) };
        let (event, kept) = (row.event.id, row.is_kept());
        let earlier = || self.tables.work_of(seq).filter(|delivery| delivery.id.destination == destination);
        let unfinished = |state| matches!(state, StateName::Waiting | StateName::Leased | StateName::Held);
        if !kept || earlier().any(|delivery| unfinished(delivery.state_name())) {
            return Ok(false);
        }
        let generation = earlier().map(|delivery| delivery.id.generation).max().unwrap_or(0) + 1;
        let key = earlier().map(|delivery| delivery.key_generation).max();
        let mut delivery = Delivery::new(DeliveryId { event, destination, generation }, self.now, self.now);
        delivery.key_generation = match key {
            Some(key) if redelivery.plan.fresh_key => key + 1,
            Some(key) => key,
            None => 1,
        };
        delivery.redelivery = Some(redelivery.plan.id);
        self.put(Row::Delivery(seq, delivery))?;
        Ok(true)
    }
}
