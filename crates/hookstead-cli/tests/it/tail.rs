//! Following events in the terminal.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, ChildStdout, Stdio};

use serde_json::Value;

use crate::harness::{Request, Server, send_signal, wait_until};
use crate::terminal::Terminal;

/// A tail that runs.
struct Tail {
    child: Child,
    lines: BufReader<ChildStdout>,
    talk: BufReader<ChildStderr>,
}

impl Tail {
    fn start(terminal: &Terminal, options: &[&str]) -> Self {
        let mut command = terminal.command(["tail"].iter().chain(options));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe"));
        let talk = BufReader::new(child.stderr.take().expect("a pipe"));
        Self { child, lines, talk }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        line
    }

    fn event(&mut self) -> Value {
        let line: Value = serde_json::from_str(&self.line()).expect("JSON");
        line["event"]["provider_event_id"].clone()
    }

    fn cursor(&mut self) -> String {
        let line: Value = serde_json::from_str(&self.line()).expect("JSON");
        line["cursor"].as_str().unwrap_or_else(|| panic!("no cursor in {line}")).to_owned()
    }

    /// Ends it as a person does; what it said of where to go on.
    fn interrupt(mut self) -> String {
        send_signal("INT", self.child.id());
        assert_eq!(self.child.wait().expect("it ends").code(), Some(130));
        self.talk.lines().map_while(Result::ok).collect::<Vec<_>>().join("\n")
    }
}

fn post(server: &Server, id: &str) {
    let reply = server.connect().exchange(&Request::signed(id, id.as_bytes()).bytes()).expect("an answer");
    assert_eq!(reply.status, 202, "{id}: {reply}");
}

/// Nothing is drawn again, so a line that was read is a line that stays.
#[test]
fn events_are_told_as_they_come_and_a_cursor_goes_on_without_a_gap() {
    let terminal = Terminal::configured();
    let server = terminal.serve();
    post(&server, "a");
    let mut tail = Tail::start(&terminal, &["--cursor", "start", "--json"]);
    assert_eq!(tail.event(), "a");
    let cursor = tail.cursor();
    post(&server, "b");
    assert_eq!(tail.event(), "b");
    let talk = tail.interrupt();
    assert!(talk.contains("hookstead tail --cursor "), "{talk}");
    post(&server, "c");

    let mut again = Tail::start(&terminal, &["--cursor", &cursor]);
    for id in ["b", "c"] {
        let line = again.line();
        assert!(line.contains(&format!("  conf  no type  {id}  stored")), "{line}");
        assert!(!line.contains(['\r', '\u{1b}']), "{line:?}");
    }
    again.interrupt();
    drop(server);
}

#[test]
fn a_server_that_is_started_anew_is_waited_for() {
    let terminal = Terminal::configured();
    let server = terminal.serve();
    post(&server, "a");
    let mut tail = Tail::start(&terminal, &["--cursor", "start", "--json"]);
    assert_eq!(tail.event(), "a");
    tail.cursor();
    server.kill9();
    let server = terminal.serve();
    post(&server, "b");
    assert_eq!(tail.event(), "b");
    tail.cursor();
    let talk = tail.interrupt();
    assert!(talk.starts_with("away "), "{talk}");
    drop(server);
}

#[test]
fn what_cannot_be_followed_is_said() {
    let terminal = Terminal::configured();
    let ran = terminal.ends(&["tail"], 6);
    assert!(
        ran.stderr.starts_with("error[not-reachable]: ") && ran.stderr.contains("hookstead serve"),
        "{ran:?}"
    );
    let server = terminal.serve();
    assert!(terminal.ends(&["tail", "--source", "nobody"], 3).stderr.starts_with("error[unknown-source]: "));
    assert!(terminal.ends(&["tail", "--cursor", "nonsense"], 2).stderr.starts_with("error[usage]: "));
    drop(server);
}

/// Filters hold, and a tail without a cursor begins with what comes.
#[test]
fn only_what_is_asked_for_is_told() {
    let terminal = Terminal::new();
    let server = terminal.serve();
    terminal.ok(&["send", "stripe"]);
    let mut tail = Tail::start(&terminal, &["--source", "stripe", "--json"]);
    // It is there when a request of it waits; until then events are none of its.
    let mut sent = 0;
    wait_until(
        || {
            sent += 1;
            terminal.ok(&["send", "github"]);
            terminal.ok(&["send", "stripe"]);
            sent == 3
        },
        || "three".to_owned(),
    );
    let line: Value = serde_json::from_str(&tail.line()).expect("JSON");
    assert_eq!(line["event"]["source"], "stripe", "{line}");
    tail.interrupt();
    drop(server);
}
