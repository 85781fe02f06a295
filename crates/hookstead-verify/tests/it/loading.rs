//! Records: all of the built-in ones are sound, and a broken one says where it is broken.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use hookstead_verify::{Confidence, Provider, ProviderError, Registry, SchemeSpec};
use libtest_mimic::Trial;

use crate::inputs;
use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("loading/every-record-is-embedded", every_record_is_embedded),
        trial("loading/every-provider-has-vectors", every_provider_has_vectors),
        trial("loading/facts", facts),
        trial("loading/volatile-values-make-no-conflict", volatile_values),
        trial("loading/unknown-key", unknown_key),
        trial("loading/errors-point-at-their-place", errors_point_at_their_place),
        trial("loading/unsafe-records", unsafe_records),
        trial("loading/joined-values-are-cut-in-one-way", joined_values_are_cut_in_one_way),
        trial("loading/own-schemes", own_schemes),
    ]
}

fn every_record_is_embedded() {
    let files = fs::read_dir(inputs::root().join("providers")).unwrap();
    let names: BTreeSet<_> = files
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
        .collect();
    let embedded: BTreeSet<_> =
        Registry::builtin().iter().map(|provider| provider.name().to_owned()).collect();
    assert_eq!(embedded, names);
    assert!(Registry::builtin().get("github").is_some() && Registry::builtin().get("githubb").is_none());
    assert_eq!(Registry::builtin().nearest("githubb"), Some("github"));
    assert_eq!(Registry::builtin().nearest("Stripe"), Some("stripe"));
    assert_eq!(Registry::builtin().nearest("something-else"), None);
}

/// At least one good, one bad, and one stale if it signs a time.
fn every_provider_has_vectors() {
    let cases = inputs::cases();
    let mut verdicts = BTreeMap::<&str, BTreeSet<&str>>::new();
    for case in &cases {
        verdicts.entry(&case.provider).or_default().extend(case.verdict());
    }
    let lacks = |provider: &Provider| {
        let verdicts = verdicts.get(provider.name()).cloned().unwrap_or_default();
        let mut wanted = vec!["valid"];
        wanted.extend((provider.needs_secret() || provider.publishes_keys()).then_some("bad_signature"));
        wanted.extend(provider.limits_time().then_some("stale"));
        let missing: Vec<_> = wanted.into_iter().filter(|wanted| !verdicts.contains(wanted)).collect();
        (!missing.is_empty()).then(|| format!("{}: {}", provider.name(), missing.join(", ")))
    };
    let lacking: Vec<_> = Registry::builtin().iter().filter_map(|provider| lacks(provider)).collect();
    assert!(lacking.is_empty(), "{} providers lack vectors:\n{}", lacking.len(), lacking.join("\n"));
}

fn facts() {
    let provider = |name| Registry::builtin().get(name).unwrap();
    for provider in Registry::builtin().iter() {
        let name = provider.name();
        assert!(!provider.title().is_empty(), "{name}");
        if provider.needs_secret() {
            let facts = provider.secret();
            assert!(facts.env.ends_with("_SECRET") || facts.env.ends_with("_PUBLIC_KEY"), "{name}");
            assert!(!facts.place.is_empty() && !provider.samples().is_empty(), "{name}");
        }
        if !["none", "signed-inbox"].contains(&name) {
            assert!(provider.docs().starts_with("https://"), "{name}");
        }
    }
    assert_eq!(provider("github").body_bytes_max(), Some(25 * 1024 * 1024));
    assert_eq!(provider("signed-inbox").body_bytes_max(), Some(65_536));
    assert_eq!(provider("slack").ack().status(), Some(200));
    assert_eq!(provider("slack").ack().body.as_deref(), Some(""));
    assert_eq!(provider("stripe").ack().status(), None);
    assert!(provider("stripe").volatile().iter().eq([("/pending_webhooks", Confidence::OfficialDocs)]));
    let digest = |body: &str| provider("stripe").comparison_digest(body.as_bytes()).unwrap();
    assert_eq!(digest(r#"{"id":1,"pending_webhooks":2}"#), digest(r#"{"id":1,"pending_webhooks":1}"#));
    assert_ne!(digest(r#"{"id":1,"pending_webhooks":2}"#), digest(r#"{"id":2,"pending_webhooks":2}"#));
    assert_eq!(provider("github").comparison_digest(b"{}"), None);
    assert_eq!(provider("gitlab").sensitive_headers(), ["X-Gitlab-Token"]);
    assert!(
        provider("stripe").sensitive_headers().is_empty() && provider("stripe").sensitive_query().is_empty()
    );
    assert!(provider("twilio").needs_url() && !provider("stripe").needs_url());
    assert!(provider("twilio").methods().eq(["POST", "GET"]) && provider("github").methods().eq(["POST"]));
    let covered = |name| provider(name).id_covered();
    assert!(["signed-inbox", "standardwebhooks", "svix", "stripe", "slack"].into_iter().all(covered));
    assert!(!["github", "gitlab", "shopify", "linear", "twilio", "none"].into_iter().any(covered));
    assert!(!provider("none").needs_secret() && !provider("none").has_id());
}

/// For every provider with volatile values: they may change, and nothing else may.
fn volatile_values() {
    let mut checked = 0;
    for provider in Registry::builtin().iter() {
        let pointers: Vec<_> = provider.volatile().iter().map(|(pointer, _)| pointer).collect();
        for pointer in &pointers {
            let steps: Vec<_> = pointer[1..].split('/').collect();
            let digest = |value: &str, other: &str| {
                let body = format!("{}\n", document(&steps, value, other));
                provider.comparison_digest(body.as_bytes()).unwrap()
            };
            let first = digest("1", "same");
            for value in ["2", "null", "\"text\"", "[1,{\"a\":2}]"] {
                assert_eq!(first, digest(value, "same"), "{} {pointer}", provider.name());
            }
            assert_ne!(first, digest("1", "other"), "{} {pointer}", provider.name());
            checked += 1;
        }
    }
    assert!(checked >= 18, "{checked}");
}

/// A document with a value at a place, and another one beside each step of the way there.
fn document(steps: &[&str], value: &str, other: &str) -> String {
    match steps {
        [] => value.to_owned(),
        ["*", rest @ ..] => {
            let item = document(rest, value, other);
            format!("[{item},{item}]")
        }
        [step, rest @ ..] => {
            format!("{{\"{step}\":{},\"beside\":\"{other}\"}}", document(rest, value, other))
        }
    }
}

const RECORD: &str = r#"title = "X"
confidence = "own"

[[scheme]]
kind = "hmac"
hash = "sha256"
sig = { at = "header.X-Sig", encoding = "hex" }
content = "{body}"

[event]
id = "{json:/id}"
"#;

fn broken(from: &str, to: &str) -> ProviderError {
    assert!(RECORD.contains(from), "{from}");
    let record = RECORD.replacen(from, to, 1);
    Provider::parse("x", &record).expect_err(to)
}

fn unknown_key() {
    assert!(Provider::parse("x", RECORD).is_ok());
    let error = broken("content =", "contnt =");
    assert_eq!((error.line, error.column), (8, 1));
    assert_eq!(error.suggestion.as_deref(), Some("content"));
    let shown = error.to_string();
    let expected = "  |\n8 | contnt = \"{body}\"\n  | ^^^^^^\ndid you mean `content`?";
    assert!(shown.starts_with("x.toml:8:1: unknown field `contnt`"), "{shown}");
    assert!(shown.ends_with(expected), "{shown}");
}

fn errors_point_at_their_place() {
    let check = |from: &str, to: &str, line: usize, message: &str| {
        let error = broken(from, to);
        assert_eq!(error.line, line, "{error}");
        assert!(error.message.contains(message), "{error}");
        assert!(error.to_string().contains('^'), "{error}");
    };
    check("title = \"X\"", "titel = \"X\"", 1, "unknown field `titel`");
    check("\"own\"", "\"owned\"", 2, "unknown variant `owned`");
    check("\"{json:/id}\"", "\"{jsn:/id}\"", 11, "unknown variable `jsn:/id`");
    check("\"{json:/id}\"", "\"{json:/a}{json:/b}\"", 11, "separator");
    check("\"{json:/id}\"", "[]", 11, "the list is empty");
    check("\"{body}\"", "\"{body|rot13}\"", 4, "unknown filter `rot13`");
    check("encoding = \"hex\"", "encoding = \"hax\"", 7, "unknown variant `hax`");
    check("encoding = \"hex\"", "kv = \"=\"", 4, "belong together");
    check("kind = \"hmac\"", "kind = \"hmak\"", 5, "unknown variant `hmak`");
    check("title = \"X\"", "title = ", 1, "");
}

fn unsafe_records() {
    let refused = |from: &str, to: &str, message: &str| {
        let error = broken(from, to);
        assert!(error.message.contains(message), "{error}");
    };
    let content = "content = \"{body}\"";
    refused(
        content,
        &format!("{content}\ntimestamp = {{ from = \"{{header.x-ts}}\", tolerance = 300 }}"),
        "proves nothing",
    );
    refused(
        content,
        &format!("{content}\ntimestamp = {{ from = \"1760000000\", tolerance = 300 }}"),
        "proves nothing",
    );
    refused(content, "content = \"{sig.t}.{body}\"", "needs a signature list");
    refused(content, "", "this kind needs `content`");
    refused("hash = \"sha256\"\n", "", "this kind needs `hash`");
    let separated =
        |separator: &str| format!("content = \"{{header.x-a}}.{{body}}\"\nseparator = {separator}");
    refused(content, &separated("{ text = \":\" }"), "is not in `content`");
    refused(content, &separated("{ text = \"\" }"), "is not in `content`");
    refused(content, &separated("{ text = \".\", free = \"header.x-b\" }"), "but not in `content`");
    refused("id = \"{json:/id}\"", "id = \"{header.x-id}\"\nid_covered = true", "no scheme signs this id");
    refused(
        "[event]",
        "[event]\nid_form = { first = \"z-a\", rest = \"a\", bytes_max = 1 }",
        "wrong way round",
    );
}

/// Records whose signed values are joined without a separator: nothing could be refused, and nothing that the
/// signature is not for anyway is decided by where they are cut.
const JOINED_DIRECTLY: &[&str] = &["dropbox-sign", "mailgun", "mailgun-routes", "midtrans"];

/// Values of a body are anybody's text: where several are signed as one, they have a separator that none of them but
/// one may hold.
fn joined_values_are_cut_in_one_way() {
    let mut directly = Vec::new();
    for provider in Registry::builtin().iter() {
        let record: toml::Table = Registry::builtin().toml(provider.name()).unwrap().parse().unwrap();
        for scheme in record["scheme"].as_array().unwrap() {
            let contents: Vec<&str> = match scheme.get("content") {
                Some(toml::Value::Array(contents)) => {
                    contents.iter().filter_map(|text| text.as_str()).collect()
                }
                content => content.and_then(|text| text.as_str()).into_iter().collect(),
            };
            let values = |content: &&str| {
                ["{json:", "{item:", "{form."]
                    .iter()
                    .map(|start| content.matches(start).count())
                    .sum::<usize>()
            };
            if contents.iter().map(values).max().unwrap_or_default() > 1 && scheme.get("separator").is_none()
            {
                directly.push(provider.name());
            }
        }
    }
    assert_eq!(directly, JOINED_DIRECTLY);
}

fn own_schemes() {
    let hmac =
        SchemeSpec { hmac: Some("sha256".into()), header: Some("x-sig".into()), ..SchemeSpec::default() };
    let problem = |spec: &SchemeSpec| spec.provider("partner").unwrap_err().to_string();
    let with = |change: &dyn Fn(&mut SchemeSpec)| {
        let mut spec = hmac.clone();
        change(&mut spec);
        problem(&spec)
    };
    assert!(hmac.provider("partner").is_ok());
    assert!(problem(&SchemeSpec::default()).contains("exactly one"));
    assert!(with(&|spec| spec.basic = true).contains("exactly one"));
    assert!(with(&|spec| spec.header = None).contains("needs `header`"));
    assert!(with(&|spec| spec.hmac = Some("md5".into())).contains("unknown variant `md5`"));
    assert!(with(&|spec| spec.encoding = Some("base32".into())).contains("unknown variant `base32`"));
    assert!(with(&|spec| spec.signed = Some("{header.x-id}".into())).contains("must cover the body"));
    assert!(with(&|spec| spec.timestamp = Some("x-ts".into())).contains("must cover the time"));
    assert!(with(&|spec| spec.signed = Some("{timestamp}{body}".into())).contains("needs `timestamp`"));
    assert!(with(&|spec| spec.tolerance_s = Some(5)).contains("need `timestamp`"));
    assert!(with(&|spec| spec.id = Some("json:/id".into())).contains("no variable"));
    let token = SchemeSpec { token: Some("x".into()), encoding: Some("hex".into()), ..SchemeSpec::default() };
    assert!(problem(&token).contains("belongs to `hmac`"));
    let covered = |id: &str| {
        let spec = SchemeSpec { id: Some(id.into()), ..hmac.clone() };
        spec.provider("partner").unwrap().id_covered()
    };
    assert!(covered("/id") && !covered("header:X-Id"));
    let unknown = toml::from_str::<SchemeSpec>("hmac = 'sha256'\nheadr = 'x'").unwrap_err();
    assert!(unknown.message().contains("unknown field `headr`"));
}
