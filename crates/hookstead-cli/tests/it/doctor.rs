//! `hookstead doctor`: what it finds on a healthy inbox and on spoilt ones, that it changes nothing, and that a start
//! that is refused says the same step and fix.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::harness::{Project, Request, Server, StoreKind, Tmpfs, send_signal, unix_time};
use crate::terminal::Terminal;

/// A report, as programs read it.
struct Report(Value);

impl Report {
    /// The checks of this name: outcome, what and fix of each.
    fn of(&self, name: &str) -> Vec<[&str; 3]> {
        let checks = self.0["checks"].as_array().expect("a list");
        let named = checks.iter().filter(|check| check["name"] == name);
        named
            .map(|check| ["outcome", "what", "fix"].map(|key| check[key].as_str().unwrap_or_default()))
            .collect()
    }

    /// The one check of this name, which came out like this.
    fn expect(&self, name: &str, outcome: &str) -> [&str; 3] {
        let found = self.of(name);
        assert_eq!(found.len(), 1, "{name}: {:#}", self.0);
        assert_eq!(found[0][0], outcome, "{name}: {:#}", self.0);
        found[0]
    }

    fn failed(&self) -> Vec<&str> {
        let checks = self.0["checks"].as_array().expect("a list");
        let failed = checks.iter().filter(|check| check["outcome"] == "fail");
        failed.filter_map(|check| check["name"].as_str()).collect()
    }
}

/// Asks the doctor of a project.
fn ask(project: &Project, exit_code: i32) -> Report {
    ask_under(project, Command::new("env"), exit_code)
}

fn ask_under(project: &Project, under: Command, exit_code: i32) -> Report {
    let printed = project.run_under(under, &["doctor", "--json"]);
    assert_eq!(printed.exit_code, Some(exit_code), "{printed:?}");
    Report(serde_json::from_str(&printed.stdout).unwrap_or_else(|error| panic!("{error} in {printed:?}")))
}

/// A project without a server whose store holds an event, and which asks for no free space.
fn closed(kind: StoreKind) -> Project {
    let project = Project::new().on(kind).store_key("min_free", "\"0 B\"");
    let server = project.serve();
    send(&server, unix_time(), "a");
    assert_eq!(server.stop().code(), Some(0));
    project
}

fn send(server: &Server, time: i64, id: &str) {
    let request = Request::signed_at(time, id, b"the body of an event");
    assert_eq!(server.connect().exchange(&request.bytes()).expect("an answer").status, 202);
}

/// Every file below a folder with its bytes, but for what the test itself writes and what SQLite shares in memory.
fn bytes(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("it can be listed") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(bytes(&path));
        } else if !name.ends_with("-shm") && name != "test.toml" && name != "server.log" {
            let content = fs::read(&path).expect("it can be read");
            // SQLite makes an empty log where there is none; it says the same as none.
            if !(name.ends_with("-wal") && content.is_empty()) {
                found.insert(path, content);
            }
        }
    }
    found
}

#[test]
fn a_healthy_inbox_without_a_configuration_has_nothing_that_fails() {
    let terminal = Terminal::new();
    let server = terminal.serve();
    terminal.ok(&["send", "stripe"]);
    let report = Report(terminal.ok(&["doctor", "--json"]).json());
    assert_eq!(report.failed(), Vec::<&str>::new());
    assert_eq!((&report.0["ok"], &report.0["failed"]), (&true.into(), &0.into()), "{:#}", report.0);
    let address = format!("http://{}", server.admin_address());
    assert_eq!(report.0["server"], address.as_str());
    for name in [
        "config",
        "server",
        "intake",
        "admin",
        "ready",
        "version",
        "lock",
        "format",
        "settings",
        "integrity",
        "identities",
        "write-probe",
        "folders",
        "log",
        "sqlite-library",
    ] {
        report.expect(name, "ok");
    }
    let [_, lock, _] = report.expect("lock", "ok");
    assert!(lock.contains(&server.pid().to_string()), "{lock}");
    let [_, clock, _] = report.expect("clock", "ok");
    assert!(clock.contains("`stripe`") && clock.contains("1 verified"), "{clock}");

    let said = terminal.ok(&["doctor"]).stdout;
    assert!(said.lines().any(|line| line.starts_with("ok    ready           ")), "{said}");
    assert!(said.ends_with(" skip\n") && !said.contains('\x1b'), "{said}");
}

#[test]
fn without_a_server_the_store_is_looked_at_as_a_start_would() {
    for kind in StoreKind::ALL {
        let project = closed(kind);
        let before = bytes(project.data());
        let report = ask(&project, 0);
        assert!(before == bytes(project.data()), "the look changed a file");
        let [_, _, fix] = report.expect("server", "warn");
        assert!(fix.contains("hookstead serve"), "{fix}");
        assert_eq!(report.0["server"], Value::Null);
        assert_eq!(report.of("listen").len(), 2);
        for name in ["lock", "format", "log", "integrity", "write-probe"] {
            report.expect(name, "ok");
        }
        assert_eq!(project.serve().stop().code(), Some(0), "the lock was let go");
    }
}

#[test]
fn before_the_first_start_nothing_is_made() {
    for kind in StoreKind::ALL {
        let project = Project::new().on(kind).store_key("min_free", "\"0 B\"");
        let report = ask(&project, 0);
        let [_, what, _] = report.expect("format", "ok");
        assert!(what.contains("first start makes it"), "{what}");
        assert_eq!(bytes(project.data()), BTreeMap::new());
    }
}

#[test]
fn a_server_that_was_stopped_in_the_middle_answers_nothing() {
    let project = Project::new();
    let server = project.serve();
    send_signal("STOP", server.pid());
    let report = ask(&project, 1);
    send_signal("CONT", server.pid());
    for name in ["intake", "admin"] {
        let [_, what, fix] = report.expect(name, "fail");
        assert!(what.contains("did not answer in time") && !fix.is_empty(), "{what}");
    }
    report.expect("lock", "ok");
    assert_eq!(ask(&project, 0).failed(), Vec::<&str>::new(), "it goes on");
}

#[test]
fn an_address_that_another_program_has_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut project = closed(StoreKind::Sqlite);
    let address = taken.local_addr().expect("an address").to_string();
    project.listen_at(&address);
    let report = ask(&project, 1);
    assert_eq!(report.failed(), ["listen"]);
    let what = report.of("listen")[0][1];
    assert!(what.contains(&address), "{what}");
    let refused = project.run(&["serve", "--json"]);
    assert!(refused.stderr.contains("step   listen"), "{refused:?}");
}

/// How a store is spoilt, and the step in which that is found.
struct Spoilt {
    what: &'static str,
    kind: StoreKind,
    spoil: fn(&Path),
    step: &'static str,
}

const SPOILT: [Spoilt; 8] = [
    Spoilt {
        what: "a foreign file",
        kind: StoreKind::Sqlite,
        spoil: |at| write(&at.join("hookstead.db"), b"songs"),
        step: "format",
    },
    Spoilt {
        what: "a database that was moved away",
        kind: StoreKind::Sqlite,
        spoil: |at| fs::rename(at.join("hookstead.db"), at.join("elsewhere.db")).expect("it is there"),
        step: "format",
    },
    Spoilt {
        what: "a newer database",
        kind: StoreKind::Sqlite,
        spoil: |at| execute(at, "INSERT INTO migrations VALUES (99, 'later', 'x', 1)"),
        step: "format",
    },
    Spoilt {
        what: "a damaged event",
        kind: StoreKind::Sqlite,
        spoil: |at| execute(at, "UPDATE events SET body = CAST('the body of another!' AS BLOB)"),
        step: "integrity",
    },
    Spoilt {
        what: "a lock that cannot be opened",
        kind: StoreKind::Sqlite,
        spoil: |at| {
            fs::remove_file(at.join("hookstead.db.lock")).expect("it is there");
            fs::create_dir(at.join("hookstead.db.lock")).expect("it can be made");
        },
        step: "lock",
    },
    Spoilt {
        what: "a foreign folder",
        kind: StoreKind::Files,
        spoil: |at| fs::rename(at.join("inbox/hookstead.json"), at.join("inbox/songs")).expect("it is there"),
        step: "format",
    },
    Spoilt {
        what: "a newer folder",
        kind: StoreKind::Files,
        spoil: |at| {
            let marker = at.join("inbox/hookstead.json");
            let text = fs::read_to_string(&marker).expect("it is there");
            write(&marker, text.replace("\"format\": ", "\"format\": 9").as_bytes());
        },
        step: "format",
    },
    Spoilt {
        what: "a damaged log",
        kind: StoreKind::Files,
        spoil: |at| {
            let mut log = fs::read(at.join("inbox/work.log")).expect("it is there");
            log[2] ^= 1;
            write(&at.join("inbox/work.log"), &log);
        },
        step: "log",
    },
];

fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("it can be written");
}

/// Edits a database as anybody could.
fn execute(data: &Path, sql: &str) {
    let script =
        "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1])\nc.executescript(sys.argv[2])\nc.commit()";
    let edited =
        Command::new("python3").args(["-c", script]).arg(data.join("hookstead.db")).arg(sql).output();
    let edited = edited.expect("python3 starts");
    assert!(edited.status.success(), "{}", String::from_utf8_lossy(&edited.stderr));
}

#[test]
fn a_spoilt_store_is_named_with_its_step_and_fix_and_not_touched() {
    for Spoilt { what, kind, spoil, step } in SPOILT {
        let project = closed(kind);
        spoil(project.data());
        let before = bytes(project.data());
        let report = ask(&project, 1);
        assert!(before == bytes(project.data()), "{what}: the doctor changed a file");
        assert_eq!(report.failed(), [step], "{what}: {:#}", report.0);
        let [_, said, fix] = report.expect(step, "fail");
        assert!(!said.is_empty() && !fix.is_empty(), "{what}: {said} {fix}");
        refuses_to_start(&project, Command::new("env"), step, fix, what);
        // A start may have given the log its size again; nothing is in it.
        let without_log = |mut files: BTreeMap<PathBuf, Vec<u8>>| {
            files.retain(|path, _| !path.to_string_lossy().ends_with("-wal"));
            files
        };
        let after = without_log(bytes(project.data()));
        assert!(without_log(before) == after, "{what}: the refused start changed a file");
    }
}

/// A start says the same.
fn refuses_to_start(project: &Project, under: Command, step: &str, fix: &str, what: &str) {
    let refused = project.run_under(under, &["serve", "--json"]);
    assert_eq!(refused.exit_code, Some(1), "{what}: {refused:?}");
    assert!(refused.stderr.lines().any(|line| line == format!("  step   {step}")), "{what}: {refused:?}");
    assert!(refused.stderr.contains(&format!("  fix    {fix}")), "{what}, {fix}: {refused:?}");
}

#[test]
fn a_database_that_was_moved_away_under_its_server_is_named() {
    let project = Project::new();
    let server = project.serve();
    send(&server, unix_time(), "a");
    let (here, there) = (project.data().join("hookstead.db"), project.data().join("elsewhere.db"));
    fs::rename(&here, &there).expect("it is there");
    let report = ask(&project, 1);
    assert_eq!(report.failed(), ["format"], "{:#}", report.0);
    let [_, what, fix] = report.expect("format", "fail");
    assert!(what.contains("is missing") && fix.contains("put the database back"), "{what}; {fix}");
    fs::rename(&there, &here).expect("it is there");
    assert_eq!(ask(&project, 0).failed(), Vec::<&str>::new());
    drop(server);
}

#[test]
fn a_store_that_somebody_unknown_has_is_told_and_not_touched() {
    for (kind, lock) in [(StoreKind::Sqlite, "hookstead.db.lock"), (StoreKind::Files, "inbox/lock")] {
        let project = closed(kind);
        let held =
            File::options().read(true).write(true).open(project.data().join(lock)).expect("it is there");
        held.lock().expect("nobody has it");
        let report = ask(&project, 1);
        let [_, what, fix] = report.expect("lock", "fail");
        assert!(what.contains("open in another process") && fix.contains("stop it"), "{what}; {fix}");
        let refused = project.run(&["serve", "--json"]);
        assert!(refused.stderr.contains("  step   lock"), "{refused:?}");
    }
}

#[test]
fn a_store_that_cannot_be_written_is_refused_by_start_and_doctor_alike() {
    for (kind, step) in [(StoreKind::Sqlite, "lock"), (StoreKind::Files, "lock")] {
        let tmpfs = Tmpfs::mount(96);
        let project = Project::new().on(kind).store_in(tmpfs.path()).store_key("min_free", "\"0 B\"");
        let server = project.serve_under(tmpfs.enter());
        send(&server, unix_time(), "a");
        assert_eq!(server.stop().code(), Some(0));
        tmpfs.make_read_only();
        let report = ask_under(&project, tmpfs.enter(), 1);
        assert_eq!(report.failed(), [step], "{kind:?}: {:#}", report.0);
        let [_, what, fix] = report.expect(step, "fail");
        assert!(what.contains("Read-only file system"), "{what}");
        refuses_to_start(&project, tmpfs.enter(), step, fix, kind.name());
    }
}

#[test]
fn a_store_in_memory_of_the_machine_is_warned_of_on_both_stores() {
    for kind in StoreKind::ALL {
        let tmpfs = Tmpfs::mount(96);
        let project = Project::new().on(kind).store_in(tmpfs.path()).store_key("min_free", "\"0 B\"");
        let server = project.serve_under(tmpfs.enter());
        let log = fs::read_to_string(project.data().join("server.log")).expect("a log");
        assert!(log.contains("tmpfs") && log.contains("file-system"), "{log}");
        let warned = || {
            let report = ask_under(&project, tmpfs.enter(), 0);
            let [_, what, fix] = report.expect("file-system", "warn");
            assert!(what.contains("tmpfs") && fix.contains("a disk or a volume that stays"), "{what}; {fix}");
        };
        warned();
        server.kill9();
        warned();
    }
}

#[test]
fn a_secret_with_a_line_feed_at_its_end_is_named_with_its_fix() {
    let project = Project::new().source("shop", "stripe", "whsec_0123456789abcdefghij\n");
    let report = ask(&project, 5);
    let [_, what, fix] = report.expect("secrets", "fail");
    assert!(what.contains("sources.shop.secret") && what.contains("line feed"), "{what}");
    assert!(fix.contains("printf"), "{fix}");
    assert!(!report.0.to_string().contains("0123456789"), "the secret itself is told to nobody");
    report.expect("store", "skip");
}

#[test]
fn a_secret_of_another_form_than_its_providers_is_warned_of() {
    let project = Project::new().source("shop", "stripe", "a secret without the prefix of Stripe");
    let report = ask(&project, 0);
    let found = report.of("secrets");
    let [_, what, fix] =
        found.iter().find(|found| found[1].contains("`shop`")).expect("a line for each source");
    assert!(what.contains("`whsec_`") && !fix.is_empty(), "{what}; {fix}");
}

#[test]
fn a_clock_that_is_wrong_shows_in_real_traffic() {
    let project = Project::new();
    let server = project.serve();
    send(&server, unix_time(), "in-time");
    let [_, what, _] = ask(&project, 0).expect("clock", "ok").map(str::to_owned);
    assert!(what.contains("1 verified"), "{what}");
    send(&server, unix_time() + 200, "ahead");
    let report = ask(&project, 0);
    let [_, what, fix] = report.expect("clock", "warn");
    assert!(what.contains("s before its signing") && what.contains("2 verified"), "{what}");
    assert!(fix.contains("timedatectl"), "{fix}");
    // What is refused for its time is counted.
    let stale = Request::signed_at(unix_time() - 4000, "late", b"x");
    assert_eq!(server.connect().exchange(&stale.bytes()).expect("an answer").status, 401);
    let [_, what, _] = ask(&project, 0).expect("clock", "warn").map(str::to_owned);
    assert!(what.contains("1 refused as too old"), "{what}");
}

#[test]
fn too_little_room_fails_and_a_paused_destination_is_warned_of() {
    let project =
        Project::new().store_key("min_free", "\"512 TiB\"").section("[destinations.app]\npull = true");
    let server = project.serve();
    let paused = server.admin().post("/v1/destinations/app/pause", &Value::Null);
    assert_eq!(paused.status, 200, "{paused}");
    let report = ask(&project, 1);
    let [_, what, fix] = report.expect("free-space", "fail");
    assert!(what.contains("512 TiB") && fix.contains("min_free"), "{what}; {fix}");
    let [_, what, fix] = report.expect("destination", "warn");
    assert!(what.contains("`app` is paused") && fix.contains("destinations resume app"), "{what}; {fix}");
}

/// The server's start asks for `min_free` beside the copy, and keeps none if it is told so.
#[test]
fn the_room_for_the_copy_of_an_older_schema_is_asked_for_as_a_start_does() {
    for (min_free, upgrade_copy, exit_code, outcome, words) in [
        ("\"0 B\"", "true", 0, "ok", "hookstead.db.schema-"),
        ("\"512 TiB\"", "true", 1, "fail", "bytes must be free"),
        ("\"512 TiB\"", "false", 1, "ok", "without a copy"),
    ] {
        let project = Project::new().store_key("min_free", min_free).store_key("upgrade_copy", upgrade_copy);
        assert_eq!(project.serve().stop().code(), Some(0));
        execute(project.data(), "DELETE FROM migrations WHERE number = (SELECT max(number) FROM migrations)");
        let report = ask(&project, exit_code);
        let [_, what, _] = report.expect("format", outcome);
        assert!(what.contains(words), "{min_free}, {upgrade_copy}: {what}");
    }
}
