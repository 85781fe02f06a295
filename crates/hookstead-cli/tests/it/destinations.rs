//! The verbs about destinations: the file they change, the server that takes it over, and what is refused untouched.

use std::fs;

use crate::harness::{ClosedPort, Request, Server, Target, wait_until};
use crate::terminal::{Ran, Terminal};

fn post(server: &Server, id: &str) {
    let reply = server.connect().exchange(&Request::signed(id, id.as_bytes()).bytes()).expect("an answer");
    assert_eq!(reply.status, 202, "{id}: {reply}");
}

fn config(terminal: &Terminal) -> String {
    fs::read_to_string(terminal.path("hookstead.toml")).expect("the configuration")
}

fn names(terminal: &Terminal) -> Vec<String> {
    let list = terminal.ok(&["destinations", "--json"]).json();
    let list = list["destinations"].as_array().expect("a list").clone();
    list.iter().map(|row| row["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn in_dev_mode_a_push_to_this_machine_works_at_once() {
    let terminal = Terminal::new();
    let server = terminal.serve();
    let target = Target::answering(200, b"ok");
    let url = format!("{}/webhooks", target.url());
    let added = terminal.ok(&["destinations", "add", "app", "--push", &url, "--json"]).json();
    assert_eq!((&added["reloaded"], &added["check"]["ok"]), (&true.into(), &true.into()), "{added}");
    let secret = added["secret"].as_str().expect("a secret");
    assert!(secret.starts_with("whsec_"), "{added}");
    assert_eq!(terminal.ok(&["destinations", "secret", "app"]).stdout.trim(), secret);
    terminal.ok(&["send", "stripe"]);
    let pushed = target.wait_for(1);
    assert!(pushed[0].header("webhook-signature").is_some(), "{pushed:?}");
    wait_until(
        || terminal.ok(&["deliveries", "show", "@:app", "--json"]).json()["state"] == "done",
        || "done".to_owned(),
    );
    assert!(!terminal.path("hookstead.toml").exists(), "still in dev mode");
    // Also after a start.
    assert_eq!(server.stop().code(), Some(0));
    let server = terminal.serve();
    terminal.ok(&["send", "github"]);
    target.wait_for(2);
    drop(server);
}

#[test]
fn what_it_finds_is_said_with_what_to_do() {
    let terminal = Terminal::new();
    let server = terminal.serve();
    terminal.ok(&["send", "stripe"]);
    let closed = ClosedPort::new();
    let port = closed.number();
    let url = format!("http://localhost:{port}/webhooks");
    let said = terminal.ok(&["destinations", "add", "app", "--push", &url]).stdout;
    for part in [
        "added    app ← every source",
        "secret   whsec_",
        &format!("check    POST {url}  →  no connection"),
        &format!("fix      nothing listens on localhost:{port}. Start your application"),
        "note     1 stored event is older than this destination. Deliver them too?  hookstead events redeliver --all --to app",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said =
        terminal.ok(&["destinations", "add", "nothing", "--exec", "/no/such/program", "--quiet"]).stdout;
    assert!(said.contains("check    exec /no/such/program  →  there is no such program"), "{said}");
    let said = terminal.ok(&["destinations", "add", "worker", "--pull", "--types", "a.*,b.*"]).stdout;
    assert!(said.contains("added    worker ← a.*, b.*") && said.contains("consume:worker"), "{said}");
    let exec = terminal.ok(&["destinations", "show", "nothing", "--json"]).json();
    assert_eq!(exec["command"], serde_json::json!(["/no/such/program", "--quiet"]), "{exec}");
    drop(server);
}

#[test]
fn the_file_keeps_its_comments_and_what_is_owed_stays() {
    let terminal = Terminal::configured();
    let commented = format!("# mine\n{}# the end\n", config(&terminal));
    terminal.write("hookstead.toml", &commented);
    let server = terminal.serve();
    let ran = terminal.ok(&["destinations", "add", "app", "--pull", "--sources", "conf"]);
    assert!(ran.stdout.contains("added    app ← conf"), "{ran:?}");
    assert_eq!(
        config(&terminal),
        format!("{commented}\n[destinations.app]\npull = true\nsources = [\"conf\"]\n")
    );
    post(&server, "a");
    assert_eq!(names(&terminal), ["app"]);
    let removed = terminal.ok(&["destinations", "remove", "app", "--json"]).json();
    assert_eq!(removed["reloaded"], true, "{removed}");
    assert_eq!(config(&terminal).trim_end(), commented.trim_end());
    let gone = terminal.ok(&["destinations", "show", "app", "--json"]).json();
    assert_eq!(
        (&gone["kind"], &gone["unfinished"]["waiting"]),
        (&serde_json::Value::Null, &1.into()),
        "{gone}"
    );
    post(&server, "b");
    assert_eq!(terminal.ok(&["deliveries", "--json"]).json()["deliveries"].as_array().map(Vec::len), Some(1));
    drop(server);
}

#[test]
fn a_pause_holds_for_every_event_until_it_is_resumed() {
    let target = Target::answering(200, b"");
    let terminal = Terminal::configured();
    let server = terminal.serve();
    terminal.ok(&["destinations", "add", "app", "--push", &target.url(), "--allow-private"]);
    let paused = terminal.ok(&["destinations", "pause", "app", "--json"]).json();
    assert_eq!(paused["paused"], true, "{paused}");
    assert!(terminal.ok(&["destinations"]).stdout.contains("paused"));
    post(&server, "a");
    assert_eq!(terminal.ok(&["destinations", "show", "app", "--json"]).json()["unfinished"]["waiting"], 1);
    assert!(target.got().is_empty());
    terminal.ok(&["destinations", "resume", "app"]);
    target.wait_for(1);
    terminal.ends(&["destinations", "pause", "nobody"], 3);
    drop(server);
}

#[test]
fn what_would_be_wrong_changes_nothing() {
    let terminal = Terminal::configured();
    let before = config(&terminal);
    let server = terminal.serve();
    let cases: [(&[&str], i32, &str); 12] = [
        (&["--push", "http://localhost:3000/"], 5, "`localhost` is the machine itself; nothing was changed"),
        (&["--push", "http://10.0.0.1/"], 5, "is a private address"),
        (&["--push", "http://169.254.169.254/", "--allow-private"], 5, "metadata service"),
        (&["--push", "http://0x7f.1/"], 5, "is a loopback address"),
        (&["--push", "localhost:3000/hooks"], 5, "write `https://localhost:3000/hooks`"),
        (&["--push", ""], 5, "does not begin with `http://`"),
        (&["--push"], 2, "a value is required"),
        (&[], 2, "--push <URL>"),
        (&["--pull", "--push", "http://a.example/"], 2, "cannot be used with"),
        (&["--pull", "--sources", "cnf"], 5, "did you mean `conf`?"),
        (&["--pull", "--source", "conf"], 2, "--sources"),
        (&["--pull", "--retry", "soon"], 5, "soon"),
    ];
    for (options, exit_code, said) in cases {
        let arguments = [&["destinations", "add", "app"], options].concat();
        let ran: Ran = terminal.ends(&arguments, exit_code);
        assert!(ran.stderr.contains(said), "{options:?}: {ran:?}");
        assert_eq!(ran.stdout, "", "{options:?}");
        assert_eq!(config(&terminal), before, "{options:?}");
    }
    let fix = terminal.ends(&["destinations", "add", "app", "--push", "http://localhost:3000/"], 5).stderr;
    assert!(fix.contains("  fix    set `allow_private = true` on the destination"), "{fix}");
    terminal.ends(&["destinations", "add", "a b", "--pull"], 5);
    terminal.ends(&["destinations", "remove", "app"], 3);
    assert_eq!(names(&terminal), Vec::<String>::new());

    terminal.ok(&["destinations", "add", "app", "--pull"]);
    let added = config(&terminal);
    assert!(
        terminal.ends(&["destinations", "add", "app", "--pull"], 5).stderr.starts_with("error[exists]: ")
    );
    assert!(terminal.ends(&["destinations", "secret", "app"], 5).stderr.starts_with("error[no-secret]: "));
    assert_eq!(config(&terminal), added);
    // A file with a mistake in it is left as it is.
    let unknown = added.replace("pull = true", "pull = true\nsorces = [\"conf\"]");
    terminal.write("hookstead.toml", &unknown);
    let ran = terminal.ends(&["destinations", "add", "other", "--pull"], 5);
    assert!(ran.stderr.contains("did you mean `sources`?"), "{ran:?}");
    assert_eq!(config(&terminal), unknown);
    drop(server);
}

#[test]
fn without_a_server_it_is_written_for_the_next_start() {
    let terminal = Terminal::configured();
    let none = terminal.ok(&["destinations"]);
    assert!(none.stderr.contains("no destinations"), "{none:?}");
    let added = terminal.ok(&["destinations", "add", "app", "--pull", "--json"]).json();
    assert_eq!(added["reloaded"], false, "{added}");
    let server = terminal.serve();
    post(&server, "a");
    assert_eq!(server.stop().code(), Some(0));
    assert_eq!(names(&terminal), ["app"]);
    let shown = terminal.ok(&["destinations", "show", "app"]).stdout;
    assert!(shown.contains("1 waiting"), "{shown}");
}

/// What the running server does not take over is taken back.
#[test]
fn what_the_server_refuses_is_taken_back() {
    let terminal = Terminal::configured();
    let server = terminal.serve();
    // The server was started in an environment that has no such variable.
    let before = config(&terminal);
    terminal.write(
        "hookstead.toml",
        &format!("{before}\n[sources.more]\nprovider = \"stripe\"\nsecret = {{ env = \"MORE\" }}\n"),
    );
    let more = config(&terminal);
    let mut terminal = terminal;
    terminal.set("MORE", "whsec_b25seS1mb3ItdGhlLXRlc3RzLW5ldmVyLXVzZWQ");
    let ran = terminal.ends(&["destinations", "add", "app", "--pull"], 5);
    assert!(ran.stderr.contains("the change was taken back"), "{ran:?}");
    assert!(ran.stderr.contains("MORE"), "{ran:?}");
    assert_eq!(config(&terminal), more);
    drop(server);
}
