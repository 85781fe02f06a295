//! The start itself under faults: of a new store, of one after a crash, of one after a crash under load. At each call
//! that changes the disk it is killed, or the call fails: then the start is refused with the reason and the fix, or goes
//! on where that is harmless. A start without a fault works afterwards, quickly, and everything that was acknowledged
//! before is there, settled as it was.
//!
//! Between two of these calls nothing changes that a later start could see, so that a kill at any other system call is
//! one of these kills.
//!
//! `HOOKSTEAD_START_STEP`: at each so many-th call (90; `cargo xtask evidence` says its own);
//! `HOOKSTEAD_START_EVENTS`: how many events came before a crash under load (60).

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::{Extent, Strike, strike_each};
use crate::harness::{
    Act, Consumer, Disk, Ended, Events, Evidence, Fault, Kind, PULLED, Project, SOURCE, Server, StoreKind,
    check_all, size_from, wait_until,
};

/// How long a start without a fault may take. The tests' own build is not the one that is promised for.
const READY_MAX: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 2 });

const FAULTS: [(Kind, Fault, Extent); 10] = [
    (Kind::Any, Fault::Killed, Extent::Once),
    (Kind::Sync, Fault::Broken, Extent::Once),
    (Kind::Write, Fault::Broken, Extent::Once),
    (Kind::Open, Fault::Broken, Extent::Once),
    (Kind::Name, Fault::Broken, Extent::Once),
    (Kind::Name, Fault::Full, Extent::Once),
    (Kind::Write, Fault::Full, Extent::FromThenOn),
    (Kind::Open, Fault::Full, Extent::FromThenOn),
    (Kind::Write, Fault::Half, Extent::Once),
    (Kind::Any, Fault::ReadOnly, Extent::FromThenOn),
];

/// What was there before the start.
#[derive(Clone, Copy, Debug)]
enum Before {
    Nothing,
    /// A few events and deliveries in every state, and SIGKILL.
    Crash,
    /// Many events, and SIGKILL: there is a log or a journal to move into its place.
    Load,
}

#[test]
fn a_start_that_is_killed_or_meets_a_failing_disk_loses_nothing_on_sqlite() {
    check_starts(StoreKind::Sqlite);
}

#[test]
fn a_start_that_is_killed_or_meets_a_failing_disk_loses_nothing_on_files() {
    check_starts(StoreKind::Files);
}

fn check_starts(store: StoreKind) {
    let step = size_from("HOOKSTEAD_START_STEP", 90);
    let mut evidence = Evidence::begin("disk-faults-of-starts", store);
    let mut figures = Figures::default();
    let mut last = None;
    for before in [Before::Nothing, Before::Crash, Before::Load] {
        let stage = Stage::prepare(store, before);
        for how in FAULTS {
            let struck = strike_each(how, step, |strike| stage.check_one(strike, &mut figures));
            println!("{before:?}: {how:?}: {struck} starts");
        }
        last = Some(stage);
    }
    let Figures { killed, failed, refused, ready_max } = figures;
    assert!(killed > 0 && refused > 0, "no start was killed, or none refused: {figures:?}");
    evidence.count("killed", killed);
    evidence.count("failures", failed);
    evidence.count("refused", refused);
    evidence.time("ready_max_ms", ready_max);
    let stage = last.expect("there were starts");
    stage.restore();
    check_all(&stage.project, stage.project.serve(), &stage.events, 0, evidence);
}

#[derive(Debug, Default)]
struct Figures {
    killed: usize,
    failed: usize,
    refused: usize,
    ready_max: Duration,
}

/// A store as a crash left it, to be put back before each start.
struct Stage {
    kind: StoreKind,
    project: Project,
    disk: Disk,
    store: PathBuf,
    copy: TempDir,
    token: String,
    /// What must be there.
    events: Events,
    /// What was asked before the crash, and its lease.
    settled: Vec<(Act, String, Value)>,
}

impl Stage {
    fn prepare(store: StoreKind, before: Before) -> Self {
        let project = Project::new();
        let folder = project.data().join("store");
        let project = project.on(store).store_in(&folder).section(PULLED);
        let copy = tempfile::tempdir().expect("a temporary folder");
        let (disk, token) = (Disk::build(), String::new());
        let mut stage = Self {
            kind: store,
            project,
            disk,
            store: folder,
            copy,
            token,
            events: Events::new(),
            settled: Vec::new(),
        };
        let events = match before {
            Before::Nothing => return stage,
            Before::Crash => 3,
            Before::Load => size_from("HOOKSTEAD_START_EVENTS", 60),
        };
        stage.fill(events);
        copy_all(&stage.store, stage.copy.path());
        stage
    }

    fn fill(&mut self, events: usize) {
        let server = self.project.serve();
        self.token = Consumer::token(&self.project);
        let mut consumer = Consumer::of(&server, &self.token);
        for act in Act::SETTLES.into_iter().chain([Act::Claim]) {
            let id = format!("{act:?}");
            self.accept(&server, &id);
            let lease = consumer.claimed("1h");
            if act != Act::Claim {
                assert_eq!(consumer.settle(act, &lease), 204, "{id}");
            }
            if act == Act::Release {
                let again = consumer.claimed("1h");
                assert_eq!(again["provider_id"], *id, "{again}");
            }
            self.settled.push((act, id, lease));
        }
        for number in 0..events {
            self.accept(&server, &format!("event-{number}"));
        }
        server.kill9();
    }

    fn accept(&mut self, server: &Server, id: &str) {
        let body = super::body(id);
        assert_eq!(super::send(server, id, &body), 202, "{id}");
        self.events.insert(id.to_owned(), body);
    }

    /// Puts the store back as the crash left it.
    fn restore(&self) {
        if self.store.exists() {
            fs::remove_dir_all(&self.store).expect("a folder of ours can be removed");
        }
        if !self.events.is_empty() {
            copy_all(self.copy.path(), &self.store);
        }
    }

    /// A start that is struck, and one behind it that is not. Whether there was such a call.
    fn check_one(&self, strike: &Strike, figures: &mut Figures) -> bool {
        self.restore();
        let struck = self.strike_one(strike, figures);
        if struck {
            self.start_again(&strike.name, figures);
        }
        struck
    }

    /// Whether there was such a call.
    fn strike_one(&self, strike: &Strike, figures: &mut Figures) -> bool {
        let Strike { name, kind, fault, .. } = strike;
        let (kind, fault) = (*kind, *fault);
        let logged = self.project.log().len();
        strike.arm(&self.disk);
        let started = self.project.try_serve_under(self.disk.below(&self.store));
        // A kill behind the start's end, as at a call of a thread that the start left at work, is none of a start.
        let struck = self.disk.struck() > 0 && !(fault == Fault::Killed && started.is_ok());
        match started {
            Err(ended) if fault == Fault::Killed => {
                assert!(struck && ended.status.code().is_none(), "{name}: {ended:?}");
                figures.killed += 1;
            }
            Err(ended) => {
                assert!(struck, "{name}: refused though nothing failed: {ended:?}");
                judge_refusal(name, &ended);
                figures.refused += 1;
                figures.failed += 1;
            }
            Ok(server) => {
                figures.failed += usize::from(struck);
                let log = || self.project.log().split_off(logged);
                // A write of only a part is completed. SQLite lets its own syncs of folders fail, and opens for them:
                // the store syncs its folders itself.
                let by_sqlite = self.kind == StoreKind::Sqlite
                    && strike.first == strike.last
                    && matches!(kind, Kind::Open | Kind::Sync);
                // The call is counted before it has failed, and what comes of it is noted later still.
                if struck && fault != Fault::Half && !by_sqlite {
                    wait_until(
                        || noted_in(&log()).is_some(),
                        || format!("{name}: it went on and said nothing: {}", log()),
                    );
                }
                server.kill9();
                if let Some(noted) = noted_in(&log()) {
                    println!("  {name}: the start went on: {noted}");
                }
            }
        }
        self.disk.heal();
        struck
    }

    /// Without a fault.
    fn start_again(&self, name: &str, figures: &mut Figures) {
        let server = self.project.serve();
        assert!(server.ready_after <= READY_MAX, "{name}: ready after {:?}", server.ready_after);
        figures.ready_max = figures.ready_max.max(server.ready_after);
        let mut admin = server.admin();
        for (id, body) in &self.events {
            assert_eq!(admin.body(SOURCE, id).as_ref(), Ok(body), "{name}: {id}");
        }
        for (act, id, lease) in &self.settled {
            let delivery = admin.delivery(SOURCE, id, "app");
            let as_it_was = match act {
                // It was claimed once more.
                Act::Release => Act::Claim.is_recorded_in(&delivery),
                act => act.is_recorded_in(&delivery),
            };
            assert!(as_it_was, "{name}: {act:?}: {delivery}");
            if *act != Act::Release {
                let again = if *act == Act::Claim { Act::Done } else { *act };
                let status = Consumer::of(&server, &self.token).settle(again, lease);
                assert_eq!(status, 204, "{name}: {act:?}: the settle again");
            }
        }
        if let Some((id, body)) = self.events.first_key_value() {
            assert_eq!(super::send(&server, id, body), 200, "{name}: a retry");
        }
        let listed = admin.events().len();
        assert_eq!(listed, self.events.len(), "{name}: one row an event");
        assert_eq!(super::send(&server, "new", b"new"), 202, "{name}: a new event");
        server.kill9();
    }
}

/// The first line of a log that says that something went wrong.
fn noted_in(log: &str) -> Option<&str> {
    log.lines().find(|line| line.contains("ERROR") || line.contains("WARN"))
}

/// A refused start says why and what to do, and does not crash.
fn judge_refusal(name: &str, ended: &Ended) {
    assert_eq!(ended.status.code(), Some(1), "{name}: {ended:?}");
    let error = ended.said.find("error[").map(|at| &ended.said[at..]);
    let error = error.unwrap_or_else(|| panic!("{name}: no reason: {ended:?}"));
    assert!(error.contains("fix") || error.contains("; "), "{name}: no fix: {error}");
}

fn copy_all(from: &std::path::Path, to: &std::path::Path) {
    let copied = Command::new("cp").args(["-a", "-T"]).arg(from).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "cp works");
}
