//! Did it arrive, when, what did we answer, when did it come again: an event by the id that its provider gave it.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Request, SOURCE, Server};
use crate::terminal::Terminal;

const ID: &str = "7c1f0000-0000-4000-8000-000000000042";

/// A delivery of GitHub under this hook; neither id nor hook are covered by its signature.
fn github(terminal: &Terminal, id: &str, hook: &str, body: &str) -> Request {
    terminal.write("body.json", body);
    let signed = terminal.ok(&["sign", "github", "--body", "body.json", "--id", id, "--json"]).json();
    let mut request = Request::new("POST", "/in/github", "localhost");
    for (name, value) in signed["headers"].as_object().expect("headers") {
        request = request.with(name, value.as_str().expect("a text"));
    }
    let request = request.replacing("X-GitHub-Delivery", id).replacing("X-GitHub-Hook-ID", hook);
    request.replacing("X-GitHub-Event", "push").with_body(body.as_bytes())
}

fn post(server: &Server, request: &Request, status: u16) {
    let reply = server.connect().exchange(&request.bytes()).expect("an answer");
    assert_eq!(reply.status, status, "{reply}");
}

#[test]
fn an_event_is_found_by_its_id_alone_though_it_has_a_scope() {
    check_found(&Terminal::new(), "sqlite");
    let mut files = Terminal::new();
    files.set("HOOKSTEAD_STORE", "files:inbox");
    check_found(&files, "files");
}

fn check_found(terminal: &Terminal, kind: &str) {
    let server = terminal.serve();
    post(&server, &github(terminal, ID, "4666", "{\"a\":1}"), 202);
    post(&server, &github(terminal, "another", "4667", "{\"a\":2}"), 202);
    post(&server, &github(terminal, ID, "4666", "{\"a\":1}"), 200);
    post(&server, &github(terminal, ID, "4666", "{\"a\":1}"), 200);
    post(&server, &github(terminal, ID, "4666", "{\"a\":3}"), 409);
    let name = format!("github:{ID}");
    let look = || {
        let show = terminal.ok(&["events", "show", &name, "--json"]).json();
        let text = terminal.ok(&["events", "show", &name]).stdout;
        let body = terminal.ok(&["events", "body", &name]).stdout;
        let receipt = terminal.ok(&["events", "show", &name, "--receipt"]).json();
        (show, text, body, receipt)
    };
    let online = look();
    let (show, text, body, receipt) = &online;
    assert_eq!((&show["short_id"], body.as_str()), (&json!("0001"), "{\"a\":1}"));
    assert_eq!((&show["duplicates"], &show["conflicts"]), (&json!(2), &json!(1)));
    assert_eq!(show["answers"], json!({ "stored": 202, "duplicate": 200, "conflict": 409 }));
    let last = show["last_duplicate_at"].as_str().expect("a time");
    for part in [
        &format!("2, last {last}"),
        "scope      4666",
        "1 other bodies",
        "202 when it was stored; 200 to a duplicate",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    check_receipt(receipt, show, kind);
    assert_eq!(server.admin().get(&format!("/v1/events/{name}/receipt")).json(), *receipt);
    server.stop();
    assert_eq!(look(), online, "from the store itself");
}

fn check_receipt(receipt: &Value, event: &Value, kind: &str) {
    let same = [
        "short_id",
        "source",
        "provider_event_id",
        "digest",
        "bytes",
        "received_at",
        "committed_at",
        "verified_by",
    ];
    for field in same {
        assert!(!event[field].is_null(), "{field}");
        assert_eq!(receipt[field], event[field], "{field}: {receipt}");
    }
    assert_eq!((&receipt["event"], &receipt["outcome"]), (&event["id"], &json!("stored")));
    assert_eq!(receipt["scope"], "4666");
    let store = &receipt["store"];
    assert_eq!((&store["kind"], &store["persistent"]), (&json!(kind), &json!(true)), "{receipt}");
    let rests_on = if kind == "sqlite" { "synchronous=EXTRA, log synced" } else { "fsync of the journal" };
    assert!(
        store["durability"].as_str().is_some_and(|durability| durability.contains(rests_on)),
        "{receipt}"
    );
}

#[test]
fn an_id_under_several_scopes_offers_a_choice() {
    let terminal = Terminal::new();
    let server = terminal.serve();
    for hook in ["4666", "4667"] {
        post(&server, &github(&terminal, ID, hook, "{}"), 202);
    }
    let name = format!("github:{ID}");
    let look = || {
        let verbs: [&[&str]; 4] = [
            &["events", "show", &name],
            &["events", "show", &name, "--receipt"],
            &["events", "body", &name],
            &["replay", &name, "--run", "r"],
        ];
        verbs.map(|verb| terminal.ends(verb, 2).stderr)
    };
    let online = look();
    for told in &online {
        assert!(told.starts_with("error[ambiguous]: "), "{told}");
        for part in ["2 events", "0001   scope 4666", "0002   scope 4667", "hookstead events show 0001"] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
    let reply = server.admin().get(&format!("/v1/events/{name}"));
    assert_eq!((reply.status, reply.json()["choices"][1]["short_id"].clone()), (409, json!("0002")));
    server.kill9();
    assert_eq!(look(), online);
    assert_eq!(terminal.ok(&["events", "show", "0002", "--json"]).json()["provider_event_id"], ID);
}

#[test]
fn what_never_came_is_said_with_what_was_searched() {
    let terminal = Terminal::new();
    let server = terminal.serve();
    post(&server, &github(&terminal, ID, "4666", "{}"), 202);
    terminal.ok(&["send", "stripe"]);
    let look = || {
        let show = |name: &str| terminal.ends(&["events", "show", name], 3).stderr;
        let receipt = terminal.ends(&["events", "show", "github:other", "--receipt"], 3);
        assert_eq!(receipt.stdout, "");
        [show("github:other"), receipt.stderr, show("stripe:evt_none"), show("gitlab:x"), show("zzzz")]
    };
    let online = look();
    let searched = [
        "searched source `github`: the id without a scope, and under the scopes of its newest events (1 in 1)",
        "searched source `github`: the id without a scope, and under the scopes of its newest events (1 in 1)",
        "searched source `stripe`: its newest events (1) have no scopes",
        "no event of a source `gitlab` was ever stored",
        "",
    ];
    for (told, searched) in online.iter().zip(searched) {
        assert!(told.starts_with("error[no-event]: ") && told.contains(searched), "{searched}: {told}");
    }
    server.kill9();
    assert_eq!(look(), online);
}

#[test]
fn an_older_event_is_found_as_long_as_its_scope_is_in_use() {
    let terminal = Terminal::new();
    let server = terminal.serve();
    post(&server, &github(&terminal, ID, "4666", "{}"), 202);
    // More than one page of newer events of the same hook.
    let newer = github(&terminal, "newer", "4666", "{}");
    let mut connection = server.connect();
    for number in 0..1100 {
        let request = newer.clone().replacing("X-GitHub-Delivery", &format!("newer-{number}"));
        assert_eq!(connection.exchange(&request.bytes()).expect("an answer").status, 202);
    }
    let shown = terminal.ok(&["events", "show", &format!("github:{ID}"), "--json"]).json();
    assert_eq!(shown["short_id"], "0001");
}

#[test]
fn what_a_provider_is_answered_is_what_its_record_says() {
    let terminal = Terminal::configured();
    let config = fs::read_to_string(terminal.path("hookstead.toml")).expect("the configuration");
    let policy = "secret = { file = \"secret\" }\nsuccess_status = 204\non_conflict = \"hold\"\n";
    terminal.write("hookstead.toml", &config.replace("secret = { file = \"secret\" }\n", policy));
    let server = terminal.serve();
    for (body, times) in [("one", 2), ("two", 1)] {
        for _ in 0..times {
            post(&server, &Request::signed("a", body.as_bytes()), 204);
        }
    }
    let show =
        || terminal.ok(&["events", "show", &format!("{SOURCE}:a"), "--json"]).json()["answers"].clone();
    assert_eq!(show(), json!({ "stored": 204, "duplicate": 204, "conflict": 204 }));
    server.kill9();
    assert_eq!(show(), json!({ "stored": 204, "duplicate": 204, "conflict": 204 }));
}
