//! A provider's retry whose volatile values changed is a duplicate, also when the first body is gone; any other
//! change is a conflict. For every provider that has such values, through the inbox, on every store.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hookstead::core::{ManualClock, RetentionRule, Sweep, Timestamp};
use hookstead::verify::{
    IdentityRule, KeyAnswer, KeySource, KeyWanted, Provider, Registry, Secret, SignRequest, VerifyOptions,
};
use hookstead::{Inbox, Incoming, Outcome, Received, Source, SourceOptions};
use serde_json::Value;

use crate::stores::on_every_store;

/// The time of the vectors.
const NOW: Timestamp = Timestamp::from_secs(1_760_000_000);

/// One sending: its headers and its body.
struct Sending {
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

/// A source, and what its provider sends: first, then with other volatile values, then with more than that.
struct Script {
    source: Box<dyn Fn() -> Source>,
    first: Sending,
    retries: Vec<Sending>,
    others: Vec<Sending>,
}

#[test]
fn a_retry_with_other_volatile_values_is_a_duplicate() {
    let mut checked = 0;
    for provider in Registry::builtin().iter().filter(|provider| !provider.volatile().is_empty()) {
        let script = script(provider);
        on_every_store(|builder| {
            let clock = Arc::new(ManualClock::new(NOW));
            let inbox = builder.source((script.source)()).clock(clock).open().unwrap();
            play(&inbox, &script, provider.name());
        });
        checked += 1;
    }
    assert_eq!(checked, 14, "one more provider with volatile values is one more that this test has covered");
}

fn play(inbox: &Inbox, script: &Script, name: &str) {
    assert_eq!(outcome(inbox, &script.first), Outcome::Stored, "{name}");
    let again = |when: &str| {
        for retry in &script.retries {
            assert_ne!(retry.body, script.first.body, "{name}");
            assert_eq!(outcome(inbox, retry), Outcome::Duplicate, "{name} {when}");
        }
        for other in &script.others {
            let found = outcome(inbox, other);
            assert!(matches!(found, Outcome::Conflict { .. }), "{name} {when}: {found:?}");
        }
    };
    again("with the body");
    assert_eq!(erase(inbox), 1, "{name}");
    again("without the body");
    assert_eq!(outcome(inbox, &script.first), Outcome::Duplicate, "{name}");
}

fn erase(inbox: &Inbox) -> u32 {
    let source = inbox.source("conf").unwrap().number().unwrap();
    let all = Some(Timestamp::from_secs(NOW.as_secs() + 1));
    let rule = RetentionRule { source, finished_before: all, unfinished_before: all };
    block_on(inbox.sweep(Sweep { retention: vec![rule], max: 100 })).unwrap().erased
}

fn outcome(inbox: &Inbox, sending: &Sending) -> Outcome {
    let incoming = Incoming {
        method: "POST",
        target: "/in/conf",
        headers: &sending.headers,
        body: Bytes::copy_from_slice(&sending.body),
        received_from: None,
    };
    match block_on(inbox.receive(&inbox.source("conf").unwrap(), incoming)).unwrap() {
        Received::Accepted(receipt) => receipt.outcome,
        Received::Handshake(answer) => panic!("not an event: {answer:?}"),
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

fn script(provider: &Arc<Provider>) -> Script {
    match provider.name() {
        "ebay" => ebay(provider),
        "google-pubsub" => google_pubsub(provider),
        _ => signed(provider),
    }
}

/// What we can sign as the provider does: a sample event with its volatile values put in.
fn signed(provider: &Arc<Provider>) -> Script {
    let keys = Keys::of(provider);
    let sample = provider.sample(None).unwrap();
    let id = sample.event_id(7);
    let document: Value = serde_json::from_slice(&sample.render(&id, NOW.as_micros())).unwrap();
    let pointers: Vec<_> = provider.volatile().iter().map(|(pointer, _)| pointer.to_owned()).collect();
    let send = |document: &Value| {
        let body = document.to_string();
        let request = SignRequest {
            method: "POST",
            url: "https://hooks.example.com/in/conf",
            body: body.as_bytes(),
            content_type: "application/json",
            event_id: &id,
            event_type: Some(&sample.event),
            secret: Some(&keys.sender),
            now_unix_micros: NOW.as_micros(),
        };
        let signed = provider.sign(&request).unwrap();
        Sending { headers: signed.headers, body: signed.body }
    };
    let first = pointers.iter().fold(document, |document, pointer| with(document, pointer, Value::from(1)));
    let values = [Value::from(2), Value::from("other"), serde_json::json!([{ "at": 3 }])];
    let changed = pointers.iter().flat_map(|pointer| values.iter().map(move |value| (pointer, value)));
    let retries: Vec<_> =
        changed.map(|(pointer, value)| with(first.clone(), pointer, value.clone())).collect();
    let place = if first.is_array() { "/0/beside" } else { "/beside" };
    let others =
        [with(first.clone(), place, Value::from(1)), with(retries[0].clone(), place, Value::from(2))];
    Script {
        first: send(&first),
        retries: retries.iter().map(send).collect(),
        others: others.iter().map(send).collect(),
        source: source(provider, Some(keys.receiver), VerifyOptions::default()),
    }
}

/// The document with a value at a pointer, in which `*` is the first item.
fn with(mut document: Value, pointer: &str, value: Value) -> Value {
    let steps: Vec<_> = pointer[1..].split('/').collect();
    let mut place = &mut document;
    for (step, next) in steps.iter().zip(steps.iter().skip(1).map(Some).chain([None])) {
        place = match *step {
            "*" | "0" => place.get_mut(0).unwrap(),
            name => &mut place[name],
        };
        if place.is_null() {
            *place = if next == Some(&"*") { serde_json::json!([{}]) } else { serde_json::json!({}) };
        }
    }
    *place = value;
    document
}

/// What the sender signs with, and what the receiver has of it.
struct Keys {
    sender: Secret,
    receiver: Secret,
}

impl Keys {
    fn of(provider: &Provider) -> Self {
        if !provider.shares_secret() {
            return Self::ed25519();
        }
        let texts = ["0123456789abcdef0123456789abcdef", "user:0123456789abcdef"];
        let fits = |secret: &Secret| provider.check_secret(secret).is_ok();
        let secret = texts.into_iter().map(|text| Secret::new(text).unwrap()).find(fits).unwrap();
        Self { sender: secret.clone(), receiver: secret }
    }

    fn ed25519() -> Self {
        let pair = Ed25519KeyPair::generate().unwrap();
        let der = STANDARD.encode(pair.to_pkcs8v1().unwrap());
        let private = format!("-----BEGIN PRIVATE KEY-----\n{der}\n-----END PRIVATE KEY-----\n");
        let public = STANDARD.encode(pair.public_key().as_ref());
        Self { sender: Secret::new(private).unwrap(), receiver: Secret::new(public).unwrap() }
    }
}

fn source(
    provider: &Arc<Provider>,
    secret: Option<Secret>,
    options: VerifyOptions,
) -> Box<dyn Fn() -> Source> {
    let provider = provider.clone();
    let url = Some("https://hooks.example.com/in/conf".to_owned());
    let verify = VerifyOptions { url, identity: IdentityRule::Provider, ..options };
    Box::new(move || {
        let options = SourceOptions { verify: verify.clone(), ..SourceOptions::default() };
        let secrets = secret.as_slice();
        Source::new("conf".parse().unwrap(), provider.clone(), secrets, options).unwrap()
    })
}

/// One document with keys, for whoever asks.
#[derive(Debug)]
struct Published(Vec<u8>);

impl KeySource for Published {
    fn keys(&self, wanted: &KeyWanted) -> KeyAnswer {
        KeyAnswer::Keys(Arc::new(wanted.place.parse(&self.0).unwrap()))
    }
}

/// With ECDSA over SHA-1, which we do not make: signed once with OpenSSL.
fn ebay(provider: &Arc<Provider>) -> Script {
    let recorded: Value = serde_json::from_str(include_str!("ebay-retry.json")).unwrap();
    let send = |name: &str| {
        let text = |part: &str| recorded[name][part].as_str().unwrap().as_bytes().to_vec();
        Sending { headers: vec![("X-EBAY-SIGNATURE".to_owned(), text("header"))], body: text("body") }
    };
    let document = recorded["public_key"].as_str().unwrap().as_bytes().to_vec();
    let conf = BTreeMap::from([("verification_token".to_owned(), "verification_token_1".to_owned())]);
    let options =
        VerifyOptions { conf, key_source: Some(Arc::new(Published(document))), ..VerifyOptions::default() };
    Script {
        first: send("first"),
        retries: vec![send("retry")],
        others: vec![send("other")],
        source: source(provider, None, options),
    }
}

/// With a token that covers no byte of the body: that of the vectors.
fn google_pubsub(provider: &Arc<Provider>) -> Script {
    let vectors = include_str!("../../../hookstead-verify/vectors/google-pubsub.json");
    let vectors: Value = serde_json::from_str(vectors).unwrap();
    let all = vectors.as_array().unwrap_or_else(|| vectors["vectors"].as_array().unwrap());
    let vector = all.iter().find(|vector| vector["id"] == "google-pubsub/valid-basic").unwrap();
    let headers: Vec<(String, String)> =
        serde_json::from_value(vector["request"]["headers"].clone()).unwrap();
    let headers: Vec<_> = headers.into_iter().map(|(name, value)| (name, value.into_bytes())).collect();
    let send = |attempt: u32, message: &str| {
        let body = format!("{{\"deliveryAttempt\":{attempt},\"message\":{message},\"subscription\":\"s\"}}");
        Sending { headers: headers.clone(), body: body.into_bytes() }
    };
    let config = &vector["config"];
    let options = VerifyOptions {
        conf: serde_json::from_value(config["vars"].clone()).unwrap(),
        key_source: Some(Arc::new(Published(config["jwks"].to_string().into_bytes()))),
        ..VerifyOptions::default()
    };
    let (message, other) = (r#"{"messageId":"1","data":"YQ=="}"#, r#"{"messageId":"1","data":"Yg=="}"#);
    Script {
        first: send(1, message),
        retries: vec![send(2, message), send(9, message)],
        others: vec![send(1, other), send(2, other)],
        source: source(provider, None, options),
    }
}
