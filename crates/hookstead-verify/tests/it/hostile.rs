//! Nothing that a stranger can send makes the crate panic, work without bound, or believe him.

use std::sync::Arc;

use hookstead_verify::{
    CANDIDATES_MAX, IdentityRule, KeyAnswer, KeySource, KeyWanted, Provider, Reason, Registry, Rejection,
    Request, Secret, Verifier, VerifyOptions,
};
use libtest_mimic::Trial;

use crate::inputs;
use crate::trial;

const SEED: u64 = 0x5eed_4665;
const ROUNDS: usize = 500;

pub(crate) fn trials() -> Vec<Trial> {
    // Those with a public key of their own have tests of their own.
    let open = |provider: &&Arc<Provider>| {
        provider.shares_secret() || provider.publishes_keys() || !provider.needs_secret()
    };
    let providers = Registry::builtin().iter().filter(open).map(|provider| {
        let provider = Arc::clone(provider);
        trial(format!("hostile/random/{}", provider.name()), move || random_requests(&provider))
    });
    let vectors =
        ["stripe/valid-basic", "standardwebhooks/valid-basic", "slack/valid-basic", "github/valid-basic"];
    let mutated = vectors.map(|id| trial(format!("hostile/mutated/{id}"), move || mutated_requests(id)));
    let others = [
        trial("hostile/too-many-signatures", too_many_signatures),
        trial("hostile/long-signature-header", long_signature_header),
        trial("hostile/odd-bodies-after-verification", odd_bodies),
        trial("hostile/gzip-bomb", gzip_bomb),
        trial("hostile/many-items", many_items),
        trial("hostile/deep-json-that-is-signed-sorted", deep_sorted),
        trial("hostile/numbered-headers", numbered_headers),
        trial("hostile/odd-wrapped-signatures", odd_wrapped),
    ];
    providers.chain(mutated).chain(others).collect()
}

/// A small generator (xorshift), so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit).unwrap()).unwrap()
    }

    fn pick<'t, T>(&mut self, list: &'t [T]) -> &'t T {
        &list[self.below(list.len())]
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        const PIECES: &[&[u8]] = &[
            b"v1=",
            b"v1,",
            b"t=",
            b"v0=",
            b"sha256=",
            b",",
            b" ",
            b"=",
            b"%",
            b"%2",
            b"+",
            b"&",
            b"\0",
            b"\xff",
            b"\xed\xa0\x80",
            b"{\"id\":",
            b"\"",
            b"\\ud800",
            b"[",
            b"]",
            b"}",
            b"1760000000",
            b"-",
            b"9223372036854775807",
            b"AAAA",
            b"0f",
            b":",
            b"?",
            b"#",
            b"Basic ",
            b"\xc3\xa9",
            b"\n",
        ];
        (0..self.below(most)).flat_map(|_| self.pick(PIECES).to_vec()).collect()
    }
}

const NAMES: &[&str] = &[
    "x-signature",
    "x-delivery-id",
    "x-timestamp",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "svix-id",
    "svix-timestamp",
    "svix-signature",
    "stripe-signature",
    "x-hub-signature-256",
    "x-github-delivery",
    "x-gitlab-token",
    "x-slack-signature",
    "x-slack-request-timestamp",
    "x-shopify-hmac-sha256",
    "linear-signature",
    "x-twilio-signature",
    "content-type",
    "authorization",
    "",
    "\u{e9}",
];

fn verifier(provider: &Arc<Provider>) -> Verifier {
    let secrets: Vec<Secret> = inputs::secret_for(provider).into_iter().collect();
    let identity = if provider.has_id() { IdentityRule::Provider } else { IdentityRule::Body };
    let options = VerifyOptions {
        url: Some("https://hooks.example.com/in/x".into()),
        identity,
        conf: inputs::conf_for(provider),
        key_source: provider.publishes_keys().then(|| Arc::new(NoKeys) as Arc<dyn KeySource>),
        ..VerifyOptions::default()
    };
    Verifier::new(Arc::clone(provider), &secrets, options).unwrap()
}

/// Has nothing, and knows nothing.
#[derive(Debug)]
struct NoKeys;

impl KeySource for NoKeys {
    fn keys(&self, _: &KeyWanted) -> KeyAnswer {
        KeyAnswer::Unknown
    }
}

fn random_requests(provider: &Arc<Provider>) {
    let verifier = verifier(provider);
    let mut random = Random(SEED);
    for round in 0..ROUNDS {
        let count = random.below(8);
        let mut headers: Vec<(&str, Vec<u8>)> =
            (0..count).map(|_| (*random.pick(NAMES), random.bytes(6))).collect();
        if random.below(2) == 0 {
            headers.push(("content-type", b"application/x-www-form-urlencoded".to_vec()));
        }
        let target = String::from_utf8_lossy(&random.bytes(6)).into_owned();
        let method = *random.pick(&["POST", "GET", "", "post"]);
        let body = random.bytes(12);
        let request = Request { method, target: &target, url: None, headers: &headers, body: &body };
        let now = *random.pick(&[1_760_000_000_000_000, 0, -1, i64::MIN, i64::MAX]);
        drop(verifier.handshake(&request));
        match verifier.verify(&request, now) {
            Ok(verified) => {
                assert!(
                    !provider.needs_secret() && !provider.publishes_keys(),
                    "round {round}: {request:?} is believed"
                );
                // Only that it returns: what an unsigned body holds is anyone's choice.
                drop(verified.identify());
            }
            Err(rejection) => drop(rejection.to_string()),
        }
    }
}

/// A valid request with pieces of its signature header cut, doubled and replaced.
fn mutated_requests(id: &str) {
    let vector = inputs::one(id);
    let verifier = vector.verifier();
    let body = vector.body();
    let mut random = Random(SEED);
    for _ in 0..ROUNDS {
        let mut headers: Vec<(String, Vec<u8>)> = vector
            .request
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.clone().into_bytes()))
            .collect();
        let at = random.below(headers.len());
        let value = &mut headers[at].1;
        let cut = random.below(value.len() + 1);
        let piece = random.bytes(3);
        value.splice(cut..cut, piece);
        let request = Request { headers: &headers, ..vector.with_body(&body) };
        if let Ok(verified) = verifier.verify(&request, vector.now_micros()) {
            drop(verified.identify());
            drop(verified.handshake());
        }
    }
}

fn too_many_signatures() {
    let vector = inputs::one("stripe/valid-basic");
    let valid = vector.request.headers.iter().find(|(name, _)| name == "Stripe-Signature").unwrap().1.clone();
    let verifier = vector.verifier();
    let body = vector.body();
    let refused = |header: &str| {
        let headers = [("Stripe-Signature", header)];
        let request = Request { headers: &headers, ..vector.with_body(&body) };
        verifier.verify(&request, vector.now_micros()).err().map(|rejection: Rejection| rejection.reason)
    };
    let padding = |count: usize| format!(",v1={}", "0".repeat(64)).repeat(count);
    assert_eq!(refused(&format!("{valid}{}", padding(CANDIDATES_MAX - 1))), None);
    assert_eq!(refused(&format!("{valid}{}", padding(CANDIDATES_MAX))), Some(Reason::TooManySignatures));
    assert_eq!(refused(&format!("{valid}{}", ",v1=00".repeat(10_000))), Some(Reason::SignatureMalformed));
    assert_eq!(refused(&format!("{valid},t=1760000000")), Some(Reason::PartRepeated));
}

fn long_signature_header() {
    let vector = inputs::one("shopify/valid-basic");
    let verifier = vector.verifier();
    let body = vector.body();
    let long = "A".repeat(1 << 20);
    let headers = [("X-Shopify-Hmac-Sha256", long.as_str())];
    let request = Request { headers: &headers, ..vector.with_body(&body) };
    let rejection = verifier.verify(&request, vector.now_micros()).unwrap_err();
    assert_eq!(rejection.reason, Reason::SignatureMalformed);
}

/// Bodies that are signed well and are still odd: the id is the bytes that were sent, or an error, never a
/// panic and never a guess.
fn odd_bodies() {
    let stripe = Registry::builtin().get("stripe").unwrap();
    let secret = Secret::new("whsec_0123456789abcdef0123456789abcdef").unwrap();
    let verifier = verifier(stripe);
    let id = |body: &[u8]| {
        let now_unix_micros = 1_760_000_000_000_000;
        let signed = stripe
            .sign(&hookstead_verify::SignRequest {
                method: "POST",
                url: "https://hooks.example.com/in/x",
                body,
                content_type: "application/json",
                event_id: "",
                event_type: None,
                secret: Some(&secret),
                now_unix_micros,
            })
            .unwrap();
        let request = signed.as_request();
        let verified = verifier.verify(&request, now_unix_micros).unwrap();
        verified.identify().ok().map(|event| event.event_id.unwrap())
    };
    let deep =
        [b"{\"x\":".to_vec(), vec![b'['; 100_000], vec![b']'; 100_000], b",\"id\":\"a\"}".to_vec()].concat();
    assert_eq!(id(&deep), Some(b"a".to_vec()));
    assert_eq!(id(&vec![b'['; 1_000_000]), None);
    assert_eq!(id(b"{\"id\":18446744073709551617}"), Some(b"18446744073709551617".to_vec()));
    assert_eq!(id(b"{\"id\":1e400}"), Some(b"1e400".to_vec()));
    assert_eq!(id(b"{\"id\":\"a\\u0000\"}"), Some(b"a\0".to_vec()));
    assert_eq!(id(b"{\"id\":\"\\udc00\\ud800\"}"), Some(b"\xed\xb0\x80\xed\xa0\x80".to_vec()));
    assert_eq!(id(b"{\"id\":\"\xff\"}"), None);
    assert_eq!(id(b"\xff\xfe\0"), None);
    assert_eq!(id(b""), None);
    assert_eq!(id(b"{\"id\":[\"a\"]}"), None);
    assert_eq!(id(b"{\"id\":\"a\",\"id\":\"b\"}"), Some(b"b".to_vec()));
}

fn refused(provider: &str, headers: &[(&str, &str)], body: &[u8]) -> Reason {
    let verifier = verifier(Registry::builtin().get(provider).unwrap());
    let request = Request { method: "POST", target: "/in/x", url: None, headers: &headers, body };
    verifier.verify(&request, 1_760_000_000_000_000).unwrap_err().reason
}

/// Ten kilobytes that unpack to more than is unpacked.
fn gzip_bomb() {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&vec![b'0'; 10 * 1024 * 1024]).unwrap();
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < 16 * 1024);
    let signature = "0".repeat(64);
    assert_eq!(refused("getstream", &[("X-Signature", &signature)], &bomb), Reason::PartMissing);
    assert_eq!(refused("getstream", &[("X-Signature", &signature)], b"\x1f\x8b\x08"), Reason::PartMissing);
}

fn many_items() {
    let item = r#"{"id":"a","clientState":"0123456789abcdef0123456789abcdef"}"#;
    let body = |count: usize| format!(r#"{{"value":[{}]}}"#, vec![item; count].join(","));
    let verifier = verifier(Registry::builtin().get("ms-graph").unwrap());
    let headers: [(&str, &str); 0] = [];
    let verify = |body: &str| {
        let request =
            Request { method: "POST", target: "/", url: None, headers: &headers, body: body.as_bytes() };
        verifier.verify(&request, 0).map(|_| ()).map_err(|rejection| rejection.reason)
    };
    assert_eq!(verify(&body(1_000)), Ok(()));
    for refused in [&body(1_001), &body(0), "{}", "[]", "", r#"{"value":7}"#, &"[".repeat(100_000)] {
        assert_eq!(verify(refused), Err(Reason::SignatureMissing), "{refused:.40}");
    }
    let other = format!(r#"{{"value":[{item},{}]}}"#, item.replace("0123", "1234"));
    assert_eq!(verify(&other), Err(Reason::SignatureDiffers));
}

fn deep_sorted() {
    let signature = "0".repeat(128);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let odd = [deep.as_str(), "", "{\"a\":\"\\ud800\"}", "{\"a\":1e999}", "{} {}"];
    for body in odd {
        let reason = refused("nowpayments", &[("x-nowpayments-sig", &signature)], body.as_bytes());
        assert_eq!(reason, Reason::PartMissing, "{body:.40}");
    }
    let reason = refused("nowpayments", &[("x-nowpayments-sig", &signature)], b"{\"a\":1,\"a\":2}");
    assert_eq!(reason, Reason::SignatureDiffers);
}

fn numbered_headers() {
    let names: Vec<String> = (1..=100).map(|number| format!("X-DocuSign-Signature-{number}")).collect();
    let headers: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "AAAA")).collect();
    assert_eq!(refused("docusign", &headers[..3], b"{}"), Reason::SignatureDiffers);
    assert_eq!(refused("docusign", &headers, b"{}"), Reason::TooManySignatures);
    assert_eq!(refused("docusign", &[], b"{}"), Reason::SignatureMissing);
}

fn odd_wrapped() {
    use base64::Engine as _;
    let wrap = |json: &str| base64::engine::general_purpose::STANDARD.encode(json);
    for json in [
        "[]",
        "{}",
        "{\"kid\":\"a\"}",
        "{\"signature\":7}",
        "{\"signature\":\"\\u001f\"}",
        &"{\"a\":".repeat(1000),
    ] {
        let reason = refused("ebay", &[("X-EBAY-SIGNATURE", &wrap(json))], b"{}");
        assert_eq!(reason, Reason::SignatureMalformed, "{json}");
    }
    assert_eq!(refused("ebay", &[("X-EBAY-SIGNATURE", "no base64!")], b"{}"), Reason::SignatureMalformed);
    let signed = wrap("{\"kid\":\"a\",\"signature\":\"AAAA\"}");
    assert_eq!(refused("ebay", &[("X-EBAY-SIGNATURE", &signed)], b"{}"), Reason::KeyUnknown);
}
