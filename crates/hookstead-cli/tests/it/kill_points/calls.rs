//! The system calls of a running server: which threads make them, and how they are named and counted for a kill.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use crate::cases::trace::{Attached, attach_to_threads, watch_threads};
use crate::harness::Server;

/// The kernel keeps fifteen bytes of a thread's name.
const COMMITTER: &str = "hookstead-commi";

/// A thread has its name by then.
const NAMED_MAX: Duration = Duration::from_secs(20);

/// Which threads are looked at.
#[derive(Clone, Copy, Debug)]
pub(super) enum Threads {
    /// Those that read the request and write the answer, and all others.
    Network,
    /// Those that commit.
    Commit,
}

impl Threads {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self::Network, Self::Commit];

    /// Their ids. A thread that has just begun has no name of its own yet.
    pub(super) fn of(self, server: &Server) -> Vec<u32> {
        let deadline = Instant::now() + NAMED_MAX;
        loop {
            let threads = threads_by_name(server);
            let (commit, network): (Vec<_>, Vec<_>) =
                threads.into_iter().partition(|(name, _)| name.starts_with(COMMITTER));
            if !commit.is_empty() {
                let wanted = if matches!(self, Self::Commit) { commit } else { network };
                return wanted.into_iter().map(|(_, id)| id).collect();
            }
            assert!(Instant::now() < deadline, "no thread is named {COMMITTER}");
        }
    }
}

fn threads_by_name(server: &Server) -> Vec<(String, u32)> {
    let tasks = fs::read_dir(format!("/proc/{}/task", server.pid())).expect("the server runs");
    let mut threads = Vec::new();
    for task in tasks {
        let path = task.expect("a thread").path();
        let id = path.file_name().and_then(|id| id.to_str()).and_then(|id| id.parse().ok());
        // One that has ended meanwhile is none.
        if let Ok(name) = fs::read_to_string(path.join("comm")) {
            threads.push((name, id.expect("a thread has a number")));
        }
    }
    threads
}

/// The so many-th call of a name by one thread.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) number: usize,
}

impl Call {
    /// strace on these threads, which ends the process when one of them makes the call.
    pub(super) fn kills(&self, server: &Server, threads: Threads) -> Attached {
        let Self { name, number } = self;
        attach_to_threads(&threads.of(server), name, &format!("inject={name}:signal=KILL:when={number}"))
    }
}

/// The calls that the threads of a server make while `work` is done to it, which ends it.
pub(super) fn calls_during(threads: Threads, work: impl FnOnce(&dyn Fn(&Server) -> Attached)) -> Vec<Call> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("calls");
    work(&|server| watch_threads(&threads.of(server), &file));
    calls_in(&fs::read_to_string(file).expect("strace wrote its file")).into_iter().collect()
}

/// The calls of some threads, as strace writes them: `THREAD NAME(..`, one a line; `NAME(..` if it is one thread alone.
fn calls_in(trace: &str) -> BTreeSet<Call> {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut calls = BTreeSet::new();
    for line in trace.lines() {
        let Some((head, _)) = line.split_once('(') else { continue };
        let (thread, name) =
            head.split_once(' ').map_or(("", head), |(thread, name)| (thread, name.trim_start()));
        if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            let number = counts.entry((thread, name)).or_default();
            *number += 1;
            calls.insert(Call { name: name.to_owned(), number: *number });
        }
    }
    calls
}

#[test]
fn the_calls_of_a_trace_are_counted_by_thread() {
    let trace = "7  futex(0x1, FUTEX_WAIT <unfinished ...>\n12 read(3, \"(\", 8) = 8\n7  <... futex resumed>) = 0\n\
                 7  futex(0x1, FUTEX_WAKE) = 1\n12 futex(0x1, FUTEX_WAKE) = 0\n12 +++ killed by SIGKILL +++\n";
    let calls: Vec<String> =
        calls_in(trace).into_iter().map(|Call { name, number }| format!("{name} {number}")).collect();
    assert_eq!(calls, ["futex 1", "futex 2", "read 1"]);
}
