//! Following events in the terminal.

use std::io::{self, BufRead, BufReader, ErrorKind};
use std::process::{Child, ChildStderr, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::Value;

use crate::harness::{PATIENCE, Request, Server, send_signal, wait_until};
use crate::terminal::Terminal;

/// A tail that runs.
struct Tail {
    child: Child,
    lines: Receiver<io::Result<String>>,
    talk: BufReader<ChildStderr>,
}

impl Tail {
    fn start(terminal: &Terminal, options: &[&str]) -> Self {
        let mut command = terminal.command(["tail"].iter().chain(options));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (tell, lines) = channel();
        std::thread::spawn(move || tell_lines(stdout, &tell));
        let talk = BufReader::new(child.stderr.take().expect("a pipe"));
        Self { child, lines, talk }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line").expect("a whole line")
    }

    /// A line if one is there.
    fn line_by_now(&self) -> Option<String> {
        self.lines.try_recv().ok().map(|line| line.expect("a whole line"))
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

/// Tells every line up to the end of the output, or up to the first that is none.
fn tell_lines(mut output: impl BufRead, tell: &Sender<io::Result<String>>) {
    while let Some(line) = whole_line(&mut output).transpose() {
        let failed = line.is_err();
        // Where nobody listens any more the test is over.
        if tell.send(line).is_err() || failed {
            return;
        }
    }
}

/// The next line without its end; `None` at the end of the output. One that breaks off, or is not text, is an error.
fn whole_line(output: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    if output.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    let shown = || String::from_utf8_lossy(&line).into_owned();
    let whole = line.strip_suffix(b"\n").ok_or_else(|| io::Error::new(ErrorKind::UnexpectedEof, shown()))?;
    let text = str::from_utf8(whole).map_err(|_| io::Error::new(ErrorKind::InvalidData, shown()))?;
    Ok(Some(text.to_owned()))
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
