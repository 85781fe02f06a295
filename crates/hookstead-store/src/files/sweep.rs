//! Sweep: expired leases, and bodies that retention lets go.

use std::sync::Arc;

use hookstead_core::retention::SWEEP_STEP_MAX;
use hookstead_core::{RetentionRule, StoreError, Sweep, Swept};

use super::batch::Batch;
use super::row::{EventRow, Row};

impl Batch<'_> {
    pub(super) fn sweep(&mut self, sweep: &Sweep) -> Result<Swept, StoreError> {
        let budget = sweep.max.min(SWEEP_STEP_MAX);
        let mut swept = Swept { expired: self.expire_leases(budget)?, ..Swept::default() };
        for rule in &sweep.retention {
            swept.erased += self.erase(rule, budget - swept.expired - swept.erased)?;
        }
        swept.more = swept.expired + swept.erased == budget;
        Ok(swept)
    }

    fn expire_leases(&mut self, max: u32) -> Result<u32, StoreError> {
        let mut count = 0;
        for key in self.tables.expired(self.now, max as usize) {
            let policy = self.tables.retry_policy(key.1);
            let Some(mut delivery) = self.tables.work.get(&key).cloned() else { continue };
            if delivery.expire(&policy, self.now) {
                self.put(Row::Delivery(key.0, delivery))?;
                count += 1;
            }
        }
        Ok(count)
    }

    fn erase(&mut self, rule: &RetentionRule, max: u32) -> Result<u32, StoreError> {
        let may_go = |row: &&Arc<EventRow>| {
            let finished = self.tables.tally(row.event.seq).is_finished();
            let before = if finished { rule.finished_before } else { rule.unfinished_before };
            before.is_some_and(|before| row.event.committed_at < before)
        };
        let going: Vec<Arc<EventRow>> =
            self.tables.kept(rule.source).filter(may_go).take(max as usize).map(Arc::clone).collect();
        let mut count = 0;
        for row in going {
            self.erase_one(&row)?;
            count += 1;
        }
        Ok(count)
    }

    fn erase_one(&mut self, row: &EventRow) -> Result<(), StoreError> {
        let event = &row.event;
        self.put(Row::Erased(event.seq, self.now))?;
        self.remove_file(self.around.disk.layout.event(row));
        for (number, variant) in (1..).zip(&row.variants) {
            if !variant.erased {
                let record = self.around.disk.layout.conflict(&event.source, &event.identity, number);
                self.remove_file(record);
            }
        }
        Ok(())
    }
}
