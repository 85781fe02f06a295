//! No bit of a signature, and no bit of what it covers, can be turned over unnoticed.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hookstead_verify::Verifier;
use libtest_mimic::Trial;

use crate::inputs::{self, Vector};
use crate::trial;

/// A valid vector, the header of its signature, what stands before the signature, and how it is written.
const SIGNED: &[(&str, &str, &str, Coding)] = &[
    ("signed-inbox/published", "X-Signature", "v1=", Coding::Hex),
    ("standardwebhooks/valid-basic", "webhook-signature", "v1,", Coding::Base64),
    ("svix/valid-basic", "svix-signature", "v1,", Coding::Base64),
    ("svix/valid-basic-v2", "webhook-signature", "v1,", Coding::Base64),
    ("stripe/valid-basic", "Stripe-Signature", "t=1760000000,v1=", Coding::Hex),
    ("github/valid-basic", "X-Hub-Signature-256", "sha256=", Coding::Hex),
    ("gitlab/valid-basic", "webhook-signature", "v1,", Coding::Base64),
    ("gitlab/valid-basic-v2", "X-Gitlab-Token", "", Coding::Text),
    ("slack/valid-basic", "X-Slack-Signature", "v0=", Coding::Hex),
    ("shopify/valid-basic", "X-Shopify-Hmac-Sha256", "", Coding::Base64),
    ("linear/valid-basic", "Linear-Signature", "", Coding::Hex),
    ("twilio/valid-basic", "X-Twilio-Signature", "", Coding::Base64),
    ("twilio/valid-json-bodySHA256", "X-Twilio-Signature", "", Coding::Base64),
    ("discord/valid-basic", "X-Signature-Ed25519", "", Coding::Hex),
    ("telnyx/valid-basic", "telnyx-signature-ed25519", "", Coding::Base64),
    ("circle/valid-basic", "X-Circle-Signature", "", Coding::Base64),
    ("kick/valid-basic", "Kick-Event-Signature", "", Coding::Base64),
    ("fireblocks/valid-basic", "Fireblocks-Signature", "", Coding::Base64),
    ("paypal/valid-basic", "PAYPAL-TRANSMISSION-SIG", "", Coding::Base64),
    ("recharge/valid-basic", "X-Recharge-Hmac-Sha256", "", Coding::Hex),
    ("square/valid-basic", "x-square-hmacsha256-signature", "", Coding::Base64),
    ("plaid/valid-basic", "Plaid-Verification", "", Coding::Token),
    ("qstash/valid-basic", "Upstash-Signature", "", Coding::Token),
    ("generic-hmac/valid", "X-Sig", "sha256=", Coding::Hex),
    ("generic-token/valid", "x-token", "", Coding::Text),
];

/// Valid vectors whose signature covers every byte of the body.
const COVERED: &[&str] = &[
    "signed-inbox/published",
    "standardwebhooks/valid-basic",
    "svix/valid-basic",
    "stripe/valid-basic",
    "github/valid-basic",
    "gitlab/valid-basic",
    "slack/valid-basic",
    "shopify/valid-basic",
    "linear/valid-basic",
    "twilio/valid-json-bodySHA256",
    "discord/valid-basic",
    "circle/valid-basic",
    "kick/valid-basic",
    "recharge/valid-basic",
    "hubspot/valid-basic",
    "plaid/valid-basic",
    "qstash/valid-basic",
    "ripple/valid-basic",
    "paypal/valid-basic",
    "generic-hmac/valid",
];

/// Headers that the signature covers.
const COVERED_HEADERS: &[(&str, &str)] = &[
    ("signed-inbox/published", "X-Delivery-ID"),
    ("signed-inbox/published", "X-Timestamp"),
    ("standardwebhooks/valid-basic", "webhook-id"),
    ("standardwebhooks/valid-basic", "webhook-timestamp"),
    ("svix/valid-basic", "svix-id"),
    ("slack/valid-basic", "X-Slack-Request-Timestamp"),
    ("generic-hmac/valid", "X-Ts"),
];

#[derive(Clone, Copy)]
enum Coding {
    Hex,
    Base64,
    Text,
    /// The last of three parts.
    Token,
}

impl Coding {
    fn decode(self, text: &str) -> Vec<u8> {
        match self {
            Self::Hex => hex::decode(text).unwrap(),
            Self::Base64 => STANDARD.decode(text).unwrap(),
            Self::Text => text.as_bytes().to_vec(),
            Self::Token => URL_SAFE_NO_PAD.decode(text.rsplit_once('.').unwrap().1).unwrap(),
        }
    }

    fn encode(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Hex => hex::encode(bytes).into_bytes(),
            Self::Base64 => STANDARD.encode(bytes).into_bytes(),
            Self::Text => bytes.to_vec(),
            Self::Token => URL_SAFE_NO_PAD.encode(bytes).into_bytes(),
        }
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    let signatures = SIGNED.iter().map(|&(id, header, prefix, coding)| {
        trial(format!("bits/signature/{id}"), move || flip_signature(id, header, prefix, coding))
    });
    let bodies = COVERED.iter().map(|id| trial(format!("bits/body/{id}"), || flip_body(id)));
    let headers = COVERED_HEADERS
        .iter()
        .map(|&(id, header)| trial(format!("bits/{header}/{id}"), move || flip_header(id, header)));
    let form = [trial("bits/body/twilio/valid-basic", flip_form)];
    signatures.chain(bodies).chain(headers).chain(form).collect()
}

fn flip_signature(id: &str, header: &str, prefix: &str, coding: Coding) {
    let vector = inputs::one(id);
    let verifier = vector.verifier();
    let value = header_value(&vector, header);
    let signature = coding.decode(value.strip_prefix(prefix).unwrap());
    let prefix = match coding {
        Coding::Token => &value[..=value.rfind('.').unwrap()],
        _ => prefix,
    };
    let with = |signature: &[u8]| [prefix.as_bytes(), &coding.encode(signature)].concat();
    assert!(holds(&vector, &verifier, header, &with(&signature)), "the vector itself is refused");
    for flipped in flips(&signature) {
        assert!(!holds(&vector, &verifier, header, &with(&flipped)), "{flipped:02x?} is taken");
    }
    assert!(!holds(&vector, &verifier, header, &with(&signature[1..])));
    assert!(!holds(&vector, &verifier, header, &with(&[&signature[..], b"0"].concat())));
}

fn flip_header(id: &str, header: &str) {
    let vector = inputs::one(id);
    let verifier = vector.verifier();
    let value = header_value(&vector, header).as_bytes().to_vec();
    assert!(holds(&vector, &verifier, header, &value), "the vector itself is refused");
    for flipped in flips(&value) {
        assert!(!holds(&vector, &verifier, header, &flipped), "{flipped:02x?} is taken");
    }
}

fn flip_body(id: &str) {
    let vector = inputs::one(id);
    let verifier = vector.verifier();
    let body = vector.body();
    let taken = |body: &[u8]| verifier.verify(&vector.with_body(body), vector.now_micros()).is_ok();
    assert!(taken(&body), "the vector itself is refused");
    for flipped in flips(&body) {
        assert!(!taken(&flipped), "{} is taken", String::from_utf8_lossy(&flipped));
    }
    assert!(!taken(&body[1..]) && !taken(&body[..body.len() - 1]) && !taken(&[&body[..], b" "].concat()));
}

/// A form is signed decoded, so that the case of an escape's digit is the one thing that may differ.
fn flip_form() {
    let vector = inputs::one("twilio/valid-basic");
    let verifier = vector.verifier();
    let body = vector.body();
    for (bit, flipped) in flips(&body).enumerate() {
        let at = bit / 8;
        let in_escape = body[at.saturating_sub(2)..at].contains(&b'%');
        let other_case = in_escape && body[at].is_ascii_alphabetic() && body[at] ^ flipped[at] == 0x20;
        let taken = verifier.verify(&vector.with_body(&flipped), vector.now_micros()).is_ok();
        assert_eq!(taken, other_case, "{}", String::from_utf8_lossy(&flipped));
    }
}

fn flips(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..bytes.len() * 8).map(|bit| {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        flipped
    })
}

fn header_value<'v>(vector: &'v Vector, header: &str) -> &'v str {
    let headers = &vector.request.headers;
    &headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(header)).expect("the header").1
}

/// Whether the vector's request is taken with this value of a header.
fn holds(vector: &Vector, verifier: &Verifier, header: &str, value: &[u8]) -> bool {
    let replaced = |(name, old): &(String, String)| {
        let value = if name.eq_ignore_ascii_case(header) { value } else { old.as_bytes() };
        (name.clone(), value.to_vec())
    };
    let headers: Vec<_> = vector.request.headers.iter().map(replaced).collect();
    let body = vector.body();
    let request = hookstead_verify::Request { headers: &headers, ..vector.with_body(&body) };
    verifier.verify(&request, vector.now_micros()).is_ok()
}
