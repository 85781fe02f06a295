//! What a push says: the provider's own bytes and fields, hookstead's beside them, signed for this attempt.

use std::sync::Arc;

use hookstead::core::{RawHeaders, RawQuery, Timestamp};
use hookstead::sink::push::{PushOptions, PushSink, PushUrl, Reach, SigningSecret, SystemNetwork};
use hookstead::sink::{Outgoing, Sink, TriedVerdict};
use hookstead::verify::{Registry, Request, Secret, Verifier, VerifyOptions};

use super::network::MadeUp;
use super::outgoing::{BODY, KEY, NOW, outgoing, outgoing_with};
use super::target::{Seen, Step, Target, say};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

const OLD_SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

async fn target() -> Target {
    Target::start(vec![Step::Read, say("HTTP/1.1 204 So\r\nconnection: close\r\n\r\n")]).await
}

/// What the target sees of an event that is pushed, signed with both secrets.
async fn pushed(outgoing: &Outgoing) -> Seen {
    let target = target().await;
    let url = PushUrl::parse(&target.url(), Reach::Loopback).unwrap();
    let secrets = [SECRET, OLD_SECRET].map(|text| SigningSecret::parse(text).unwrap()).to_vec();
    let options = PushOptions { secrets: secrets.clone(), ..PushOptions::new(url, secrets[0].clone()) };
    let tried = PushSink::new(options, Arc::new(SystemNetwork::new())).unwrap().deliver(outgoing).await;
    assert_eq!(tried.verdict, TriedVerdict::Done, "{tried:?}");
    let [seen] = &target.seen()[..] else { panic!("one request") };
    assert_eq!(seen.value("host"), target.address().to_string());
    seen.clone()
}

#[tokio::test]
async fn the_bytes_and_fields_are_the_providers_own() {
    let headers: &[(&str, &[u8])] = &[
        ("Host", b"hook.example"),
        ("Content-Type", b"application/json; charset=utf-8"),
        ("Content-Encoding", b"identity"),
        ("User-Agent", b"Provider/1.0"),
        ("X-Provider-Signature", b"sha256=abc"),
        ("X-Twice", b"one"),
        ("x-twice", b"two"),
        ("X-Not-Text", b"caf\xe9"),
        ("traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        ("tracestate", b"vendor=1"),
    ];
    let seen = pushed(&outgoing_with(headers, BODY)).await;
    assert_eq!((seen.line.as_str(), seen.body.as_slice()), ("POST /hooks?to=app HTTP/1.1", BODY));
    assert_eq!(seen.value("content-length"), BODY.len().to_string());
    for (name, value) in headers.iter().filter(|(name, _)| !["Host", "X-Twice", "x-twice"].contains(name)) {
        assert_eq!(seen.values(&name.to_ascii_lowercase()), [*value], "{name}");
    }
    assert_eq!(seen.values("x-twice"), [b"one", b"two"]);
}

#[tokio::test]
async fn the_query_of_the_request_is_a_field() {
    let mut outgoing = outgoing_with(&[("Hookstead-Query", b"forged")], BODY);
    let plain = pushed(&outgoing).await;
    assert!(plain.values("hookstead-query").is_empty(), "an event without a query has no such field");
    assert_eq!(plain.values("hookstead-original-hookstead-query"), [b"forged"]);
    let query = RawQuery::new(b"data.id=ORD01ABC&name=caf\xe9").unwrap();
    outgoing.event.headers = RawHeaders::from_request(Some(query), outgoing.event.headers.fields());
    let seen = pushed(&outgoing).await;
    assert_eq!(seen.values("hookstead-query"), [query.as_bytes()]);
    assert_eq!(seen.values("hookstead-original-hookstead-query"), [b"forged"]);
}

#[tokio::test]
async fn what_belongs_to_the_connection_or_is_a_secret_stays_behind() {
    let left: &[(&str, &[u8])] = &[
        ("Authorization", b"Bearer secret"),
        ("Cookie", b"session=secret"),
        ("Proxy-Authorization", b"Basic c2VjcmV0"),
        ("Connection", b"keep-alive, X-Of-Connection"),
        ("X-Of-Connection", b"1"),
        ("Keep-Alive", b"timeout=5"),
        ("Transfer-Encoding", b"chunked"),
        ("TE", b"trailers"),
        ("Trailer", b"x"),
        ("Upgrade", b"h2c"),
        ("HTTP2-Settings", b"AAMAAABkAAQAoAAAAAIAAAAA"),
        ("Expect", b"100-continue"),
        ("Accept-Encoding", b"gzip"),
    ];
    let framed = [left, &[("Content-Length", b"999999"), ("Host", b"hook.example")]].concat();
    let seen = pushed(&outgoing_with(&framed, BODY)).await;
    for (name, _) in left {
        assert!(seen.values(&name.to_ascii_lowercase()).is_empty(), "{name}: {seen:?}");
    }
    assert_eq!((seen.value("content-length"), seen.body.as_slice()), (BODY.len().to_string().as_str(), BODY));
    assert!(!format!("{:?}", seen.headers).contains("secret"));
}

#[tokio::test]
async fn hooksteads_word_cannot_be_given_by_anybody_else() {
    let own = [
        ("idempotency-key", KEY),
        ("webhook-id", KEY),
        ("webhook-timestamp", "1770000000"),
        ("hookstead-event", "0198c0de-1111-7222-8333-444455556666"),
        ("hookstead-source", "stripe"),
        ("hookstead-attempt", "3"),
        ("hookstead-received-at", "2026-02-02T02:40:00Z"),
    ];
    let forged: Vec<(&str, &[u8])> = own.iter().map(|(name, _)| (*name, &b"forged"[..])).collect();
    let more: &[(&str, &[u8])] = &[
        ("Webhook-Signature", b"v1,forged"),
        ("Hookstead-Anything", b"a"),
        ("hookstead-original-host", b"b"),
    ];
    let seen = pushed(&outgoing_with(&[&forged, more].concat(), BODY)).await;
    for (name, value) in own {
        assert_eq!(seen.value(name), value);
        assert_eq!(seen.value(&format!("hookstead-original-{name}")), "forged");
    }
    assert_eq!(seen.value("hookstead-original-webhook-signature"), "v1,forged");
    assert!(!seen.value("webhook-signature").contains("forged"));
    assert_eq!(seen.value("hookstead-original-hookstead-anything"), "a");
    assert_eq!(seen.value("hookstead-original-hookstead-original-host"), "b");
    for gone in ["hookstead-anything", "hookstead-original-host"] {
        assert!(seen.values(gone).is_empty(), "{gone}");
    }
}

#[tokio::test]
async fn who_names_no_agent_is_pushed_by_hookstead() {
    assert!(pushed(&outgoing()).await.value("user-agent").starts_with("hookstead/"));
    assert_eq!(pushed(&outgoing_with(&[], b"")).await.value("content-length"), "0");
}

/// Either secret verifies, within the tolerance of the attempt's own time: the first attempt, and one that is
/// made three days after the event.
#[tokio::test]
async fn every_attempt_is_signed_with_its_own_time() {
    for late_s in [0, 3 * 24 * 3600] {
        let now = Timestamp::from_secs(NOW.as_secs() + late_s);
        let seen = pushed(&Outgoing { now, ..outgoing() }).await;
        for secret in [SECRET, OLD_SECRET] {
            assert!(verifies(&seen, secret, now), "{late_s} s late");
            assert!(!verifies(&seen, secret, Timestamp::from_secs(now.as_secs() + 3600)), "an hour after it");
        }
        assert!(!verifies(&seen, "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh0=", now));
        let changed = Seen { body: b"other".to_vec(), ..seen };
        assert!(!verifies(&changed, SECRET, now));
    }
}

/// By the verifier of what comes in, which is held against the specification's own vectors.
fn verifies(seen: &Seen, secret: &str, now: Timestamp) -> bool {
    let provider = Registry::builtin().get("standardwebhooks").unwrap().clone();
    let verifier =
        Verifier::new(provider, &[Secret::new(secret).unwrap()], VerifyOptions::default()).unwrap();
    let headers: Vec<(&str, &[u8])> =
        seen.headers.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
    let request =
        Request { method: "POST", target: "/hooks", url: None, headers: &headers, body: &seen.body };
    verifier.verify(&request, now.as_micros()).is_ok()
}

#[tokio::test]
async fn a_name_is_sent_as_host_with_its_port() {
    let target = target().await;
    let network = MadeUp::leading_to(target.address()).with("app.test", &[&["203.0.114.7"]]);
    let network = Arc::new(network);
    for (url, host, dialed) in [
        ("http://APP.test/x?y=1", "app.test", "203.0.114.7:80"),
        ("http://app.test.:8080/x?y=1", "app.test.:8080", "203.0.114.7:8080"),
    ] {
        let url = PushUrl::parse(url, Reach::Public).unwrap();
        let options = PushOptions::new(url, SigningSecret::generate().unwrap());
        PushSink::new(options, Arc::clone(&network) as _).unwrap().deliver(&outgoing()).await;
        let seen = target.seen().pop().unwrap();
        assert_eq!((seen.line.as_str(), seen.value("host")), ("POST /x?y=1 HTTP/1.1", host));
        assert_eq!(network.dialed().pop(), Some(dialed.parse().unwrap()));
    }
}
