//! The sinks against targets that behave as badly as targets do.

mod exec;
mod outgoing;

#[cfg(feature = "push")]
mod forbidden;
#[cfg(feature = "push")]
mod network;
#[cfg(feature = "push")]
mod outcomes;
#[cfg(feature = "push")]
mod published;
#[cfg(feature = "push")]
mod requests;
#[cfg(feature = "push")]
mod target;
#[cfg(feature = "push")]
mod tls;
