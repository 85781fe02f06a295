//! Setting up a source: what would leave it open or dead is an error, and options do what they say.

use std::sync::Arc;

use hookstead_verify::{
    IdentifyError, IdentityRule, Provider, Reason, Registry, RejectionClass, Request, SchemeSpec, Secret,
    SecretError, Template, Verifier, VerifierError, VerifyOptions,
};
use libtest_mimic::Trial;

use crate::inputs;
use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("setup/fails-closed", fails_closed),
        trial("setup/secrets", secrets),
        trial("setup/tolerance", tolerance),
        trial("setup/identity", identity),
        trial("setup/github-scope", github_scope),
        trial("setup/missing-ids", missing_ids),
        trial("setup/url", url),
        trial("setup/fingerprint", fingerprint),
        trial("setup/open-handshake", open_handshake),
        trial("setup/nothing-leaks", nothing_leaks),
        trial("setup/secret-hand-over", secret_hand_over),
        trial("setup/subscription-address", subscription_address),
        trial("setup/whose-requests-are-taken-is-written-out", whose_requests_are_taken_is_written_out),
    ]
}

fn builtin(name: &str) -> Arc<Provider> {
    Arc::clone(Registry::builtin().get(name).unwrap())
}

fn secret(text: &str) -> Secret {
    Secret::new(text).unwrap()
}

fn refused(name: &str, secrets: &[&str], options: VerifyOptions) -> VerifierError {
    let secrets: Vec<_> = secrets.iter().map(|text| secret(text)).collect();
    Verifier::new(builtin(name), &secrets, options).unwrap_err()
}

fn fails_closed() {
    let none = VerifyOptions::default;
    assert_eq!(refused("github", &[], none()), VerifierError::NoSecret("github".into()));
    assert_eq!(refused("none", &["any-secret-0123"], none()), VerifierError::UselessSecret("none".into()));
    assert_eq!(refused("none", &[], none()), VerifierError::NoIdentity("none".into()));
    assert_eq!(refused("github", &["0123456789abcdef"; 17], none()), VerifierError::TooManySecrets(17));
    let spec = SchemeSpec { basic: true, ..SchemeSpec::default() };
    let provider = Arc::new(spec.provider("partner").unwrap());
    let error = Verifier::new(provider, &[secret("no-colon-in-here")], none()).unwrap_err();
    assert!(error.to_string().contains("user:password"), "{error}");
}

fn secrets() {
    let error = |name: &str, text: &str| match refused(name, &[text], VerifyOptions::default()) {
        VerifierError::Secret { index: 0, error, .. } => error,
        other => panic!("{other}"),
    };
    let short = |bytes, bytes_min| SecretError::TooShort { bytes, bytes_min };
    assert_eq!(error("signed-inbox", "0123456789abcde"), short(15, 16));
    assert_eq!(error("github", "1234567"), short(7, 8));
    assert_eq!(error("twilio", "12345"), short(5, 32));
    let coding = SecretError::Undecodable("base64");
    assert_eq!(error("standardwebhooks", "whsec_!!!!"), coding);
    assert_eq!(error("standardwebhooks", "whsec_xyz!"), coding);
    assert_eq!(error("standardwebhooks", "whsec_"), short(0, 16));
    assert_eq!(error("standardwebhooks", "whsec_YQ=="), short(1, 16));
    assert_eq!(error("svix", "v1,whsec_aG9va2JveC1zdGFuZGFyZC1rZXktMDEyMzQ1Njc4OSE="), coding);
    // The second of two is named as the second.
    let second = refused("github", &["0123456789abcdef", "short"], VerifyOptions::default());
    assert_eq!(second.to_string(), "secret 2 of github: the secret gives 5 bytes of key, fewer than 8");
    // A token that is no base64 fits the second scheme of GitLab.
    assert_eq!(builtin("gitlab").check_secret(&secret("a-token_0123")), Ok(()));
}

fn tolerance() {
    let vector = inputs::one("standardwebhooks/stale");
    let body = vector.body();
    let request = vector.with_body(&body);
    let with = |tolerance_s| {
        let options = VerifyOptions { tolerance_s: Some(tolerance_s), ..VerifyOptions::default() };
        let secrets: Vec<_> = vector.secrets.iter().map(|text| secret(text)).collect();
        Verifier::new(vector.provider(), &secrets, options)
    };
    let wide = with(301).unwrap();
    let verified = wide.verify(&request, vector.now_micros()).unwrap();
    assert_eq!(verified.skew_micros(), Some(301_000_000));
    assert_eq!(verified.signed_at(), Some(vector.now_micros() - 301_000_000));
    let narrow = with(10).unwrap().verify(&request, vector.now_micros()).unwrap_err();
    assert_eq!((narrow.reason, narrow.age_micros), (Reason::TooOld, Some(301_000_000)));
    assert_eq!(with(u32::MAX).unwrap_err(), VerifierError::Tolerance(u32::MAX));
    let options = VerifyOptions { tolerance_s: Some(300), ..VerifyOptions::default() };
    let useless = refused("github", &["0123456789abcdef"], options);
    assert_eq!(useless, VerifierError::UselessTolerance("github".into()));
}

fn identity() {
    let vector = inputs::one("stripe/valid-basic");
    let body = vector.body();
    let request = vector.with_body(&body);
    let identify = |identity: &str, event_type: Option<&str>| {
        let options = VerifyOptions {
            identity: identity.parse().unwrap(),
            event_type: event_type.map(|text| Template::from_selector(text).unwrap()),
            ..VerifyOptions::default()
        };
        let secrets: Vec<_> = vector.secrets.iter().map(|text| secret(text)).collect();
        let verifier = Verifier::new(vector.provider(), &secrets, options).unwrap();
        let event = verifier.verify(&request, vector.now_micros()).unwrap().identify().unwrap();
        (event.event_id.map(|id| String::from_utf8(id).unwrap()), event.event_type, verifier.id_covered())
    };
    let order = Some("order.created".to_owned());
    assert_eq!(identify("provider", None), (Some("id_fb25b5eb6dbc".into()), order.clone(), true));
    assert_eq!(identify("none", None), (None, order.clone(), false));
    let composite = identify("{json:/type}:{json:/amount}", Some("/object"));
    assert_eq!(composite, (Some("order.created:1999".into()), Some("event".into()), true));
    let (digest, _, covered) = identify("body", Some("header:Content-Type"));
    assert!(digest.unwrap().len() == 64 && covered);
    assert!(!identify("header:Content-Type", None).2);
}

/// One delivery id goes to every hook of an event.
fn github_scope() {
    let vector = inputs::one("github/valid-basic");
    let verifier = vector.verifier();
    let body = vector.body();
    let identify = |hook: Option<&str>| {
        let mut headers = vector.request.headers.clone();
        headers.extend(hook.map(|hook| ("X-GitHub-Hook-ID".to_owned(), hook.to_owned())));
        let request = Request { headers: &headers, ..vector.with_body(&body) };
        verifier.verify(&request, vector.now_micros()).unwrap().identify().unwrap()
    };
    assert_eq!(identify(None).scope, b"");
    assert_eq!(identify(Some("11")).scope, b"11");
    assert_eq!(identify(Some("11")).event_id, identify(None).event_id);
}

/// A missing or bad id is found after the verification, and never replaced by something else.
fn missing_ids() {
    let vector = inputs::one("github/valid-basic");
    let verifier = vector.verifier();
    let body = vector.body();
    let identify = |ids: &[&str]| {
        let mut headers = vector.request.headers.clone();
        headers.retain(|(name, _)| name != "X-GitHub-Delivery");
        headers.extend(ids.iter().map(|id| ("X-GitHub-Delivery".to_owned(), (*id).to_owned())));
        let request = Request { headers: &headers, ..vector.with_body(&body) };
        verifier.verify(&request, vector.now_micros()).unwrap().identify().map(|event| event.event_id)
    };
    assert_eq!(identify(&[]), Err(IdentifyError::Missing));
    assert_eq!(identify(&[" "]), Err(IdentifyError::Missing));
    assert_eq!(identify(&["\u{b}"]), Err(IdentifyError::Missing));
    assert!(matches!(identify(&["a", "b"]), Err(IdentifyError::Repeated(_))));
    assert_eq!(identify(&["../é'%_"]), Ok(Some("../é'%_".as_bytes().to_vec())));
    assert!(matches!(identify(&[&"x".repeat(8193)]), Err(IdentifyError::TooLong(8193))));
}

/// The address is the configured one with the raw query; a sender's `Host` plays no part.
fn url() {
    let vector = inputs::one("twilio/valid-query-in-url");
    let body = vector.body();
    let verify = |url: Option<&str>| {
        let options = VerifyOptions { url: url.map(str::to_owned), ..VerifyOptions::default() };
        let secrets: Vec<_> = vector.secrets.iter().map(|text| secret(text)).collect();
        let verifier = Verifier::new(vector.provider(), &secrets, options).unwrap();
        let found = verifier.verify(&vector.with_body(&body), vector.now_micros());
        found.map(|verified| verified.secret_index()).map_err(|rejection| (rejection.reason, rejection.class))
    };
    assert_eq!(verify(Some("https://hooks.example.com/in/twilio")), Ok(Some(0)));
    assert_eq!(verify(Some("https://hooks.example.com/in/twilio?other=1#rc=2")), Ok(Some(0)));
    let refused = |reason| Err((reason, RejectionClass::NotVerified));
    assert_eq!(verify(Some("http://hooks.example.com/in/twilio")), refused(Reason::SignatureDiffers));
    assert_eq!(verify(None), refused(Reason::UrlMissing));
}

fn fingerprint() {
    let of = |name: &str, identity: &str| {
        let options = VerifyOptions { identity: identity.parse().unwrap(), ..VerifyOptions::default() };
        let secrets = [secret("whsec_0123456789abcdef0123456789abcdef")];
        Verifier::new(builtin(name), &secrets, options).unwrap().identity_fingerprint()
    };
    assert_eq!(of("stripe", "provider"), of("stripe", "provider"));
    let all = [of("stripe", "provider"), of("stripe", "body"), of("stripe", "/type"), of("svix", "provider")];
    for (index, one) in all.iter().enumerate() {
        assert!(!all[..index].contains(one));
    }
}

fn open_handshake() {
    let record = r#"
title = "Asks first"
confidence = "own"
methods = ["POST", "GET"]

[[scheme]]
kind = "token"
sig = { at = "query.token" }

[event]
id = "{json:/id}"

[[handshake]]
name = "challenge"
auth = "none"
when = { method = "GET", present = ["query.challenge"], equals = { "query.mode" = ["subscribe", "unsubscribe"] } }
check = { "{query.mode}" = "{query.again}" }
respond = { status = 200, type = "text/plain", headers = { X-Echo = "{query.mode}" }, body = "{query.challenge}" }
"#;
    let provider = Arc::new(Provider::parse("asks", record).unwrap());
    assert_eq!(provider.sensitive_query(), ["token"]);
    let verifier = Verifier::new(provider, &[secret("0123456789abcdef")], VerifyOptions::default()).unwrap();
    let headers: [(&str, &str); 0] = [];
    let answer = |method: &str, target: &str| {
        verifier.handshake(&Request { method, target, url: None, headers: &headers, body: b"" })
    };
    let found = answer("GET", "/in/x?mode=subscribe&again=subscribe&challenge=a%20b").unwrap();
    assert_eq!(
        (found.name.as_str(), found.status, found.body.as_slice()),
        ("challenge", 200, b"a b".as_slice())
    );
    assert_eq!(found.headers, [("X-Echo".to_owned(), b"subscribe".to_vec())]);
    assert_eq!(answer("POST", "/in/x?mode=subscribe&again=subscribe&challenge=a"), None);
    assert_eq!(answer("GET", "/in/x?mode=other&again=other&challenge=a"), None);
    let refused = answer("GET", "/in/x?mode=subscribe&again=no&challenge=a").unwrap();
    assert_eq!((refused.status, refused.refused, refused.body.as_slice()), (403, true, b"".as_slice()));
    assert_eq!(answer("GET", "/in/x?mode=subscribe&again=subscribe"), None);
    let open = Request {
        method: "GET",
        target: "/in/x?mode=subscribe&again=subscribe&challenge=a&token=0123456789abcdef",
        url: None,
        headers: &headers,
        body: b"",
    };
    assert_eq!(
        verifier.verify(&open, 0).unwrap().handshake(),
        None,
        "an open handshake is not answered twice"
    );
    let long = format!("/in/x?mode=subscribe&again=subscribe&challenge={}", "a".repeat(9000));
    assert_eq!(answer("GET", &long), None);
}

fn nothing_leaks() {
    let vector = inputs::one("gitlab/valid-basic-v2");
    let verifier = vector.verifier();
    let body = vector.body();
    let request = vector.with_body(&body);
    let verified = verifier.verify(&request, vector.now_micros()).unwrap();
    let shown = format!("{verifier:?} {verified:?} {request:?} {:?}", secret(&vector.secrets[0]));
    let (start, end) = vector.secrets[0].split_at(8);
    assert!(!shown.contains(start) && !shown.contains(end), "{shown}");
    assert_eq!(verifier.secret_hint(0), Some("…3GYU"));
    assert!(matches!(verifier.options().identity, IdentityRule::Provider));
}

/// A secret is taken from a stranger only while there is none.
fn secret_hand_over() {
    for (name, header, body) in [
        ("asana", Some(("X-Hook-Secret", "handed-over-0123456")), ""),
        ("notion", None, r#"{"verification_token":"handed-over-0123456"}"#),
    ] {
        let provider = builtin(name);
        let headers: Vec<(&str, &str)> = header.into_iter().collect();
        let request =
            Request { method: "POST", target: "/in/x", url: None, headers: &headers, body: body.as_bytes() };
        let identity = IdentityRule::Body;
        let options = VerifyOptions { identity, ..VerifyOptions::default() };
        let awaiting = Verifier::awaiting_secret(Arc::clone(&provider), options.clone()).unwrap();
        let answer = awaiting.handshake(&request).unwrap();
        assert_eq!(answer.secret.unwrap().expose(), b"handed-over-0123456", "{name}");
        assert!(awaiting.verify(&request, 0).is_err(), "{name} is open before it has a secret");
        let settled = Verifier::new(provider, &[secret("stored-0123456789")], options).unwrap();
        assert_eq!(settled.handshake(&request), None, "{name} gives its secret away");
        assert!(settled.verify(&request, 0).is_err(), "{name}");
    }
    let error = Verifier::awaiting_secret(builtin("stripe"), VerifyOptions::default()).unwrap_err();
    assert_eq!(error, VerifierError::NoHandover("stripe".into()));
}

/// The address that confirms a subscription is the provider's, and is told only after the signature held.
fn subscription_address() {
    let mut cases = inputs::cases().into_iter();
    let case = cases.find(|case| case.id == "aws-sns/handshake-subscribe").unwrap();
    let verifier = case.verifier(Registry::builtin()).unwrap();
    let body = case.body().unwrap();
    let request = case.request(&body);
    assert_eq!(verifier.handshake(&request), None, "nothing is told before the signature was checked");
    let verified = verifier.verify(&request, case.now_micros()).unwrap();
    let fetch = verified.handshake().unwrap().fetch.unwrap();
    assert!(fetch.starts_with("https://sns.eu-west-1.amazonaws.com/?"), "{fetch}");
}

/// A provider that signs for everybody with one key: a source that does not say whose requests it takes is none.
fn whose_requests_are_taken_is_written_out() {
    let pinned: Vec<_> =
        Registry::builtin().iter().filter(|provider| provider.pins().next().is_some()).collect();
    assert_eq!(pinned.iter().map(|provider| provider.name()).collect::<Vec<_>>(), ["aws-sns"]);
    for provider in pinned {
        for left_away in [None, Some(""), Some("  ")] {
            let mut conf = inputs::conf_for(provider);
            let name = provider.pins().next().unwrap();
            match left_away {
                None => conf.remove(name),
                Some(blank) => conf.insert(name.to_owned(), blank.to_owned()),
            };
            let error = refused(provider.name(), &[], VerifyOptions { conf, ..VerifyOptions::default() });
            assert!(matches!(&error, VerifierError::NoConf { key, .. } if key == name), "{error}");
        }
    }
}
