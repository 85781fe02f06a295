//! Claim, extend, settle: what moves deliveries. What may become of one, `hookstead-core` decides.

use hookstead_core::lease::CLAIM_MAX;
use hookstead_core::{Claim, Delivery, DeliveryId, Extend, Extension, Lease, Settle, Settlement, StoreError};

use super::batch::Batch;
use super::row::{Row, WorkKey};

impl Batch<'_> {
    pub(super) fn claim(&mut self, claim: &Claim) -> Result<Vec<Lease>, StoreError> {
        if self.tables.destination(claim.destination)?.paused {
            return Ok(Vec::new());
        }
        let max = usize::from(claim.max.min(CLAIM_MAX));
        let due = self.tables.due(claim.destination, self.now, max);
        let mut leases = Vec::with_capacity(due.len());
        for key in due {
            leases.extend(self.lease(key, claim)?);
        }
        Ok(leases)
    }

    fn lease(&mut self, key: WorkKey, claim: &Claim) -> Result<Option<Lease>, StoreError> {
        let Some(mut delivery) = self.tables.work.get(&key).cloned() else { return Ok(None) };
        if !delivery.claim(claim.lease_for, self.now) {
            return Ok(None);
        }
        let lease = delivery.due_at().map(|expires_at| Lease {
            delivery: delivery.id,
            token: delivery.token,
            expires_at,
            attempt: delivery.attempts,
            idempotency_key: delivery.idempotency_key(),
        });
        self.put(Row::Delivery(key.0, delivery))?;
        Ok(lease)
    }

    pub(super) fn extend(&mut self, extend: &Extend) -> Result<Extension, StoreError> {
        let Some((key, mut delivery)) = self.delivery(&extend.delivery) else {
            return Ok(Extension::Unknown);
        };
        let extension = delivery.extend(extend.token, extend.lease_for, self.now);
        if extension != Extension::LeaseLost {
            self.put(Row::Delivery(key.0, delivery))?;
        }
        Ok(extension)
    }

    pub(super) fn settle(&mut self, settle: &Settle) -> Result<Settlement, StoreError> {
        let Some((key, before)) = self.delivery(&settle.delivery) else { return Ok(Settlement::Unknown) };
        let policy = self.tables.retry_policy(settle.delivery.destination);
        let mut delivery = before.clone();
        let settlement = delivery.settle(settle.token, &settle.verdict, &policy, self.now);
        if delivery.last_settled != before.last_settled {
            self.put(Row::Delivery(key.0, delivery))?;
            if let Some(attempt) = &settle.attempt {
                self.put(Row::Attempt(key, attempt.clone()))?;
            }
        }
        Ok(settlement)
    }

    /// A delivery as it is, to be changed and put back.
    pub(super) fn delivery(&self, id: &DeliveryId) -> Option<(WorkKey, Delivery)> {
        let key = self.tables.work_key(id)?;
        self.tables.work.get(&key).map(|delivery| (key, delivery.clone()))
    }
}
