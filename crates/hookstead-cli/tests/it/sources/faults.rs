//! A change of the configuration that the disk or the running server breaks off: the configuration never names a secret
//! that is gone, and what nobody knows is said to be unknown.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};

use super::CONFIG;
use crate::harness::{Disk, Fault, Kind};
use crate::terminal::{BINARY, Terminal};

/// The folder of the configuration; nothing else is in it.
const FOLDER: &str = "conf";
const FILE: &str = "conf/hookstead.toml";

/// The secret goes to a folder that is not the configuration's.
const ADD: [&str; 7] = ["sources", "add", "shop", "--provider", "gitea", "--generate", "made"];

/// What a server answers that has taken a change over.
const TAKEN_OVER: &str = r#"{"sources":["shop"],"destinations":[],"restart_needed":[]}"#;

fn terminal(config: &str) -> Terminal {
    let mut terminal = Terminal::new();
    fs::create_dir(terminal.path(FOLDER)).expect("a new folder");
    terminal.write(FILE, config);
    terminal.set("HOOKSTEAD_CONFIG", &terminal.path(FILE).display().to_string());
    terminal.set("OLD", "the-old-secret-0123456789");
    terminal
}

fn text(terminal: &Terminal, name: &str) -> String {
    fs::read_to_string(terminal.path(name)).expect("a file")
}

/// Runs a verb on this disk, whose faults are in `folder`: its exit code, and what it said.
fn run_on(disk: &Disk, folder: &Path, terminal: &Terminal, arguments: &[&str]) -> (Option<i32>, String) {
    let plain = terminal.command(arguments);
    let variables = plain.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let mut command = disk.below(folder);
    command.arg(BINARY).args(arguments).env_clear().envs(variables).env("PATH", "/usr/bin:/bin");
    command.current_dir(terminal.path("")).stdin(Stdio::null());
    let output = command.output().expect("the binary starts");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Adds a source while one sync in the folder of the configuration fails, from 1: what was said.
fn add_with_failed_sync(disk: &Disk, terminal: &Terminal, number: i64) -> String {
    disk.fail(Kind::Sync, Fault::Broken, number, number);
    let (exit_code, said) = run_on(disk, &terminal.path(FOLDER), terminal, &ADD);
    assert_eq!((exit_code, disk.struck()), (Some(1), 1), "{number}: {said}");
    said
}

#[test]
fn a_secret_that_the_configuration_may_name_stays() {
    let (terminal, disk) = (terminal(CONFIG), Disk::build());
    let said = add_with_failed_sync(&disk, &terminal, 1);
    assert!(said.contains("not-written") && said.contains("nothing was changed"), "{said}");
    assert_eq!((text(&terminal, FILE).as_str(), terminal.path("made").exists()), (CONFIG, false));

    // The new text is in place, and its folder cannot be synced.
    let said = add_with_failed_sync(&disk, &terminal, 2);
    assert!(said.contains("not-synced") && said.contains("kept"), "{said}");
    assert!(text(&terminal, FILE).contains("[sources.shop]") && terminal.path("made").exists(), "{said}");
    terminal.ok(&["sources", "list"]);
}

#[test]
fn a_secret_stays_where_its_change_cannot_be_taken_back() {
    let mut terminal = terminal(CONFIG);
    let server = terminal.serve();
    // Of which only the server knows nothing, so that it refuses every change.
    let config = format!("{CONFIG}[sources.late]\nprovider = \"gitea\"\nsecret = {{ env = \"LATE\" }}\n");
    terminal.write(FILE, &config);
    terminal.set("LATE", "the-late-secret-0123456789");
    let ran = terminal.ends(&ADD, 5);
    assert!(ran.stderr.contains("taken back: the running server did not take it over"), "{ran:?}");
    assert_eq!((text(&terminal, FILE), terminal.path("made").exists()), (config.clone(), false));

    let disk = Disk::build();
    let said = add_with_failed_sync(&disk, &terminal, 3);
    assert!(said.contains("not-taken-back") && said.contains("LATE") && said.contains("kept"), "{said}");
    assert!(text(&terminal, FILE).contains("[sources.shop]") && terminal.path("made").exists(), "{said}");

    terminal.write(FILE, &config);
    fs::remove_file(terminal.path("made")).expect("it is there");
    // The old text is back, and a power cut may bring the new one.
    let said = add_with_failed_sync(&disk, &terminal, 4);
    assert!(said.contains("not-taken-back") && said.contains("kept"), "{said}");
    assert_eq!((text(&terminal, FILE), terminal.path("made").exists()), (config, true));
    drop(server);
}

/// Its name is on the disk as well as its bytes, and it is there whole or not at all.
#[test]
fn a_new_secret_is_on_the_disk_before_it_is_named_or_is_not_there() {
    let (terminal, disk) = (terminal(CONFIG), Disk::build());
    let folder = terminal.path("secrets");
    fs::create_dir(&folder).expect("a new folder");
    let add = ["sources", "add", "shop", "--provider", "gitea", "--generate", "secrets/made"];
    for (kind, fault, number) in
        [(Kind::Write, Fault::Full, 1), (Kind::Sync, Fault::Broken, 1), (Kind::Sync, Fault::Broken, 2)]
    {
        disk.fail(kind, fault, number, number);
        let (exit_code, said) = run_on(&disk, &folder, &terminal, &add);
        assert_eq!((exit_code, disk.struck()), (Some(1), 1), "{kind:?} {number}: {said}");
        assert!(said.contains("not-written") && said.contains("nothing was left behind"), "{said}");
        assert_eq!(text(&terminal, FILE), CONFIG, "{kind:?} {number}");
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 0, "{kind:?} {number}");
    }
    disk.heal();
    assert_eq!(run_on(&disk, &folder, &terminal, &add).0, Some(0));
    // One that is there already is somebody else's.
    let (exit_code, said) = run_on(&disk, &folder, &terminal, &[&add[..2], &["more"], &add[3..]].concat());
    assert_eq!((exit_code, folder.join("made").exists()), (Some(1), true), "{said}");
}

/// Something that has the store and loses its first answers, and what was in a file at each request.
struct Losing {
    /// It has the store as long as this is open.
    _lock: File,
    seen: Receiver<String>,
}

impl Losing {
    fn answers(terminal: &Terminal, lost: usize, file: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let lock = Self::lock(terminal, listener.local_addr().expect("it has one"));
        let (sender, seen) = channel();
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().map_while(Result::ok).enumerate() {
                let mut reader = BufReader::new(stream);
                let head = (&mut reader).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
                assert!(head.last().is_some(), "a head");
                reader.read_exact(&mut [0; "null".len()]).expect("a body");
                let text = fs::read_to_string(&file).expect("a file");
                let length = TAKEN_OVER.len();
                let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{TAKEN_OVER}");
                // The test may be over.
                if sender.send(text).is_err() {
                    return;
                }
                if number >= lost {
                    reader.get_mut().write_all(answer.as_bytes()).expect("it is waited for");
                }
            }
        });
        Self { _lock: lock, seen }
    }

    /// The record of an owner, as a server writes it.
    fn lock(terminal: &Terminal, address: SocketAddr) -> File {
        let folder = terminal.path(".local/share/hookstead");
        fs::create_dir_all(&folder).expect("a folder");
        let mut lock = File::create(folder.join("hookstead.db.lock")).expect("a new file");
        lock.lock().expect("nobody has it");
        let pid = std::process::id();
        write!(lock, "pid = {pid}\nstarted_at_us = 1\nintake = {address}\nadmin = {address}\n")
            .expect("room");
        lock
    }

    /// Runs a verb, of which so many answers are lost: what it said, and what was in `file` at each request.
    fn run(terminal: &Terminal, lost: usize, file: &str, arguments: &[&str]) -> (String, Vec<String>) {
        let losing = Self::answers(terminal, lost, terminal.path(file));
        let ran = terminal.ends(arguments, 6);
        (ran.stderr, losing.seen.try_iter().collect())
    }
}

#[test]
fn after_a_lost_answer_the_server_is_asked_again_and_else_nobody_knows() {
    let terminal = terminal(CONFIG);
    for (lost, expected) in [(1, "taken back, also in the running server"), (2, "is unknown")] {
        let (said, seen) = Losing::run(&terminal, lost, FILE, &ADD);
        assert!(said.contains(expected), "{lost}: {said}");
        assert!(lost == 1 || said.contains("kill -HUP"), "{said}");
        let [first, second] = seen.as_slice() else { panic!("{lost}: two requests: {seen:?}") };
        assert!(first.contains("[sources.shop]") && second == CONFIG, "{lost}: {seen:?}");
        assert_eq!((text(&terminal, FILE).as_str(), terminal.path("made").exists()), (CONFIG, false));
    }
}

#[test]
fn a_secret_is_taken_back_in_the_server_too_whose_answer_was_lost() {
    const OLD: &str = "the-first-secret-0123456789";
    let terminal = terminal("[sources.gitea]\nsecret = { file = \"gitea-secret\" }\n");
    terminal.write("conf/gitea-secret", OLD);
    for (lost, expected) in [(1, "taken back, also in the running server"), (2, "is unknown")] {
        let secret = ["sources", "secret", "gitea", "--generate"];
        let (said, seen) = Losing::run(&terminal, lost, "conf/gitea-secret", &secret);
        assert!(said.contains(expected), "{lost}: {said}");
        assert_eq!((seen.len(), seen[0] == OLD, seen[1].as_str()), (2, false, OLD), "{lost}");
        assert_eq!(text(&terminal, "conf/gitea-secret"), OLD);
    }
}
