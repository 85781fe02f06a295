//! The paths of README.md that need a peer, typed as they stand there: what they promise really happens. (That every
//! block runs at all is `cargo xtask docs`' to see.)

use std::path::Path;
use std::process::{Command, Output};

use crate::harness::{Target, wait_until};
use crate::terminal::{BINARY, Terminal};

const README: &str = include_str!("../../../../README.md");

/// The block behind `<!-- path: NAME -->`.
fn path(name: &str) -> &'static str {
    let mark = format!("<!-- path: {name} -->\n```sh\n");
    let (_, rest) = README.split_once(&mark).unwrap_or_else(|| panic!("no {mark}"));
    rest.split_once("```").expect("the block ends").0
}

/// A shell that ends with the first command that fails.
fn shell(terminal: &Terminal, script: &str) -> Output {
    let binaries = Path::new(BINARY).parent().expect("a folder");
    let search = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("sh");
    command.args(["-euc", script]).current_dir(terminal.path("")).env_clear();
    let output = command.env("HOME", terminal.path("")).env("PATH", search).output().expect("a shell");
    assert!(output.status.success(), "{script}: {output:?}");
    output
}

#[test]
fn the_push_path_ends_in_the_application() {
    let terminal = Terminal::new();
    let server = terminal.serve();
    let application = Target::answering(200, b"thanks");
    let script = path("push");
    assert!(script.contains("http://localhost:3000/webhooks"), "{script}");
    shell(&terminal, &script.replace("http://localhost:3000", &application.url()));
    let pushed = application.wait_for(1);
    assert_eq!(pushed[0].header("hookstead-source"), Some("github"), "{pushed:?}");
    let state = || terminal.ok(&["deliveries", "show", "@:app", "--json"]).json()["state"].clone();
    wait_until(|| state() == "done", || state().to_string());
    drop(server);
}

#[test]
fn the_pull_path_ends_with_done() {
    let terminal = Terminal::new();
    let server = terminal.serve();
    let script = path("pull");
    assert!(script.contains("http://127.0.0.1:4666"), "{script}");
    let admin = format!("http://{}", server.admin_address());
    shell(&terminal, &script.replace("http://127.0.0.1:4666", &admin));
    let delivery = terminal.ok(&["deliveries", "show", "@:worker", "--json"]).json();
    assert_eq!((&delivery["state"], &delivery["source"]), (&"done".into(), &"stripe".into()), "{delivery}");
    drop(server);
}
