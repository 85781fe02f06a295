//! Backups of a running server under load, restored elsewhere: the check finds nothing, and every event that was
//! acknowledged before a backup was begun is served from its copy, byte for byte.
//!
//! `HOOKSTEAD_BACKUPS` says how many are made on each store.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::harness::{
    Connection, Events, Evidence, Project, Request, SOURCE, StoreKind, size_from, wait_until,
};

/// The most events of a load, so that what is looked at in the end stays in bounds.
const EVENTS_MAX: usize = 20_000;

#[test]
fn backups_under_load_restore_every_acknowledged_event_on_sqlite() {
    check_backups(StoreKind::Sqlite);
}

#[test]
fn backups_under_load_restore_every_acknowledged_event_on_files() {
    check_backups(StoreKind::Files);
}

fn check_backups(kind: StoreKind) {
    let mut evidence = Evidence::begin("backups", kind);
    let project = Project::new().on(kind);
    let server = project.serve();
    let (stop, refused) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut intake = server.connect();
    let acknowledged: Mutex<Events> = Mutex::default();
    let count = size_from("HOOKSTEAD_BACKUPS", 3);
    let mut compared = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| load(&mut intake, &stop, &acknowledged, &refused));
        let rounds = || {
            for round in 0..count {
                let behind = acknowledged.lock().expect("no panic").len();
                let more = || {
                    let now = acknowledged.lock().expect("no panic").len();
                    now > behind || now == EVENTS_MAX
                };
                wait_until(more, || format!("the load stands at {behind} events"));
                compared += check_one(&project, kind, round, &acknowledged);
            }
        };
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(rounds));
        stop.store(true, Ordering::Release);
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    let total = acknowledged.lock().expect("no panic").len();
    evidence.count("backups", count);
    evidence.count("acknowledged", total);
    evidence.count("compared", compared);
    evidence.count("refused", refused.load(Ordering::Acquire));
    evidence.count("lost", 0);
    evidence.finish(project.data());
}

/// Sends one event after the other, and notes what is acknowledged.
fn load(intake: &mut Connection, stop: &AtomicBool, acknowledged: &Mutex<Events>, refused: &AtomicUsize) {
    for n in 0..EVENTS_MAX {
        if stop.load(Ordering::Acquire) {
            return;
        }
        let (id, body) = (format!("evt_{n}"), format!("{{\"n\":{n},\"pad\":\"{}\"}}", "x".repeat(n % 900)));
        match intake.exchange(&Request::signed(&id, body.as_bytes()).bytes()).expect("an answer").status {
            202 => drop(acknowledged.lock().expect("no panic").insert(id, body.into_bytes())),
            503 => drop(refused.fetch_add(1, Ordering::AcqRel)),
            status => panic!("{id} was answered {status}"),
        }
    }
}

/// One backup and its restore; how many events were compared.
fn check_one(project: &Project, kind: StoreKind, round: usize, acknowledged: &Mutex<Events>) -> usize {
    let before: Events = acknowledged.lock().expect("no panic").clone();
    let folder = project.data().join(format!("backup-{round}"));
    let made = project.run(&["store", "backup", &folder.display().to_string(), "--json"]);
    assert_eq!(made.exit_code, Some(0), "{made:?}");
    let elsewhere = Project::new().on(kind);
    let restored = elsewhere.run(&["store", "restore", &folder.display().to_string(), "--json"]);
    assert_eq!(restored.exit_code, Some(0), "{restored:?}");
    let again = elsewhere.run(&["store", "restore", &folder.display().to_string()]);
    assert_eq!(again.exit_code, Some(5), "a restore writes over nothing: {again:?}");
    let check = elsewhere.run(&["store", "check"]);
    assert_eq!(check.exit_code, Some(0), "{check:?}");
    compare(&elsewhere, &before);
    std::fs::remove_dir_all(&folder).expect("it can be removed");
    before.len()
}

/// Every event is there with its bytes; a retry of one is a duplicate.
fn compare(project: &Project, before: &Events) {
    let server = project.serve();
    let mut admin = server.admin();
    let faults: BTreeMap<&String, String> = before
        .iter()
        .filter_map(|(id, body)| match admin.body(SOURCE, id) {
            Ok(stored) if stored == *body => None,
            Ok(_) => Some((id, "other bytes".to_owned())),
            Err(answer) => Some((id, answer)),
        })
        .collect();
    assert!(faults.is_empty(), "lost or altered: {faults:#?}");
    if let Some((id, body)) = before.iter().next_back() {
        let retry = server.connect().exchange(&Request::signed(id, body).bytes()).expect("an answer");
        assert_eq!(retry.status, 200, "{retry}");
    }
    assert!(server.stop().success());
}

#[test]
fn a_backup_without_a_server_and_its_refusals_name_the_fix() {
    let project = Project::new();
    let none = project.run(&["store", "backup", "nowhere"]);
    assert_eq!(none.exit_code, Some(3), "{none:?}");
    let server = project.serve();
    let reply = server.connect().exchange(&Request::signed("evt_1", b"{}").bytes()).expect("an answer");
    assert_eq!(reply.status, 202, "{reply}");
    server.kill9();
    let made = project.run(&["store", "backup", "made"]);
    assert_eq!(made.exit_code, Some(0), "{made:?}");
    assert!(made.stdout.contains("1 events in 1 files"), "{made:?}");
    let sums = std::process::Command::new("sha256sum")
        .args(["--quiet", "-c", "SHA256SUMS"])
        .current_dir(project.data().join("made"))
        .status();
    assert!(sums.expect("sha256sum starts").success());
    let taken = project.run(&["store", "backup", "made"]);
    assert_eq!(taken.exit_code, Some(5), "{taken:?}");
    assert!(taken.stderr.contains("name a new folder"), "{taken:?}");
    spoil(&project.data().join("made/store/hookstead.db"));
    let damaged =
        Project::new().run(&["store", "restore", &project.data().join("made").display().to_string()]);
    assert_eq!(damaged.exit_code, Some(1), "{damaged:?}");
    assert!(damaged.stderr.contains("another digest"), "{damaged:?}");
}

fn spoil(file: &Path) {
    let mut bytes = std::fs::read(file).expect("it can be read");
    *bytes.last_mut().expect("it is not empty") ^= 1;
    std::fs::write(file, bytes).expect("it can be written");
}
