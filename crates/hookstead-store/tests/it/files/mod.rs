//! The files store from outside.

mod backend;
mod trials;

pub(crate) use trials::trials;
