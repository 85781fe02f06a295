//! Following events in the terminal.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Request, Server, send_signal, wait_until};
use crate::terminal::Terminal;

/// A line is there by then, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A tail that runs.
struct Tail {
    child: Child,
    lines: Receiver<String>,
    talk: BufReader<ChildStderr>,
}

impl Tail {
    fn start(terminal: &Terminal, options: &[&str]) -> Self {
        let mut command = terminal.command(["tail"].iter().chain(options));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            // Whole, but for the end that every line has.
            let lines = stdout.split(b'\n').map_while(Result::ok);
            lines.map(|line| String::from_utf8(line).expect("text")).try_for_each(|line| tell.send(line))
        });
        let talk = BufReader::new(child.stderr.take().expect("a pipe"));
        Self { child, lines, talk }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line")
    }

    /// A line if one is there.
    fn line_by_now(&self) -> Option<String> {
        self.lines.try_recv().ok()
    }

    fn event(&self) -> Value {
        let line: Value = serde_json::from_str(&self.line()).expect("JSON");
        line["event"]["provider_event_id"].clone()
    }

    fn cursor(&self) -> String {
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
    let tail = Tail::start(&terminal, &["--cursor", "start", "--json"]);
    assert_eq!(tail.event(), "a");
    let cursor = tail.cursor();
    post(&server, "b");
    assert_eq!(tail.event(), "b");
    let talk = tail.interrupt();
    assert!(talk.contains("hookstead tail --cursor "), "{talk}");
    post(&server, "c");

    let again = Tail::start(&terminal, &["--cursor", &cursor]);
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
    let tail = Tail::start(&terminal, &["--cursor", "start", "--json"]);
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
    let tail = Tail::start(&terminal, &["--source", "stripe", "--json"]);
    // What comes before its first request is none of its, and nobody says when that was.
    let mut line = None;
    wait_until(
        || {
            terminal.ok(&["send", "github"]);
            terminal.ok(&["send", "stripe"]);
            line = tail.line_by_now();
            line.is_some()
        },
        || "a line of an event".to_owned(),
    );
    let line: Value = serde_json::from_str(&line.expect("it was waited for")).expect("JSON");
    assert_eq!(line["event"]["source"], "stripe", "{line}");
    tail.interrupt();
    drop(server);
}
