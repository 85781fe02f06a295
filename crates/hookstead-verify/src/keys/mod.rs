//! Public keys: how they are read, where a provider publishes them, and which address is trusted for them.
//!
//! Nothing here fetches. A verifier asks a [`KeySource`], which answers at once from what it has; what it has
//! not it gets outside the request path.

mod der;
mod finder;
mod pin;
mod public;
mod published;
mod source;

pub(crate) use der::pem;
pub(crate) use finder::KeyFinder;
pub(crate) use pin::{Pin, Query};
pub(crate) use public::PublicKey;
pub use published::{KEY_DOCUMENT_BYTES_MAX, KeyDocumentError, PublishedKeys};
pub use source::{KeyAnswer, KeyFormat, KeyPlace, KeySource, KeyWanted};
