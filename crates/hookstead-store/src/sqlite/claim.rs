//! Claim: leases of what is due.

use hookstead_core::lease::CLAIM_MAX;
use hookstead_core::{Claim, Delivery, Lease, Seq, StoreError};

use super::batch::{Batch, held};
use super::delivery::{self, columns};
use super::failure::reading;

impl Batch<'_> {
    pub(super) fn claim(&mut self, claim: &Claim) -> Result<Vec<Lease>, StoreError> {
        if self.ledger.destination(claim.destination).is_none_or(|row| row.paused) {
            return Ok(Vec::new());
        }
        let mut leases = Vec::new();
        for (seq, mut delivery) in self.due(claim)? {
            if !delivery.claim(claim.lease_for, self.now) {
                continue;
            }
            self.lease_delivery(seq, &delivery)?;
            leases.extend(lease(&delivery));
        }
        Ok(leases)
    }

    fn due(&mut self, claim: &Claim) -> Result<Vec<(Seq, Delivery)>, StoreError> {
        let sql = concat!(
            "SELECT ",
            columns!(),
            " FROM work WHERE state = 'waiting' AND destination = ?1 AND due_us <= ?2
             ORDER BY due_us, seq, generation LIMIT ?3"
        );
        let key = (claim.destination.0, self.now.as_micros(), claim.max.min(CLAIM_MAX));
        held(&mut self.work.due, self.connection, sql)
            .and_then(|statement| statement.query_map(key, delivery::keyed)?.collect())
            .map_err(reading("look for due deliveries"))
    }
}

fn lease(delivery: &Delivery) -> Option<Lease> {
    Some(Lease {
        delivery: delivery.id,
        token: delivery.token,
        expires_at: delivery.due_at()?,
        attempt: delivery.attempts,
        idempotency_key: delivery.idempotency_key(),
    })
}
