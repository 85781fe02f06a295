//! SIGKILL at every system call between what a pull consumer asks and its answer: a claim, and each end of a lease.
//! After the restart the delivery stands as it did or as was asked, and as was asked if that was answered; the same
//! settle again is answered as a success, and is recorded once.

use serde_json::Value;

use super::calls::{Threads, calls_during};
use super::send;
use crate::cases::trace::Attached;
use crate::harness::{
    Act, Consumer, Events, Evidence, PULLED, Project, Reply, SOURCE, Server, StoreKind, check_all, size_from,
};

/// Long enough for every settle; what is claimed at a kill shall soon be free again.
const LEASE: &str = "1h";
const SHORT_LEASE: &str = "1s";

#[test]
fn a_kill_at_any_call_of_a_claim_or_a_settle_loses_and_doubles_nothing_on_sqlite() {
    check_sweeps(StoreKind::Sqlite);
}

#[test]
fn a_kill_at_any_call_of_a_claim_or_a_settle_loses_and_doubles_nothing_on_files() {
    check_sweeps(StoreKind::Files);
}

fn check_sweeps(store: StoreKind) {
    let step = size_from("HOOKSTEAD_KILL_POINT_STEP", 4);
    let mut evidence = Evidence::begin("kill-points-of-settles", store);
    let mut sweeps = Sweeps::on(Project::new().on(store).section(PULLED));
    for threads in Threads::ALL {
        let before = sweeps.unanswered;
        for act in [Act::Claim].into_iter().chain(Act::SETTLES) {
            sweeps.sweep(threads, act, step);
        }
        assert!(sweeps.unanswered > before, "no kill came before an answer: {threads:?}");
    }
    evidence.count("kills", sweeps.kills);
    evidence.count("before_the_answer", sweeps.unanswered);
    let server = sweeps.server.take().expect("a server runs between two kills");
    check_all(&sweeps.project, server, &sweeps.events, 0, evidence);
}

struct Sweeps {
    project: Project,
    token: String,
    /// Running between two kills; in a kill it is taken out.
    server: Option<Server>,
    events: Events,
    kills: usize,
    unanswered: usize,
}

/// What was asked when the server was killed, and the answer if there was one.
struct Interrupted {
    act: Act,
    id: String,
    /// What was claimed before; in a claim that was answered, what it gave.
    lease: Option<Value>,
    answer: Option<Reply>,
}

impl Sweeps {
    fn on(project: Project) -> Self {
        let server = project.serve();
        let token = Consumer::token(&project);
        Self { project, token, server: Some(server), events: Events::new(), kills: 0, unanswered: 0 }
    }

    fn sweep(&mut self, threads: Threads, act: Act, step: usize) {
        let before = self.unanswered;
        let calls = calls_during(threads, |watch| self.kill(act, &format!("{threads:?}-{act:?}"), watch));
        for call in calls.iter().step_by(step) {
            let name = format!("{threads:?}-{act:?}-{}-{}", call.name, call.number);
            self.kill(act, &name, &|server| call.kills(server, threads));
            self.kills += 1;
        }
        let killed = self.unanswered - before;
        println!("{threads:?}, {act:?}: {} calls, {killed} kills before the answer", calls.len());
    }

    fn kill(&mut self, act: Act, name: &str, strace: &dyn Fn(&Server) -> Attached) {
        let server = self.server.take().expect("a server runs between two kills");
        let (id, body) = (name.to_owned(), format!("the body of {name} ").repeat(50).into_bytes());
        assert_eq!(send(&mut server.connect(), &id, &body), Some(202), "{name}");
        self.events.insert(id.clone(), body);
        let mut consumer = Consumer::of(&server, &self.token);
        let mut lease = (act != Act::Claim).then(|| consumer.claimed(LEASE));
        let asked = lease.as_ref().map_or(SHORT_LEASE, |lease| lease["lease"].as_str().expect("a lease"));
        let strace = strace(&server);
        let answer = consumer.ask(act, asked);
        // If the call has not come by now, so does this kill.
        server.kill9();
        strace.wait();
        self.unanswered += usize::from(answer.is_none());
        if let (Act::Claim, Some(reply)) = (act, &answer) {
            lease = Some(reply.json()["leases"][0].clone());
        }
        self.check(&Interrupted { act, id, lease, answer });
    }

    fn check(&mut self, interrupted: &Interrupted) {
        let Interrupted { act, id, lease, answer } = interrupted;
        let server = self.project.serve();
        let mut admin = server.admin();
        let delivery = admin.delivery(SOURCE, id, "app");
        let recorded = act.is_recorded_in(&delivery);
        if let Some(reply) = answer {
            assert_eq!(reply.status, act.success(), "{id}: {reply}");
            assert!(recorded, "{id}: answered, and then lost: {delivery}");
        }
        assert!(recorded || act.is_absent_from(&delivery), "{id}: {delivery}");
        assert_eq!(admin.body(SOURCE, id).as_ref(), Ok(&self.events[id]), "{id}");
        let mut consumer = Consumer::of(&server, &self.token);
        match (act, lease) {
            (Act::Claim, lease) => finish(&mut consumer, lease.as_ref(), &delivery, 1 + u64::from(recorded)),
            (_, Some(lease)) => {
                for _ in 0..2 {
                    assert_eq!(consumer.settle(*act, lease), 204, "{id}: the same again");
                }
                let delivery = admin.delivery(SOURCE, id, "app");
                assert!(act.is_recorded_in(&delivery), "{id}: {delivery}");
                if *act == Act::Release {
                    finish(&mut consumer, None, &delivery, 1);
                }
            }
            (_, None) => panic!("{id}: a settle has a lease"),
        }
        self.server = Some(server);
    }
}

/// Brings a delivery to its end, so that nobody gets it later: by the lease that is known, or by a claim when it is
/// free again, which is attempt number `attempt` and under the delivery's own key.
fn finish(consumer: &mut Consumer, lease: Option<&Value>, delivery: &Value, attempt: u64) {
    if lease.is_some_and(|lease| consumer.settle(Act::Done, lease) == 204) {
        return;
    }
    let again = consumer.claimed(LEASE);
    for same in ["event_id", "idempotency_key"] {
        assert_eq!(again[same], delivery[same], "{delivery}: {again}");
    }
    assert_eq!(again["attempt"], attempt, "{delivery}");
    assert_eq!(consumer.settle(Act::Done, &again), 204, "{delivery}");
}
