//! Extend: another end for a lease.

use hookstead_core::{Extend, Extension, StoreError};

use super::batch::Batch;

impl Batch<'_> {
    pub(super) fn extend(&mut self, extend: &Extend) -> Result<Extension, StoreError> {
        let Some((seq, mut delivery)) = self.find_delivery(&extend.delivery)? else {
            return Ok(Extension::Unknown);
        };
        let before = delivery.state_name();
        let extension = delivery.extend(extend.token, extend.lease_for, self.now);
        if matches!(extension, Extension::Extended { .. }) {
            self.replace_delivery(seq, before, &delivery)?;
        }
        Ok(extension)
    }
}
