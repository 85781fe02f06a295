//! The tour: it shows every step, checks itself, and leaves nothing behind.

use std::fs;

use serde_json::Value;

use crate::terminal::Terminal;

/// Step, and the status of its answer.
const STEPS: [(&str, Option<u64>); 10] = [
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

fn temporary_folder(terminal: &mut Terminal) -> std::path::PathBuf {
    let folder = terminal.path("tmp");
    fs::create_dir(&folder).expect("the home can be written to");
    terminal.set("TMPDIR", folder.to_str().expect("a path of text"));
    folder
}
