//! Runs from outside (rules R50 to R55 of the contract): receipts that stay, with a server and without, and
//! refusals that leave nothing behind.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Request, SOURCE, Server, instant};
use crate::terminal::Terminal;

const REPORT: &[u8] =
    "{\"eventId\":\"business-42\",\"data\":{\"n\": 1.50, \"n\":1e2, \"html\":\"<&>\u{2028}\"} }".as_bytes();
const PAYLOAD: &str = "{\"n\": 1.50, \"n\":1e2, \"html\":\"<&>\u{2028}\"}";

/// Runs a check on each kind of store that outlives its process.
fn on_every_store(check: fn(&Terminal)) {
    check(&Terminal::configured());
    let files = Terminal::configured();
    let config = fs::read_to_string(files.path("hookstead.toml")).expect("the configuration");
    files.write("hookstead.toml", &config.replace("[store]\n", "[store]\nurl = \"files:inbox\"\n"));
    check(&files);
}

/// Posts a delivery that must be stored.
fn post(server: &Server, id: &str, body: &[u8]) {
    let reply = server.connect().exchange(&Request::signed(id, body).bytes()).expect("an answer");
    assert_eq!(reply.status, 202, "{id}: {reply}");
}

fn named(id: &str) -> String {
    format!("{SOURCE}:{id}")
}

fn replay(terminal: &Terminal, id: &str, run: &str) -> Value {
    terminal.ok(&["replay", &named(id), "--run", run, "--json"]).json()
}

/// The receipt as it was first given out.
fn known(receipt: &Value) -> Value {
    let mut known = receipt.clone();
    known["new"] = json!(false);
    known
}

#[test]
fn a_run_has_one_receipt_whoever_is_asked_for_it() {
    on_every_store(check_one_receipt);
}

fn check_one_receipt(terminal: &Terminal) {
    let server = terminal.serve();
    post(&server, "delivery-1", REPORT);
    let first = replay(terminal, "delivery-1", "run-1");
    assert_eq!(first["new"], true, "{first}");
    assert_eq!(replay(terminal, "delivery-1", "run-1"), known(&first));
    let other = replay(terminal, "delivery-1", "run-2");
    assert_eq!((&other["new"], &other["runId"]), (&json!(true), &json!("run-2")));
    server.kill9();
    assert_eq!(replay(terminal, "delivery-1", "run-1"), known(&first), "from the store itself");
    let offline = replay(terminal, "delivery-1", "run-3");
    assert_eq!(offline["new"], true, "{offline}");
    let server = terminal.serve();
    for receipt in [&first, &other, &offline] {
        let run = receipt["runId"].as_str().expect("a name");
        assert_eq!(replay(terminal, "delivery-1", run), known(receipt));
    }
    let listed = server.admin().get(&format!("/v1/events/{}/runs", named("delivery-1"))).json();
    let names: Vec<_> = listed["runs"].as_array().expect("a list").iter().map(|run| &run["runId"]).collect();
    assert_eq!(names, ["run-1", "run-2", "run-3"]);
    assert_eq!(listed["more"], false);
}

#[test]
fn a_receipt_holds_what_the_contract_says() {
    on_every_store(check_fields);
}

fn check_fields(terminal: &Terminal) {
    let server = terminal.serve();
    post(&server, "delivery-1", REPORT);
    let ran = terminal.ok(&["replay", "@", "--run", "run-1", "--json"]);
    assert!(ran.stdout.contains(&format!("\"payload\":{PAYLOAD},")), "byte for byte: {}", ran.stdout);
    let event = terminal.ok(&["events", "show", "@", "--json"]).json();
    let receipt = ran.json();
    let processed_at = receipt["processedAt"].as_str().expect("a time");
    assert!(processed_at.ends_with('Z'), "{receipt}");
    assert!(instant(&receipt["processedAt"]) > instant(&event["committed_at"]), "{receipt} of {event}");
    for (field, value) in [
        ("schemaVersion", json!(1)),
        ("deliveryId", json!("delivery-1")),
        ("runId", json!("run-1")),
        ("businessEventId", json!("business-42")),
        ("bodySHA256", event["digest"].clone()),
        ("event", event["id"].clone()),
        ("new", json!(true)),
    ] {
        assert_eq!(receipt[field], value, "{field}: {receipt}");
    }
    let text = terminal.ok(&["replay", "@", "--run", "run-1"]).stdout;
    assert!(
        text.starts_with("run-1   known") && text.contains("business-42") && text.contains("<&>"),
        "{text}"
    );
    let text = terminal.ok(&["replay", "@", "--run", "run-2"]).stdout;
    assert!(text.starts_with("run-2   new\n"), "{text}");
}

#[test]
fn payloads_of_every_kind_come_out_as_they_are() {
    on_every_store(check_payloads);
}

fn check_payloads(terminal: &Terminal) {
    let server = terminal.serve();
    let deep = format!("{}{}", "[".repeat(9000), "]".repeat(9000));
    for (id, data) in [("null", "null"), ("deep", &deep), ("text", "\"\\u003c\\ud800\"")] {
        post(&server, id, format!("{{\"eventId\":\"b\",\"data\":{data}}}").as_bytes());
        for new in [true, false] {
            let ran = terminal.ok(&["replay", "@", "--run", "r", "--json"]);
            assert!(ran.stdout.contains(&format!("\"payload\":{data},")), "{id}");
            assert!(ran.stdout.contains(&format!("\"new\":{new}")), "{id}");
        }
    }
    post(&server, "bytes", b"{\"eventId\":\"b\",\"data\":\"\xff\"}");
    let receipt = replay(terminal, "bytes", "r");
    assert_eq!((&receipt["payloadBase64"], receipt.get("payload")), (&json!("Iv8i"), None), "{receipt}");
}

#[test]
fn what_cannot_be_processed_leaves_nothing() {
    on_every_store(check_refusals);
}

fn check_refusals(terminal: &Terminal) {
    let server = terminal.serve();
    post(&server, "bad", b"not json");
    let look = || {
        let unreadable = terminal.ends(&["replay", &named("bad"), "--run", "run-1"], 5);
        assert!(unreadable.stderr.starts_with("error[unreadable]: "), "{unreadable:?}");
        let unknown = terminal.ends(&["replay", &named("none"), "--run", "run-1"], 3);
        assert!(unknown.stderr.starts_with("error[no-event]: "), "{unknown:?}");
        for malformed in ["", "-x", ".x", "a b", "a/b", &"x".repeat(129)] {
            let ran = terminal.run(["replay", &named("bad"), &format!("--run={malformed}")]);
            assert_eq!((ran.exit_code, ran.stdout.as_str()), (Some(2), ""), "{malformed}: {ran:?}");
        }
        [unreadable.stderr, unknown.stderr]
    };
    let online = look();
    let runs = format!("/v1/events/{}/runs", named("bad"));
    assert_eq!(server.admin().get(&runs).json(), json!({ "runs": [], "more": false }));
    server.kill9();
    assert_eq!(look(), online);
    let ran = terminal.ends(&["replay", "@", "--run", "r", "--server", "http://127.0.0.1:1"], 6);
    assert!(ran.stderr.starts_with("error[not-reachable]: "), "{ran:?}");
}

#[test]
fn a_store_is_not_made_by_a_replay() {
    let terminal = Terminal::configured();
    terminal.ends(&["replay", "@", "--run", "r"], 3);
    assert!(!terminal.path(".hookstead/hookstead.db").exists());
}

#[test]
fn a_damaged_receipt_is_neither_given_out_nor_replaced() {
    let terminal = Terminal::configured();
    let server = terminal.serve();
    post(&server, "delivery-1", REPORT);
    replay(&terminal, "delivery-1", "run-1");
    let database = Terminal::data(&server).join("hookstead.db");
    assert_eq!(server.stop().code(), Some(0));
    spoil_the_receipt(&database);
    let look = || terminal.ends(&["replay", &named("delivery-1"), "--run", "run-1"], 5).stderr;
    let offline = look();
    assert!(offline.starts_with("error[receipt-damaged]: ") && offline.contains("`run-1`"), "{offline}");
    let _server = terminal.serve();
    assert_eq!((look(), look()), (offline.clone(), offline));
    assert_eq!(replay(&terminal, "delivery-1", "run-2")["new"], true, "another run is another matter");
}

#[test]
fn a_source_that_is_not_configured_is_not_guessed_at() {
    let terminal = Terminal::configured();
    let server = terminal.serve();
    post(&server, "delivery-1", REPORT);
    server.kill9();
    let config = fs::read_to_string(terminal.path("hookstead.toml")).expect("the configuration");
    terminal.write("hookstead.toml", &config.replace(&format!("[sources.{SOURCE}]"), "[sources.other]"));
    let offline = terminal.ends(&["replay", "@", "--run", "r"], 5).stderr;
    assert!(offline.starts_with("error[source-not-configured]: "), "{offline}");
    let _server = terminal.serve();
    assert_eq!(terminal.ends(&["replay", "@", "--run", "r"], 5).stderr, offline);
}

#[test]
fn a_provider_without_a_processor_leaves_a_receipt_of_event_digest_and_time() {
    let terminal = Terminal::new();
    let server = terminal.serve();
    terminal.ok(&["send", "stripe"]);
    let first = terminal.ok(&["replay", "@", "--run", "r", "--json"]).json();
    assert_eq!((first.get("payload"), first.get("businessEventId")), (None, None), "{first}");
    assert_eq!(first["bodySHA256"].as_str().map(str::len), Some(64));
    server.kill9();
    assert_eq!(terminal.ok(&["replay", "@", "--run", "r", "--json"]).json(), known(&first));
}

#[test]
fn a_token_that_may_only_look_cannot_replay() {
    let mut terminal = Terminal::configured();
    let server = terminal.serve();
    post(&server, "delivery-1", REPORT);
    let reader = terminal.ok(&["token", "create"]).stdout;
    let operator = terminal.ok(&["token", "create", "--role", "operate"]).stdout;
    terminal.set("HOOKSTEAD_TOKEN", reader.trim());
    let ran = terminal.ends(&["replay", "@", "--run", "r"], 4);
    assert!(ran.stderr.starts_with("error[forbidden]: "), "{ran:?}");
    terminal.set("HOOKSTEAD_TOKEN", operator.trim());
    assert_eq!(replay(&terminal, "delivery-1", "r")["new"], true);
}

/// Changes the business id in the receipt; the one in the body stands behind a quotation mark.
fn spoil_the_receipt(database: &Path) {
    // What a clean stop leaves in the log is in the database as well; the log would be read instead of it.
    let log = database.with_extension("db-wal");
    if fs::exists(&log).expect("the folder can be read") {
        fs::remove_file(log).expect("the log can be removed");
    }
    let mut bytes = fs::read(database).expect("the database can be read");
    let part = b"business-42";
    let places = 1..bytes.len() - part.len();
    let mut found = places.filter(|at| bytes[*at..].starts_with(part) && bytes[at - 1] != b'"');
    let at = found.next().expect("the receipt is in the file");
    bytes[at] ^= 1;
    fs::write(database, bytes).expect("the database can be written");
}
