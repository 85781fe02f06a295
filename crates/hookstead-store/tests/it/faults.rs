//! Errors of the real disk's calls, injected by `strace` into a process of its own: this test binary, started
//! again as [`child`]. Where the error strikes depends on how many calls a start makes, so that the tests
//! sweep over many places and expect what must hold at each. Without `strace` they count as ignored.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use hookstead_core::{Outcome, StoreError};
use hookstead_store::open;
use libtest_mimic::Trial;

use crate::backend::{Folder, OPENED_AT, options, url};
use crate::scene::{accept, events, register, try_accept};

/// Names the database, for the process that the errors are injected into.
const CHILD: &str = "HOOKSTEAD_STORE_TEST_CHILD";

/// How many events the child sends. Those with even numbers come twice at once.
const EVENTS: usize = 40;

const BODY: &[u8] = &[b'x'; 9_000];

pub(crate) fn trials() -> Vec<Trial> {
    let cases: [(&str, fn()); 3] = [
        ("faults::a_failed_sync_poisons_at_every_place", a_failed_sync_poisons_at_every_place),
        ("faults::a_failed_write_poisons_at_every_place", a_failed_write_poisons_at_every_place),
        ("faults::no_space_is_refused_and_passes", no_space_is_refused_and_passes),
    ];
    let ignored = !can_inject();
    let trial = |(name, run): (&str, fn())| {
        Trial::test(name, move || {
            run();
            Ok(())
        })
        .with_ignored_flag(ignored)
    };
    cases.into_iter().map(trial).collect()
}

/// The other process, if this is it: sends events and prints a letter for each answer.
pub(crate) fn child() -> Option<ExitCode> {
    let database = std::env::var_os(CHILD)?;
    let letters = match open(&url(Path::new(&database)), &options(), OPENED_AT) {
        Err(_) => "X".to_owned(),
        Ok(opened) => {
            let letter = |n: usize| letter(&try_accept(&opened.store, &format!("evt_{n}"), BODY));
            (0..EVENTS).flat_map(|n| [letter(n)].into_iter().chain((n % 2 == 0).then(|| letter(n)))).collect()
        }
    };
    let written = std::io::stdout().write_all(letters.as_bytes());
    Some(if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn letter(answer: &Result<hookstead_core::AcceptReceipt, StoreError>) -> char {
    match answer {
        Ok(receipt) if receipt.outcome == Outcome::Stored => 'S',
        Ok(_) => 'D',
        Err(StoreError::Full { .. }) => 'F',
        Err(StoreError::Poisoned { .. }) => 'P',
        Err(_) => 'E',
    }
}

fn a_failed_sync_poisons_at_every_place() {
    // strace counts each call by its name: files and folders that were just made are synced by the first one.
    for (call, last) in [("fsync", 20), ("fdatasync", 80)] {
        let runs: Vec<String> =
            (1..last).step_by(3).map(|n| sweep(call, &format!("error=EIO:when={n}"))).collect();
        check_no_success_after(&runs);
        assert!(runs.iter().any(|letters| letters.contains(['P', 'X'])), "no {call} was struck: {runs:?}");
    }
}

fn a_failed_write_poisons_at_every_place() {
    let runs: Vec<String> =
        (30..400).step_by(17).map(|n| sweep("pwrite64", &format!("error=EIO:when={n}"))).collect();
    check_fail_stop(&runs);
}

fn check_fail_stop(runs: &[String]) {
    check_no_success_after(runs);
    assert!(runs.iter().any(|letters| letters.contains('P')), "no error struck a write: {runs:?}");
}

/// After the first error no success answer leaves the process, duplicates included.
fn check_no_success_after(runs: &[String]) {
    for letters in runs {
        let after = letters.trim_start_matches(['S', 'D']);
        assert!(after == "X" || after.chars().all(|letter| letter == 'P'), "{letters}");
    }
}

fn no_space_is_refused_and_passes() {
    let runs: Vec<String> = (60..300)
        .step_by(24)
        .map(|n| sweep("pwrite64", &format!("error=ENOSPC:when={n}..{}", n + 30)))
        .collect();
    for letters in &runs {
        assert!(!letters.contains(['P', 'E']), "{letters}");
        assert!(letters == "X" || letters.ends_with('S'), "it recovers by itself: {letters}");
    }
    assert!(runs.iter().any(|letters| letters.contains('F')), "no error struck a write: {runs:?}");
}

/// Runs the child with errors injected into `call`; then opens its store without them and expects every
/// event there that the child was told is stored.
fn sweep(call: &str, injected: &str) -> String {
    let folder = Folder::new();
    register(&folder.open().store);
    let output = Command::new("strace")
        .args(["-f", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e"])
        .arg(format!("inject={call}:{injected}"))
        .arg(std::env::current_exe().expect("this binary has a path"))
        .env(CHILD, folder.database())
        .stderr(Stdio::null())
        .output()
        .expect("strace was there a moment ago");
    let letters = String::from_utf8(output.stdout).expect("the child prints letters");
    assert!(output.status.success() && !letters.is_empty(), "{injected}: {}", output.status);
    let store = folder.open().store;
    let mut answers = letters.chars();
    let mut acknowledged = 0;
    for n in 0..EVENTS {
        let Some(first) = answers.next().filter(|letter| *letter != 'X') else { break };
        let second = if n % 2 == 0 { answers.next() } else { None };
        if first == 'S' || second == Some('S') {
            acknowledged += 1;
            assert_eq!(
                accept(&store, &format!("evt_{n}"), BODY),
                Outcome::Duplicate,
                "{injected}: event {n}"
            );
        }
    }
    let unknown = events(&store).len() - acknowledged;
    assert!(unknown <= 1, "{injected}: {unknown} events more than were acknowledged ({letters})");
    assert_eq!(crate::scene::problems(&store), [] as [&str; 0], "{injected}");
    letters
}

/// Whether `strace` is there and may trace.
pub(crate) fn can_inject() -> bool {
    let mut traced = Command::new("strace");
    traced.args(["-o", "/dev/null", "true"]).stderr(Stdio::null());
    traced.status().is_ok_and(|status| status.success())
}
