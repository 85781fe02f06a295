//! Every sync, write, open and change of a name that the store makes for three requests fails once, one after the other:
//! with `EIO`, with `ENOSPC`, or by writing only a half. Then comes SIGKILL, a restart, and the senders' retries. What
//! was acknowledged is there, nothing is doubled or altered; after a failed sync no success leaves the process again;
//! after `ENOSPC` it goes on by itself.
//!
//! `HOOKSTEAD_FAULT_STEP`: at each so many-th call (5; `cargo xtask evidence` takes 1).

mod settles;
mod starts;

use std::time::{Duration, Instant};

use crate::harness::{
    Connection, Disk, Events, Evidence, Fault, Kind, Project, Request, SOURCE, Server, StoreKind, check_all,
    fill_index, size_from,
};

/// Nothing that is tried here makes so many calls of a kind.
const CALLS_MAX: i64 = 2_000;

/// The calls that fail, and how. Last, whether only one of them does or all from then on.
const FAULTS: [(Kind, Fault, Extent); 8] = [
    (Kind::Sync, Fault::Broken, Extent::Once),
    (Kind::Write, Fault::Broken, Extent::Once),
    (Kind::Open, Fault::Broken, Extent::Once),
    (Kind::Name, Fault::Broken, Extent::Once),
    (Kind::Write, Fault::Full, Extent::Once),
    (Kind::Write, Fault::Full, Extent::FromThenOn),
    (Kind::Open, Fault::Full, Extent::FromThenOn),
    (Kind::Write, Fault::Half, Extent::Once),
];

/// A server that can go on does so by then, and one that must not says so.
const SETTLED_MAX: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    Once,
    FromThenOn,
}

/// Calls of a kind that fail: one, or all from that one on.
struct Strike {
    /// Of no other one.
    name: String,
    kind: Kind,
    fault: Fault,
    first: i64,
    last: i64,
}

impl Strike {
    /// Lets them fail.
    fn arm(&self, disk: &Disk) {
        disk.fail(self.kind, self.fault, self.first, self.last);
    }
}

/// Whether everything that is tried here makes calls of this kind. Not each opens a file or gives it a name.
fn must_strike(kind: Kind) -> bool {
    match kind {
        Kind::Sync | Kind::Write | Kind::Any => true,
        Kind::Open | Kind::Name | Kind::Read => false,
    }
}

/// Strikes one call after the other, each so many-th, until `strike` says that there was none; how many there were. A
/// sweep in which nothing failed shows nothing: where there must be such calls, one at least was struck.
fn strike_each(
    (kind, fault, extent): (Kind, Fault, Extent),
    step: usize,
    mut strike: impl FnMut(&Strike) -> bool,
) -> usize {
    for (count, first) in (1..CALLS_MAX).step_by(step).enumerate() {
        let last = if extent == Extent::Once { first } else { i64::MAX };
        let name = format!("{kind:?}-{fault:?}-{extent:?}-{first}");
        if !strike(&Strike { name, kind, fault, first, last }) {
            assert!(count > 0 || !must_strike(kind), "no {kind:?} was {fault:?} ({extent:?})");
            return count;
        }
    }
    panic!("{CALLS_MAX} calls of {kind:?}");
}

#[test]
fn a_failure_at_any_call_loses_and_doubles_nothing_on_sqlite() {
    check_faults(StoreKind::Sqlite);
}

#[test]
fn a_failure_at_any_call_loses_and_doubles_nothing_on_files() {
    check_faults(StoreKind::Files);
}

fn check_faults(store: StoreKind) {
    let step = size_from("HOOKSTEAD_FAULT_STEP", 5);
    let mut evidence = Evidence::begin("disk-faults", store);
    let mut trial = Trial::on(store);
    for how in FAULTS {
        let struck = strike_each(how, step, |strike| trial.fail_one(strike));
        println!("{how:?}: {struck} calls");
        trial.failures += struck;
    }
    assert!(trial.refused > 0, "no failure was noticed");
    evidence.count("failures", trial.failures);
    evidence.count("refused", trial.refused);
    let server = trial.serve();
    let contradicted = trial.events.keys().filter(|id| id.ends_with("known")).count();
    check_all(&trial.project, server, &trial.events, contradicted, evidence);
}

struct Trial {
    project: Project,
    disk: Disk,
    /// Whether it writes its index of identities now and then.
    has_index: bool,
    /// What must be there.
    events: Events,
    failures: usize,
    refused: usize,
}

/// What became of the three requests.
struct Answers {
    new: u16,
    conflict: u16,
    duplicate: u16,
}

impl Trial {
    fn on(store: StoreKind) -> Self {
        let (project, has_index) = (Project::new().on(store), store == StoreKind::Sqlite);
        Self { project, disk: Disk::build(), has_index, events: Events::new(), failures: 0, refused: 0 }
    }

    fn serve(&self) -> Server {
        self.project.serve_under(self.disk.below(self.project.data()))
    }

    /// Whether there was such a call.
    fn fail_one(&mut self, strike: &Strike) -> bool {
        let Strike { name, kind, fault, .. } = strike;
        let (kind, fault) = (*kind, *fault);
        let (new, known) = (format!("{name}-new"), format!("{name}-known"));
        let (new_body, known_body) = (body(&new), body(&known));
        let other_body = [known_body.clone(), b"!".to_vec()].concat();
        let server = self.serve();
        if self.has_index && fault == Fault::Broken && matches!(kind, Kind::Sync | Kind::Write) {
            // The commit of the new event then writes to the index of identities too.
            fill_index(&server, &mut self.events, 2);
        }
        assert_eq!(send(&server, &known, &known_body), 202, "{name}: before anything fails");

        strike.arm(&self.disk);
        let answers = Answers {
            new: send(&server, &new, &new_body),
            conflict: send(&server, &known, &other_body),
            duplicate: send(&server, &known, &known_body),
        };
        let struck = self.disk.struck() > 0;
        answers.judge(name, kind, fault, struck);
        if struck && (kind, fault) == (Kind::Sync, Fault::Broken) {
            settles(name, 503, || send(&server, &known, &known_body));
        }
        self.disk.heal();
        if fault != Fault::Broken {
            settles(name, 200, || send(&server, &known, &known_body));
        }
        server.kill9();
        self.refused += answers.refused();

        let server = self.serve();
        let was_there = server.admin().body(SOURCE, &new);
        assert!(answers.new == 503 || was_there.as_ref() == Ok(&new_body), "{name}: lost: {was_there:?}");
        let expected = if was_there.is_ok() { 200 } else { 202 };
        assert_eq!(send(&server, &new, &new_body), expected, "{name}: its retry");
        assert_eq!(send(&server, &known, &other_body), 409, "{name}: its conflict");
        assert_eq!(send(&server, &known, &known_body), 200, "{name}: its duplicate");
        server.kill9();
        self.events.extend([(new, new_body), (known, known_body)]);
        struck
    }
}

impl Answers {
    fn all(&self) -> [u16; 3] {
        [self.new, self.conflict, self.duplicate]
    }

    fn refused(&self) -> usize {
        self.all().iter().filter(|status| **status == 503).count()
    }

    fn judge(&self, name: &str, kind: Kind, fault: Fault, struck: bool) {
        let wanted = [202, 409, 200];
        let answers = self.all();
        let legal = answers.iter().zip(wanted).all(|(status, wanted)| *status == wanted || *status == 503);
        assert!(legal, "{name}: {answers:?}");
        if !struck || fault == Fault::Half {
            assert_eq!(answers, wanted, "{name}: nothing failed for good");
        }
        // Fail-stop: after the first refusal because of a broken disk there is nothing but refusals.
        if kind == Kind::Sync && fault == Fault::Broken {
            let after = answers.iter().skip_while(|status| **status != 503);
            assert!(
                after.clone().all(|status| *status == 503),
                "{name}: a success after a failed sync: {answers:?}"
            );
        }
    }
}

fn body(id: &str) -> Vec<u8> {
    format!("the body of {id} ").repeat(200).into_bytes()
}

/// The status of the answer, on a connection of its own: a refusal may close it.
fn send(server: &Server, id: &str, body: &[u8]) -> u16 {
    let mut connection: Connection = server.connect();
    let reply = connection.exchange(&Request::signed(id, body).bytes()).expect("an answer");
    assert!(reply.status != 503 || reply.header("retry-after").is_some(), "{id}: {reply}");
    reply.status
}

/// Asks until the answer is this.
fn settles(name: &str, wanted: u16, mut ask: impl FnMut() -> u16) {
    let deadline = Instant::now() + SETTLED_MAX;
    while ask() != wanted {
        assert!(Instant::now() < deadline, "{name}: no {wanted} after {SETTLED_MAX:?}");
    }
}
