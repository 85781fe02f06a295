//! Fail-stop from end to end: after one failure of the disk the running server never says success again, to nobody who
//! would write, shows why, lets events be read, and ends with exit code 70: by itself, or before that when it is told to. A
//! full disk is no such failure.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{
    Act, Consumer, Disk, Evidence, Fault, Kind, PULLED, Project, Reply, Request, SOURCE, Server, StoreKind,
    send_signal, wait_until,
};

/// How long reads may go on: until everything was asked for. Then the server is told to end.
const LINGER: &str = "\"2m\"";

/// The same where the end is waited for.
const SHORT_LINGER: &str = "\"1s\"";

/// How the disk fails.
#[derive(Clone, Copy, Debug)]
enum Failure {
    /// Every sync, by strace: the program is as it is delivered.
    Syncs,
    /// Everything that changes it, as after the kernel has made a damaged file system read-only.
    ReadOnly,
}

/// What meets the failure first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Accept,
    Settle,
}

#[test]
fn after_a_failed_sync_sqlite_says_no_success_again_and_ends_with_70() {
    check_fail_stop(StoreKind::Sqlite, Failure::Syncs, First::Accept);
}

#[test]
fn after_a_failed_sync_files_say_no_success_again_and_end_with_70() {
    check_fail_stop(StoreKind::Files, Failure::Syncs, First::Accept);
}

#[test]
fn after_a_failed_sync_the_server_ends_by_itself_with_70_on_both_stores() {
    StoreKind::ALL.into_iter().for_each(check_end);
}

#[test]
fn a_settle_that_meets_a_failed_sync_stops_everything_on_both_stores() {
    for store in StoreKind::ALL {
        check_fail_stop(store, Failure::Syncs, First::Settle);
    }
}

#[test]
fn a_disk_that_became_read_only_stops_everything_on_both_stores() {
    for store in StoreKind::ALL {
        check_fail_stop(store, Failure::ReadOnly, First::Accept);
    }
}

#[test]
fn a_disk_without_room_refuses_claims_and_settles_and_everything_goes_on_when_there_is_some() {
    StoreKind::ALL.into_iter().for_each(check_full);
}

fn check_fail_stop(store: StoreKind, failure: Failure, first: First) {
    let name = match (failure, first) {
        (Failure::Syncs, First::Accept) => "fail-stop",
        (Failure::Syncs, First::Settle) => "fail-stop-at-a-settle",
        (Failure::ReadOnly, _) => "fail-stop-read-only",
    };
    let mut evidence = Evidence::begin(name, store);
    let mut stage = Stage::prepare(store, LINGER);
    let mut strace = None;
    match failure {
        Failure::Syncs => strace = Some(fail_every_sync_of(&stage.server)),
        Failure::ReadOnly => stage.disk.fail(Kind::Any, Fault::ReadOnly, 1, i64::MAX),
    }
    if first == First::Settle {
        stage.refuses("the first settle", |stage| stage.settle(Act::Done, "leased"));
    }
    stage.refuses("a new event", |stage| stage.send("failing", b"body"));
    let refused = 1 + stage.refuses_everything();
    stage.is_red();
    assert_eq!(stage.server.admin().body(SOURCE, "kept"), Ok(body("kept")), "reads go on");
    send_signal("TERM", stage.server.pid());
    assert_eq!(stage.server.wait_for_end().code(), Some(70));
    if let Some(mut strace) = strace {
        strace.wait().expect("strace ends with the process");
    }
    stage.has_logged_why();
    stage.disk.heal();
    stage.server = stage.project.serve();
    let lost = stage.lost();
    evidence.count("refused", refused);
    evidence.count("lost", lost.len());
    evidence.finish(stage.project.data());
    assert!(lost.is_empty(), "{lost:?}");
}

/// Nothing is asked and nobody tells it anything after the answer that shows the failure.
fn check_end(store: StoreKind) {
    let mut stage = Stage::prepare(store, SHORT_LINGER);
    let mut strace = fail_every_sync_of(&stage.server);
    stage.refuses("a new event", |stage| stage.send("failing", b"body"));
    assert_eq!(stage.server.wait_for_end().code(), Some(70), "{store:?}");
    strace.wait().expect("strace ends with the process");
    stage.has_logged_why();
}

fn check_full(store: StoreKind) {
    let stage = Stage::prepare(store, LINGER);
    stage.disk.fail(Kind::Write, Fault::Full, 1, i64::MAX);
    stage.refuses("a new event", |stage| stage.send("failing", b"body"));
    stage.refuses("a settle", |stage| stage.settle(Act::Done, "leased"));
    stage.refuses("a claim", |stage| stage.ask_for_another());
    stage.is_red();
    stage.disk.heal();
    wait_until(|| stage.send("failing", b"body").status < 300, || "no event is taken".to_owned());
    assert_eq!(stage.settle(Act::Done, "leased").status, 204, "the same process settles again");
    assert_eq!(stage.ask_for_another().status, 200);
    assert_eq!(stage.server.admin().get("/readyz").status, 200);
    assert!(stage.server.stop().success(), "{store:?}");
}

/// A server on a disk that can be made to fail, with events and leases from before.
struct Stage {
    project: Project,
    disk: Disk,
    server: Server,
    token: String,
    leased: Value,
    done: Value,
}

impl Stage {
    fn prepare(store: StoreKind, linger: &str) -> Self {
        let project = Project::new();
        let folder = project.data().join("store");
        let project = project.on(store).store_in(&folder).server("failstop_linger", linger).section(PULLED);
        let disk = Disk::build();
        let server = project.serve_under(disk.below(&folder));
        let token = Consumer::token(&project);
        let accept = |id: &str| {
            let request = Request::signed(id, &body(id)).bytes();
            assert_eq!(server.connect().exchange(&request).expect("an answer").status, 202, "{id}");
        };
        let mut consumer = Consumer::of(&server, &token);
        accept("kept");
        let done = consumer.claimed("1h");
        assert_eq!(consumer.settle(Act::Done, &done), 204);
        accept("leased");
        let leased = consumer.claimed("1h");
        accept("waiting");
        Self { project, disk, server, token, leased, done }
    }

    fn send(&self, id: &str, body: &[u8]) -> Reply {
        self.server.connect().exchange(&Request::signed(id, body).bytes()).expect("an answer")
    }

    fn settle(&self, act: Act, which: &str) -> Reply {
        let lease = if which == "leased" { &self.leased } else { &self.done };
        self.consumer().ask(act, lease["lease"].as_str().expect("a lease")).expect("an answer")
    }

    fn ask_for_another(&self) -> Reply {
        self.consumer().ask(Act::Claim, "1h").expect("an answer")
    }

    fn consumer(&self) -> Consumer {
        Consumer::of(&self.server, &self.token)
    }

    fn refuses(&self, what: &str, ask: impl Fn(&Self) -> Reply) {
        let reply = ask(self);
        assert_eq!(reply.status, 503, "{what}: {reply}");
        assert!(reply.header("retry-after").is_some(), "{what}: {reply}");
    }

    /// Everything that would write, and what was answered with success before: how many it was.
    fn refuses_everything(&self) -> usize {
        let post =
            |target: &'static str, body: Value| move |stage: &Self| stage.server.admin().post(target, &body);
        self.refuses("a duplicate", |stage| stage.send("kept", &body("kept")));
        self.refuses("a conflict", |stage| stage.send("kept", b"other"));
        self.refuses("a claim", Self::ask_for_another);
        for act in Act::SETTLES {
            self.refuses("a settle", |stage| stage.settle(act, "leased"));
        }
        self.refuses("a settle that was recorded before", |stage| stage.settle(Act::Done, "done"));
        self.refuses("a decision", post("/v1/deliveries/0003:app/hold", json!({"note": "later"})));
        self.refuses("a run", post("/v1/events/0001/runs", json!({"run": "again"})));
        self.refuses("a redelivery", post("/v1/deliveries/0001:app/redeliver", json!({"note": "again"})));
        11
    }

    /// Not ready on both listeners, with the reason for whoever may know it; and alive.
    fn is_red(&self) {
        let ready = Request::new("GET", "/readyz", self.server.intake()).bytes();
        assert_eq!(self.server.connect().exchange(&ready).expect("an answer").status, 503);
        let mut admin = self.server.admin();
        let red = admin.get("/readyz");
        assert_eq!(red.status, 503, "{red}");
        assert!(red.json()["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{red}");
        assert_eq!(admin.get("/livez").status, 200);
    }

    fn has_logged_why(&self) {
        let log = self.project.log();
        assert!(log.contains("the store is poisoned"), "the reason is in the log: {log}");
    }

    /// What is not as it was acknowledged.
    fn lost(&self) -> Vec<String> {
        let mut lost = Vec::new();
        for id in ["kept", "leased", "waiting"] {
            let status = self.send(id, &body(id)).status;
            if status != 200 {
                lost.push(format!("the retry of `{id}` got {status}"));
            }
        }
        for which in ["leased", "done"] {
            let reply = self.settle(Act::Done, which);
            if reply.status != 204 {
                lost.push(format!("`{which}` is settled with {reply}"));
            }
        }
        lost
    }
}

/// What a run can read.
fn body(id: &str) -> Vec<u8> {
    json!({"eventId": id, "data": {}}).to_string().into_bytes()
}

/// Attaches strace to the running server, so that from now on every sync fails as a broken disk's does.
fn fail_every_sync_of(server: &Server) -> Child {
    let mut strace = Command::new("strace")
        .args(["-f", "-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error=EIO", "-p"])
        .arg(server.pid().to_string())
        .stderr(Stdio::piped())
        .spawn()
        .expect("strace starts; if it is missing, run `cargo xtask setup`");
    let mut said = BufReader::new(strace.stderr.take().expect("stderr is a pipe")).lines();
    let attached = said.find(|line| line.as_ref().is_ok_and(|line| line.contains("attached")));
    assert!(attached.is_some(), "strace cannot attach to the server");
    // It must go on reading, or strace would block on a full pipe.
    std::thread::spawn(move || said.for_each(drop));
    strace
}
