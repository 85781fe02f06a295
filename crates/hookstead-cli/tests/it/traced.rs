//! The order of system calls: an answer is written only after the log of the store was synced.
//!
//! The server runs under strace. In its trace, between the last read of the client's request and the write of the
//! success answer, a sync of the WAL must have begun and returned 0.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Connection, Project, Request, Server};

/// All ways to read a socket, to write one, to sync a file and to look at one.
const CALLS: &str = "trace=read,readv,recvfrom,recvmsg,write,writev,sendto,sendmsg,fsync,fdatasync,statx";

#[test]
fn the_first_answer_follows_a_sync_of_the_wal() {
    let project = Project::new();
    let (server, trace) = serve_traced(&project, "first");
    let port = send(&mut server.connect(), 202);
    server.kill9();
    check_order(&trace, port, 202);
}

#[test]
fn the_first_duplicate_after_a_kill_follows_a_sync_of_the_wal() {
    let project = Project::new();
    let server = project.serve();
    send(&mut server.connect(), 202);
    server.kill9();
    let (server, trace) = serve_traced(&project, "duplicate");
    let port = send(&mut server.connect(), 200);
    server.kill9();
    check_order(&trace, port, 200);
}

/// Whoever asks has the kernel give the next write a time of its own, and an inode with a new time is one more write for the
/// sync (Linux 6.13 and later).
#[test]
fn no_accept_asks_for_the_times_of_the_store() {
    let project = Project::new();
    let (server, trace) = serve_traced(&project, "times");
    let mut connection = server.connect();
    let port = send(&mut connection, 202);
    let reply = connection.exchange(&Request::signed("traced-2", b"body").bytes()).expect("an answer");
    assert_eq!(reply.status, 202, "{reply}");
    server.kill9();
    let text = fs::read_to_string(trace).expect("strace wrote its file");
    let calls = calls_in(&text);
    let (_, first) = request_and_answer(&calls, port, 202);
    let looks = || calls.iter().filter(|call| call.begun > first && call.is_look_at_store());
    assert!(looks().count() >= 2, "database and log are looked at around a commit:\n{text}");
    let asking: Vec<&str> =
        looks().filter(|call| call.asks_for_times()).map(|call| call.text.as_str()).collect();
    assert!(asking.is_empty(), "{}", asking.join("\n"));
}

fn serve_traced(project: &Project, name: &str) -> (Server, PathBuf) {
    let trace = project.data().join(format!("{name}.strace"));
    let mut strace = Command::new("strace");
    // -yy resolves descriptors to paths and addresses; the strings only need to show a status.
    strace.args(["-f", "-ttt", "-yy", "-s", "32", "-e", CALLS, "-e", "signal=none", "-o"]).arg(&trace);
    let version = Command::new("strace").arg("-V").output();
    assert!(version.is_ok(), "strace is missing: run `cargo xtask setup`");
    (project.serve_under(strace), trace)
}

/// Sends one delivery and gives the port by which the trace names its connection.
fn send(connection: &mut Connection, expected: u16) -> u16 {
    let reply = connection.exchange(&Request::signed("traced", b"body").bytes()).expect("an answer");
    assert_eq!(reply.status, expected, "{reply}");
    connection.local_port().expect("an open socket has a port")
}

fn check_order(trace: &Path, port: u16, status: u16) {
    let text = fs::read_to_string(trace).expect("strace wrote its file");
    let calls = calls_in(&text);
    let (read, answered) = request_and_answer(&calls, port, status);
    let synced = calls.iter().any(|call| call.is_wal_sync() && call.begun > read && call.ended < answered);
    let excerpt: Vec<&str> = text.lines().skip(read).take(answered - read + 1).collect();
    assert!(
        synced,
        "no sync of the WAL between the request and its answer {status}:\n{}",
        excerpt.join("\n")
    );
}

/// The lines in which the request's last read ended and the answer's write began.
fn request_and_answer(calls: &[Call], port: u16, status: u16) -> (usize, usize) {
    let peer = format!("->127.0.0.1:{port}]");
    let ours = || calls.iter().filter(|call| call.text.contains(&peer));
    let answer = format!("HTTP/1.1 {status}");
    let answered = ours().find(|call| call.is_write() && call.text.contains(&answer));
    let answered = answered.expect("the answer is in the trace").begun;
    let read = ours()
        .filter(|call| call.is_read() && call.result > 0 && call.ended < answered)
        .map(|call| call.ended);
    (read.max().expect("the request is in the trace"), answered)
}

/// A system call; `begun` and `ended` are lines of the trace, which is in the order of time.
struct Call {
    begun: usize,
    /// After every line when the process was killed within it.
    ended: usize,
    text: String,
    /// -1 also when it did not end.
    result: i64,
}

impl Call {
    fn new(begun: usize, line: usize, text: String) -> Self {
        let result = text.rsplit_once(" = ").and_then(|(_, result)| result.split(' ').next()?.parse().ok());
        Self {
            begun,
            ended: if result.is_some() { line } else { usize::MAX },
            text,
            result: result.unwrap_or(-1),
        }
    }

    fn name(&self) -> &str {
        self.text.split('(').next().unwrap_or_default()
    }

    fn is_read(&self) -> bool {
        matches!(self.name(), "read" | "readv" | "recvfrom" | "recvmsg")
    }

    fn is_write(&self) -> bool {
        matches!(self.name(), "write" | "writev" | "sendto" | "sendmsg")
    }

    /// One of ours, that is: SQLite looks at the files by another call, whenever a connection is opened.
    fn is_look_at_store(&self) -> bool {
        self.name() == "statx" && (self.text.contains(".db\"") || self.text.contains(".db-wal\""))
    }

    fn asks_for_times(&self) -> bool {
        let asked = self.text.split('{').next().unwrap_or_default();
        ["STATX_BASIC_STATS", "STATX_ALL", "STATX_MTIME", "STATX_CTIME"]
            .iter()
            .any(|mask| asked.contains(mask))
    }

    /// By `fdatasync` alone: with another one SQLite was built without what `.cargo/config.toml` says.
    fn is_wal_sync(&self) -> bool {
        self.name() == "fdatasync" && self.text.contains("-wal>") && self.result == 0
    }
}

/// The calls of a trace. One that another thread interrupts stands in two lines: `... <unfinished ...>` and, by the
/// same thread, `<... name resumed>...`.
fn calls_in(trace: &str) -> Vec<Call> {
    let mut calls = Vec::new();
    let mut unfinished: Vec<(&str, usize, &str)> = Vec::new();
    for (number, line) in trace.lines().enumerate() {
        let Some((thread, call)) = thread_and_call(line) else { continue };
        if let Some(start) = call.strip_suffix(" <unfinished ...>") {
            unfinished.push((thread, number, start));
        } else if let Some((_, end)) =
            call.strip_prefix("<... ").and_then(|call| call.split_once(" resumed>"))
        {
            let index =
                unfinished.iter().position(|(other, ..)| *other == thread).expect("a resumed call was begun");
            let (_, begun, start) = unfinished.remove(index);
            calls.push(Call::new(begun, number, format!("{start}{end}")));
        } else {
            calls.push(Call::new(number, number, call.to_owned()));
        }
    }
    // The client can have its answer before the kernel is back from the write: a kill may come between.
    calls.extend(
        unfinished.into_iter().map(|(_, begun, start)| Call::new(begun, usize::MAX, start.to_owned())),
    );
    calls
}

/// A line is `THREAD TIME CALL`, with blanks after a short thread id.
fn thread_and_call(line: &str) -> Option<(&str, &str)> {
    let (thread, rest) = line.split_once(' ')?;
    let (_time, call) = rest.trim_start().split_once(' ')?;
    Some((thread, call))
}

#[test]
fn a_trace_is_read_as_strace_writes_it() {
    let trace = "\
        7   1.0 recvfrom(9<TCP:[127.0.0.1:80->127.0.0.1:5]>, \"POST\"..., 8192, 0, NULL, NULL) = 300\n\
        8   1.1 fdatasync(5</x/hookstead.db-wal> <unfinished ...>\n\
        7   1.2 recvfrom(9<TCP:[127.0.0.1:80->127.0.0.1:5]>, 0x1, 8192, 0, NULL, NULL) = -1 EAGAIN (again)\n\
        8   1.3 <... fdatasync resumed>) = 0\n\
        7   1.4 sendto(9<TCP:[127.0.0.1:80->127.0.0.1:5]>, \"HTTP/1.1 202 Accepted\"..., 90, 0, NULL, 0) = 90\n\
        8   1.5 fdatasync(5</x/hookstead.db-wal> <unfinished ...>\n";
    let calls = calls_in(trace);
    assert_eq!(calls.len(), 5);
    assert_eq!(request_and_answer(&calls, 5, 202), (0, 4));
    let syncs: Vec<_> =
        calls.iter().filter(|call| call.is_wal_sync()).map(|call| (call.begun, call.ended)).collect();
    assert_eq!(syncs, [(1, 3)], "one that did not return is none");
}
