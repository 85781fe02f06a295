//! Backups of a running server under load, restored elsewhere: the check finds nothing, every event that was
//! acknowledged before a backup was begun is in its copy, and it is served from there, byte for byte.
//!
//! `HOOKSTEAD_BACKUPS` says how many are made on each store (2).

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

use crate::harness::{
    Connection, Events, Evidence, Losses, Project, Request, Server, StoreKind, size_from, wait_until,
};

/// How many older events are compared byte for byte with each backup, beside all that came since the one before. That
/// an event is there is looked at for every one, and its digest is compared by the check.
const SAMPLE: usize = 200;

/// How many events come at most while one backup is made: a backup takes longer the more there are, so without an end
/// there would be ever more of them.
const EVENTS_A_ROUND_MAX: usize = 150;

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
    let load = Load::default();
    let count = size_from("HOOKSTEAD_BACKUPS", 2);
    let mut trial = Trial { kind, project, losses: Losses::default(), known: BTreeSet::new(), meanwhile: 0 };
    let address = server.intake().to_owned();
    std::thread::scope(|scope| {
        scope.spawn(|| load.run(&address));
        let rounds = || (0..count).for_each(|round| trial.check_one(round, &load));
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(rounds));
        load.turn(Gate::Over);
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    server.kill9();
    evidence.count("backups", count);
    evidence.count("acknowledged", load.count());
    evidence.count("acknowledged_meanwhile", trial.meanwhile);
    evidence.count("compared", trial.losses.checked);
    evidence.count("refused", load.refused.load(Ordering::Acquire));
    evidence.count("lost", trial.losses.faults.len());
    evidence.finish(trial.project.data());
    trial.losses.judge();
    assert!(trial.meanwhile > 0, "no event was acknowledged while a backup was made");
}

/// Whether the load runs: it stands while a copy is looked at, which says nothing of backups.
#[derive(Clone, Copy, Debug, Default)]
enum Gate {
    #[default]
    Shut,
    /// For so many events more.
    Open(usize),
    Over,
}

impl Gate {
    fn is_shut(self) -> bool {
        matches!(self, Self::Shut | Self::Open(0))
    }
}

/// How a sender came through the gate.
enum Waited {
    Not,
    /// As long as the gate was shut.
    Long,
    Over,
}

/// One sender after the other, and what it was told is stored.
#[derive(Default)]
struct Load {
    gate: Mutex<Gate>,
    turned: Condvar,
    acknowledged: Mutex<Events>,
    refused: AtomicUsize,
}

impl Load {
    fn run(&self, address: &str) {
        let connect = || Connection::open(address).expect("the intake accepts connections");
        let mut intake = connect();
        for number in 0.. {
            match self.wait() {
                Waited::Over => return,
                // The connection may have been idle for so long that the server has closed it.
                Waited::Long => intake = connect(),
                Waited::Not => {}
            }
            let (id, body) = (
                format!("evt_{number}"),
                format!("{{\"n\":{number},\"pad\":\"{}\"}}", "x".repeat(number % 900)),
            );
            let reply = intake.exchange(&Request::signed(&id, body.as_bytes()).bytes()).expect("an answer");
            match reply.status {
                202 => drop(self.acknowledged.lock().expect("no panic").insert(id, body.into_bytes())),
                503 => drop(self.refused.fetch_add(1, Ordering::AcqRel)),
                status => panic!("{id} was answered {status}"),
            }
        }
    }

    /// Until it may go on, or is over.
    fn wait(&self) -> Waited {
        let gate = self.gate.lock().expect("no panic");
        let was_shut = gate.is_shut();
        let mut gate = self.turned.wait_while(gate, |gate| gate.is_shut()).expect("no panic");
        match &mut *gate {
            Gate::Over => Waited::Over,
            Gate::Open(left) => {
                *left = left.saturating_sub(1);
                if was_shut { Waited::Long } else { Waited::Not }
            }
            Gate::Shut => unreachable!("it was waited for"),
        }
    }

    fn turn(&self, to: Gate) {
        *self.gate.lock().expect("no panic") = to;
        self.turned.notify_all();
    }

    fn count(&self) -> usize {
        self.acknowledged.lock().expect("no panic").len()
    }
}

struct Trial {
    kind: StoreKind,
    project: Project,
    losses: Losses,
    /// What was compared with an earlier backup.
    known: BTreeSet<String>,
    /// Acknowledged between the begin and the end of a backup.
    meanwhile: usize,
}

impl Trial {
    /// One backup under load, and its restore.
    fn check_one(&mut self, round: usize, load: &Load) {
        load.turn(Gate::Open(EVENTS_A_ROUND_MAX));
        let behind = load.count();
        wait_until(|| load.count() > behind, || format!("the load stands at {behind} events"));
        let before: Events = load.acknowledged.lock().expect("no panic").clone();
        let folder = self.project.data().join(format!("backup-{round}"));
        let made = self.project.run(&["store", "backup", &folder.display().to_string(), "--json"]);
        self.meanwhile += load.count() - before.len();
        load.turn(Gate::Shut);
        assert_eq!(made.exit_code, Some(0), "{made:?}");
        let elsewhere = restored(self.kind, &folder);
        let server = elsewhere.serve();
        self.compare(&server, &before);
        assert!(server.stop().success());
        std::fs::remove_dir_all(&folder).expect("it can be removed");
    }

    /// Every event is there; those that are new and some of the others with their bytes; a retry of one is a duplicate.
    fn compare(&mut self, server: &Server, before: &Events) {
        let listed = server.admin().events();
        let there: BTreeSet<&str> =
            listed.iter().filter_map(|event| event["provider_event_id"].as_str()).collect();
        let absent: Vec<_> = before.keys().filter(|id| !there.contains(id.as_str())).collect();
        assert!(absent.is_empty(), "acknowledged before the backup and not in it: {absent:?}");
        let step = before.len().div_ceil(SAMPLE).max(1);
        let looked_at = before
            .iter()
            .enumerate()
            .filter(|(place, (id, _))| !self.known.contains(*id) || place % step == 0);
        let looked_at: Events = looked_at.map(|(_, (id, body))| (id.clone(), body.clone())).collect();
        self.losses.look(server, &looked_at);
        self.known.extend(looked_at.into_keys());
    }
}

/// A project whose store is the copy; its check finds nothing, and nothing is ever written over it.
fn restored(kind: StoreKind, folder: &Path) -> Project {
    let elsewhere = Project::new().on(kind);
    let restored = elsewhere.run(&["store", "restore", &folder.display().to_string(), "--json"]);
    assert_eq!(restored.exit_code, Some(0), "{restored:?}");
    let again = elsewhere.run(&["store", "restore", &folder.display().to_string()]);
    assert_eq!(again.exit_code, Some(5), "a restore writes over nothing: {again:?}");
    let check = elsewhere.run(&["store", "check"]);
    assert_eq!(check.exit_code, Some(0), "{check:?}");
    elsewhere
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
    assert!(made.stdout.contains("1 event in 1 file"), "{made:?}");
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
