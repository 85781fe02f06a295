//! Signature schemes: how a request proves that it comes from someone who knows the secret.
//!
//! A scheme takes keys that were derived once and a request, and says which key proves it. It knows no
//! timestamps, no ids and no HTTP answers.

mod asymmetric;
mod basic;
mod dispatch;
mod ecdsa;
mod ed25519;
mod hash;
mod hmac;
mod jwt;
mod key;
mod locate;
mod rsa;
mod signed;
mod token;

pub(crate) use asymmetric::{Asymmetric, PublicKeyRule};
pub(crate) use basic::{Basic, HEADER as BASIC_HEADER};
pub(crate) use dispatch::{Key, Match, Scheme};
pub(crate) use hash::Hashed;
pub(crate) use hmac::{Hash, Hmac};
pub(crate) use jwt::{Claim, Jwt, Lifetime};
pub(crate) use key::KeyRule;
pub use locate::CANDIDATES_MAX;
pub(crate) use locate::{Compare, Encoding, Locator, Place};
pub(crate) use signed::{Signed, fault as unresolved_fault};
pub(crate) use token::Token;
