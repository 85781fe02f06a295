//! The scenes that cases begin with: a delivery in a given state, a finished event, an event that is erased.

use super::draft::Draft;
use super::world::{LEASE, World, first_delivery};
use crate::delivery::{DeadReason, StateName};
use crate::event::AcceptReceipt;
use crate::id::{DeliveryId, DestinationNumber};
use crate::lease::{Settled, Settlement, Verdict};
use crate::store::{Resolved, Subject};

/// Every state, in an order in which [`World::delivery_in`] can make one of each: what is claimed there is
/// never what an earlier state left due.
pub(super) const STATES: [StateName; 5] =
    [StateName::Leased, StateName::Done, StateName::Dead, StateName::Held, StateName::Waiting];

/// What a consumer says that gives up.
pub(super) fn dead() -> Verdict {
    Verdict::Dead { reason: "the order is unknown".into() }
}

/// What such a lease was turned into.
pub(super) fn refused() -> DeadReason {
    DeadReason::Refused("the order is unknown".into())
}

impl World {
    /// Accepts an event of the source `shop` whose body is its id.
    pub(super) fn accept_owed(&self, id: &str, to: &[DestinationNumber]) -> AcceptReceipt {
        self.accept(&Draft::new(self.source("shop"), id, id).owed_to(to.iter().copied()))
    }

    /// A waiting delivery, due now, of a new event.
    pub(super) fn owe(&self, id: &str, to: DestinationNumber) -> DeliveryId {
        first_delivery(self.accept_owed(id, &[to]).event, to)
    }

    /// A delivery of a new event, in `state`. Nothing else may be due for the destination.
    pub(super) fn delivery_in(&self, state: StateName, to: DestinationNumber) -> DeliveryId {
        let id = self.owe(&format!("evt_{}", state.as_str()), to);
        match state {
            StateName::Waiting => {}
            StateName::Held => assert_eq!(self.resolve(Subject::HoldDelivery(id)), Resolved::Changed),
            StateName::Leased => assert_eq!(self.claim_for(to, 10, LEASE * 10).len(), 1),
            StateName::Done => {
                let settled = self.settle(&self.claim_one(to), Verdict::Done);
                assert_eq!(settled, Settlement::Settled(Settled::Done));
            }
            StateName::Dead => {
                let settled = self.settle(&self.claim_one(to), dead());
                assert_eq!(settled, Settlement::Settled(Settled::Dead(refused())));
            }
        }
        assert_eq!(self.delivery(id).state_name(), state);
        id
    }

    /// An event whose only delivery is done.
    pub(super) fn finished(&self, id: &str, to: DestinationNumber) -> AcceptReceipt {
        let receipt = self.accept_owed(id, &[to]);
        self.finish(to);
        receipt
    }

    /// A finished event of the source `shop` that retention has erased.
    pub(super) fn erased(&self, id: &str, to: DestinationNumber) -> AcceptReceipt {
        let receipt = self.finished(id, to);
        assert_eq!(self.erase_finished(self.source("shop")).erased, 1);
        receipt
    }
}
