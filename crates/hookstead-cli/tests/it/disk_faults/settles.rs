//! Every sync, write, open and change of a name that the store makes for a claim and each end of a lease fails once, one
//! after the other. A refusal says 503 and when to come again; after SIGKILL and a restart each delivery stands as it
//! did or as was asked, and as was asked if that was answered; the same settle again is a success.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{FAULTS, Strike, send, settles, strike_each};
use crate::harness::{
    Act, Consumer, Disk, Events, Evidence, Fault, Kind, PULLED, Project, Reply, SOURCE, Server, StoreKind,
    check_all, size_from,
};

/// In the order in which they are asked for: what a release gives back could be claimed.
const ACTS: [Act; 5] = [Act::Done, Act::Retry, Act::Dead, Act::Claim, Act::Release];

#[test]
fn a_failure_at_any_call_of_a_claim_or_a_settle_loses_and_doubles_nothing_on_sqlite() {
    check_faults(StoreKind::Sqlite);
}

#[test]
fn a_failure_at_any_call_of_a_claim_or_a_settle_loses_and_doubles_nothing_on_files() {
    check_faults(StoreKind::Files);
}

fn check_faults(store: StoreKind) {
    let step = size_from("HOOKSTEAD_FAULT_STEP", 10);
    let mut evidence = Evidence::begin("disk-faults-of-settles", store);
    let mut trial = Trial::on(Project::new().on(store).section(PULLED));
    for how in FAULTS {
        let struck = strike_each(how, step, |strike| trial.fail_one(strike));
        println!("{how:?}: {struck} calls");
        trial.failures += struck;
    }
    assert!(trial.refused > 0, "no failure was noticed");
    evidence.count("failures", trial.failures);
    evidence.count("refused", trial.refused);
    check_all(&trial.project, trial.serve(), &trial.events, 0, evidence);
}

struct Trial {
    project: Project,
    disk: Disk,
    token: String,
    events: Events,
    failures: usize,
    refused: usize,
}

/// One thing that was asked for, and its answer.
struct Asked {
    act: Act,
    id: String,
    lease: Option<Value>,
    answer: Reply,
}

impl Trial {
    fn on(project: Project) -> Self {
        let disk = Disk::build();
        project.serve_under(disk.below(project.data())).kill9();
        let token = Consumer::token(&project);
        Self { project, disk, token, events: Events::new(), failures: 0, refused: 0 }
    }

    fn serve(&self) -> Server {
        self.project.serve_under(self.disk.below(self.project.data()))
    }

    /// Whether there was such a call.
    fn fail_one(&mut self, strike: &Strike) -> bool {
        let Strike { name, kind, fault, .. } = strike;
        let (kind, fault) = (*kind, *fault);
        let server = self.serve();
        let mut consumer = Consumer::of(&server, &self.token);
        let leased = self.prepare(name, &server, &mut consumer);

        strike.arm(&self.disk);
        let asked: Vec<Asked> = leased.into_iter().map(|leased| leased.ask(&mut consumer)).collect();
        let struck = self.disk.struck() > 0;
        let answers: Vec<u16> = asked.iter().map(|asked| asked.answer.status).collect();
        judge(name, (kind, fault), struck, &asked);
        let done = asked.iter().find(|asked| asked.act == Act::Done).and_then(|asked| asked.lease.clone());
        let done = done.expect("one was leased to be done");
        if struck && (kind, fault) == (Kind::Sync, Fault::Broken) {
            // Also what was answered before the failure: no success leaves the process again.
            settles(name, 503, || consumer.settle(Act::Done, &done));
        }
        self.disk.heal();
        if fault != Fault::Broken {
            settles(name, 204, || consumer.settle(Act::Done, &done));
        }
        server.kill9();
        self.refused += answers.iter().filter(|status| **status == 503).count();
        self.check(&asked);
        struck
    }

    /// An event for each, and a lease for each that ends one.
    fn prepare(&mut self, name: &str, server: &Server, consumer: &mut Consumer) -> Vec<Leased> {
        let mut leased = Vec::new();
        for act in Act::SETTLES.into_iter().chain([Act::Claim]) {
            let id = format!("{name}-{act:?}");
            let body = super::body(&id);
            assert_eq!(send(server, &id, &body), 202, "{id}: before anything fails");
            self.events.insert(id.clone(), body);
            let lease = (act != Act::Claim).then(|| consumer.claimed("1h"));
            assert!(lease.as_ref().is_none_or(|lease| lease["provider_id"] == *id), "{id}: {lease:?}");
            leased.push(Leased { act, id, lease });
        }
        leased.sort_by_key(|leased| ACTS.iter().position(|act| *act == leased.act));
        leased
    }

    fn check(&mut self, asked: &[Asked]) {
        let server = self.serve();
        let mut admin = server.admin();
        let mut consumer = Consumer::of(&server, &self.token);
        let mut owed = BTreeMap::new();
        for Asked { act, id, lease, answer } in asked {
            let delivery = admin.delivery(SOURCE, id, "app");
            let recorded = act.is_recorded_in(&delivery);
            assert!(recorded || act.is_absent_from(&delivery), "{id}: {answer}, then {delivery}");
            assert!(recorded || answer.status == 503, "{id}: {answer}, and then lost: {delivery}");
            assert_eq!(admin.body(SOURCE, id).as_ref(), Ok(&self.events[id]), "{id}");
            if let Some(lease) = lease {
                for _ in 0..2 {
                    assert_eq!(consumer.settle(*act, lease), 204, "{id}: the same again");
                }
                let delivery = admin.delivery(SOURCE, id, "app");
                assert!(act.is_recorded_in(&delivery), "{id}: {delivery}");
            }
            match act {
                Act::Claim => owed.insert(id.clone(), (delivery, 1 + u64::from(recorded))),
                Act::Release => owed.insert(id.clone(), (delivery, 1)),
                Act::Done | Act::Retry | Act::Dead => None,
            };
        }
        finish(&mut consumer, owed);
        server.kill9();
    }
}

/// What is to be asked for.
struct Leased {
    act: Act,
    id: String,
    lease: Option<Value>,
}

impl Leased {
    fn ask(self, consumer: &mut Consumer) -> Asked {
        let Self { act, id, lease } = self;
        let asked = lease.as_ref().map_or("1s", |lease| lease["lease"].as_str().expect("a lease"));
        let answer = consumer.ask(act, asked).expect("an answer");
        Asked { act, id, lease, answer }
    }
}

fn judge(name: &str, (kind, fault): (Kind, Fault), struck: bool, asked: &[Asked]) {
    for Asked { act, answer, .. } in asked {
        let refused = answer.status == 503 && answer.header("retry-after").is_some();
        assert!(answer.status == act.success() || refused, "{name}: {act:?}: {answer}");
        assert!(
            !refused || (struck && fault != Fault::Half),
            "{name}: {act:?}: nothing failed for good: {answer}"
        );
    }
    if matches!(kind, Kind::Sync | Kind::Write) && fault == Fault::Broken {
        let mut after = asked.iter().skip_while(|asked| asked.answer.status != 503);
        assert!(
            after.all(|asked| asked.answer.status == 503),
            "{name}: a success after a failure of the disk"
        );
    }
}

/// Claims what is due or will soon be, each as the attempt that it must be and under its own key, and ends it.
fn finish(consumer: &mut Consumer, mut owed: BTreeMap<String, (Value, u64)>) {
    while !owed.is_empty() {
        let lease = consumer.claimed("1h");
        let id = lease["provider_id"].as_str().expect("an id");
        let (delivery, attempt) = owed.remove(id).unwrap_or_else(|| panic!("given out again: {lease}"));
        assert_eq!(lease["idempotency_key"], delivery["idempotency_key"], "{id}");
        assert_eq!(lease["attempt"], attempt, "{id}: {delivery}");
        assert_eq!(consumer.settle(Act::Done, &lease), 204, "{id}");
    }
}
