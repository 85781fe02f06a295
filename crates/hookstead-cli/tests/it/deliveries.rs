//! The verbs about what is owed: dead letters and their way back, decisions, redeliveries, with and without a server.

use std::fs;

use serde_json::Value;

use crate::harness::{Request, SOURCE, Server, Target, wait_until};
use crate::terminal::Terminal;

/// A destination that gives up after two attempts, at once.
fn pushing_to(target: &Target) -> Terminal {
    with(&format!(
        "\n[destinations.app]\npush = \"{}/hooks\"\nallow_private = true\nretry = [\"0s\", \"0s\"]\n",
        target.url()
    ))
}

fn with(tables: &str) -> Terminal {
    let terminal = Terminal::configured();
    let config = fs::read_to_string(terminal.path("hookstead.toml")).expect("the configuration");
    terminal.write("hookstead.toml", &format!("{config}{tables}"));
    terminal
}

fn post(server: &Server, id: &str, body: &[u8]) {
    let reply = server.connect().exchange(&Request::signed(id, body).bytes()).expect("an answer");
    assert_eq!(reply.status, 202, "{id}: {reply}");
}

fn shown(terminal: &Terminal, delivery: &str) -> Value {
    terminal.ok(&["deliveries", "show", delivery, "--json"]).json()
}

fn until_state(terminal: &Terminal, delivery: &str, state: &str) -> Value {
    wait_until(
        || shown(terminal, delivery)["state"] == state,
        || format!("{delivery} {state}: {}", shown(terminal, delivery)),
    );
    shown(terminal, delivery)
}

fn ids(list: &Value) -> Vec<&str> {
    let deliveries = list["deliveries"].as_array().expect("a list");
    deliveries.iter().map(|delivery| delivery["id"].as_str().expect("an id")).collect()
}

#[test]
fn a_dead_letter_says_why_and_gets_there_at_last() {
    let target = Target::answering(500, b"out of \x1b[31mcheese");
    let terminal = pushing_to(&target);
    let server = terminal.serve();
    post(&server, "evt_1", b"{\"paid\":true}");
    let dead = until_state(&terminal, "0001:app", "dead");
    assert_eq!((&dead["attempts"], dead["log"].as_array().map(Vec::len)), (&2.into(), Some(2)), "{dead}");
    let last = &dead["log"][1];
    assert_eq!((&last["status"], &last["rule"]), (&500.into(), &"server-error".into()), "{last}");
    let text = terminal.ok(&["deliveries", "show", "0001:app"]).stdout;
    for part in ["dead: as many attempts", "server-error", "500", "out of \\u{1b}[31mcheese"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(ids(&terminal.ok(&["deliveries", "--state", "dead", "--json"]).json()), ["0001:app:1"]);

    target.answer(200, b"thanks");
    let again = terminal.ok(&["deliveries", "redeliver", "0001:app", "--note", "fixed", "--json"]).json();
    // It may be on its way by the time it is told.
    assert_eq!(again["id"], "0001:app:2", "{again}");
    let done = until_state(&terminal, "0001:app", "done");
    assert_eq!(done["log"][0]["rule"], "success", "{done}");
    assert_eq!(until_state(&terminal, "0001:app:1", "dead"), dead, "the history stays");
    let pushed = target.got();
    let is_ours = |line: &str, body: &[u8]| line == "POST /hooks HTTP/1.1" && body == b"{\"paid\":true}";
    assert!(pushed.iter().all(|pushed| is_ours(&pushed.line, &pushed.body)), "{pushed:?}");
    let key = pushed[0].header("idempotency-key");
    assert!(pushed.iter().all(|pushed| pushed.header("idempotency-key") == key), "one key: {pushed:?}");
    assert_eq!(pushed.len(), 3);
}

#[test]
fn a_person_decides_with_and_without_a_server() {
    let terminal = with("\n[destinations.app]\npull = true\n");
    let server = terminal.serve();
    post(&server, "a", b"a");
    post(&server, "b", b"b");
    let decide = || {
        let held = terminal.ok(&["deliveries", "hold", "0001:app", "--note", "later", "--json"]).json();
        assert_eq!((&held["state"], &held["decision"]["note"]), (&"held".into(), &"later".into()), "{held}");
        let twice = terminal.ends(&["deliveries", "hold", "0001:app"], 5);
        assert!(
            twice.stderr.starts_with("error[delivery-state]: `0001:app`: the delivery is held"),
            "{twice:?}"
        );
        assert_eq!(ids(&terminal.ok(&["deliveries", "--state", "held", "--json"]).json()), ["0001:app:1"]);
        let free = terminal.ok(&["deliveries", "release", "0001:app"]).stdout;
        assert!(free.contains("released 0001:app:1   waiting"), "{free}");
    };
    decide();
    assert_eq!(server.stop().code(), Some(0));
    decide();
    let done = terminal.ok(&["deliveries", "done", "@:app", "--note", "by hand", "--json"]).json();
    assert_eq!((&done["event"], &done["state"]), (&"0002".into(), &"done".into()), "{done}");
    let server = terminal.serve();
    assert_eq!(shown(&terminal, "0002:app")["decision"]["note"], "by hand");
    let page = terminal.ok(&["deliveries", "--limit", "1", "--json"]).json();
    let next = page["next"].as_str().expect("there is more");
    let rest = terminal.ok(&["deliveries", "--limit", "1", "--after", next, "--json"]).json();
    assert_eq!((ids(&page), ids(&rest)), (vec!["0002:app:1"], vec!["0001:app:1"]));
    drop(server);
}

#[test]
fn what_is_not_there_is_said_with_an_exit_code_and_changes_nothing() {
    let terminal = with("\n[destinations.app]\npull = true\n");
    let none = terminal.ok(&["deliveries"]);
    assert!(none.stderr.contains("no deliveries"), "{none:?}");
    terminal.ends(&["deliveries", "show", "0001:app"], 3);
    terminal.ends(&["events", "redeliver", "@", "--to", "app"], 3);
    assert!(!terminal.path(".hookstead/hookstead.db").exists(), "a look makes no store");
    let server = terminal.serve();
    post(&server, "a", b"a");
    let cases: [(&[&str], i32, &str); 11] = [
        (&["deliveries", "show", "0001:nobody"], 3, "error[no-destination]: "),
        (&["deliveries", "show", "0009:app"], 3, "error[no-event]: "),
        (&["deliveries", "show", "0001:app:7"], 3, "error[no-delivery]: "),
        (&["deliveries", "done", "app"], 3, "error[no-delivery]: "),
        (&["deliveries", "redeliver", "0001:app"], 5, "error[delivery-state]: "),
        (&["deliveries", "--destination", "nobody"], 3, "error[no-destination]: "),
        (&["deliveries", "--state", "lost"], 2, "error: "),
        (&["events", "redeliver", "0001", "--to", "nobody"], 3, "error[no-destination]: "),
        (&["events", "redeliver", "0001", "--all", "--to", "app"], 2, "error: "),
        (&["events", "redeliver", "--to", "app"], 2, "error: "),
        (&["redeliveries", "show", "nonsense"], 3, "error[no-redelivery]: "),
    ];
    for (arguments, exit_code, begin) in cases {
        let ran = terminal.ends(arguments, exit_code);
        assert!(ran.stderr.starts_with(begin), "{arguments:?}: {ran:?}");
        assert_eq!(ran.stdout, "", "{arguments:?}: a failure is talk");
    }
    let list = terminal.ok(&["deliveries", "--json"]).json();
    assert_eq!((ids(&list), &list["deliveries"][0]["state"]), (vec!["0001:app:1"], &"waiting".into()));
    drop(server);
}

#[test]
fn the_past_is_delivered_to_a_destination_that_came_later() {
    let terminal = Terminal::configured();
    let server = terminal.serve();
    for id in ["a", "b", "c"] {
        post(&server, id, id.as_bytes());
    }
    assert_eq!(server.stop().code(), Some(0));
    let target = Target::answering(204, b"");
    let config = fs::read_to_string(terminal.path("hookstead.toml")).expect("the configuration");
    let table = format!("\n[destinations.app]\npush = \"{}\"\nallow_private = true\n", target.url());
    terminal.write("hookstead.toml", &format!("{config}{table}"));
    // Without a server the deliveries are made; they go out when one runs.
    let one = terminal.ok(&["events", "redeliver", &format!("{SOURCE}:b"), "--to", "app"]).stdout;
    assert!(one.contains("again    0002:app:1   waiting"), "{one}");
    let server = terminal.serve();
    target.wait_for(1);
    until_state(&terminal, "0002:app", "done");
    let all =
        terminal.ok(&["events", "redeliver", "--all", "--to", "app", "--note", "a start", "--json"]).json();
    let id = all["id"].as_str().expect("an id");
    let redelivery = || terminal.ok(&["redeliveries", "show", id, "--json"]).json();
    // The verb watches it for a while only; it goes on by itself.
    wait_until(|| redelivery()["state"] == "complete", || redelivery().to_string());
    assert_eq!((&redelivery()["made"], &redelivery()["note"]), (&3.into(), &"a start".into()));
    assert!(terminal.ok(&["redeliveries"]).stdout.contains(id));
    let over = terminal.ends(&["redeliveries", "cancel", id], 5);
    assert!(over.stderr.starts_with("error[redelivery-ended]: "), "{over:?}");
    let mut bodies: Vec<_> = target.wait_for(4).into_iter().map(|pushed| pushed.body).collect();
    bodies.sort();
    assert_eq!(bodies, [b"a", b"b", b"b", b"c"]);
    drop(server);
}
