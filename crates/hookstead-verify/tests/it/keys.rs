//! Public keys: given and published, of the right kind and of the wrong one; tokens that try to choose their own
//! key; requests that are signed with a private key as their provider would.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hookstead_verify::vector::Vector;
use hookstead_verify::{
    IdentityRule, KeyAnswer, KeySource, KeyWanted, Provider, PublishedKeys, Reason, Registry, RejectionClass,
    Request, Secret, SignError, SignRequest, Verifier, VerifierError, VerifyOptions,
};
use libtest_mimic::Trial;

use crate::inputs;
use crate::trial;

const NOW: i64 = 1_760_000_000_000_000;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("keys/not-at-hand-is-unavailable", not_at_hand),
        trial("keys/only-pinned-addresses-are-asked-for", pinned),
        trial("keys/documents", documents),
        trial("keys/wrong-kinds-are-refused-at-start", wrong_kinds),
        trial("keys/private-keys-sign", private_keys),
        trial("keys/tokens-that-choose-their-key", confused_tokens),
        trial("keys/odd-tokens", odd_tokens),
    ]
}

/// Remembers what it was asked for, and has one answer.
#[derive(Debug)]
struct Asked(Mutex<Vec<KeyWanted>>, KeyAnswer);

impl KeySource for Asked {
    fn keys(&self, wanted: &KeyWanted) -> KeyAnswer {
        self.0.lock().unwrap().push(wanted.clone());
        self.1.clone()
    }
}

fn case(id: &str) -> Vector {
    inputs::cases().into_iter().find(|case| case.id == id).unwrap()
}

/// Verifies a vector's request with another source of keys.
fn verify(id: &str, answer: KeyAnswer) -> (Result<(), (Reason, RejectionClass)>, Vec<KeyWanted>) {
    let case = case(id);
    let provider = Registry::builtin().get(&case.provider).unwrap();
    let asked = Arc::new(Asked(Mutex::default(), answer));
    let options = VerifyOptions {
        conf: inputs::conf_for(provider),
        key_source: Some(asked.clone()),
        identity: IdentityRule::Body,
        ..VerifyOptions::default()
    };
    let verifier = Verifier::new(Arc::clone(provider), &[], options).unwrap();
    let body = case.body().unwrap();
    let found = verifier.verify(&case.request(&body), case.now_micros());
    let found = found.map(|_| ()).map_err(|rejection| (rejection.reason, rejection.class));
    let wanted = asked.0.lock().unwrap().clone();
    (found, wanted)
}

fn not_at_hand() {
    for id in [
        "aws-sns/valid-basic",
        "paypal/valid-basic",
        "plaid/valid-basic",
        "circle/valid-basic",
        "fal/valid-basic",
    ] {
        let (found, wanted) = verify(id, KeyAnswer::NotAtHand);
        assert_eq!(found, Err((Reason::KeyNotAtHand, RejectionClass::Unavailable)), "{id}");
        assert!(!wanted.is_empty(), "{id}");
        let (found, _) = verify(id, KeyAnswer::Unknown);
        assert_eq!(found, Err((Reason::KeyUnknown, RejectionClass::NotVerified)), "{id}");
        let (found, _) = verify(id, KeyAnswer::Keys(Arc::new(PublishedKeys::default())));
        assert_eq!(found, Err((Reason::SignatureDiffers, RejectionClass::NotVerified)), "{id}");
    }
    let provider = Registry::builtin().get("aws-sns").unwrap();
    let options = VerifyOptions { conf: inputs::conf_for(provider), ..VerifyOptions::default() };
    let error = Verifier::new(Arc::clone(provider), &[], options).unwrap_err();
    assert_eq!(error, VerifierError::NoKeySource("aws-sns".into()));
}

/// An address that is not the provider's is refused before anybody is asked.
fn pinned() {
    for id in [
        "aws-sns/cert-url-host-suffix",
        "aws-sns/cert-url-http",
        "aws-sns/cert-url-userinfo",
        "paypal/cert-url-host-suffix",
    ] {
        let (found, wanted) = verify(id, KeyAnswer::NotAtHand);
        assert_eq!(found, Err((Reason::KeyAddress, RejectionClass::NotVerified)), "{id}");
        assert_eq!(wanted, [], "{id}");
    }
    let (_, wanted) = verify("google-pubsub/valid-basic", KeyAnswer::NotAtHand);
    assert_eq!(wanted[0].place.url.as_deref(), Some("https://www.googleapis.com/oauth2/v3/certs"));
    assert!(wanted[0].key_id.is_some());
    // Without a signature nobody is asked either.
    let (found, wanted) = verify("circle/missing-signature", KeyAnswer::NotAtHand);
    assert_eq!(found.unwrap_err().0, Reason::SignatureMissing);
    assert_eq!(wanted, []);
}

fn documents() {
    let place = |id: &str| verify(id, KeyAnswer::NotAtHand).1[0].place.clone();
    let jwks = place("google-pubsub/valid-basic");
    for broken in ["", "{}", "[]", "{\"keys\":7}", "\u{0}", &"[".repeat(10_000)] {
        assert!(jwks.parse(broken.as_bytes()).is_err(), "{broken:.20}");
    }
    assert!(
        jwks.parse(b"{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\",\"kid\":\"a\"}]}").is_err(),
        "a shared key"
    );
    assert!(jwks.parse(&vec![b' '; 300 * 1024]).is_err(), "too long");
    let small = "{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"a\",\"n\":\"u1SU\",\"e\":\"AQAB\"}]}";
    assert!(jwks.parse(small.as_bytes()).is_err(), "24 bits");
    let certificate = place("aws-sns/valid-basic");
    assert!(certificate.parse(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").is_err());
    assert!(certificate.parse(b"no certificate").is_err());
    assert_ne!(place("circle/valid-basic"), certificate);
}

fn wrong_kinds() {
    let check = |name: &str, text: &str| {
        let provider = Registry::builtin().get(name).unwrap();
        provider.check_secret(&Secret::new(text).unwrap()).map_err(|error| error.to_string())
    };
    let pem = case("kick/valid-basic").secrets()[0].clone();
    let point = case("discord/valid-basic").secrets()[0].clone();
    assert_eq!(check("kick", &pem), Ok(()));
    assert_eq!(check("discord", &point), Ok(()));
    assert!(check("kick", &point).unwrap_err().contains("public key in PEM"));
    assert!(check("discord", &pem).unwrap_err().contains("64 hex digits"));
    // A key that everybody knows is no shared secret.
    for name in ["stripe", "github", "standardwebhooks", "qstash", "gumroad", "recharge"] {
        assert!(check(name, &pem).is_err(), "{name}");
    }
    assert_eq!(check("fusionauth", &pem), Ok(()));
    assert_eq!(check("fusionauth", "0123456789abcdef"), Ok(()));
    let private = private("test-rsa-key.pem");
    assert!(check("kick", &private).is_err() && check("fusionauth", &private).is_err());
}

fn private(file: &str) -> String {
    std::fs::read_to_string(inputs::root().join("tools").join(file)).unwrap()
}

/// What we sign with a private key holds with its public key, and with no other.
fn private_keys() {
    let rsa = private("test-rsa-key.pem");
    let public = case("highlevel/valid-basic").secrets()[0].clone();
    for name in ["kick", "wise", "fireblocks", "freshchat", "bridge", "wix"] {
        let provider = Registry::builtin().get(name).unwrap();
        let sample = provider.sample(None).unwrap();
        let id = sample.event_id(7);
        let body = sample.render(&id, NOW);
        let secret = Secret::new(rsa.as_str()).unwrap();
        let request = SignRequest {
            method: "POST",
            url: "https://hooks.example.com/in/x",
            body: &body,
            content_type: &sample.content_type,
            event_id: &id,
            event_type: Some(&sample.event),
            secret: Some(&secret),
            now_unix_micros: NOW,
        };
        let signed = provider.sign(&request).unwrap();
        let holds = |public: &str| {
            let options = VerifyOptions { identity: IdentityRule::Body, ..VerifyOptions::default() };
            let secrets = [Secret::new(public).unwrap()];
            let verifier = Verifier::new(Arc::clone(provider), &secrets, options).unwrap();
            verifier.verify(&signed.as_request(), NOW).is_ok()
        };
        assert!(holds(&public), "{name}");
        assert!(!holds(&case("kick/valid-basic").secrets()[0]), "{name}");
        let shared = Secret::new("0123456789abcdef").unwrap();
        let refused = provider.sign(&SignRequest { secret: Some(&shared), ..request });
        assert_eq!(refused, Err(SignError::NoPrivateKey), "{name}");
    }
}

fn jwt_verifier(provider: &Arc<Provider>, secret: &str) -> Verifier {
    let secrets = [Secret::new(secret).unwrap()];
    Verifier::new(Arc::clone(provider), &secrets, VerifyOptions::default()).unwrap()
}

fn reason(verifier: &Verifier, token: &str) -> Option<Reason> {
    let headers = [("X-FusionAuth-Signature-JWT", token)];
    let request = Request { method: "POST", target: "/", url: None, headers: &headers, body: b"{}" };
    verifier.verify(&request, NOW).err().map(|rejection| rejection.reason)
}

fn token(header: &str, claims: &str, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let text = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(sign(text.as_bytes())))
}

const CLAIMS: &str = r#"{"request_body_sha256":"RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o="}"#;

fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    use aws_lc_rs::hmac;
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref().to_vec()
}

/// The algorithm is the key's, whatever a token says.
fn confused_tokens() {
    let provider = Registry::builtin().get("fusionauth").unwrap();
    let secret = "0123456789abcdef0123456789abcdef";
    let shared = jwt_verifier(provider, secret);
    let hs256 = |header: &str| token(header, CLAIMS, |text| mac(secret.as_bytes(), text));
    assert_eq!(reason(&shared, &hs256(r#"{"alg":"HS256"}"#)), None);
    for header in [
        r#"{"alg":"none"}"#,
        r#"{"alg":"None"}"#,
        r#"{"alg":"hs256"}"#,
        r#"{"alg":"RS512"}"#,
        r#"{"alg":"HS256","crit":["exp"]}"#,
        r#"{"alg":"HS256","b64":false}"#,
        r#"{"typ":"JWT"}"#,
        r#"{"alg":["HS256"]}"#,
    ] {
        assert_eq!(reason(&shared, &hs256(header)), Some(Reason::SignatureMalformed), "{header}");
    }
    assert_eq!(reason(&shared, &hs256(r#"{"alg":"RS256"}"#)), Some(Reason::SignatureDiffers));
    assert_eq!(reason(&shared, &hs256(r#"{"alg":"HS512"}"#)), Some(Reason::SignatureDiffers));
    assert_eq!(
        reason(&shared, &token(r#"{"alg":"HS256"}"#, CLAIMS, |_| Vec::new())),
        Some(Reason::SignatureDiffers)
    );
    // A public key is never the key of a MAC.
    let pem = case("kick/valid-basic").secrets()[0].clone();
    let public = jwt_verifier(provider, &pem);
    let forged = token(r#"{"alg":"HS256"}"#, CLAIMS, |text| mac(pem.as_bytes(), text));
    assert_eq!(reason(&public, &forged), Some(Reason::SignatureDiffers));
}

fn odd_tokens() {
    let provider = Registry::builtin().get("fusionauth").unwrap();
    let secret = "0123456789abcdef0123456789abcdef";
    let verifier = jwt_verifier(provider, secret);
    let sign = |text: &[u8]| mac(secret.as_bytes(), text);
    let with = |claims: &str| reason(&verifier, &token(r#"{"alg":"HS256"}"#, claims, sign));
    assert_eq!(with("{}"), Some(Reason::ClaimDiffers));
    assert_eq!(with("[]"), Some(Reason::SignatureMalformed));
    assert_eq!(with("null"), Some(Reason::SignatureMalformed));
    assert_eq!(with(&"[".repeat(4000)), Some(Reason::SignatureMalformed));
    let plus = |claim: &str| with(&format!("{},{claim}}}", &CLAIMS[..CLAIMS.len() - 1]));
    assert_eq!(plus(r#""exp":1759999999"#), Some(Reason::TooOld));
    assert_eq!(plus(r#""exp":1760000001"#), None);
    assert_eq!(plus(r#""nbf":1760000001"#), Some(Reason::TooNew));
    assert_eq!(plus(r#""exp":"never""#), Some(Reason::TimestampMalformed));
    assert_eq!(plus(r#""exp":1e400"#), Some(Reason::TimestampMalformed));
    let good = token(r#"{"alg":"HS256"}"#, CLAIMS, sign);
    for odd in [
        "",
        ".",
        "..",
        "...",
        "a.b",
        "a.b.c",
        "é.é.é",
        &format!("{good}."),
        &format!("{good}="),
        &format!(".{good}"),
    ] {
        assert!(reason(&verifier, odd).is_some(), "{odd}");
    }
    assert!(reason(&verifier, &"a.".repeat(4000)).is_some());
}
