//! Readers for what stands on the wire: forms, JSON documents, times. Pure, bounded, never panicking.

pub(crate) mod form;
pub(crate) mod json;
pub(crate) mod multipart;
pub(crate) mod time;
