//! Refusals over HTTP: `application/problem+json` with a stable code, all of them in one enum.
//!
//! A problem of the intake tells the sender its class and nothing else: why a signature was refused is for
//! the operator. Texts are fixed; only the API adds a `detail`.

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use serde::{Deserialize, Serialize};

/// What a refusal says of the one case beside its code and title.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Where an event was looked for in vain, where that is more than one look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searched: Option<String>,
    /// The events that have an [`Problem::Ambiguous`] name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
}

/// One of several events of one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Its short id, which no other event has.
    pub short_id: String,
    /// Its scope, with whatever is no text in it replaced.
    pub scope: String,
    /// When it was received.
    pub received_at: String,
}

/// Why a request was refused. Codes never change their meaning; new ones may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Problem {
    /// 400 `malformed`: HTTP framing, headers, or the event id are not in order.
    Malformed,
    /// 400 `event-id`: the request is genuine, and its event has no usable id.
    EventId,
    /// 400 `query`: a parameter of an API request cannot be read.
    Query,
    /// 400 `run-name`: this cannot be the name of a run.
    RunName,
    /// 401 `not-verified`: nothing proves that the request comes from the provider. One answer for every reason.
    NotVerified,
    /// 401 `unauthorized`: the admin API wants a token.
    Unauthorized,
    /// 403 `forbidden`: the token's role does not allow this.
    Forbidden,
    /// 404 `unknown-source`: no source of this name.
    UnknownSource,
    /// 404 `not-found`: no such address, or no such event.
    NotFound,
    /// 405 `method`: see the `Allow` header.
    Method,
    /// 408 `timeout`: the body did not arrive in time.
    Timeout,
    /// 409 `conflict`: this event id is taken by other bytes, which are kept untouched.
    Conflict,
    /// 409 `body-reused`: this body came before under another event id, and the source refuses that.
    BodyReused,
    /// 409 `ambiguous`: several events have this name; `choices` lists them.
    Ambiguous,
    /// 409 `source-not-configured`: the event's source stands in no configuration, so nobody knows how to read it.
    SourceNotConfigured,
    /// 404 `unknown-destination`: no destination of this name is configured.
    UnknownDestination,
    /// 404 `unknown-lease`: this is no lease of this store.
    UnknownLease,
    /// 404 `unknown-delivery`: the event is not owed to this destination.
    UnknownDelivery,
    /// 404 `unknown-redelivery`: no redelivery has this id.
    UnknownRedelivery,
    /// 409 `lease-lost`: the lease expired, and the delivery is another's or waits again. Nothing changed.
    LeaseLost,
    /// 409 `lease-settled`: the lease was settled before, in another way. Nothing changed.
    LeaseSettled,
    /// 409 `not-pull`: the server itself works this destination's deliveries.
    NotPull,
    /// 409 `delivery-state`: in its state this cannot be done with the delivery. Nothing changed.
    DeliveryState,
    /// 409 `redelivery-ended`: only a running redelivery can be cancelled.
    RedeliveryEnded,
    /// 422 `config`: the configuration has mistakes, which `detail` tells. The one before stays in force.
    Config,
    /// 410 `erased`: retention erased the body; identity and digest remain.
    Erased,
    /// 413 `too-large`: the body is over the source's limit.
    TooLarge,
    /// 414 `target-too-long`: the request target is over its limit.
    TargetTooLong,
    /// 421 `host-not-allowed`: this listener does not answer to this `Host`.
    HostNotAllowed,
    /// 422 `unreadable`: the processor of the event's source cannot read its body.
    Unreadable,
    /// 500 `receipt-damaged`: the receipt of this run does not fit its event. It is neither served nor replaced.
    ReceiptDamaged,
    /// 500 `damaged`: the stored record does not fit its digest, so it is not served.
    Damaged,
    /// 429 `rate`: the source takes no more requests for now, by its `rate`. Nothing was stored; try again.
    Rate,
    /// 503 `busy`: too much in flight. Nothing was stored; try again.
    Busy,
    /// 503 `not-durable`: nothing can be stored durably now, or not in time for an answer. Try again.
    NotDurable,
    /// 503 `stopping`: the server is stopping. Nothing was stored; try again.
    Stopping,
}

impl Problem {
    /// Every problem, for documents and tests.
    pub const ALL: &[Self] = &[
        Self::Malformed,
        Self::EventId,
        Self::Query,
        Self::RunName,
        Self::NotVerified,
        Self::Unauthorized,
        Self::Forbidden,
        Self::UnknownSource,
        Self::NotFound,
        Self::Method,
        Self::Timeout,
        Self::Conflict,
        Self::BodyReused,
        Self::Ambiguous,
        Self::SourceNotConfigured,
        Self::UnknownDestination,
        Self::UnknownLease,
        Self::UnknownDelivery,
        Self::UnknownRedelivery,
        Self::LeaseLost,
        Self::LeaseSettled,
        Self::NotPull,
        Self::DeliveryState,
        Self::RedeliveryEnded,
        Self::Config,
        Self::Erased,
        Self::TooLarge,
        Self::TargetTooLong,
        Self::HostNotAllowed,
        Self::Unreadable,
        Self::ReceiptDamaged,
        Self::Damaged,
        Self::Rate,
        Self::Busy,
        Self::NotDurable,
        Self::Stopping,
    ];

    /// The status, the stable code, and the title for people.
    fn facts(self) -> (StatusCode, &'static str, &'static str) {
        use StatusCode as Status;
        match self {
            Self::Malformed => (Status::BAD_REQUEST, "malformed", "the request is malformed"),
            Self::EventId => (Status::BAD_REQUEST, "event-id", "the event has no usable id"),
            Self::Query => (Status::BAD_REQUEST, "query", "a parameter cannot be read"),
            Self::RunName => (Status::BAD_REQUEST, "run-name", "this is no name of a run"),
            Self::NotVerified => (Status::UNAUTHORIZED, "not-verified", "the request is not verified"),
            Self::Unauthorized => (Status::UNAUTHORIZED, "unauthorized", "a token is required"),
            Self::Forbidden => (Status::FORBIDDEN, "forbidden", "the token does not allow this"),
            Self::UnknownSource => (Status::NOT_FOUND, "unknown-source", "there is no such source"),
            Self::NotFound => (Status::NOT_FOUND, "not-found", "there is nothing here"),
            Self::Method => (Status::METHOD_NOT_ALLOWED, "method", "the method is not allowed"),
            Self::Timeout => (Status::REQUEST_TIMEOUT, "timeout", "the request took too long"),
            Self::Conflict => (Status::CONFLICT, "conflict", "the event id is taken by other bytes"),
            Self::BodyReused => {
                (Status::CONFLICT, "body-reused", "the body came before under another event id")
            }
            Self::Ambiguous => (Status::CONFLICT, "ambiguous", "several events have this name"),
            Self::SourceNotConfigured => {
                (Status::CONFLICT, "source-not-configured", "the source stands in no configuration")
            }
            Self::UnknownDestination => {
                (Status::NOT_FOUND, "unknown-destination", "there is no such destination")
            }
            Self::UnknownLease => (Status::NOT_FOUND, "unknown-lease", "there is no such lease"),
            Self::UnknownDelivery => (Status::NOT_FOUND, "unknown-delivery", "there is no such delivery"),
            Self::UnknownRedelivery => {
                (Status::NOT_FOUND, "unknown-redelivery", "there is no such redelivery")
            }
            Self::LeaseLost => (Status::CONFLICT, "lease-lost", "the lease was lost"),
            Self::LeaseSettled => (Status::CONFLICT, "lease-settled", "the lease was settled otherwise"),
            Self::NotPull => (Status::CONFLICT, "not-pull", "the destination is not claimed from"),
            Self::DeliveryState => (Status::CONFLICT, "delivery-state", "the delivery is in another state"),
            Self::RedeliveryEnded => (Status::CONFLICT, "redelivery-ended", "the redelivery has ended"),
            Self::Config => (Status::UNPROCESSABLE_ENTITY, "config", "the configuration is wrong"),
            Self::Erased => (Status::GONE, "erased", "the body was erased"),
            Self::TooLarge => (Status::PAYLOAD_TOO_LARGE, "too-large", "the body is too large"),
            Self::TargetTooLong => (Status::URI_TOO_LONG, "target-too-long", "the address is too long"),
            Self::HostNotAllowed => {
                (Status::MISDIRECTED_REQUEST, "host-not-allowed", "this host name is not served here")
            }
            Self::Unreadable => {
                (Status::UNPROCESSABLE_ENTITY, "unreadable", "the processor cannot read the event")
            }
            Self::ReceiptDamaged => {
                (Status::INTERNAL_SERVER_ERROR, "receipt-damaged", "the receipt of this run is damaged")
            }
            Self::Damaged => (Status::INTERNAL_SERVER_ERROR, "damaged", "the stored record is damaged"),
            Self::Rate => (Status::TOO_MANY_REQUESTS, "rate", "the source takes no more for now"),
            Self::Busy => (Status::SERVICE_UNAVAILABLE, "busy", "too much is in flight"),
            Self::NotDurable => {
                (Status::SERVICE_UNAVAILABLE, "not-durable", "nothing can be stored durably now")
            }
            Self::Stopping => (Status::SERVICE_UNAVAILABLE, "stopping", "the server is stopping"),
        }
    }

    /// The status of the answer.
    pub fn status(self) -> StatusCode {
        self.facts().0
    }

    /// The stable code.
    pub fn code(self) -> &'static str {
        self.facts().1
    }

    /// After how many seconds the sender may try again; only for what passes by itself.
    ///
    /// Short where a moment helps, longer where a disk or a person has to.
    pub fn retry_after_s(self) -> Option<u32> {
        match self {
            Self::Busy | Self::Rate => Some(1),
            Self::Stopping => Some(5),
            Self::NotDurable => Some(15),
            _ => None,
        }
    }

    /// The answer without a detail: the same bytes each time.
    pub fn response(self) -> Response<Bytes> {
        self.response_with(&Case::default())
    }

    /// The answer with words about this one case. Never for the intake.
    pub fn response_with(self, case: &Case) -> Response<Bytes> {
        let (status, code, title) = self.facts();
        let document = Document {
            kind: format!("urn:hookstead:problem:{code}"),
            title,
            status: status.as_u16(),
            code,
            case,
        };
        // A struct of texts and a number always serialises; an empty body would still be a right refusal.
        let body = serde_json::to_vec(&document).unwrap_or_default();
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if let Some(seconds) = self.retry_after_s() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(challenge) = self.challenge() {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        response
    }

    /// The challenge that RFC 9110 (15.5.2) wants with each 401. The intake's names no scheme of a provider:
    /// it must be the same for every source and reason, and a browser must not ask for a password.
    fn challenge(self) -> Option<&'static str> {
        match self {
            Self::NotVerified => Some("Signature"),
            Self::Unauthorized => Some("Bearer realm=\"hookstead\""),
            _ => None,
        }
    }
}

/// RFC 9457.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "type")]
    kind: String,
    title: &'a str,
    status: u16,
    code: &'a str,
    #[serde(flatten)]
    case: &'a Case,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_documents_are_complete() {
        let mut codes = std::collections::BTreeSet::new();
        for problem in Problem::ALL {
            assert!(codes.insert(problem.code()), "{} twice", problem.code());
            let response = problem.response();
            let document: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
            assert_eq!(document["code"], problem.code());
            assert_eq!(document["status"], response.status().as_u16());
            assert_eq!(document["type"], format!("urn:hookstead:problem:{}", problem.code()));
            assert!(document.get("detail").is_none());
            assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        }
    }

    #[test]
    fn what_passes_by_itself_says_when_to_try_again() {
        for problem in Problem::ALL {
            let passes =
                matches!(problem.status(), StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS);
            assert_eq!(problem.response().headers().contains_key("retry-after"), passes, "{problem:?}");
        }
    }

    #[test]
    fn a_refusal_with_401_names_a_challenge() {
        assert_eq!(Problem::NotVerified.response().headers()["www-authenticate"], "Signature");
        assert!(Problem::Unauthorized.response().headers().contains_key("www-authenticate"));
    }
}
