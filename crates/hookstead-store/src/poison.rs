//! Sticky fail-stop: a store that saw its disk fail acknowledges nothing again. What counts as such a failure is
//! each store's own to know; that it stays is the same for all.

use std::sync::OnceLock;

use hookstead_core::StoreError;

/// Whether the store is poisoned, and by what. Once set it stays.
#[derive(Debug, Default)]
pub(crate) struct Poison(OnceLock<String>);

impl Poison {
    /// An error if the store is poisoned.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match self.0.get() {
            None => Ok(()),
            Some(reason) => Err(StoreError::Poisoned { reason: reason.clone() }),
        }
    }

    /// Poisons the store if the error says so; the first reason is kept.
    pub(crate) fn note(&self, error: &StoreError) {
        if let StoreError::Poisoned { reason } = error
            && self.0.set(reason.clone()).is_ok()
        {
            tracing::error!(reason, "the store is poisoned: nothing more is written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_stays() {
        let poison = Poison::default();
        poison.note(&StoreError::Full { what: "disk".into() });
        assert!(poison.check().is_ok());
        poison.note(&StoreError::Poisoned { reason: "first".into() });
        poison.note(&StoreError::Poisoned { reason: "second".into() });
        let Err(StoreError::Poisoned { reason }) = poison.check() else { panic!("not poisoned") };
        assert_eq!(reason, "first");
    }
}
