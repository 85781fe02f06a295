//! `hookstead providers`: what is known of a provider, and a record of one's own, from the first line to requests
//! that are verified with it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::terminal::Terminal;

/// A provider that nobody has heard of: one file.
const ACME: &str = r#"
title = "Acme"
confidence = "own"

[[scheme]]
kind = "hmac"
hash = "sha256"
sig = { at = "header.X-Acme-Signature", encoding = "hex", prefix = "sha256=" }
content = "{header.X-Acme-Time}.{body}"
timestamp = { from = "{header.X-Acme-Time}", unit = "s", tolerance = 300 }

[event]
id = "{json:/id}"
type = "{json:/type}"
id_covered = true
"#;

const NOW: i64 = 1_760_000_000;
const BODY: &[u8] = br#"{"id":"evt_1","type":"order.paid"}"#;

/// By `printf '1760000000.{"id":"evt_1","type":"order.paid"}' | openssl dgst -sha256 -hmac acme-secret-0123456789`.
const SIGNATURE: &str = "b7ab8892a1967de2277d4a4dd45fa3cbd2f72796d7a08e87c36e2e7aa47fb876";

fn vector(case: &str, now: i64, signature: &str, expect: &Value) -> Value {
    json!({
        "id": format!("acme/{case}"), "provider": "acme", "kind": "verify", "now": now,
        "config": { "secrets": ["acme-secret-0123456789"] },
        "request": {
            "method": "POST", "path": "/in/acme", "body_b64": STANDARD.encode(BODY),
            "headers": [["X-Acme-Time", NOW.to_string()], ["X-Acme-Signature", format!("sha256={signature}")]],
        },
        "expect": expect,
    })
}

/// Its other file: a request that passes, one that must not, a stale one.
fn vectors() -> Vec<Value> {
    let good = json!({ "verdict": "valid", "event_id": "evt_1", "event_type": "order.paid" });
    vec![
        vector("good", NOW, SIGNATURE, &good),
        vector("bad", NOW, &SIGNATURE.replacen('a', "b", 1), &json!({ "verdict": "bad_signature" })),
        vector("stale", NOW + 301, SIGNATURE, &json!({ "verdict": "stale" })),
    ]
}

fn with_acme() -> Terminal {
    let terminal = Terminal::new();
    terminal.write("acme.toml", ACME);
    terminal.write("acme.json", &Value::from(vectors()).to_string());
    terminal
}

#[test]
fn a_provider_is_one_record_and_one_file_of_vectors() {
    let terminal = with_acme();
    let checked = terminal.ok(&["providers", "check", "acme.toml", "--json"]).json();
    assert_eq!((&checked["ok"], &checked["provider"]), (&json!(true), &json!("acme")));
    let tested = terminal.ok(&["providers", "test", "acme.json", "--record", "acme.toml"]);
    assert_eq!(tested.stdout, "3 passed, 0 failed\n");
}

#[test]
fn a_vector_with_another_verdict_is_named_with_its_reason() {
    let terminal = with_acme();
    let wrong = vector("wrong", NOW, &SIGNATURE.replacen('a', "b", 1), &json!({ "verdict": "valid" }));
    let all: Vec<Value> = vectors().into_iter().chain([wrong]).collect();
    // As an object, too.
    terminal.write("acme.json", &json!({ "vectors": all }).to_string());
    let test = ["providers", "test", "acme.json", "--record", "acme.toml"];

    let ran = terminal.ends(&test, 1);
    assert!(ran.stdout.contains("acme/wrong: bad_signature instead of valid"), "{ran:?}");
    assert!(ran.stdout.ends_with("3 passed, 1 failed\n"), "{ran:?}");

    let ran = terminal.ends(&[test.as_slice(), &["--json"]].concat(), 1).json();
    assert_eq!((&ran["passed"], &ran["failed"]), (&json!(3), &json!(1)));
    assert_eq!(ran["failures"][0]["id"], "acme/wrong");
}

/// Without the record nobody knows the provider: all of them fail, and nothing proves nothing.
#[test]
fn vectors_of_nobody_fail() {
    let terminal = with_acme();
    let ran = terminal.ends(&["providers", "test", "acme.json"], 1);
    assert!(ran.stdout.contains("there is no provider `acme`"), "{ran:?}");
    assert!(ran.stdout.ends_with("0 passed, 3 failed\n"), "{ran:?}");
    terminal.write("empty.json", "[]");
    assert!(terminal.ends(&["providers", "test", "empty.json"], 5).stderr.contains("proves nothing"));
    terminal.write("broken.json", "{");
    assert!(terminal.ends(&["providers", "test", "broken.json"], 5).stderr.contains("no file of vectors"));
    terminal.ends(&["providers", "test", "absent.json"], 3);
}

#[test]
fn a_record_that_cannot_be_used_is_shown_with_its_place() {
    let terminal = Terminal::new();
    terminal.write("acme.toml", &ACME.replace("content =", "contnet ="));
    let ran = terminal.ends(&["providers", "check", "acme.toml"], 5);
    for part in ["acme.toml:9:1", "unknown field `contnet`", "^^^^^^^", "did you mean `content`?"] {
        assert!(ran.stderr.contains(part), "{part}: {ran:?}");
    }
    let refused = terminal.ends(&["providers", "check", "acme.toml", "--json"], 5).json();
    assert_eq!(
        (&refused["problem"]["line"], &refused["problem"]["suggestion"]),
        (&json!(9), &json!("content"))
    );
    // A time that no signature covers.
    terminal.write("acme.toml", &ACME.replace("{header.X-Acme-Time}.{body}", "{body}"));
    terminal.ends(&["providers", "check", "acme.toml"], 5);
    terminal.ends(&["providers", "check", "absent.toml"], 3);
}

#[test]
fn a_provider_is_shown_with_what_is_not_verified() {
    let terminal = Terminal::new();
    insta::assert_snapshot!("providers-show-github", terminal.ok(&["providers", "show", "github"]).stdout);
    let github = terminal.ok(&["providers", "show", "github", "--json"]).json();
    assert_eq!(github["identity"]["id_covered"], false);
    assert_eq!(github["confidence"], "official-sdk");
    let ran = terminal.ends(&["providers", "show", "githbu"], 3);
    assert!(ran.stderr.contains("did you mean `github`?"), "{ran:?}");
}

#[test]
fn the_list_is_the_registry() {
    let terminal = Terminal::new();
    let list = terminal.ok(&["providers", "list", "--json"]).json();
    let list = list.as_array().expect("a list");
    assert!(list.len() >= 220, "{}", list.len());
    let found = terminal.ok(&["providers", "list", "Stripe"]);
    assert!(found.stdout.contains("stripe") && !found.stdout.contains("github"), "{found:?}");
    // What can be sent is a part of it.
    let sent = terminal.ok(&["send", "--list", "--json"]).json();
    let sent = sent.as_array().expect("a list");
    assert!(sent.len() > 150 && sent.len() < list.len(), "{}", sent.len());
    let listed = |entry: &Value| list.iter().any(|known| known["provider"] == entry["provider"]);
    assert!(sent.iter().all(listed));
}
