//! Resolve: what people decide, carried out.

use hookstead_core::{
    Delivery, DeliveryId, DestinationNumber, RedeliveryId, RedeliveryState, Resolve, Resolved, StoreError,
    Subject,
};

use super::batch::Batch;

impl Batch<'_> {
    pub(super) fn resolve(&mut self, resolve: &Resolve) -> Result<Resolved, StoreError> {
        let (decision, now) = (&resolve.decision, self.now);
        match &resolve.subject {
            Subject::HoldDelivery(id) => self.change_delivery(id, |delivery| delivery.hold(decision.clone())),
            Subject::LetDeliveryGo(id) => self.change_delivery(id, |delivery| delivery.let_go(now)),
            Subject::MarkDeliveryDone(id) => {
                self.change_delivery(id, |delivery| delivery.mark_done(decision.clone()))
            }
            Subject::AcceptConflict { event, variant, revision, destinations } => {
                self.accept_conflict(event, *variant, *revision, destinations, decision)
            }
            Subject::DismissConflict { event, variant } => self.dismiss_conflict(event, *variant, decision),
            Subject::PauseDestination(number) => self.set_paused(*number, true),
            Subject::ResumeDestination(number) => self.set_paused(*number, false),
            Subject::CancelRedelivery(id) => self.cancel_redelivery(id),
        }
    }

    fn change_delivery(
        &mut self,
        id: &DeliveryId,
        change: impl FnOnce(&mut Delivery) -> bool,
    ) -> Result<Resolved, StoreError> {
        let Some((seq, mut delivery)) = self.find_delivery(id)? else { return Ok(Resolved::Unknown) };
        let before = delivery.state_name();
        if !change(&mut delivery) {
            return Ok(Resolved::Unchanged);
        }
        self.replace_delivery(seq, before, &delivery)?;
        Ok(Resolved::Changed)
    }

    fn set_paused(&mut self, number: DestinationNumber, paused: bool) -> Result<Resolved, StoreError> {
        let Some(mut row) = self.ledger.destination(number).cloned() else { return Ok(Resolved::Unknown) };
        if row.paused == paused {
            return Ok(Resolved::Unchanged);
        }
        row.paused = paused;
        self.replace_destination(&row)?;
        Ok(Resolved::Changed)
    }

    fn cancel_redelivery(&mut self, id: &RedeliveryId) -> Result<Resolved, StoreError> {
        let Some(mut redelivery) = self.find_redelivery(id)? else { return Ok(Resolved::Unknown) };
        if redelivery.state != RedeliveryState::Running {
            return Ok(Resolved::Unchanged);
        }
        redelivery.state = RedeliveryState::Cancelled;
        self.save_redelivery(&redelivery)?;
        Ok(Resolved::Changed)
    }
}
