//! What the code of a refusal means and what to do about it: one table for the API, the terminal and the documents.
//! Knows codes only, no request; and it is for whoever runs the source, since a sender learns nothing.

/// A code in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The code.
    pub code: &'static str,
    /// What it says of a request.
    pub meaning: &'static str,
    /// What to do; `NAME` stands for the source.
    pub fix: &'static str,
}

impl Explanation {
    /// What to do, for this source.
    pub fn fix_for(&self, source: &str) -> String {
        self.fix.replace("NAME", source)
    }
}

/// The code of a handshake that does not know what the source's configuration says.
pub(crate) const HANDSHAKE_REFUSED: &str = "handshake-refused";

/// Every code with which a source refuses a request.
pub const ALL: &[Explanation] = &[
    row(
        "method",
        "the provider never calls with this method",
        "give the provider this address, and open it in no browser",
    ),
    row(
        "signature-missing",
        "no signature is there",
        "see that this provider is the one that sends, and that no proxy drops headers",
    ),
    row(
        "signature-malformed",
        "the signature has another form than this provider's",
        "see that the source has the right provider: hookstead sources list",
    ),
    row(
        "too-many-signatures",
        "more signatures are there than are looked at",
        "see who sends: no provider does this",
    ),
    row(
        "signature-differs",
        "no secret of this source makes this signature",
        "give the source the provider's secret: hookstead sources secret NAME; if it is the right one, see that no proxy changes bodies",
    ),
    row(
        "check-differs",
        "the signature holds, and a value that it covers does not fit the request",
        "see that `conf` of the source names your own account, and that no proxy changes the request",
    ),
    row(
        "claim-differs",
        "the token holds, and what it claims is not this request or not this source",
        "see that `conf` of the source and public_url are as registered at the provider",
    ),
    row(
        "key-unknown",
        "the provider publishes no such key",
        "see who sends; where the source has `keys` of its own, add the new one",
    ),
    row(
        "key-address",
        "the key's address is not the provider's",
        "see who sends: the provider names its own hosts",
    ),
    row(
        "key-not-at-hand",
        "the provider's key is still being fetched",
        "nothing: the provider comes again; if it goes on, see that this machine reaches the provider",
    ),
    row(
        "part-missing",
        "something that the signature covers is not there",
        "see that no proxy drops headers, and that the source has the right provider",
    ),
    row(
        "part-repeated",
        "something that must be there once is there several times",
        "see that no proxy adds headers a second time",
    ),
    row(
        "url-missing",
        "the signature covers the public address, and none is configured",
        "set public_url in [server] to the address that is registered at the provider",
    ),
    row(
        "timestamp-missing",
        "no signed time is there",
        "see that no proxy drops headers, and that the source has the right provider",
    ),
    row(
        "timestamp-malformed",
        "the signed time cannot be read",
        "see that the source has the right provider: hookstead sources list",
    ),
    row(
        "too-old",
        "it was signed too long ago",
        "set this machine's clock (hookstead doctor tells), or send it anew: a recorded request grows old",
    ),
    row(
        "too-new",
        "it was signed in the future",
        "set this machine's clock: hookstead doctor tells how far it is off",
    ),
    row(
        "id-missing",
        "it is genuine, and no event id is where the provider writes one",
        "set `identity` of the source: \"body\", \"none\" or a template",
    ),
    row(
        "id-malformed",
        "it is genuine, and its event id is not of the provider's form",
        "see that the source has the right provider: hookstead sources list",
    ),
    row(
        "body-length",
        "the body is empty, or longer than the provider sends",
        "see that no proxy drops or changes bodies",
    ),
    row(
        "host-not-allowed",
        "it names a host that is not served here",
        "add that name to intake_hosts in [server], or have the proxy pass another Host",
    ),
    row(
        "malformed",
        "it is no request in order, or its body broke off",
        "see what the proxy or the tunnel before the intake does",
    ),
    row(
        "timeout",
        "the body did not arrive in time",
        "see that the line or the proxy before the intake is not slow",
    ),
    row("too-large", "the body is longer than the source takes", "raise `body` of the source"),
    row("rate", "the source takes no more for now", "raise `rate` of the source; the provider comes again"),
    row(
        "busy",
        "too much is in flight",
        "nothing: the provider comes again; if it goes on, raise body_memory in [limits]",
    ),
    row(
        "not-durable",
        "nothing can be stored at the moment",
        "see hookstead doctor; the provider comes again",
    ),
    row("stopping", "the server is stopping", "start it again; the provider comes again"),
    row(
        "overloaded",
        "the store takes no more for now",
        "nothing: the provider comes again; if it goes on, the disk is too slow",
    ),
    row(
        "store-late",
        "the store did not commit in time",
        "see that the disk is not slow: hookstead doctor; the provider comes again",
    ),
    row(
        "store-recovering",
        "the store could not commit, and has not yet proved that it can",
        "see that there is room on the disk: hookstead doctor",
    ),
    row(
        "store-poisoned",
        "the disk can no longer be trusted",
        "see the server's log, and start it again once the disk is in order",
    ),
    row(
        "record-damaged",
        "the stored event with this id is damaged",
        "find everything that is damaged: hookstead store check",
    ),
    row("store-failed", "the store failed", "see the server's log"),
    row("closing", "the server is stopping", "start it again; the provider comes again"),
    row(
        "target-too-long",
        "its address is longer than is taken",
        "register a shorter address at the provider: what follows the `?` counts as well",
    ),
    row(
        "conflict",
        "its event id is taken by other bytes, which stay; these are kept beside them",
        "compare the two: GET /v1/conflicts of the admin listener; see that each event has an id of its own",
    ),
    row(
        "body-reused",
        "its body came before under another event id, and the source refuses that",
        "see who sends: somebody may repeat what was sent once; without body_reuse = \"refuse\" it is stored and marked",
    ),
    row(
        HANDSHAKE_REFUSED,
        "it asks whether this address is yours, and does not know what the source's configuration says",
        "enter at the provider what `conf` of the source says",
    ),
    row(
        "not-verified",
        "it hands over a secret that is not taken: the source has one, or this cannot be one",
        "see who asks: the server's log says why, and only the first secret is taken",
    ),
];

/// A code in words. One that is not known, as that of a newer server, is said to be so.
pub fn explain(code: &str) -> Explanation {
    let unknown = row("unknown", "nothing is known of this code", "see the server's log");
    ALL.iter().find(|known| known.code == code).copied().unwrap_or(unknown)
}

/// Whether it is known what a code means.
pub(crate) fn is_explained(code: &str) -> bool {
    ALL.iter().any(|known| known.code == code)
}

const fn row(code: &'static str, meaning: &'static str, fix: &'static str) -> Explanation {
    Explanation { code, meaning, fix }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use hookstead::Unavailable;
    use hookstead::verify::Reason;

    use super::*;
    use crate::problem::Problem;

    /// Whether a source refuses with it. A new problem has to be told apart here, or it does not compile.
    fn is_noted(problem: Problem) -> bool {
        match problem {
            Problem::Malformed
            | Problem::NotVerified
            | Problem::Method
            | Problem::Timeout
            | Problem::Conflict
            | Problem::BodyReused
            | Problem::TooLarge
            | Problem::TargetTooLong
            | Problem::HostNotAllowed
            | Problem::Rate
            | Problem::Busy
            | Problem::NotDurable
            | Problem::Stopping => true,
            // Each is told more exactly: why there is no id.
            Problem::EventId => false,
            // There is no source that could tell.
            Problem::UnknownSource | Problem::NotFound => false,
            // Only the API answers with these.
            Problem::Query
            | Problem::RunName
            | Problem::Unauthorized
            | Problem::Forbidden
            | Problem::Ambiguous
            | Problem::SourceNotConfigured
            | Problem::UnknownDestination
            | Problem::UnknownLease
            | Problem::UnknownDelivery
            | Problem::UnknownRedelivery
            | Problem::LeaseLost
            | Problem::LeaseSettled
            | Problem::NotPull
            | Problem::DeliveryState
            | Problem::RedeliveryEnded
            | Problem::Config
            | Problem::Erased
            | Problem::Unreadable
            | Problem::ReceiptDamaged
            | Problem::Damaged => false,
        }
    }

    #[test]
    fn every_code_with_which_a_source_refuses_is_explained_once() {
        let text = || Arc::from("why");
        let unavailable = [
            Unavailable::Overloaded,
            Unavailable::Late,
            Unavailable::Recovering(text()),
            Unavailable::Poisoned(text()),
            Unavailable::Damaged(text()),
            Unavailable::Failed(text()),
            Unavailable::Closing,
        ];
        let problems = Problem::ALL.iter().filter(|problem| is_noted(**problem));
        let codes = Reason::ALL.iter().map(|reason| reason.code());
        let codes = codes.chain(unavailable.iter().map(Unavailable::code)).chain([HANDSHAKE_REFUSED]);
        let codes: BTreeSet<&str> = codes.chain(problems.map(|problem| problem.code())).collect();
        let explained: Vec<&str> = ALL.iter().map(|known| known.code).collect();
        assert_eq!(explained.iter().copied().collect::<BTreeSet<_>>(), codes);
        assert_eq!(explained.len(), codes.len(), "one twice");
    }

    #[test]
    fn a_fix_names_the_source_and_a_code_of_tomorrow_is_no_secret() {
        assert!(explain("signature-differs").fix_for("shop").contains("sources secret shop"));
        assert_eq!(explain("of-tomorrow").code, "unknown");
    }
}
