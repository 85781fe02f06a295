//! strace as a pair of eyes and as a saboteur: what the server did to its files, in order, and what becomes of it
//! when a call fails or kills it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::harness::Server;

/// One system call.
pub(crate) struct Call {
    /// `pwrite64`.
    pub(crate) name: String,
    /// Everything between the parentheses.
    pub(crate) arguments: String,
    /// -1 also when it did not return.
    pub(crate) result: i64,
}

impl Call {
    /// The path of the first argument's descriptor; empty if there is none.
    pub(crate) fn path(&self) -> String {
        let path = self.arguments.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
        path.map_or_else(String::new, |(path, _)| String::from_utf8(unhexed(path)).expect("a path of ours"))
    }
}

/// strace as a program that runs another one; `strings` is how many bytes of each buffer are written down.
pub(crate) fn strace(output: &Path, calls: &str, strings: usize) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-xx", "-e", "signal=none", "-s", &strings.to_string()]);
    strace.args(["-e", &format!("trace={calls}"), "-o"]).arg(output);
    strace
}

/// The calls of a trace, each at the place where it returned; at the end those that did not, since a client can
/// have its answer before the kernel is back from the write.
pub(crate) fn calls(trace: &str) -> Vec<Call> {
    let mut unfinished: Vec<(&str, &str)> = Vec::new();
    let mut calls = Vec::new();
    for line in trace.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        if let Some(start) = call.strip_suffix(" <unfinished ...>") {
            unfinished.push((thread, start));
        } else if let Some((_, end)) =
            call.strip_prefix("<... ").and_then(|call| call.split_once(" resumed>"))
        {
            let index =
                unfinished.iter().position(|(other, _)| *other == thread).expect("a resumed call was begun");
            calls.extend(read(&format!("{}{end}", unfinished.remove(index).1)));
        } else {
            calls.extend(read(call));
        }
    }
    calls.extend(unfinished.into_iter().filter_map(|(_, start)| read(start)));
    calls
}

fn read(call: &str) -> Option<Call> {
    let (name, rest) = call.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(')').unwrap_or((rest, ""));
    let result =
        result.trim_start_matches([' ', '=']).split(' ').next().and_then(|result| result.parse().ok());
    Some(Call { name: name.to_owned(), arguments: arguments.to_owned(), result: result.unwrap_or(-1) })
}

/// The bytes of the first string of a call's arguments, as `-xx` writes them.
pub(crate) fn bytes(arguments: &str) -> Vec<u8> {
    let text = arguments.split('"').nth(1).expect("a buffer");
    assert!(!arguments.contains("\"..."), "the buffer was cut: {}", &arguments[..80.min(arguments.len())]);
    unhexed(text)
}

/// The string with this number among a call's arguments, from 0.
pub(crate) fn string(arguments: &str, number: usize) -> String {
    let text = arguments.split('"').nth(2 * number + 1).expect("a string");
    String::from_utf8(unhexed(text)).expect("a text of ours")
}

fn unhexed(text: &str) -> Vec<u8> {
    hex::decode(text.replace("\\x", "")).expect("hexadecimal")
}

/// strace on a server that runs, as long as this value lives.
pub(crate) struct Attached(Child);

/// Attaches strace with a fault, such as `inject=fsync:error=EIO`, and waits until it holds.
pub(crate) fn attach(server: &Server, calls: &str, fault: &str) -> Attached {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-e", &format!("trace={calls}"), "-e", fault, "-o", "/dev/null"]);
    let (attached, count) = start(strace, &[server.pid()]);
    assert!(count == 1, "strace cannot attach to the server");
    attached
}

/// As [`attach`], to these threads alone. Each counts its own calls, apart by their names. A fault that kills may strike
/// before all of them are attached to.
pub(crate) fn attach_to_threads(threads: &[u32], calls: &str, fault: &str) -> Attached {
    let mut strace = Command::new("strace");
    strace.args(["-e", &format!("trace={calls}"), "-e", fault, "-o", "/dev/null"]);
    start(strace, threads).0
}

/// Writes down the calls of these threads: lines that begin with the number of the thread, unless there is only one.
pub(crate) fn watch_threads(threads: &[u32], output: &Path) -> Attached {
    let mut strace = Command::new("strace");
    strace.arg("-o").arg(output);
    start(strace, threads).0
}

/// Starts it, and says how many of the threads it is attached to.
fn start(mut strace: Command, ids: &[u32]) -> (Attached, usize) {
    strace.args(["-e", "signal=none"]);
    for id in ids {
        strace.args(["-p", &id.to_string()]);
    }
    let strace = strace.stderr(Stdio::piped()).spawn();
    let mut strace = strace.expect("strace starts; if it is missing, run `cargo xtask setup`");
    let mut said = BufReader::new(strace.stderr.take().expect("stderr is a pipe")).lines();
    // One line each: `Process 7 attached`, or why it is not, such as that a thread has ended meanwhile.
    let lines = said.by_ref().map_while(Result::ok).filter(|line| line.contains("attach"));
    let count = lines.take(ids.len()).filter(|line| line.contains("attached")).count();
    // It must go on reading, or strace would block on a full pipe.
    std::thread::spawn(move || said.for_each(drop));
    (Attached(strace), count)
}

impl Attached {
    /// Takes the fault away again; the server goes on.
    pub(crate) fn detach(mut self) {
        crate::harness::send_signal("TERM", self.0.id());
        self.0.wait().expect("strace ends when it is told to");
    }

    /// Waits for the end of the server, and with it strace's.
    pub(crate) fn wait(mut self) {
        self.0.wait().expect("strace ends with the server");
    }
}
