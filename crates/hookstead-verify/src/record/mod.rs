//! Provider records: the TOML that describes a provider, and its translation into a
//! [`Provider`](crate::Provider).

mod compile;
mod error;
pub(crate) mod raw;

pub(crate) use compile::compile;
pub use error::ProviderError;
