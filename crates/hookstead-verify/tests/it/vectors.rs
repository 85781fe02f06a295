//! Each vector as a test: verdict, identity, and what is answered.

use hookstead_verify::{HandshakeAnswer, Reason, Rejection, RejectionClass, Verified};
use libtest_mimic::Trial;

use crate::inputs::{self, Expect, Kind, Vector};
use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    let vectors = inputs::all();
    // A lost file must not look like success.
    assert!(vectors.len() >= 370, "only {} vectors found", vectors.len());
    vectors.into_iter().map(|vector| trial(vector.id.clone(), move || check(&vector))).collect()
}

fn check(vector: &Vector) {
    let verifier = vector.verifier();
    let body = vector.body();
    let request = vector.with_body(&body);
    let found = verifier.verify(&request, vector.now_micros());
    match vector.kind {
        Kind::Verify => check_verdict(&vector.expect, found),
        Kind::Handshake => {
            // It has to be signed, so there is no answer before the signature was checked.
            assert_eq!(verifier.handshake(&request), None);
            check_handshake(&vector.expect, found);
        }
        Kind::Ack => {
            let status = match &found {
                Ok(_) => verifier.provider().ack().status().unwrap_or(200),
                Err(rejection) => status_of(rejection),
            };
            assert_eq!(Some(status), vector.expect.response.as_ref().map(|response| response.status));
            check_verdict(&vector.expect, found);
        }
    }
}

fn check_verdict(expect: &Expect, found: Result<Verified<'_>, Rejection>) {
    let verdict = verdict(&found);
    let wanted = expect.verdict.as_deref().expect("a verdict");
    assert!(
        verdict == wanted || expect.also_ok.iter().any(|also| also == verdict),
        "{verdict} instead of {wanted}: {found:?}"
    );
    match found {
        Ok(verified) => check_event(expect, &verified),
        Err(rejection) => check_rejection(expect, &rejection),
    }
}

fn check_event(expect: &Expect, verified: &Verified<'_>) {
    if let Some(index) = expect.secret_index {
        assert_eq!(verified.secret_index(), Some(index));
    }
    let Some(event_id) = &expect.event_id else { return };
    let event = verified.identify().unwrap();
    assert_eq!(event.event_id.as_deref().map(String::from_utf8_lossy), Some(event_id.into()));
    if expect.event_type.is_some() {
        assert_eq!(event.event_type, expect.event_type);
    }
    if expect.account.is_some() {
        assert_eq!(event.account, expect.account);
    }
}

fn check_rejection(expect: &Expect, rejection: &Rejection) {
    let class = match rejection.class {
        RejectionClass::NotVerified => "not-verified",
        RejectionClass::Malformed => "malformed",
    };
    // Where a vector names no class, the sender must learn nothing.
    assert_eq!(class, expect.class.as_deref().unwrap_or("not-verified"), "{rejection}");
    if let Some(reason) = &expect.reason {
        assert_eq!(rejection.reason.code(), reason);
    }
}

fn check_handshake(expect: &Expect, found: Result<Verified<'_>, Rejection>) {
    let wanted = expect.response.as_ref().expect("a response");
    match found {
        Err(rejection) => assert_eq!(status_of(&rejection), wanted.status),
        Ok(verified) => {
            let HandshakeAnswer { status, content_type, body, .. } = verified.handshake().expect("an answer");
            assert_eq!(status, wanted.status);
            assert_eq!(content_type, wanted.content_type);
            assert_eq!(Some(String::from_utf8(body).unwrap()), wanted.body);
        }
    }
}

fn status_of(rejection: &Rejection) -> u16 {
    match rejection.class {
        RejectionClass::NotVerified => 401,
        RejectionClass::Malformed => 400,
    }
}

/// The five words of the vectors.
fn verdict(found: &Result<Verified<'_>, Rejection>) -> &'static str {
    let Err(rejection) = found else { return "valid" };
    match rejection.reason {
        Reason::SignatureDiffers | Reason::CheckDiffers => "bad_signature",
        Reason::TooOld | Reason::TooNew => "stale",
        Reason::SignatureMissing | Reason::PartMissing | Reason::TimestampMissing | Reason::IdMissing => {
            "missing_header"
        }
        _ => "malformed",
    }
}
