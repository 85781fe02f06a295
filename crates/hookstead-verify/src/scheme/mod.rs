//! Signature schemes: how a request proves that it comes from someone who knows the secret.
//!
//! A scheme takes keys that were derived once and a request, and says which key proves it. It knows no
//! timestamps, no ids and no HTTP answers.

mod basic;
mod dispatch;
mod hmac;
mod key;
mod locate;
mod token;

pub(crate) use basic::{Basic, HEADER as BASIC_HEADER};
pub(crate) use dispatch::{Key, Match, Proof, Scheme};
pub(crate) use hmac::{Hash, Hmac, fault as unresolved_fault};
pub(crate) use key::KeyRule;
pub use locate::CANDIDATES_MAX;
pub(crate) use locate::{Compare, Encoding, Locator};
pub(crate) use token::Token;
