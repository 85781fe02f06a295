//! SIGKILL at random while events are accepted, delivered and settled: each accepted event ends `done` or `dead`, what
//! was recorded as done is never sent again, and what is sent again has the key that it had.
//!
//! `HOOKSTEAD_DELIVERY_KILLS` says how often (8), `HOOKSTEAD_SEED` repeats the random choices of a run that failed.

mod target;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use self::target::{Record, Target};
use crate::harness::{
    Connection, Evidence, Project, Random, Request, SOURCE, Server, StoreKind, size_from, unix_time,
};

const SENDERS: usize = 3;

/// A kill comes after this many notices at most: of a sender when it sends and when it is answered, of the target
/// when something has come and when it has answered.
const NOTICES_MAX: usize = 500;

/// A round in which nothing is heard for so long is over: everything that is due is done.
const QUIET_TIME: Duration = Duration::from_millis(500);

/// How many pages of a thousand events are read after a kill: what has not ended by then is found at the end.
const PAGES_AFTER_A_KILL: usize = 2;

/// How long the last deliveries may take: a lease that a kill left behind lasts the timeout and thirty seconds, and
/// each attempt may leave one.
const DRAIN_TIME_MAX: Duration = Duration::from_mins(4);

/// From this many kills on every end and every kind of kill must have been seen: fewer may miss one by chance.
const PROVING_FROM: usize = 100;

/// Quick retries, and few enough that some deliveries end dead. A slow machine is no target that does not answer.
const DESTINATION: &str = "allow_private = true\ntimeout = \"10s\"\nconcurrency = 16\n\
                           retry = [\"0s\", \"0s\", \"1s\"]\n";

#[test]
fn deliveries_survive_kills_on_sqlite() {
    check_kills(StoreKind::Sqlite);
}

#[test]
fn deliveries_survive_kills_on_files() {
    check_kills(StoreKind::Files);
}

fn check_kills(store: StoreKind) {
    let kills = size_from("HOOKSTEAD_DELIVERY_KILLS", 8);
    let seed = size_from("HOOKSTEAD_SEED", usize::try_from(unix_time()).expect("a time after 1970"));
    println!("{store:?}: HOOKSTEAD_SEED={seed}");
    let mut random = Random::new(u64::try_from(seed).expect("64 bits hold any size"));
    let mut evidence = Evidence::begin("kills-of-deliveries", store);
    let (notices, heard) = channel();
    let target = Target::start(Random::new(random.next()), notices.clone(), body_of);
    let destination = format!("[destinations.app]\npush = \"{}\"\n{DESTINATION}", target.url());
    let project = Project::new().on(store).section(&destination);
    let mut trial = Trial { project, target, notices, heard, random, seen: Seen::default() };

    let mut server = trial.project.serve();
    for round in 0..kills {
        let unknown = trial.load_until_killed(server, round);
        // Not always: whoever opens the store recovers it, and the server has to do that by itself too.
        if trial.random.below(4) > 0 {
            trial.look_while_nothing_runs(PAGES_AFTER_A_KILL);
        }
        server = trial.project.serve();
        trial.send_again(&server, unknown);
    }
    trial.drain(&server);
    server.kill9();
    trial.look_while_nothing_runs(usize::MAX);
    let figures = trial.figures(kills);
    figures.iter().for_each(|(what, count)| evidence.count(what, *count));
    evidence.finish(trial.project.data());
    trial.judge(kills);
}

/// The bytes that belong to an id: whoever knows the id can check them.
fn body_of(id: &str) -> Vec<u8> {
    format!("{{\"id\":\"{id}\",\"padding\":\"{}\"}}", "x".repeat(id.len() * 7 % 90)).into_bytes()
}

/// How a delivery stands in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Done,
    Dead,
}

/// What is known of the events.
#[derive(Default)]
struct Seen {
    /// Answered with success, or found to be stored.
    accepted: BTreeSet<String>,
    /// Those of which the store said that they have ended, how, and how many requests the target had had by then.
    ended: BTreeMap<String, (State, usize)>,
    in_flight: usize,
}

struct Trial {
    project: Project,
    target: Target,
    notices: Sender<()>,
    heard: Receiver<()>,
    random: Random,
    seen: Seen,
}

impl Trial {
    /// Senders and the dispatcher at work; the server is killed after a random number of notices. Answers what was in
    /// flight to it.
    fn load_until_killed(&mut self, server: Server, round: usize) -> Vec<String> {
        self.heard.try_iter().for_each(drop);
        // Some kills shall meet a server that only delivers.
        let senders = if self.random.below(4) == 0 { 0 } else { SENDERS };
        let notices = 1 + self.random.below(NOTICES_MAX);
        let over = AtomicBool::new(false);
        let address = server.intake().to_owned();
        let sent: Vec<Sent> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..senders)
                .map(|number| {
                    let prefix = format!("r{round}-s{number}");
                    let (address, over, notices) = (&address, &over, self.notices.clone());
                    scope.spawn(move || send_until_killed(&prefix, address, over, &notices))
                })
                .collect();
            self.hear(notices);
            over.store(true, Ordering::SeqCst);
            server.kill9();
            threads.into_iter().map(|thread| thread.join().expect("no sender failed")).collect()
        });
        let mut unknown = Vec::new();
        for sent in sent {
            self.seen.accepted.extend(sent.accepted);
            unknown.extend(sent.unknown);
        }
        self.seen.in_flight += unknown.len();
        unknown
    }

    fn hear(&self, count: usize) {
        for _ in 0..count {
            if self.heard.recv_timeout(QUIET_TIME).is_err() {
                return;
            }
        }
    }

    /// What was in flight at the kill may be stored or not; now it is.
    fn send_again(&mut self, server: &Server, unknown: Vec<String>) {
        let mut connection = server.connect();
        for id in unknown {
            let reply = connection.exchange(&Request::signed(&id, &body_of(&id)).bytes()).expect("an answer");
            assert!([200, 202].contains(&reply.status), "{id}, in flight at the kill: {reply}");
            self.seen.accepted.insert(id);
        }
    }

    /// Between a kill and the next start: nothing can send now, so what the target has had for a delivery that ended
    /// is all that it may ever have.
    fn look_while_nothing_runs(&mut self, pages_max: usize) {
        let states = self.states(pages_max);
        let record = self.target.record();
        for (id, state) in states {
            if state != State::Open {
                let requests = record.get(&id).map_or(0, |received| received.requests);
                let (before, _) = *self.seen.ended.entry(id.clone()).or_insert((state, requests));
                assert_eq!(before, state, "{id} had ended another way");
            }
        }
    }

    /// The newest events of the store, read by the program itself while no server runs.
    fn states(&self, pages_max: usize) -> BTreeMap<String, State> {
        let mut states = BTreeMap::new();
        let mut after = String::new();
        for _ in 0..pages_max {
            let mut arguments = vec!["events", "list", "--json", "--limit", "1000"];
            if !after.is_empty() {
                arguments.extend(["--after", &after]);
            }
            let printed = self.project.run(&arguments);
            assert_eq!(printed.exit_code, Some(0), "{printed:?}");
            let page: Value = serde_json::from_str(&printed.stdout).expect("JSON");
            states.extend(page["events"].as_array().expect("a list").iter().map(state_of));
            match page["next"].as_str() {
                Some(next) => next.clone_into(&mut after),
                None => break,
            }
        }
        states
    }

    /// Waits until nothing is owed any more.
    fn drain(&mut self, server: &Server) {
        let deadline = Instant::now() + DRAIN_TIME_MAX;
        let mut admin = server.admin();
        let mut is_owed = |state: &str| {
            let page = admin.get(&format!("/v1/deliveries?state={state}&limit=1"));
            assert_eq!(page.status, 200, "{page}");
            !page.json()["deliveries"].as_array().expect("a list").is_empty()
        };
        // Leased first: what is given back between the two looks is waiting at the second.
        while is_owed("leased") || is_owed("waiting") {
            assert!(Instant::now() < deadline, "still owed after {DRAIN_TIME_MAX:?}");
            self.hear(NOTICES_MAX);
        }
    }

    fn figures(&self, kills: usize) -> Vec<(&'static str, usize)> {
        let record = self.target.record();
        let count = |wanted: State| self.seen.ended.values().filter(|(state, _)| *state == wanted).count();
        let twice = record.values().filter(|received| received.successes > 1).count();
        let other_keys = record.values().filter(|received| received.keys.len() > 1).count();
        vec![
            ("kills", kills),
            ("accepted", self.seen.accepted.len()),
            ("in_flight_at_kills", self.seen.in_flight),
            ("done", count(State::Done)),
            ("dead", count(State::Dead)),
            ("lost", self.seen.accepted.iter().filter(|id| !self.seen.ended.contains_key(*id)).count()),
            ("requests", record.values().map(|received| received.requests).sum()),
            ("taken_twice_by_the_target", twice),
            ("doubled", other_keys + self.sent_after_their_end(&record).len()),
            ("altered", record.values().filter(|received| received.is_altered).count()),
        ]
    }

    fn sent_after_their_end(&self, record: &Record) -> Vec<String> {
        let requests = |id: &String| record.get(id).map_or(0, |received| received.requests);
        let ended = self.seen.ended.iter();
        ended.filter(|(id, (_, by_then))| requests(id) != *by_then).map(|(id, _)| id.clone()).collect()
    }

    fn judge(&self, kills: usize) {
        let record = self.target.record();
        let Seen { accepted, ended, .. } = &self.seen;
        let lost: Vec<_> = accepted.iter().filter(|id| !ended.contains_key(*id)).collect();
        assert!(lost.is_empty(), "accepted, and neither done nor dead: {lost:?}");
        let unasked: Vec<_> = ended.keys().filter(|id| !accepted.contains(*id)).collect();
        assert!(unasked.is_empty(), "never sent: {unasked:?}");
        assert_eq!(self.sent_after_their_end(&record), Vec::<String>::new(), "sent after their end");
        for (id, received) in &*record {
            assert_eq!(received.keys.len(), 1, "{id}: {received:?}");
            assert!(!received.is_altered, "{id} came with other bytes");
        }
        for (id, (state, _)) in ended {
            let successes = record.get(id).map_or(0, |received| received.successes);
            assert!(*state == State::Dead || successes > 0, "{id} is done, and the target never took it");
        }
        assert!(!accepted.is_empty(), "nothing was accepted at all");
        if kills >= PROVING_FROM {
            let is_dead = |(state, _): &(State, usize)| *state == State::Dead;
            assert!(ended.values().any(is_dead), "no delivery of {} ended dead", ended.len());
            assert!(
                record.values().any(|received| received.successes > 1),
                "no kill fell between push and settle"
            );
        }
    }
}

/// An event of `hookstead events list`, which is owed to one destination.
fn state_of(event: &Value) -> (String, State) {
    let id = event["provider_event_id"].as_str().expect("an id").to_owned();
    assert_eq!(event["source"], SOURCE, "{event}");
    let count = |state: &str| event["deliveries"][state].as_u64().expect("a count");
    let counts = ["waiting", "leased", "done", "dead", "held"].map(count);
    let state = match counts {
        [1, 0, 0, 0, 0] | [0, 1, 0, 0, 0] => State::Open,
        [0, 0, 1, 0, 0] => State::Done,
        [0, 0, 0, 1, 0] => State::Dead,
        _ => panic!("not one delivery that is on its way or ended: {event}"),
    };
    (id, state)
}

/// What one sender did.
#[derive(Default)]
struct Sent {
    accepted: Vec<String>,
    unknown: Vec<String>,
}

fn send_until_killed(prefix: &str, address: &str, over: &AtomicBool, notices: &Sender<()>) -> Sent {
    let mut sent = Sent::default();
    // The kill may come before this sender has connected.
    let Ok(mut connection) = Connection::open(address) else { return sent };
    for number in 0.. {
        let id = format!("{prefix}-{number}");
        let notify = || notices.send(()).expect("the trial outlives its senders");
        let status = connection.send(&Request::signed(&id, &body_of(&id)).bytes()).and_then(|()| {
            notify();
            connection.receive()
        });
        match status {
            Ok(Some(reply)) => {
                assert_eq!(reply.status, 202, "{id}: {reply}");
                notify();
                sent.accepted.push(id);
            }
            Ok(None) | Err(_) => {
                assert!(over.load(Ordering::SeqCst), "the server ended a connection before it was killed");
                sent.unknown.push(id);
                return sent;
            }
        }
    }
    sent
}
