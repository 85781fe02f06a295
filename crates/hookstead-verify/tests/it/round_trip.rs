//! What we sign, we verify; and what we sign is byte for byte what the provider's own SDK signs.

use std::sync::Arc;

use hookstead_verify::{
    IdentityRule, Provider, Registry, SchemeSpec, Secret, SignError, SignRequest, SignedRequest, Verifier,
    VerifyOptions,
};
use libtest_mimic::Trial;

use crate::inputs;
use crate::trial;

const NOW: i64 = 1_760_000_000_123_456;

pub(crate) fn trials() -> Vec<Trial> {
    let can_sign = |provider: &&Arc<Provider>| provider.shares_secret() || !provider.needs_secret();
    let samples = Registry::builtin().iter().filter(can_sign).flat_map(|provider| {
        let events = provider.samples().iter().map(|sample| sample.event.clone());
        events.map(|event| {
            let provider = Arc::clone(provider);
            trial(format!("round-trip/{}/{event}", provider.name()), move || sample(&provider, &event))
        })
    });
    let same = SAME_AS_SDK
        .iter()
        .map(|&(id, header)| trial(format!("round-trip/same-as-sdk/{id}"), move || same_as_sdk(id, header)));
    let others = [
        trial("round-trip/gitlab-token", gitlab_token),
        trial("round-trip/twilio-json", twilio_json),
        trial("round-trip/twilio-get", twilio_get),
        trial("round-trip/twilio-other-port", twilio_other_port),
        trial("round-trip/shopify-headers", shopify_headers),
        trial("round-trip/own-schemes", own_schemes),
        trial("round-trip/refusals", refusals),
    ];
    samples.chain(same).chain(others).collect()
}

/// Vectors whose signature came from the provider's SDK, and the header that holds it.
const SAME_AS_SDK: &[(&str, &str)] = &[
    ("signed-inbox/published", "X-Signature"),
    ("standardwebhooks/valid-basic", "webhook-signature"),
    ("svix/valid-basic", "svix-signature"),
    ("stripe/valid-basic", "Stripe-Signature"),
    ("github/valid-basic", "X-Hub-Signature-256"),
    ("gitlab/valid-basic", "webhook-signature"),
    ("slack/valid-basic", "X-Slack-Signature"),
    ("shopify/valid-basic", "X-Shopify-Hmac-Sha256"),
    ("linear/valid-basic", "Linear-Signature"),
    ("twilio/valid-basic", "X-Twilio-Signature"),
];

fn secret_for(provider: &Provider) -> Secret {
    inputs::secret_for(provider).unwrap_or_else(|| Secret::new("not-needed-0123456").unwrap())
}

fn request<'a>(provider: &Provider, body: &'a [u8], secret: &'a Secret) -> SignRequest<'a> {
    SignRequest {
        method: "POST",
        url: "https://hooks.example.com/in/source",
        body,
        content_type: "application/json",
        event_id: "evt_1",
        event_type: None,
        secret: provider.needs_secret().then_some(secret),
        now_unix_micros: NOW,
    }
}

fn verifier(provider: &Arc<Provider>, secret: &Secret, identity: IdentityRule) -> Verifier {
    let options = VerifyOptions {
        url: Some("https://hooks.example.com/in/source".into()),
        identity,
        conf: inputs::conf_for(provider),
        ..VerifyOptions::default()
    };
    let secrets = if provider.needs_secret() { vec![secret.clone()] } else { Vec::new() };
    Verifier::new(Arc::clone(provider), &secrets, options).unwrap()
}

fn sample(provider: &Arc<Provider>, event: &str) {
    let secret = secret_for(provider);
    let sample = provider.sample(Some(event)).unwrap();
    let event_id = sample.event_id(42);
    let body = sample.render(&event_id, NOW);
    let request = SignRequest {
        content_type: &sample.content_type,
        event_id: &event_id,
        event_type: Some(event),
        ..request(provider, &body, &secret)
    };
    let signed = provider.sign_with(&request, &inputs::conf_for(provider)).unwrap();
    let identity = if provider.has_id() { IdentityRule::Provider } else { IdentityRule::None };
    let verifier = verifier(provider, &secret, identity);
    let verified = verifier.verify(&signed.as_request(), NOW).unwrap();
    let found = verified.identify().unwrap();
    // The signature is the id there.
    if provider.has_id() && provider.name() != "dropbox-sign" {
        assert_eq!(found.event_id.map(|id| String::from_utf8(id).unwrap()), Some(event_id));
    }
    if !WITHOUT_TYPE.contains(&provider.name()) {
        assert_eq!(found.event_type.as_deref(), Some(event));
    }
    assert_eq!(verified.handshake(), None, "a sample is an event");
    assert_eq!(verifier.handshake(&signed.as_request()), None, "a sample is an event");
    if sample.content_type == "application/json" {
        serde_json::from_slice::<serde_json::Value>(&signed.body).unwrap();
    }
    let rest = String::from_utf8_lossy(&signed.body).replace("@example.com", "");
    assert!(!rest.contains('@'), "a placeholder is left: {rest}");
}

/// Providers whose requests name no type.
const WITHOUT_TYPE: &[&str] = &[
    "airtable",
    "braintree",
    "deepgram",
    "dropbox",
    "ghost",
    "mailgun-routes",
    "messagebird",
    "quicknode",
    "signed-inbox",
    "sinch",
    "telegram",
    "x-twitter",
    "youtube-websub",
];

fn same_as_sdk(id: &str, header: &str) {
    let vector = inputs::one(id);
    let provider = vector.provider();
    let value = |name: &str| {
        let mut headers = vector.request.headers.iter();
        headers.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    };
    let secret = Secret::new(vector.secrets[0].as_str()).unwrap();
    let body = vector.body();
    let ids = ["X-Delivery-ID", "webhook-id", "svix-id"];
    let signed = provider
        .sign(&SignRequest {
            method: &vector.request.method,
            url: vector.url.as_deref().unwrap_or("https://hooks.example.com/in/source"),
            content_type: value("content-type").unwrap_or_default(),
            event_id: ids.iter().find_map(|id| value(id)).unwrap_or("any"),
            now_unix_micros: vector.now_micros(),
            ..request(&provider, &body, &secret)
        })
        .unwrap();
    assert_eq!(found(&signed, header), value(header));
}

fn found<'s>(signed: &'s SignedRequest, header: &str) -> Option<&'s str> {
    let mut headers = signed.headers.iter();
    let value = headers.find(|(name, _)| name.eq_ignore_ascii_case(header)).map(|(_, value)| value);
    value.map(|value| std::str::from_utf8(value).unwrap())
}

fn gitlab_token() {
    let provider = Registry::builtin().get("gitlab").unwrap();
    let secret = Secret::new("no-base64_but-a-token").unwrap();
    let signed = provider.sign(&request(provider, b"{}", &secret)).unwrap();
    assert_eq!(found(&signed, "X-Gitlab-Token"), Some("no-base64_but-a-token"));
    assert_eq!(found(&signed, "webhook-signature"), None);
    let verifier = verifier(provider, &secret, IdentityRule::Provider);
    assert!(verifier.verify(&signed.as_request(), NOW).is_ok());
}

/// Of a JSON body only the digest in the query is signed.
fn twilio_json() {
    let provider = Registry::builtin().get("twilio").unwrap();
    let secret = secret_for(provider);
    let mut signed = provider.sign(&request(provider, b"{}", &secret)).unwrap();
    assert!(signed.target().starts_with("/in/source?bodySHA256=44136fa3"), "{}", signed.url);
    let verifier = verifier(provider, &secret, IdentityRule::Provider);
    assert!(verifier.verify(&signed.as_request(), NOW).is_ok());
    signed.body = b"[]".to_vec();
    assert!(verifier.verify(&signed.as_request(), NOW).is_err());
}

/// A signature over the bare address proves nothing of a body.
fn twilio_get() {
    let provider = Registry::builtin().get("twilio").unwrap();
    let secret = secret_for(provider);
    let get = SignRequest { method: "GET", content_type: "", ..request(provider, b"", &secret) };
    let mut signed = provider.sign(&get).unwrap();
    let verifier = verifier(provider, &secret, IdentityRule::Provider);
    assert!(verifier.verify(&signed.as_request(), NOW).is_ok());
    signed.method = "POST".into();
    signed.body = b"{\"forged\":true}".to_vec();
    assert!(verifier.verify(&signed.as_request(), NOW).is_err());
}

fn twilio_other_port() {
    let provider = Registry::builtin().get("twilio").unwrap();
    let secret = secret_for(provider);
    let form = "application/x-www-form-urlencoded";
    let with_port = SignRequest {
        url: "https://hooks.example.com:443/in/source",
        content_type: form,
        ..request(provider, b"a=b", &secret)
    };
    let signed = provider.sign(&with_port).unwrap();
    let verifier = verifier(provider, &secret, IdentityRule::Provider);
    let request = hookstead_verify::Request { url: None, ..signed.as_request() };
    assert!(verifier.verify(&request, NOW).is_ok());
}

/// Shopify's own SDK refuses a request without any of these.
fn shopify_headers() {
    let provider = Registry::builtin().get("shopify").unwrap();
    let secret = secret_for(provider);
    let typed = SignRequest { event_type: Some("orders/create"), ..request(provider, b"{}", &secret) };
    let signed = provider.sign(&typed).unwrap();
    for name in ["Hmac-Sha256", "Topic", "Shop-Domain", "API-Version", "Webhook-Id"] {
        let name = format!("X-Shopify-{name}");
        assert!(found(&signed, &name).is_some(), "{name}");
    }
    let verifier = verifier(provider, &secret, IdentityRule::Provider);
    let event = verifier.verify(&signed.as_request(), NOW).unwrap().identify().unwrap();
    assert_eq!(event.account.as_deref(), Some("example.myshopify.com"));
}

fn own_schemes() {
    let hmac =
        SchemeSpec { hmac: Some("sha512".into()), header: Some("x-sig".into()), ..SchemeSpec::default() };
    let specs = [
        SchemeSpec { encoding: Some("base64url".into()), ..hmac.clone() },
        SchemeSpec {
            signed: Some("{timestamp}.{method}.{target}.{body|sha256|hex}".into()),
            timestamp: Some("x-ts".into()),
            timestamp_unit: Some("rfc3339".into()),
            ..hmac.clone()
        },
        SchemeSpec {
            signed: Some("{timestamp}{body}".into()),
            timestamp: Some("x-ts".into()),
            timestamp_unit: Some("http-date".into()),
            ..hmac
        },
        SchemeSpec {
            token: Some("authorization".into()),
            prefix: Some("Bearer ".into()),
            ..SchemeSpec::default()
        },
        SchemeSpec { basic: true, ..SchemeSpec::default() },
    ];
    for spec in specs {
        let spec = SchemeSpec { id: Some("header:X-Id".into()), ..spec };
        let provider = Arc::new(spec.provider("partner").unwrap());
        let secret = Secret::new("user:password-0123456789").unwrap();
        let signed = provider.sign(&request(&provider, b"body", &secret)).unwrap();
        let verifier = verifier(&provider, &secret, IdentityRule::Provider);
        let verified = verifier.verify(&signed.as_request(), NOW).unwrap();
        assert_eq!(verified.identify().unwrap().event_id.as_deref(), Some(b"evt_1".as_slice()), "{spec:?}");
    }
}

fn refusals() {
    let github = Registry::builtin().get("github").unwrap();
    let secret = secret_for(github);
    let good = request(github, b"{}", &secret);
    assert_eq!(github.sign(&SignRequest { secret: None, ..good }), Err(SignError::NoSecret));
    for event_id in ["", " a", "a\nb", "a\0"] {
        let refused = github.sign(&SignRequest { event_id, ..good });
        assert_eq!(refused, Err(SignError::Header("X-GitHub-Delivery".into())), "{event_id:?}");
    }
    let short = Secret::new("short").unwrap();
    assert!(matches!(github.sign(&SignRequest { secret: Some(&short), ..good }), Err(SignError::Secret(_))));
}
