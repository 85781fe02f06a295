//! Claim: leases of what is due.

use hookstead_core::lease::CLAIM_MAX;
use hookstead_core::{Claim, Delivery, Lease, Seq, StateName, StoreError};

use super::batch::{Batch, held};
use super::delivery::{self, columns};
use super::failure::reading;

impl Batch<'_> {
    pub(super) fn claim(&mut self, claim: &Claim) -> Result<Vec<Lease>, StoreError> {
        if self.ledger.destination(claim.destination).is_none_or(|row| row.paused) {
            return Ok(Vec::new());
        }
        let mut leases = Vec::new();
        let due = self.due(claim)?;
        let left = usize::from(claim.max.min(CLAIM_MAX)).saturating_sub(due.len());
        for (seq, mut delivery) in due {
            if !delivery.claim(claim.lease_for, self.now) {
                continue;
            }
            self.lease_delivery(seq, &delivery)?;
            leases.extend(lease(&delivery));
        }
        self.claim_made(claim, left, &mut leases);
        Ok(leases)
    }

    /// Of what this batch has made itself: due now, so behind all that was due before.
    fn claim_made(&mut self, claim: &Claim, max: usize, leases: &mut Vec<Lease>) {
        let waiting = |delivery: &Delivery| {
            delivery.id.destination == claim.destination && delivery.state_name() == StateName::Waiting
        };
        let made = self.made.iter_mut().map(|(_, delivery)| delivery);
        for delivery in made.filter(|delivery| waiting(delivery)).take(max) {
            if delivery.claim(claim.lease_for, self.now) {
                self.ledger.count_move(Some(StateName::Waiting), delivery.state_name());
                leases.extend(lease(delivery));
            }
        }
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
