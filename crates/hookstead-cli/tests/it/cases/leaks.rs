//! Theme secrets-leak: no secret is in a log, an answer, a metric, a record of an attempt or a file of the store.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::case::{hmac_hex, text, wire};
use super::owed::{SECRET, post, stage, wait_for};
use super::stage::Stage;
use crate::harness::{Admin, Target, wait_until};

const TOKEN: &str = "canary-of-the-query-7f31c2";
const KEY: &str = "canary-of-the-target-90ab44";

/// What an operator sees.
const PAGES: [&str; 9] = [
    "/metrics",
    "/readyz",
    "/v1/events",
    "/v1/events/@",
    "/v1/events/@/receipt",
    "/v1/deliveries",
    "/v1/sources",
    "/v1/stats",
    "/v1/conflicts",
];

#[test]
fn b199_a_token_of_the_query_and_a_key_in_a_targets_address_are_nowhere() {
    // Nobody listens there, so that the attempt fails with an error of the client's.
    let stage = stage(&format!(
        "[sources.az]\nprovider = \"azure-eventgrid\"\nsecret = {{ env = \"AZ\" }}\n\n\
         [destinations.app]\npush = \"http://127.0.0.1:1/hook?key={KEY}\"\nallow_private = true\nretry = [\"0s\", \"1h\"]\n"
    ))
    .variable("AZ", TOKEN)
    .variable("HOOKSTEAD_LOG", "trace");
    let server = stage.serve();
    for (token, status) in [(TOKEN.to_owned(), 202), (format!("{TOKEN}x"), 401)] {
        let body = br#"[{"id":"az-1","eventType":"a","topic":"/t"}]"#;
        let request =
            wire("POST", &format!("/in/az?code={token}"), &[("Content-Type", "application/json")], body);
        let reply = server.connect().exchange(&request).expect("an answer");
        assert_eq!(reply.status, status, "{reply}");
        assert_clean("the answer", format!("{reply:?} {reply}").as_bytes(), &[TOKEN, KEY]);
    }
    post(&server, "gen-1", b"x");
    let mut admin = server.admin();
    let failed = wait_for(&mut admin, "gen-1", "app", |delivery| delivery["attempts"] == 1);
    assert_clean("the attempt", failed.to_string().as_bytes(), &[TOKEN, KEY]);
    look_everywhere(&stage, &mut admin, &[TOKEN, KEY]);
    server.kill9();
    // The configuration is where the operator wrote the key.
    for file in files_below(stage.data()).into_iter().filter(|file| !file.ends_with("hookstead.toml")) {
        assert_clean(&file.display().to_string(), &fs::read(&file).expect("it can be read"), &[TOKEN, KEY]);
    }
}

#[test]
fn b200_the_most_talkative_log_holds_no_secret() {
    let target = Target::answering(200, b"");
    let stage = stage(&format!("[destinations.app]\npush = \"{}\"\nallow_private = true\n", target.url()))
        .variable("HOOKSTEAD_LOG", "trace")
        .variable("RUST_LOG", "trace");
    let server = stage.serve();
    let body = b"x";
    let signature = hmac_hex(SECRET, body);
    let fields = [
        ("X-Event-Id", "one"),
        ("X-Signature", signature.as_str()),
        ("Authorization", "Bearer canary-of-a-header-1"),
        ("Cookie", "session=canary-of-a-header-2"),
        ("Proxy-Authorization", "Basic canary-of-a-header-3"),
    ];
    let reply = server.connect().exchange(&wire("POST", "/in/gen", &fields, body)).expect("an answer");
    assert_eq!(reply.status, 202, "{reply}");
    target.wait_for(1);
    let mut admin = server.admin();
    wait_for(&mut admin, "one", "app", |delivery| delivery["state"] == "done");
    let data = Path::new(text(&server.ready()["data"]));
    let token = fs::read_to_string(data.join("admin.token")).expect("it can be read");
    look_everywhere(&stage, &mut admin, &[SECRET, token.trim()]);
    let log = fs::read(stage.data().join("server.log")).expect("there is a log");
    assert!(log.windows(5).any(|word| word == b"TRACE" || word == b"DEBUG"), "the log is talkative");
    assert_clean("the log", &log, &["canary-of-a-header"]);
}

#[test]
fn b201_a_wrong_signature_is_never_told_the_right_one() {
    let stage = stage("").variable("HOOKSTEAD_LOG", "trace");
    let server = stage.serve();
    let body = b"{\"forged\":true}";
    let right = hmac_hex(SECRET, body);
    let wrong = "0".repeat(64);
    let request = wire("POST", "/in/gen", &[("X-Event-Id", "one"), ("X-Signature", &wrong)], body);
    let reply = server.connect().exchange(&request).expect("an answer");
    assert_eq!(reply.status, 401, "{reply}");
    let in_base64 = STANDARD.encode(hex::decode(&right).expect("it is hex"));
    let forbidden = [right.as_str(), in_base64.as_str(), SECRET];
    assert_clean("the answer", format!("{reply:?} {reply}").as_bytes(), &forbidden);
    wait_until(|| !stage.log().is_empty(), || "no log".to_owned());
    look_everywhere(&stage, &mut server.admin(), &forbidden);
    assert!(server.admin().events().is_empty());
}

/// In the pages of the admin listener, and in the log.
fn look_everywhere(stage: &Stage, admin: &mut Admin, forbidden: &[&str]) {
    for page in PAGES {
        let reply = admin.get(page);
        assert_clean(page, format!("{reply:?} {reply}").as_bytes(), forbidden);
    }
    let log = fs::read(stage.data().join("server.log")).expect("there is a log");
    assert_clean("the log", &log, forbidden);
}

fn assert_clean(place: &str, bytes: &[u8], forbidden: &[&str]) {
    for word in forbidden {
        let found = bytes.windows(word.len()).position(|part| part == word.as_bytes());
        let around = found.map(|at| {
            let (begin, end) = (at.saturating_sub(80), bytes.len().min(at + 80));
            String::from_utf8_lossy(&bytes[begin..end]).into_owned()
        });
        assert_eq!(around, None, "{place} holds {word}");
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("it can be listed") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() { found.extend(files_below(&path)) } else { found.push(path) }
    }
    found
}
