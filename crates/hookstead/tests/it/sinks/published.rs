//! Keys that providers publish, and subscriptions that want to be confirmed: fetched outside of requests, from the
//! provider's own hosts, whose certificates are checked.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hookstead::keys::KeyCache;
use hookstead::sink::push::{Dialing, FetchError, Fetcher, Network, Resolving};
use hookstead::verify::vector::Vector;
use hookstead::verify::{
    Provider, Reason, Registry, Rejection, RejectionClass, Verifier, VerifyOptions, vector,
};
use serde_json::Value;
use tokio::net::TcpStream;

use super::target::{Step, Target, say};
use super::tls::{acceptor, certs};

const PATIENCE: Duration = Duration::from_secs(30);

/// Every name stands for a public address, every connection goes to the target that is set, and all are counted.
#[derive(Default)]
struct Switch {
    to: Mutex<Option<SocketAddr>>,
    stands_for: Mutex<Option<&'static str>>,
    dialed: Mutex<Vec<SocketAddr>>,
    asked: Mutex<Vec<String>>,
}

impl Switch {
    fn to(&self, target: &Target) {
        *self.to.lock().unwrap() = Some(target.address());
    }

    fn dialed(&self) -> usize {
        self.dialed.lock().unwrap().len()
    }
}

impl Network for Switch {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        self.asked.lock().unwrap().push(name.to_owned());
        let address = self.stands_for.lock().unwrap().unwrap_or("93.184.215.14");
        Box::pin(async move { Ok(vec![address.parse().unwrap()]) })
    }

    fn dial(&self, address: SocketAddr) -> Dialing<'_> {
        self.dialed.lock().unwrap().push(address);
        let to = *self.to.lock().unwrap();
        Box::pin(async move {
            match to {
                Some(target) => TcpStream::connect(target).await,
                None => Err(io::ErrorKind::ConnectionRefused.into()),
            }
        })
    }
}

fn document(status: &str, body: &[u8]) -> Vec<Step> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
    vec![Step::Read, say([head.as_bytes(), body].concat())]
}

fn vector(provider: &str, id: &str) -> (Vector, Value) {
    let path = format!("{}/../hookstead-verify/vectors/{provider}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let raw: Value = serde_json::from_str(&text).unwrap();
    let raw = raw.as_array().unwrap_or_else(|| raw["vectors"].as_array().unwrap());
    let raw = raw.iter().find(|raw| raw["id"] == id).unwrap().clone();
    let found = vector::parse(&text).unwrap().into_iter().find(|vector| vector.id == id).unwrap();
    (found, raw)
}

/// What the source of a vector says, and that it takes everybody's requests where it does not say whose.
fn conf(provider: &Provider, raw: &Value) -> BTreeMap<String, String> {
    let given: BTreeMap<_, _> = serde_json::from_value(raw["config"]["vars"].clone()).unwrap_or_default();
    provider.pins().map(|name| (name.to_owned(), "any".to_owned())).chain(given).collect()
}

/// A verifier whose keys are fetched over the network.
struct Scene {
    network: Arc<Switch>,
    verifier: Verifier,
    vector: Vector,
    raw: Value,
}

impl Scene {
    fn new(provider: &str, id: &str) -> Self {
        let network = Arc::new(Switch::default());
        let (cache, fetches) = KeyCache::new();
        tokio::spawn(fetches.run(fetcher(&network)));
        let (vector, raw) = vector(provider, id);
        let provider = Registry::builtin().get(provider).unwrap().clone();
        let options = VerifyOptions {
            conf: conf(&provider, &raw),
            key_source: Some(cache),
            ..VerifyOptions::default()
        };
        Self { network, verifier: Verifier::new(provider, &[], options).unwrap(), vector, raw }
    }

    fn verify(&self) -> Result<(), Rejection> {
        let body = self.vector.body().unwrap();
        self.verifier.verify(&self.vector.request(&body), self.vector.now_micros()).map(drop)
    }

    /// What comes of the request once the key is not only on its way.
    async fn settled(&self) -> Result<(), Reason> {
        let begin = Instant::now();
        loop {
            match self.verify() {
                Err(rejection) if rejection.reason == Reason::KeyNotAtHand => {
                    assert_eq!(rejection.class, RejectionClass::Unavailable);
                }
                settled => return settled.map_err(|rejection| rejection.reason),
            }
            assert!(begin.elapsed() < PATIENCE, "no key");
            tokio::task::yield_now().await;
        }
    }
}

fn fetcher(network: &Arc<Switch>) -> Fetcher {
    Fetcher::new(network.clone(), Some(certs("ca.pem")))
}

#[tokio::test]
async fn a_certificate_is_fetched_once_and_then_at_hand() {
    let scene = Scene::new("aws-sns", "aws-sns/valid-basic");
    let certs = scene.raw["config"]["certs"].as_object().unwrap();
    let (url, certificate) = certs.iter().next().unwrap();
    let certificate = certificate.as_str().unwrap().as_bytes();
    let target = Target::start_tls(document("200 OK", certificate), acceptor("published")).await;
    scene.network.to(&target);
    let first = scene.verify().unwrap_err();
    assert_eq!((first.reason, first.class), (Reason::KeyNotAtHand, RejectionClass::Unavailable));
    assert_eq!(scene.settled().await, Ok(()));
    for _ in 0..3 {
        assert_eq!(scene.verify(), Ok(()));
    }
    assert_eq!(scene.network.dialed(), 1, "one fetch");
    let seen = target.seen().pop().unwrap();
    let (host, path) = url.strip_prefix("https://").unwrap().split_once('/').unwrap();
    assert_eq!(seen.line, format!("GET /{path} HTTP/1.1"));
    assert_eq!(seen.value("host"), host);
}

#[tokio::test]
async fn an_unknown_key_is_unavailable_while_it_is_fetched_and_then_refused() {
    let scene = Scene::new("google-pubsub", "google-pubsub/valid-basic");
    let mut keys = scene.raw["config"]["jwks"].clone();
    keys["keys"].as_array_mut().unwrap().retain(|key| key["kid"] == "other-key");
    assert_eq!(keys["keys"].as_array().unwrap().len(), 1);
    let other = document("200 OK", keys.to_string().as_bytes());
    let target = Target::start_tls(other, acceptor("published")).await;
    scene.network.to(&target);
    let refused = scene.settled().await.unwrap_err();
    assert!([Reason::KeyUnknown, Reason::SignatureDiffers].contains(&refused), "{refused:?}");
    assert_eq!(scene.verify().unwrap_err().class, RejectionClass::NotVerified);
    assert_eq!(scene.network.dialed(), 1, "a stranger's key id costs no second fetch at once");
}

#[tokio::test]
async fn what_the_provider_does_not_have_is_remembered() {
    for answer in [document("404 Not Found", b""), document("200 OK", b"no certificate")] {
        let scene = Scene::new("aws-sns", "aws-sns/valid-basic");
        let target = Target::start_tls(answer, acceptor("published")).await;
        scene.network.to(&target);
        assert_eq!(scene.settled().await, Err(Reason::KeyUnknown));
        assert_eq!(scene.settled().await, Err(Reason::KeyUnknown));
        assert_eq!(scene.network.dialed(), 1);
    }
}

#[tokio::test]
async fn only_the_providers_own_certificate_and_a_public_address_are_trusted() {
    let network = Arc::new(Switch::default());
    let wrong = Target::start_tls(document("200 OK", b"ok"), acceptor("other")).await;
    network.to(&wrong);
    let get = async |url: &str| fetcher(&network).get(url, 1_000).await;
    let url = "https://sns.eu-west-1.amazonaws.com/a.pem";
    assert!(matches!(get(url).await, Err(FetchError::Unreached(why)) if why.contains("certificate")));
    assert_eq!(wrong.seen().len(), 0);
    for private in ["127.0.0.1", "10.0.0.8", "169.254.169.254", "::1"] {
        *network.stands_for.lock().unwrap() = Some(private);
        let dialed = network.dialed();
        assert!(
            matches!(get(url).await, Err(FetchError::Unreached(why)) if why.contains(private)),
            "{private}"
        );
        assert_eq!(network.dialed(), dialed, "{private}");
    }
    let error = get("http://sns.eu-west-1.amazonaws.com/a.pem").await.unwrap_err();
    assert!(matches!(&error, FetchError::Url(_)) && error.is_final(), "{error}");
}

#[tokio::test]
async fn a_document_is_bounded_and_a_redirect_is_none() {
    let network = Arc::new(Switch::default());
    let url = "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=a";
    for (answer, expected) in [
        (document("200 OK", &[b'x'; 1_001]), Err(FetchError::Body(1_000))),
        (document("200 OK", &[b'x'; 1_000]), Ok(1_000)),
        (document("302 Found\r\nlocation: https://evil.example/", b""), Err(FetchError::Status(302))),
        (document("503 Service Unavailable", b""), Err(FetchError::Status(503))),
    ] {
        let target = Target::start_tls(answer, acceptor("published")).await;
        network.to(&target);
        let found = fetcher(&network).get(url, 1_000).await.map(|document| document.len());
        assert_eq!(found, expected);
        assert_eq!(target.seen().pop().unwrap().line, "GET /?Action=ConfirmSubscription&Token=a HTTP/1.1");
    }
    assert!(!FetchError::Status(503).is_final() && FetchError::Status(404).is_final());
    assert!(!FetchError::Status(429).is_final() && !FetchError::Late.is_final());
}

/// The whole way of a subscription: signed, and its address at the provider's host.
#[tokio::test]
async fn a_signed_subscription_names_the_address_that_confirms_it() {
    let (vector, raw) = vector("aws-sns", "aws-sns/handshake-subscribe");
    let network = Arc::new(Switch::default());
    let certificate = raw["config"]["certs"].as_object().unwrap().values().next().unwrap();
    let certificate = document("200 OK", certificate.as_str().unwrap().as_bytes());
    let target = Target::start_tls(certificate, acceptor("published")).await;
    network.to(&target);
    let (cache, fetches) = KeyCache::new();
    tokio::spawn(fetches.run(fetcher(&network)));
    let provider = Registry::builtin().get("aws-sns").unwrap().clone();
    let conf = conf(&provider, &raw);
    let options = VerifyOptions { conf, key_source: Some(cache), ..VerifyOptions::default() };
    let verifier = Verifier::new(provider, &[], options).unwrap();
    let body = vector.body().unwrap();
    let request = vector.request(&body);
    assert_eq!(verifier.handshake(&request), None, "not before the signature holds");
    let begin = Instant::now();
    let verified = loop {
        match verifier.verify(&request, vector.now_micros()) {
            Ok(verified) => break verified,
            Err(rejection) => assert_eq!(rejection.reason, Reason::KeyNotAtHand),
        }
        assert!(begin.elapsed() < PATIENCE, "no key");
        tokio::task::yield_now().await;
    };
    let answer = verified.handshake().unwrap();
    let confirm = answer.fetch.unwrap();
    assert!(confirm.starts_with("https://sns.eu-west-1.amazonaws.com/"), "{confirm}");
    let confirming = Target::start_tls(document("200 OK", b"<ok/>"), acceptor("published")).await;
    network.to(&confirming);
    fetcher(&network).get(&confirm, 1_000).await.unwrap();
    assert!(confirming.seen().pop().unwrap().line.contains("ConfirmSubscription"));
    assert!(network.asked.lock().unwrap().iter().all(|name| name == "sns.eu-west-1.amazonaws.com"));
}
