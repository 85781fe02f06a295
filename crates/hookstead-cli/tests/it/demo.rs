//! The tour: it shows every step, checks itself, and leaves nothing behind.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::terminal::Terminal;

/// Step, and the status of its answer.
const STEPS: [(&str, Option<u64>); 14] = [
    ("start", None),
    ("stored", Some(202)),
    ("retry", Some(200)),
    ("altered", Some(401)),
    ("stale", Some(401)),
    ("conflict", Some(409)),
    ("kill", None),
    ("restart", None),
    ("kept", None),
    ("retry-after-kill", Some(200)),
    ("application", None),
    ("event", Some(202)),
    ("dead", Some(500)),
    ("redelivered", Some(200)),
];

#[test]
fn it_ends_by_itself_with_every_step_and_leaves_nothing_behind() {
    let mut terminal = Terminal::new();
    let folder = temporary_folder(&mut terminal);
    let ran = terminal.ok(&["demo", "--json"]);
    let mut told = ran.json_lines();
    let end = told.pop().expect("a last line");
    assert_eq!((&end["step"], &end["ok"]), (&Value::from("end"), &Value::from(true)), "{end}");

    let seen: Vec<_> = told.iter().map(|step| (step["step"].as_str(), step["status"].as_u64())).collect();
    assert_eq!(seen, STEPS.map(|(step, status)| (Some(step), status)));
    for step in &told {
        assert_eq!(step["ok"], true, "{step}");
        assert_eq!(step["status"], step["expected"], "{step}");
        assert!(step["ms"].as_f64().is_some_and(|ms| ms > 0.0), "{step}");
    }
    assert_eq!(fs::read_dir(folder).expect("the folder is there").count(), 0, "its folder is gone");
    assert!(!fs::exists(terminal.path(".local")).expect("a home"), "the home was left alone");
}

#[test]
fn it_reads_as_a_story() {
    let ran = Terminal::new().ok(&["demo"]);
    for (_, status) in STEPS {
        let status = status.map_or_else(String::new, |status| format!(" {status} "));
        assert!(ran.stdout.contains(&status), "{status}: {}", ran.stdout);
    }
    let numbers = [
        (r"127\.0\.0\.1:\d+", "ADDRESS"),
        (r" +\d+(\.\d+)? m?s", " TIME"),
        (r"process \d+", "process PID"),
        (r"all \d+ bytes", "all N bytes"),
    ];
    insta::with_settings!({ filters => numbers.to_vec() }, { insta::assert_snapshot!("demo-story", ran.stdout) });
    assert_eq!(ran.stderr, "");
}

#[test]
fn without_a_place_to_write_it_says_so() {
    let mut terminal = Terminal::new();
    terminal.set("TMPDIR", "/nowhere/at/all");
    let ran = terminal.ends(&["demo"], 1);
    assert!(ran.stderr.starts_with("error[no-folder]: "), "{ran:?}");
    assert!(ran.stderr.contains("  fix    point TMPDIR to a folder"), "{ran:?}");
}

#[test]
fn what_is_set_for_another_server_is_left_alone() {
    let mut terminal = Terminal::new();
    let mine = terminal.path("mine.db");
    terminal.set("HOOKSTEAD_STORE", &format!("sqlite:{}", mine.display()));
    terminal.set("HOOKSTEAD_INTAKE", "127.0.0.1:1");
    terminal.set("HOOKSTEAD_CONFIG", "nowhere.toml");
    terminal.ok(&["demo"]);
    assert!(!fs::exists(mine).expect("a home"));
}

#[test]
fn an_end_in_the_middle_leaves_no_server_behind() {
    let mut terminal = Terminal::new();
    let folder = temporary_folder(&mut terminal);
    // Nobody reads: the first step that is told, after the server has started, ends the tour.
    let mut command = terminal.command(["demo", "--json"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "a closed pipe is no error");
    assert_eq!(fs::read_dir(&folder).expect("the folder is there").count(), 0, "its folder is gone");
    let folder = folder.to_str().expect("a path of text");
    assert_eq!(processes_that_name(folder), Vec::<String>::new());
}

/// The command lines of running processes in which a text stands.
fn processes_that_name(text: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").expect("/proc is there").filter_map(Result::ok);
    // A process that has ended in the meantime has no command line to read.
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).into_owned()).filter(|line| line.contains(text)).collect()
}

fn temporary_folder(terminal: &mut Terminal) -> std::path::PathBuf {
    let folder = terminal.path("tmp");
    fs::create_dir(&folder).expect("the home can be written to");
    terminal.set("TMPDIR", folder.to_str().expect("a path of text"));
    folder
}
