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
