//! Is this webhook request from its provider, and which event is it?
//!
//! The two first steps of a request's way through hookstead: [`Verifier::verify`] checks the signature over the
//! raw bytes, [`Verified::identify`] reads the event's id. Providers are data: one TOML record each
//! ([`Registry::builtin`]), or a few keys of a source's own ([`SchemeSpec`]). The crate does no I/O, starts no
//! thread and reads no clock; `now` is always given.
//!
//! What holds:
//!
//! - Only [`Verifier::verify`] makes a [`Verified`], and only a `Verified` gives an id.
//! - It fails closed: a source without a usable secret, identity or scheme is an error when it is set up.
//! - Signatures are decoded, then compared in constant time, every candidate with every secret.
//! - JSON is read after the signature holds, by pointer, with its digits as they are.
//! - A refusal is a precise [`Reason`] for the operator and a coarse [`RejectionClass`] for the sender.
//!
//! ```
//! use hookstead_verify::{
//!     Reason, Registry, Secret, SignRequest, Verifier, VerifyOptions,
//! };
//!
//! let stripe = Registry::builtin().get("stripe").expect("stripe is built in");
//! let secret = Secret::new("whsec_0123456789abcdef0123456789abcdef")?;
//! let now = 1_760_000_000_000_000; // microseconds
//!
//! // Sign as the provider would ...
//! let sample = stripe.sample(Some("invoice.paid")).expect("a sample of that name");
//! let body = sample.render("evt_1", now);
//! let signed = stripe.sign(&SignRequest {
//!     method: "POST",
//!     url: "http://127.0.0.1:4665/in/stripe",
//!     body: &body,
//!     content_type: &sample.content_type,
//!     event_id: "evt_1",
//!     event_type: Some(&sample.event),
//!     secret: Some(&secret),
//!     now_unix_micros: now,
//! })?;
//!
//! // ... and verify what arrives.
//! let verifier = Verifier::new(stripe.clone(), &[secret], VerifyOptions::default())?;
//! let request = signed.as_request();
//! let verified = verifier.verify(&request, now)?;
//! assert_eq!(verified.secret_index(), Some(0));
//! let event = verified.identify()?;
//! assert_eq!(event.event_id.as_deref(), Some(b"evt_1".as_slice()));
//! assert_eq!(event.event_type.as_deref(), Some("invoice.paid"));
//!
//! // Ten minutes later the same request is too old.
//! let refused = verifier.verify(&request, now + 600_000_000).unwrap_err();
//! assert_eq!(refused.reason, Reason::TooOld);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod comparison;
mod facts;
mod freshness;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod handshake;
mod identity;
mod keys;
mod provider;
mod record;
mod registry;
mod request;
mod scheme;
mod secret;
mod separator;
mod sign;
mod spec;
mod template;
pub mod vector;
mod verdict;
mod verifier;
mod when;
mod wire;

pub use comparison::{ComparisonDigest, Volatile};
pub use facts::{KeyFacts, SchemeFacts, TimeFacts};
pub use handshake::HandshakeAnswer;
pub use identity::{EVENT_ID_BYTES_MAX, Identified, IdentifyError, IdentityRule};
pub use keys::{
    KEY_DOCUMENT_BYTES_MAX, KeyAnswer, KeyDocumentError, KeyFormat, KeyPlace, KeySource, KeyWanted,
    PublishedKeys,
};
pub use provider::{Ack, ChosenBy, Confidence, Order, Processor, Provider, Retry, Sample, SecretFacts};
pub use record::ProviderError;
pub use registry::Registry;
pub use request::{Headers, Request};
pub use scheme::CANDIDATES_MAX;
pub use secret::{SECRET_BYTES_MAX, SECRET_BYTES_MIN, Secret, SecretCoding, SecretError};
pub use sign::{SignError, SignRequest, SignedRequest};
pub use spec::{SchemeSpec, SpecError};
pub use template::{Template, TemplateError};
pub use verdict::{Reason, Rejection, RejectionClass};
pub use verifier::{SECRETS_MAX, TOLERANCE_S_MAX, Verified, Verifier, VerifierError, VerifyOptions};
pub use wire::form::query_without;
pub use wire::json::{Pointer as JsonPointer, Scalar as JsonScalar};
