//! What the suite asks of a backend under test: empty stores, and that they can be closed and opened again.

use std::sync::Arc;

use crate::store::Store;

/// A backend under test.
pub trait Backend: Send + Sync {
    /// Its name, for reports.
    fn name(&self) -> &str;

    /// A new, empty store that no other case sees. Panics if there can be none.
    fn open(&self) -> Box<dyn Instance>;
}

/// One store of a [`Backend`], with whatever must live as long as the store does (a folder, a lock).
pub trait Instance: Send {
    /// The store, as it is open now. The suite keeps no such handle over a [`Instance::reopen`].
    fn store(&self) -> Arc<dyn Store>;

    /// Closes the store and opens it again on the same data. A store that is not persistent does nothing.
    fn reopen(&mut self);
}
