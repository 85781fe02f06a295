//! SIGKILL at every system call between a request and its answer, thread by thread, on both stores. The calls are taken
//! from a request that is watched; for each of them strace then ends the process when a thread makes it. After the restart the sender's
//! retry comes: what was acknowledged is there, the retry is stored or a duplicate, nothing is doubled or altered.
//!
//! `HOOKSTEAD_KILL_POINT_STEP`: a kill at each so many-th call (4; `cargo xtask evidence` takes 1).

mod calls;
mod pushes;
mod settles;

use std::process::Command;

use self::calls::{Threads, calls_during};
use crate::cases::trace::Attached;
use crate::harness::{
    Connection, Events, Evidence, Project, Request, SOURCE, Server, StoreKind, check_all, fill_index,
    size_from,
};

/// Looks into the database beside its server.
const INDEXED: &str = "import sqlite3, sys\n\
    database = sqlite3.connect('file:' + sys.argv[1] + '?mode=ro', uri=True)\n\
    print(*database.execute('SELECT max(flushed_to) FROM identity_ranges').fetchone())";

/// What is sent when the kill comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    New,
    /// A new event with whose commit a part of the index of identities is written.
    Indexing,
    /// Other bytes under the id of an event of the same run.
    Conflict,
    /// The first retry after a start, of an event from before it.
    Duplicate,
}

#[test]
fn a_kill_at_any_call_loses_and_doubles_nothing_on_sqlite() {
    check_sweeps(StoreKind::Sqlite);
}

#[test]
fn a_kill_at_any_call_loses_and_doubles_nothing_on_files() {
    check_sweeps(StoreKind::Files);
}

fn check_sweeps(store: StoreKind) {
    let step = size_from("HOOKSTEAD_KILL_POINT_STEP", 4);
    let evidence = Evidence::begin("kill-points", store);
    let mut sweeps = Sweeps::on(Project::new().on(store));
    for threads in Threads::ALL {
        for kind in [Kind::New, Kind::Conflict, Kind::Duplicate] {
            sweeps.sweep(threads, kind, step);
        }
    }
    if store == StoreKind::Sqlite {
        sweeps.sweep(Threads::Commit, Kind::Indexing, step);
        let newest = sweeps.events.len();
        assert_eq!(sweeps.indexed(), newest, "the newest event's commit wrote a part of the index");
    }
    sweeps.check_all(evidence);
}

/// A store, and all that is known of it over many kills.
struct Sweeps {
    project: Project,
    /// Running between two kills; in a kill it is taken out.
    server: Option<Server>,
    /// What must be there.
    events: Events,
    kills: usize,
    unanswered: usize,
}

/// A request that was under way when the server was killed, and its answer if there was one.
struct Interrupted {
    kind: Kind,
    id: String,
    body: Vec<u8>,
    status: Option<u16>,
}

impl Sweeps {
    fn on(project: Project) -> Self {
        let server = project.serve();
        let (id, body) = ("first".to_owned(), b"first".to_vec());
        assert_eq!(send(&mut server.connect(), &id, &body), Some(202));
        Self { project, server: Some(server), events: Events::from([(id, body)]), kills: 0, unanswered: 0 }
    }

    /// Kills at one call after the other.
    fn sweep(&mut self, threads: Threads, kind: Kind, step: usize) {
        let before = self.unanswered;
        let calls = calls_during(threads, |watch| self.kill(kind, &format!("{threads:?}-{kind:?}"), watch));
        for call in calls.iter().step_by(step) {
            let event = format!("{threads:?}-{kind:?}-{}-{}", call.name, call.number);
            self.kill(kind, &event, &|server| call.kills(server, threads));
            self.kills += 1;
        }
        let killed = self.unanswered - before;
        println!("{threads:?}, {kind:?}: {} calls, {killed} kills before the answer", calls.len());
        assert!(killed > 0, "no kill came before the answer: {threads:?}, {kind:?}");
    }

    /// The event up to which the range of the index that was written last is whole.
    fn indexed(&self) -> usize {
        let database = self.project.data().join("hookstead.db");
        let looked = Command::new("python3").args(["-c", INDEXED]).arg(database).output();
        let looked = String::from_utf8(looked.expect("python3 starts").stdout).expect("text");
        looked.trim().parse().expect("a number")
    }

    /// Sends a request while strace is at work, ends the server, starts it again and checks.
    fn kill(&mut self, kind: Kind, event: &str, strace: &dyn Fn(&Server) -> Attached) {
        let server = self.server_for(kind);
        let (id, body) = self.request_of(kind, event.to_owned(), &server);
        let mut connection = server.connect();
        let strace = strace(&server);
        let status = send(&mut connection, &id, &body);
        // If the call has not come by now, so does this kill.
        server.kill9();
        strace.wait();
        self.unanswered += usize::from(status.is_none());
        self.check(event, &Interrupted { kind, id, body, status });
    }

    /// A server; for the first retry after a start, one that has just started.
    fn server_for(&mut self, kind: Kind) -> Server {
        let server = self.server.take().expect("a server runs between two kills");
        if kind != Kind::Duplicate {
            return server;
        }
        server.kill9();
        self.project.serve()
    }

    /// What is sent when the kill comes; what it rests on is stored before.
    fn request_of(&mut self, kind: Kind, name: String, server: &Server) -> (String, Vec<u8>) {
        let body = format!("the body of {name} ").repeat(100).into_bytes();
        match kind {
            Kind::New => (name, body),
            Kind::Indexing => {
                fill_index(server, &mut self.events, 1);
                (name, body)
            }
            Kind::Conflict => {
                assert_eq!(send(&mut server.connect(), &name, &body), Some(202), "{name}");
                self.events.insert(name.clone(), body.clone());
                (name, [body, b"!".to_vec()].concat())
            }
            Kind::Duplicate => {
                let (id, body) = self.events.last_key_value().expect("events are there");
                (id.clone(), body.clone())
            }
        }
    }

    /// Starts the server again and sends the retry.
    fn check(&mut self, name: &str, interrupted: &Interrupted) {
        let server = self.project.serve();
        let Interrupted { kind, id, body, status } = interrupted;
        let retried = send(&mut server.connect(), id, body);
        match kind {
            Kind::New | Kind::Indexing => {
                assert!([None, Some(202)].contains(status), "{name}: {status:?}");
                let expected: &[u16] = if status.is_some() { &[200] } else { &[200, 202] };
                assert!(
                    retried.is_some_and(|retried| expected.contains(&retried)),
                    "{name}: {status:?}, then {retried:?}"
                );
                self.events.insert(id.clone(), body.clone());
            }
            Kind::Conflict => {
                assert!([None, Some(409)].contains(status), "{name}: {status:?}");
                assert_eq!(retried, Some(409), "{name}");
            }
            Kind::Duplicate => {
                assert!([None, Some(200)].contains(status), "{name}: {status:?}");
                assert_eq!(retried, Some(200), "{name}");
            }
        }
        assert_eq!(server.admin().body(SOURCE, id).as_ref(), Ok(&self.events[id]), "{name}");
        self.server = Some(server);
    }

    /// At the end every event, and nothing but them.
    fn check_all(mut self, mut evidence: Evidence) {
        let server = self.server.take().expect("a server runs between two kills");
        evidence.count("kills", self.kills);
        evidence.count("before_the_answer", self.unanswered);
        let contradicted = self.events.keys().filter(|id| id.contains("Conflict")).count();
        check_all(&self.project, server, &self.events, contradicted, evidence);
    }
}

/// The status, or `None` if the connection ended instead.
fn send(connection: &mut Connection, id: &str, body: &[u8]) -> Option<u16> {
    connection.send(&Request::signed(id, body).bytes()).ok()?;
    Some(connection.receive().ok()??.status)
}
