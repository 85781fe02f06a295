//! The files store from outside.

pub(crate) mod backend;
pub(crate) mod cut;
mod folder;
mod journal;
mod power;
mod receipts;
mod refusal;
mod seed;
mod trials;

pub(crate) use folder::child;
pub(crate) use trials::trials;
