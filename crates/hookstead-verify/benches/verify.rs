//! What verification costs beside the bare HMAC over the same bytes, and what the registry costs at start:
//! `cargo bench -p hookstead-verify`.

#![expect(clippy::unwrap_used, reason = "a bench that cannot be set up has nothing to say")]

use std::hint::black_box;
use std::sync::Arc;

use aws_lc_rs::hmac;
use criterion::{Criterion, criterion_group, criterion_main};
use hookstead_verify::{Provider, Registry, Secret, SignRequest, SignedRequest, Verifier, VerifyOptions};

const NOW: i64 = 1_760_000_000_000_000;

/// A provider, the secret, the bytes of its key, and what is signed before the body.
struct Case {
    name: &'static str,
    secret: &'static str,
    key: &'static [u8],
    before: &'static str,
}

const CASES: &[Case] = &[
    Case {
        name: "stripe",
        secret: "whsec_0123456789abcdef0123456789abcdef",
        key: b"whsec_0123456789abcdef0123456789abcdef",
        before: "1760000000.",
    },
    Case {
        name: "github",
        secret: "0123456789abcdef0123456789abcdef",
        key: b"0123456789abcdef0123456789abcdef",
        before: "",
    },
    Case {
        name: "standardwebhooks",
        secret: "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
        key: b"0123456789abcdef0123456789abcdef",
        before: "msg_0123456789.1760000000.",
    },
];

/// A JSON document of 1 KiB.
fn body() -> Vec<u8> {
    let start = r#"{"id":"evt_1","type":"invoice.paid","padding":""#;
    format!("{start}{}\"}}", "x".repeat(1024 - start.len() - 2)).into_bytes()
}

fn signed(case: &Case, provider: &Provider, body: &[u8]) -> SignedRequest {
    let secret = Secret::new(case.secret).unwrap();
    let request = SignRequest {
        method: "POST",
        url: "https://hooks.example.com/in/source",
        body,
        content_type: "application/json",
        event_id: "msg_0123456789",
        event_type: None,
        secret: Some(&secret),
        now_unix_micros: NOW,
    };
    provider.sign(&request).unwrap()
}

fn verify(criterion: &mut Criterion) {
    for case in CASES {
        let provider = Registry::builtin().get(case.name).unwrap();
        let secrets = [Secret::new(case.secret).unwrap()];
        let verifier = Verifier::new(Arc::clone(provider), &secrets, VerifyOptions::default()).unwrap();
        let body = body();
        let signed = signed(case, provider, &body);
        let request = signed.as_request();
        assert!(verifier.verify(&request, NOW).is_ok());
        let key = hmac::Key::new(hmac::HMAC_SHA256, case.key);
        let mut group = criterion.benchmark_group(case.name);
        group.bench_function("hmac", |bencher| {
            bencher.iter(|| {
                let mut context = hmac::Context::with_key(black_box(&key));
                context.update(case.before.as_bytes());
                context.update(black_box(&body));
                context.sign()
            });
        });
        group.bench_function("verify", |bencher| {
            bencher.iter(|| verifier.verify(black_box(&request), NOW).is_ok());
        });
        group.bench_function("verify and identify", |bencher| {
            bencher.iter(|| verifier.verify(black_box(&request), NOW).unwrap().identify().is_ok());
        });
        group.finish();
    }
}

/// Reading every record, as nothing but a list of all of them does; a server reads those of its sources.
fn registry(criterion: &mut Criterion) {
    let registry = Registry::builtin();
    let records: Vec<_> = registry.names().map(|name| (name, registry.toml(name).unwrap())).collect();
    criterion.bench_function("registry", |bencher| {
        bencher.iter(|| {
            records.iter().filter(|(name, toml)| Provider::parse(name, black_box(toml)).is_ok()).count()
        });
    });
}

criterion_group!(benches, verify, registry);
criterion_main!(benches);
