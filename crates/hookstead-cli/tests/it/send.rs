//! `send` and `sign`: every built-in provider against a server in dev mode, with what may go wrong on purpose.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::harness::Request;
use crate::terminal::Terminal;

/// Providers of each kind whose signature covers the body, so that a byte of it cannot change unnoticed.
const BENT: &[&str] = &[
    "adyen-platform",
    "github",
    "gitlab",
    "hubspot",
    "linear",
    "paddle",
    "postmark",
    "shopify",
    "signed-inbox",
    "slack",
    "square",
    "standardwebhooks",
    "stripe",
    "svix",
    "telegram",
    "twilio",
    "zoom",
];

#[test]
fn every_provider_stored_again_conflicting_forged_and_stale() {
    let terminal = Terminal::new();
    let server = terminal.serve();
    let providers = terminal.ok(&["send", "--list", "--json"]).json();
    let providers = providers.as_array().expect("a list");
    let mut checked = 0;
    for provider in providers {
        let name = provider["provider"].as_str().expect("a name");
        if BENT.contains(&name) {
            check_provider(&terminal, name, provider["timestamp"] == true);
            checked += 1;
        }
    }
    assert_eq!(checked, BENT.len());
    assert_eq!(server.admin().events().len(), checked, "only the good ones were stored");
}

fn check_provider(terminal: &Terminal, name: &str, has_timestamp: bool) {
    let send = |flags: &[&str]| terminal.ok(&[&["send", name, "--json"], flags].concat()).json();
    let first = send(&[]);
    assert!([200, 202].contains(&status(&first)), "{first}");
    let again = send(&["--duplicate"]);
    assert_eq!((status(&again), &again["id"]), (200, &first["id"]), "{again}");
    let conflict = send(&["--conflict"]);
    assert_eq!((status(&conflict), &conflict["id"]), (409, &first["id"]), "{conflict}");
    assert_eq!(conflict["bytes"], first["bytes"], "one byte changed, none added");
    let forged = send(&["--tamper"]);
    assert_eq!((status(&forged), &forged["code"]), (401, &Value::from("not-verified")), "{forged}");
    assert_ne!(forged["id"], first["id"], "a new event is forged");
    if has_timestamp {
        assert_eq!(status(&send(&["--stale"])), 401, "{name}");
    } else {
        let ran = terminal.ends(&["send", name, "--stale"], 2);
        assert!(ran.stderr.starts_with("error[never-stale]: "), "{ran:?}");
    }
}

#[test]
fn every_sample_event_is_accepted() {
    let terminal = Terminal::new();
    let _server = terminal.serve();
    for provider in terminal.ok(&["send", "--list", "--json"]).json().as_array().expect("a list") {
        let name = provider["provider"].as_str().expect("a name");
        for event in provider["events"].as_array().expect("a list of events") {
            let event = event.as_str().expect("a type");
            let sent = terminal.ok(&["send", name, "--event", event, "--json"]).json();
            assert_eq!(sent["event_type"], event, "{sent}");
        }
    }
    let ran = terminal.ends(&["send", "stripe", "--event", "nope"], 3);
    assert!(ran.stderr.contains("take one of: invoice.paid"), "{ran:?}");
}

#[test]
fn a_person_reads_what_was_sent_and_answered() {
    let terminal = Terminal::new();
    let _server = terminal.serve();
    let flags: [&[&str]; 5] = [&[], &["--duplicate"], &["--conflict"], &["--tamper"], &["--stale"]];
    let told: Vec<String> =
        flags.iter().map(|flags| terminal.ok(&[&["send", "stripe"], *flags].concat()).stdout).collect();
    let numbers = [(r"evt_HB\d{12}", "EVENT-ID"), (r"in \d+(\.\d+)? m?s", "in TIME")];
    insta::with_settings!({ filters => numbers.to_vec() }, {
        insta::assert_snapshot!("send-stripe", told.join("\n"));
    });
}

#[test]
fn a_repetition_with_nothing_before_it_sends_the_first_one_too() {
    let terminal = Terminal::new();
    let server = terminal.serve();
    let ran = terminal.ok(&["send", "stripe", "--duplicate"]);
    assert!(ran.stdout.contains("answer   202") && ran.stdout.contains("answer   200"), "{ran:?}");
    assert_eq!(server.admin().events().len(), 1);
    let remembered = Terminal::data(&server).join("last-sent.json");
    let mode = fs::metadata(remembered).expect("what was sent is remembered").permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

#[test]
fn many_are_counted() {
    let terminal = Terminal::new();
    let server = terminal.serve();
    let sent = terminal.ok(&["send", "github", "--count", "40", "--parallel", "4", "--json"]).json();
    assert_eq!((&sent["sent"], &sent["as_asked"]), (&Value::from(40), &Value::from(40)), "{sent}");
    assert_eq!(sent["statuses"], serde_json::json!({ "202": 40 }));
    assert_eq!(server.admin().events().len(), 40);
    let again = terminal.ok(&["send", "stripe", "--duplicate", "--count", "3", "--json"]);
    let last = again.json();
    assert_eq!(last["statuses"], serde_json::json!({ "200": 3 }), "{again:?}");
}

#[test]
fn a_wrong_secret_is_a_refusal_with_its_own_exit_code() {
    let mut terminal = Terminal::new();
    let server = terminal.serve();
    terminal.set("WRONG_SECRET", "whsec_0123456789abcdef0123456789abcdef");
    let ran = terminal.ends(&["send", "stripe", "--secret-env", "WRONG_SECRET"], 5);
    assert!(ran.stderr.starts_with("error[not-verified]: "), "{ran:?}");
    assert!(ran.stderr.contains("with the secret in $WRONG_SECRET"), "{ran:?}");
    assert!(server.admin().events().is_empty());
}

#[test]
fn what_sign_prints_can_be_sent() {
    let terminal = Terminal::new();
    let server = terminal.serve();
    for (number, provider) in ["stripe", "github", "svix"].iter().enumerate() {
        let signed = terminal.ok(&["sign", provider, "--json"]).json();
        let body = STANDARD.decode(signed["body_base64"].as_str().expect("a body")).expect("base64");
        let mut request = Request::new("POST", &format!("/in/{provider}"), "localhost");
        for (name, value) in signed["headers"].as_object().expect("headers") {
            request = request.with(name, value.as_str().expect("a text"));
        }
        let reply = server.connect().exchange(&request.with_body(&body).bytes()).expect("an answer");
        assert_eq!(reply.status, 202, "{provider}: {reply}");
        assert_eq!(server.admin().events().len(), number + 1);
    }
}

#[test]
fn sign_follows_the_published_example() {
    let mut terminal = Terminal::new();
    terminal.set("KEY", "0123456789abcdef");
    terminal.write("body", "{\"eventId\":\"business-42\",\"data\":{\"task\":\"review uploaded report\"}}\n");
    let ran = terminal.ok(&[
        "sign",
        "signed-inbox",
        "--secret-env",
        "KEY",
        "--id",
        "delivery-1",
        "--timestamp",
        "1770000000",
        "--body",
        "body",
    ]);
    let signature = "06ed80d3a128cdf1d26d48915bac7dca559cc4f56de676367b4bd3adf3a815aa";
    assert!(ran.stdout.contains(&format!("X-Signature: v1={signature}\n")), "{ran:?}");
}

fn status(sent: &Value) -> u64 {
    sent["status"].as_u64().unwrap_or_else(|| panic!("no status in {sent}"))
}
