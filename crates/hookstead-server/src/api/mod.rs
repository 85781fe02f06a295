//! The admin API: what the store holds, as JSON, behind a token.

pub mod view;
