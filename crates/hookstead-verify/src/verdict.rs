//! The words for a refusal: a precise reason for the operator, and a class that is all the sender may learn.

use std::fmt;

/// Why a request was refused. For logs, quarantine and `explain`; never for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// A method with which this provider never calls.
    Method,
    /// No signature is there.
    SignatureMissing,
    /// The signature has another shape than the provider's.
    SignatureMalformed,
    /// More candidate signatures than [`CANDIDATES_MAX`](crate::CANDIDATES_MAX).
    TooManySignatures,
    /// No secret makes this signature over these bytes.
    SignatureDiffers,
    /// The signature holds, but a value that it covers does not fit another part of the request, or holds the
    /// separator of what is signed.
    CheckDiffers,
    /// The token holds, but one of its claims is not there or is not what it must be.
    ClaimDiffers,
    /// There is no published key as the request names it.
    KeyUnknown,
    /// The request names an address for the key that is not the provider's.
    KeyAddress,
    /// The published key is not at hand yet: it is fetched outside the request.
    KeyNotAtHand,
    /// Something that the signature must cover is not there.
    PartMissing,
    /// Something that must be there once is there several times.
    PartRepeated,
    /// The scheme signs the public address, and none is configured.
    UrlMissing,
    /// No time is there where the provider writes one.
    TimestampMissing,
    /// A time that cannot be read.
    TimestampMalformed,
    /// Signed too long ago.
    TooOld,
    /// Signed in the future.
    TooNew,
    /// No event id; a refusal here only for providers that check the form first.
    IdMissing,
    /// An event id outside the provider's grammar.
    IdMalformed,
    /// An empty body, or one over the provider's limit.
    BodyLength,
}

impl Reason {
    /// A stable name for storage, metrics and `explain CODE`.
    pub fn code(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::SignatureMissing => "signature-missing",
            Self::SignatureMalformed => "signature-malformed",
            Self::TooManySignatures => "too-many-signatures",
            Self::SignatureDiffers => "signature-differs",
            Self::CheckDiffers => "check-differs",
            Self::ClaimDiffers => "claim-differs",
            Self::KeyUnknown => "key-unknown",
            Self::KeyAddress => "key-address",
            Self::KeyNotAtHand => "key-not-at-hand",
            Self::PartMissing => "part-missing",
            Self::PartRepeated => "part-repeated",
            Self::UrlMissing => "url-missing",
            Self::TimestampMissing => "timestamp-missing",
            Self::TimestampMalformed => "timestamp-malformed",
            Self::TooOld => "too-old",
            Self::TooNew => "too-new",
            Self::IdMissing => "id-missing",
            Self::IdMalformed => "id-malformed",
            Self::BodyLength => "body-length",
        }
    }

    /// The reason with this [`code`](Self::code).
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.iter().find(|reason| reason.code() == code).copied()
    }

    /// Whether the request is to blame for its form, for a provider that checks the form before the signature.
    pub fn is_form(self) -> bool {
        matches!(
            self,
            Self::Method
                | Self::IdMissing
                | Self::IdMalformed
                | Self::TimestampMissing
                | Self::TimestampMalformed
                | Self::BodyLength
                | Self::PartRepeated
        )
    }

    /// Every reason.
    pub const ALL: &[Self] = &[
        Self::Method,
        Self::SignatureMissing,
        Self::SignatureMalformed,
        Self::TooManySignatures,
        Self::SignatureDiffers,
        Self::CheckDiffers,
        Self::ClaimDiffers,
        Self::KeyUnknown,
        Self::KeyAddress,
        Self::KeyNotAtHand,
        Self::PartMissing,
        Self::PartRepeated,
        Self::UrlMissing,
        Self::TimestampMissing,
        Self::TimestampMalformed,
        Self::TooOld,
        Self::TooNew,
        Self::IdMissing,
        Self::IdMalformed,
        Self::BodyLength,
    ];
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.code())
    }
}

/// What the sender may learn of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RejectionClass {
    /// Not proved to come from the provider: 401, always with the same words.
    NotVerified,
    /// Not of the provider's form: 400. Apart from a wrong method, only providers whose record checks the form
    /// before the signature give it.
    Malformed,
    /// It cannot be said yet, since a key that the provider publishes is not at hand: 503, and the sender comes
    /// again.
    Unavailable,
}

/// A refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// Why, for the operator.
    pub reason: Reason,
    /// What the sender may learn.
    pub class: RejectionClass,
    /// Which part is meant, for the operator: a variable such as `header.x-sig`, or empty.
    pub part: String,
    /// How far the signed time is from the receiver's, in microseconds; positive is old. Only with
    /// [`Reason::TooOld`] and [`Reason::TooNew`].
    pub age_micros: Option<i64>,
}

impl fmt::Display for Rejection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.reason.code())?;
        if self.part.is_empty() { Ok(()) } else { write!(formatter, " ({})", self.part) }
    }
}

impl std::error::Error for Rejection {}

/// A refusal on its way out: the verifier adds the class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) reason: Reason,
    pub(crate) part: String,
    pub(crate) age_micros: Option<i64>,
}

impl Fault {
    pub(crate) fn new(reason: Reason, part: impl Into<String>) -> Self {
        Self { reason, part: part.into(), age_micros: None }
    }
}

impl From<Reason> for Fault {
    fn from(reason: Reason) -> Self {
        Self::new(reason, "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_name_their_reason() {
        for reason in Reason::ALL {
            assert_eq!(Reason::from_code(reason.code()), Some(*reason));
        }
        assert_eq!(Reason::from_code("other"), None);
    }
}
