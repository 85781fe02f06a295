//! Effects: what a consumer has committed together with `done`. To everybody but the store that runs it an effect is
//! closed: this module knows no database, and a store that knows none refuses it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::attempt::Attempt;
use crate::error::StoreError;

/// What goes into the same commit as the settle that carries it: for example statements in the store's own database.
///
/// It is made for one kind of store, which alone can look into it. It may be run more than once before one of its runs
/// is committed, since a batch that failed is run again; whatever it changes outside of the store's transaction is
/// changed each time.
#[derive(Clone)]
pub struct Effect {
    store: &'static str,
    what: Arc<dyn Any + Send + Sync>,
}

impl Effect {
    /// An effect for stores of this kind (see [`crate::StoreFacts::kind`]), which know what a `T` is.
    pub fn new<T: Any + Send + Sync>(store: &'static str, what: T) -> Self {
        Self { store, what: Arc::new(what) }
    }

    /// The kind of store that can run it.
    pub fn store(&self) -> &'static str {
        self.store
    }

    /// What it is, for the store that it was made for; `None` to every other.
    pub fn made_for<T: Any>(&self, store: &str) -> Option<&T> {
        if self.store == store { self.what.downcast_ref() } else { None }
    }

    /// Why a store of another kind does not run it: it fails the batch before anything is written.
    pub fn refused_by(&self, store: &str) -> StoreError {
        let reason = format!("an effect for `{}:` stores cannot be run by a `{store}:` store", self.store);
        StoreError::backend("run an effect", reason)
    }
}

impl fmt::Debug for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Effect({})", self.store)
    }
}

/// Equal are only an effect and its clones: nobody can compare what they do.
impl PartialEq for Effect {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.what, &other.what)
    }
}

impl Eq for Effect {}

/// Why an effect was undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectFailure {
    /// By name: `effect-error`, `effect-panic`, `effect-timeout`, `effect-refused`, `effect-rollback`.
    pub rule: &'static str,
    /// What went wrong, for people.
    pub error: String,
}

impl EffectFailure {
    /// The attempt as it is recorded: it succeeded up to its effect.
    #[must_use]
    pub fn recorded_in(&self, attempt: &Attempt) -> Attempt {
        Attempt { error: Some(self.error.clone()), rule: Some(self.rule.to_owned()), ..attempt.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_store_that_it_was_made_for_can_look_into_it() {
        let effect = Effect::new("sqlite", 7_u8);
        assert_eq!(effect.made_for::<u8>("sqlite"), Some(&7));
        assert_eq!(effect.made_for::<u8>("files"), None);
        assert_eq!(effect.made_for::<u16>("sqlite"), None);
        assert_eq!((effect.clone(), Effect::new("sqlite", 7_u8) == effect), (effect, false));
    }
}
