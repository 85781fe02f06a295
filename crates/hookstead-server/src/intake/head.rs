//! Whether a request is in order apart from its body, for providers whose record checks the form first.
//!
//! Such a provider's rules are refused in their order, also for a request whose body is too large to be read:
//! 413 only if nothing else is wrong with it, 400 otherwise. The question is put to a verifier of its own,
//! whose secret is random and known to nobody: it can say that everything fits but the signature, and it can
//! never say yes.

use std::io;
use std::sync::Arc;

use hookstead::Source;
use hookstead::verify::{Headers, Order, Provider, Reason, Request, Secret, Verifier};

use crate::dev;

/// Judges heads for one source.
#[derive(Debug)]
pub(crate) struct HeadCheck(Verifier);

impl HeadCheck {
    /// A judge for sources that need one.
    pub(crate) fn of(source: &Source) -> Option<Self> {
        let provider: &Arc<Provider> =
            source.provider().filter(|provider| provider.order() == Order::FormFirst)?;
        let secret = random_secret(provider)?;
        Verifier::new(provider.clone(), &[secret], source.options().verify.clone()).ok().map(Self)
    }

    /// Whether id and time are in order and in time.
    pub(crate) fn holds(&self, method: &str, target: &str, headers: &dyn Headers, now_us: i64) -> bool {
        // A body of one byte: within every record's limits, and covered by a signature that cannot hold.
        let request = Request { method, target, url: None, headers, body: b"." };
        match self.0.verify(&request, now_us) {
            Ok(_) => false,
            Err(rejection) => {
                matches!(
                    rejection.reason,
                    Reason::SignatureDiffers | Reason::SignatureMissing | Reason::SignatureMalformed
                )
            }
        }
    }
}

/// A secret that fits a provider and that nobody has.
fn random_secret(provider: &Provider) -> Option<Secret> {
    let made = dev::make(provider).and_then(|text| Secret::new(text).map_err(io::Error::other));
    made.inspect_err(
        |error| tracing::warn!(error = %error, "bodies over the limit are always answered with 413"),
    )
    .ok()
}
