//! The other verbs: exit codes, what goes to which stream, and that bytes stay bytes.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::harness::{Admin, Request, SOURCE, Server};
use crate::terminal::{Ran, Terminal};

#[test]
fn exit_codes_tell_what_happened() {
    let terminal = Terminal::new();
    let cases: [(&[&str], i32, &str); 9] = [
        (&["events", "show", "0001"], 3, "error[no-event]: "),
        (&["events", "show", "stripe:evt_1"], 3, "error[no-event]: "),
        (&["events", "body", "@"], 3, "error[no-event]: "),
        (&["events", "--source", "stripe", "--server", "http://127.0.0.1:1"], 6, "error[not-reachable]: "),
        (&["send", "stripe"], 6, "error[not-reachable]: "),
        (&["send", "nobody"], 3, "error[unknown-provider]: "),
        (&["store", "check"], 3, "error[no-store]: "),
        (&["events", "--nonsense"], 2, "error: "),
        (&["nonsense"], 2, "error: "),
    ];
    for (arguments, exit_code, begin) in cases {
        let ran = terminal.ends(arguments, exit_code);
        assert!(ran.stderr.starts_with(begin), "{arguments:?}: {ran:?}");
        assert_eq!(ran.stdout, "", "{arguments:?}: a failure is talk");
    }
    let ran = terminal.ok(&["events"]);
    assert!(ran.stdout.is_empty() && ran.stderr.contains("no events"), "{ran:?}");
}

#[test]
fn a_token_that_does_not_fit_is_not_allowed() {
    let mut terminal = Terminal::new();
    let server = terminal.serve();
    terminal.set("HOOKSTEAD_TOKEN", "wrong");
    let ran = terminal.ends(&["events"], 4);
    assert!(ran.stderr.starts_with("error[unauthorized]: "), "{ran:?}");
    drop(server);
}

#[test]
fn events_are_the_same_with_and_without_a_server() {
    let terminal = Terminal::configured();
    let server = terminal.serve();
    for id in ["a", "b", "c"] {
        post(&server, id, id.as_bytes(), 202);
    }
    let look = || {
        let list = terminal.ok(&["events", "--json"]).json();
        let page = terminal.ok(&["events", "list", "--limit", "2", "--json"]).json();
        let next = page["next"].as_str().expect("there is more").to_owned();
        let rest = terminal.ok(&["events", "--limit", "2", "--after", &next, "--json"]).json();
        let show = terminal.ok(&["events", "show", &format!("{SOURCE}:b"), "--json"]).json();
        let none = terminal.ends(&["events", "--source", "other"], 3);
        [list, page, rest, show, Value::from(none.stderr)]
    };
    let online = look();
    assert_eq!(ids(&online[0]), ["c", "b", "a"]);
    assert_eq!((ids(&online[1]), ids(&online[2])), (vec!["c", "b"], vec!["a"]));
    server.kill9();
    assert_eq!(look(), online);
}

#[test]
fn an_event_has_four_names() {
    let terminal = Terminal::configured();
    let server = terminal.serve();
    post(&server, "a", b"first", 202);
    post(&server, "b", b"second", 202);
    let show = |name: &str| terminal.ok(&["events", "show", name, "--json"]).json();
    let newest = show("@");
    assert_eq!(newest["provider_event_id"], "b");
    for name in [newest["id"].as_str(), newest["short_id"].as_str(), Some(&format!("{SOURCE}:b"))] {
        assert_eq!(show(name.expect("a name")), newest);
    }
    let text = terminal.ok(&["events", "show", "@", "--headers"]).stdout;
    for part in ["0002", SOURCE, newest["digest"].as_str().expect("a digest"), "6 bytes", "x-delivery-id: b"]
    {
        assert!(text.to_lowercase().contains(&part.to_lowercase()), "{part}: {text}");
    }
}

#[test]
fn a_body_is_exactly_what_came() {
    let terminal = Terminal::configured();
    let server = terminal.serve();
    let every_byte: Vec<u8> = (0..=255).chain(*b"\r\n\r\n").collect();
    post(&server, "bytes", &every_byte, 202);
    let read = || terminal.ok(&["events", "body", "@"]).bytes;
    assert_eq!(read(), every_byte);
    terminal.ok(&["events", "body", "@", "--output", "file"]);
    assert_eq!(fs::read(terminal.path("file")).expect("the file is there"), every_byte);
    terminal.ends(&["events", "body", "@", "--output", "file"], 1);
    terminal.ok(&["events", "body", "@", "--output", "file", "--force"]);
    server.kill9();
    assert_eq!(read(), every_byte, "from the store itself");
}

#[test]
fn a_changed_byte_is_found_and_its_event_named() {
    let terminal = Terminal::configured();
    let server = terminal.serve();
    post(&server, "whole", b"this one stays as it is", 202);
    post(&server, "spoilt", b"this one will be changed on the disk", 202);
    let event = terminal.ok(&["events", "show", "@", "--json"]).json()["id"].clone();
    let database = Terminal::data(&server).join("hookstead.db");
    assert_eq!(server.stop().code(), Some(0));
    // What a clean stop leaves in the log is in the database as well; the log would be read instead of it.
    remove_log(&database);
    let good = terminal.ok(&["store", "check", "--json"]).json();
    assert_eq!((&good["ok"], &good["events"]), (&Value::from(true), &Value::from(2)), "{good}");
    remove_log(&database);
    change_a_bit(&database);
    let bad = terminal.ends(&["store", "check", "--json"], 1).json();
    assert_eq!((&bad["ok"], &bad["problem_count"]), (&Value::from(false), &Value::from(1)), "{bad}");
    assert_eq!(bad["problems"][0]["event"], event, "{bad}");
    let told = terminal.ends(&["store", "check"], 1);
    assert!(told.stdout.contains(event.as_str().expect("an id")), "{told:?}");
    terminal.ends(&["events", "body", &format!("{SOURCE}:spoilt")], 1);
}

#[test]
fn a_check_runs_beside_the_server() {
    let terminal = Terminal::configured();
    let server = terminal.serve();
    for n in 1..=3 {
        post(&server, &format!("evt_{n}"), b"while the server runs", 202);
        let report = terminal.ok(&["store", "check", "--json"]).json();
        assert_eq!((&report["ok"], &report["events"]), (&Value::from(true), &Value::from(n)), "{report}");
    }
    post(&server, "evt_1", b"while the server runs", 200);
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn a_store_is_read_while_something_else_has_its_lock() {
    let terminal = Terminal::configured();
    let server = terminal.serve();
    post(&server, "evt_1", b"{}", 202);
    let lock = Terminal::data(&server).join("hookstead.db.lock");
    assert_eq!(server.stop().code(), Some(0));
    for record in ["", "pid = 1\nstarted_at_us = 1\n"] {
        fs::write(&lock, record).expect("the lock file can be written");
        let file = fs::File::open(&lock).expect("it is there");
        file.lock().expect("nobody has it");
        let listed = terminal.ok(&["events", "--json"]).json();
        assert_eq!(ids(&listed), ["evt_1"], "{listed}");
        terminal.ok(&["store", "check"]);
    }
}

#[test]
fn a_check_of_files_names_the_server_that_has_them() {
    let terminal = Terminal::configured();
    let config = fs::read_to_string(terminal.path("hookstead.toml")).expect("it was written");
    terminal.write("hookstead.toml", &config.replace("[store]\n", "[store]\nurl = \"files:records\"\n"));
    let server = terminal.serve();
    let ran = terminal.ends(&["store", "check"], 1);
    assert!(ran.stderr.starts_with("error[in-use]: "), "{ran:?}");
    assert!(ran.stderr.contains(&format!("kill {}", server.pid())), "{ran:?}");
}

#[test]
fn a_bit_of_the_log_that_changed_after_a_stop_costs_nothing() {
    let terminal = Terminal::configured();
    let server = terminal.serve();
    (1..=6).for_each(|n| post(&server, &format!("evt_{n}"), format!("body {n} of six").as_bytes(), 202));
    let log = Terminal::data(&server).join("hookstead.db-wal");
    assert_eq!(server.stop().code(), Some(0));
    let bytes = fs::read(&log).expect("a stop leaves the log");
    for part in ["body 3 of six", "body 6 of six", "evt_5"] {
        fs::write(&log, damaged(&bytes, part.as_bytes())).expect("the log can be written");
        let report = terminal.ok(&["store", "check", "--json"]).json();
        assert_eq!((&report["ok"], &report["events"]), (&Value::from(true), &Value::from(6)), "{report}");
    }
    let server = terminal.serve();
    post(&server, "evt_6", b"body 6 of six", 200);
}

#[test]
fn a_bit_of_the_log_that_changed_after_a_crash_is_named_and_refuses_the_start() {
    let terminal = Terminal::configured();
    let server = terminal.serve();
    (1..=6).for_each(|n| post(&server, &format!("evt_{n}"), format!("body {n} of six").as_bytes(), 202));
    let log = Terminal::data(&server).join("hookstead.db-wal");
    server.kill9();
    let bytes = fs::read(&log).expect("a crash leaves the log");
    fs::write(&log, damaged(&bytes, b"body 3 of six")).expect("the log can be written");
    let report = terminal.ends(&["store", "check", "--json"], 1).json();
    assert!(report["problems"].to_string().contains("hookstead.db-wal` is damaged"), "{report}");
    for verb in ["events", "serve"] {
        let ran = terminal.ends(&[verb], 1);
        assert!(ran.stderr.contains("hookstead.db-wal` is damaged"), "{ran:?}");
    }
    fs::write(&log, bytes).expect("the log can be written");
    let listed = terminal.ok(&["events", "--json"]).json();
    assert_eq!(listed["events"].as_array().map(Vec::len), Some(6), "{listed}");
}

#[test]
fn a_new_configuration_checks_clean_and_is_never_overwritten() {
    let terminal = Terminal::new();
    terminal.ok(&["config", "init"]);
    let written = fs::read_to_string(terminal.path("hookstead.toml")).expect("it was written");
    assert!(written.contains("[server]") && written.contains("# intake = "), "{written}");
    let checked = terminal.ok(&["config", "check", "--json"]).json();
    assert_eq!((&checked["ok"], checked["problems"].as_array().map(Vec::len)), (&Value::from(true), Some(0)));
    terminal.write("hookstead.toml", "# mine\n");
    let ran = terminal.ends(&["config", "init"], 1);
    assert!(ran.stderr.starts_with("error[file-exists]: "), "{ran:?}");
    assert_eq!(fs::read_to_string(terminal.path("hookstead.toml")).expect("still there"), "# mine\n");
    terminal.ok(&["config", "init", "--force"]);
    assert_eq!(fs::read_to_string(terminal.path("hookstead.toml")).expect("still there"), written);
    assert_eq!(terminal.ok(&["config", "init", "-"]).stdout, written);
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let terminal = Terminal::new();
    terminal.write(
        "prod.toml",
        "[server]\nintake = \"localhost:1\"\n\n[sources.stripe]\nsecrt = { env = \"A\" }\n",
    );
    let ran = terminal.ends(&["config", "check", "prod.toml"], 5);
    insta::assert_snapshot!("config-errors", ran.stderr);
    assert_eq!(ran.stdout, "");
    assert_eq!(terminal.ends(&["serve", "--config", "prod.toml"], 5).stderr, ran.stderr);
    let told = terminal.ends(&["config", "check", "prod.toml", "--json"], 5).json();
    let lines: Vec<_> =
        told["problems"].as_array().expect("a list").iter().map(|p| p["line"].as_u64()).collect();
    assert!(lines.contains(&Some(2)) && lines.contains(&Some(5)), "{told}");
}

#[test]
fn what_is_in_force_is_shown_with_where_it_comes_from() {
    let mut terminal = Terminal::configured();
    terminal.set("HOOKSTEAD_LOG", "debug");
    let shown = terminal.ok(&["config", "show", "--json"]).json();
    let origin = |key: &str| {
        let values = shown["values"].as_array().expect("a list");
        let found = values.iter().find(|value| value["key"] == key);
        found.unwrap_or_else(|| panic!("no {key} in {shown}"))["origin"].clone()
    };
    assert_eq!(origin("server.intake"), "line 2");
    assert_eq!(origin("observability.log_level"), "HOOKSTEAD_LOG");
    assert_eq!(origin("server.drain"), "default");
    let text = terminal.ok(&["config", "show"]).stdout;
    assert!(!text.contains(crate::harness::SECRET), "{text}");
}

#[test]
fn a_token_is_shown_once_and_opens_the_api() {
    let terminal = Terminal::new();
    let server = terminal.serve();
    let token = terminal.ok(&["token", "create", "--name", "ci"]).stdout;
    assert_eq!(token.lines().count(), 1, "only the token is data");
    let status = |token: &str| Admin::new(server.admin_address(), token).get("/v1/events").status;
    assert_eq!(status(token.trim()), 200);
    assert_eq!(status("wrong"), 401);
    let kept = fs::read_to_string(Terminal::data(&server).join("tokens")).expect("its hash is kept");
    assert!(kept.contains("\"ci\"") && !kept.contains(token.trim()), "{kept}");
    let document = terminal.ok(&["token", "create", "--role", "operate", "--json"]).json();
    assert_eq!(document["role"], "operate");
    terminal.ends(&["token", "create", "--role", "king"], 2);
}

#[test]
fn shells_get_their_completions() {
    let terminal = Terminal::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = terminal.ok(&["completions", shell]).stdout;
        assert!(script.contains("hookstead") && script.contains("completions"), "{shell}");
    }
}

#[test]
fn colours_come_and_go_as_they_are_asked_for() {
    let terminal = Terminal::configured();
    let server = terminal.serve();
    post(&server, "a", b"x", 202);
    let calls: [&[&str]; 6] = [
        &[],
        &["--help"],
        &["events"],
        &["events", "show", "@"],
        &["events", "show", "zzzz"],
        &["config", "show"],
    ];
    for arguments in calls {
        assert!(!has_escapes(&terminal.run(arguments)), "in a pipe: {arguments:?}");
    }
    let mut forced = terminal;
    forced.set("CLICOLOR_FORCE", "1");
    assert!(has_escapes(&forced.run(["events", "show", "@"])), "colours can be forced");
    forced.set("NO_COLOR", "1");
    forced.set("CLICOLOR_FORCE", "0");
    for arguments in calls {
        assert!(!has_escapes(&forced.run(arguments)), "NO_COLOR: {arguments:?}");
    }
}

#[test]
fn strangers_cannot_write_to_the_terminal() {
    let terminal = Terminal::new();
    let server = terminal.serve();
    terminal.write("body", "{\"id\":\"evt_\\u001b[31mred\",\"type\":\"\\u001b]0;title\\u0007\"}");
    let signed = terminal.ok(&["sign", "stripe", "--body", "body", "--json"]).json();
    let mut request = Request::new("POST", "/in/stripe", "localhost");
    for (name, value) in signed["headers"].as_object().expect("headers") {
        request = request.with(name, value.as_str().expect("a text"));
    }
    let body = fs::read(terminal.path("body")).expect("the body");
    let reply = server.connect().exchange(&request.with_body(&body).bytes()).expect("an answer");
    assert_eq!(reply.status, 202, "{reply}");
    for arguments in [&["events"][..], &["events", "show", "@", "--headers"]] {
        let ran = terminal.ok(arguments);
        assert!(ran.stdout.contains("evt_\\u{1b}[31mred"), "{ran:?}");
        assert!(!has_escapes(&ran), "{ran:?}");
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let terminal = Terminal::new();
    let mut child = terminal
        .command(["config", "init", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty());
}

#[test]
fn a_taken_port_is_told_with_a_way_out() {
    let (first, second) = (Terminal::new(), Terminal::new());
    let server = first.serve();
    let ran = second.ends(&["serve", "--intake", server.intake(), "--admin", "127.0.0.1:0"], 1);
    let begin = format!("error[port-in-use]: {} is taken\n", server.intake());
    assert!(ran.stderr.starts_with(&begin), "{ran:?}");
    assert!(ran.stderr.contains("  fix    take other ports:   hookstead serve --intake "), "{ran:?}");
    let again = first.ends(&["serve", "--intake", "127.0.0.1:0", "--admin", "127.0.0.1:0"], 1);
    assert!(again.stderr.starts_with("error[store-in-use]: "), "{again:?}");
    assert!(again.stderr.contains(&format!("pid {}", server.pid())), "{again:?}");
}

#[test]
fn a_server_that_a_program_started_ends_with_it() {
    let terminal = Terminal::new();
    let mut command = terminal.command(["serve", "--json", "--while-stdin", "--intake", "127.0.0.1:0"]);
    command.args(["--admin", "127.0.0.1:0"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary starts");
    let mut first = String::new();
    let mut stdout = std::io::BufReader::new(child.stdout.take().expect("stdout is a pipe"));
    std::io::BufRead::read_line(&mut stdout, &mut first).expect("a line");
    assert!(first.contains("\"ready\":true"), "{first}");
    drop(child.stdin.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn the_first_words_of_a_server() {
    let terminal = Terminal::new();
    let mut command = terminal.command(["serve", "--while-stdin", "--intake", "127.0.0.1:0"]);
    command.args(["--admin", "127.0.0.1:0"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary starts");
    let mut stdout = std::io::BufReader::new(child.stdout.take().expect("stdout is a pipe"));
    let mut words = String::new();
    while !words.contains("next ") {
        let read = std::io::BufRead::read_line(&mut stdout, &mut words).expect("a line");
        assert!(read > 0, "it ended early: {words}");
    }
    drop(child.stdin.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    let numbers = [
        (r"127\.0\.0\.1:\d{4,5}", "ADDRESS"),
        (r"hookstead \d+\.\d+\.\d+", "hookstead VERSION"),
        (r" {2,}", "  "),
    ];
    insta::with_settings!({ filters => numbers.to_vec() }, { insta::assert_snapshot!("banner", words) });
}

fn remove_log(database: &Path) {
    let log = database.with_extension("db-wal");
    if fs::exists(&log).expect("the folder can be read") {
        fs::remove_file(log).expect("the log can be removed");
    }
}

/// Changes one bit of the body of the event `spoilt`.
fn change_a_bit(database: &Path) {
    let bytes = fs::read(database).expect("the database can be read");
    fs::write(database, damaged(&bytes, b"changed on the disk")).expect("the database can be written");
}

/// The bytes of a file with one bit changed, in the first place that has `part`.
fn damaged(bytes: &[u8], part: &[u8]) -> Vec<u8> {
    let at = bytes.windows(part.len()).position(|window| window == part).expect("the part is in the file");
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 1;
    bytes
}

fn post(server: &Server, id: &str, body: &[u8], status: u16) {
    let reply = server.connect().exchange(&Request::signed(id, body).bytes()).expect("an answer");
    assert_eq!(reply.status, status, "{id}: {reply}");
}

fn ids(list: &Value) -> Vec<&str> {
    let events = list["events"].as_array().expect("a list of events");
    events.iter().map(|event| event["provider_event_id"].as_str().expect("an id")).collect()
}

fn has_escapes(ran: &Ran) -> bool {
    ran.stdout.contains('\u{1b}') || ran.stderr.contains('\u{1b}')
}
