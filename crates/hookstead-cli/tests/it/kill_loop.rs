//! SIGKILL under load, again and again: what was acknowledged must be there, byte for byte.
//!
//! `HOOKSTEAD_KILLS` says how often (20), `HOOKSTEAD_SEED` repeats the random choices of a run that failed;
//! the threads' order is the machine's own and is not repeated.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use crate::harness::{
    Admin, Connection, Evidence, Project, Random, Request, SOURCE, Server, StoreKind, unix_time,
};

const SENDERS: usize = 4;

/// How many older events are checked after each kill, beside all of the last round's.
const SAMPLE: usize = 40;

/// How many retries come at the end: the first one of a record after a start costs a sync of its own.
const RETRIES_AT_THE_END_MAX: usize = 2_000;

/// A kill comes after this many notices at most; a request gives one when it is sent and one when it is answered.
const NOTICES_MAX: usize = 300;

/// From this many kills on the time to be ready again is judged: fewer have no 99th percentile.
const JUDGED_FROM: usize = 100;

const READY_P99_MAX: Duration = Duration::from_secs(1);

/// Bodies by the ids of their events.
type Events = BTreeMap<String, Vec<u8>>;

/// What was seen to be wrong first, by the ids of the events.
type Faults = BTreeMap<String, String>;

#[derive(Default)]
struct Figures {
    ready: Vec<Duration>,
    acknowledged: usize,
    duplicates: usize,
    conflicts: usize,
    /// In flight when the server was killed: either outcome is right, if it stays so.
    unknown: usize,
    checked: usize,
    lost: Faults,
    altered: Faults,
}

#[test]
fn acknowledged_events_survive_kills_on_sqlite() {
    check_kills(StoreKind::Sqlite);
}

#[test]
fn acknowledged_events_survive_kills_on_files() {
    check_kills(StoreKind::Files);
}

fn check_kills(store: StoreKind) {
    let kills = number_from("HOOKSTEAD_KILLS").unwrap_or(20);
    let seed = number_from("HOOKSTEAD_SEED").unwrap_or_else(unix_time);
    println!("{store:?}: HOOKSTEAD_SEED={seed}");
    let mut random = Random::new(seed.cast_unsigned());
    let mut evidence = Evidence::begin("kills-under-load", store);
    evidence.count("seed", usize::try_from(seed).expect("a seed is not negative"));
    let project = Project::new().on(store);
    let mut figures = Figures::default();
    let mut acknowledged = Events::new();

    let mut server = project.serve();
    for round in 0..kills {
        let last = load_until_killed(server, round, &acknowledged, &mut random, &mut figures);
        server = project.serve();
        figures.ready.push(server.ready_after);
        let sample = sample(&acknowledged, &mut random);
        Checker::new(&server, &mut figures).check_all(last.acknowledged.iter().chain(sample));
        settle_unknown(&server, last.unknown, &mut acknowledged);
        acknowledged.extend(last.acknowledged);
    }
    // At the end every event there ever was, and a retry of some.
    Checker::new(&server, &mut figures).check_at_the_end(&server, &acknowledged);
    figures.acknowledged = acknowledged.len();
    server.kill9();
    let check = project.run(&["store", "check"]);
    figures.print();
    figures.note(&mut evidence);
    evidence.finish(project.data());
    assert_eq!(check.exit_code, Some(0), "{check:?}");
    figures.judge();
}

fn number_from(variable: &str) -> Option<i64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable} is a number, not `{value}`")))
}

/// What became of one round's new events.
#[derive(Default)]
struct Round {
    acknowledged: Events,
    unknown: Events,
}

/// Several senders at work; the server is killed after a random number of their notices.
fn load_until_killed(
    server: Server,
    round: i64,
    older: &Events,
    random: &mut Random,
    figures: &mut Figures,
) -> Round {
    let (notices, heard) = channel();
    let over = AtomicBool::new(false);
    let address = server.intake().to_owned();
    let results: Vec<Sent> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..SENDERS)
            .map(|number| {
                let prefix = format!("r{round}-s{number}");
                let known = sample(older, random).map(|(id, body)| (id.clone(), body.clone())).collect();
                let sender =
                    Load { prefix, known, random: Random::new(random.next()), notices: notices.clone() };
                let (address, over) = (&address, &over);
                scope.spawn(move || sender.run(address, over))
            })
            .collect();
        // Only the senders hold the other end now: if all of them fail, waiting for them fails too.
        drop(notices);
        wait_for(1 + random.below(NOTICES_MAX), &heard);
        over.store(true, Ordering::SeqCst);
        server.kill9();
        threads.into_iter().map(|thread| thread.join().expect("no sender failed")).collect()
    });
    let mut last = Round::default();
    for sent in results {
        figures.duplicates += sent.duplicates;
        figures.conflicts += sent.conflicts;
        figures.unknown += sent.round.unknown.len();
        figures.lost.extend(sent.lost);
        figures.altered.extend(sent.altered);
        last.acknowledged.extend(sent.round.acknowledged);
        last.unknown.extend(sent.round.unknown);
    }
    last
}

fn wait_for(count: usize, notices: &Receiver<()>) {
    for _ in 0..count {
        notices.recv().expect("the senders work until the server is killed");
    }
}

fn sample<'a>(
    events: &'a Events,
    random: &mut Random,
) -> impl Iterator<Item = (&'a String, &'a Vec<u8>)> + use<'a> {
    let step = (events.len() / SAMPLE).max(1);
    let offset = random.below(step);
    events.iter().skip(offset).step_by(step)
}

/// One sender: new events, retries and conflicts over one connection, until it breaks.
struct Load {
    prefix: String,
    known: Events,
    random: Random,
    notices: Sender<()>,
}

/// What one sender did.
#[derive(Default)]
struct Sent {
    round: Round,
    duplicates: usize,
    conflicts: usize,
    lost: Faults,
    altered: Faults,
}

impl Load {
    fn run(mut self, address: &str, over: &AtomicBool) -> Sent {
        let mut sent = Sent::default();
        // The kill may come before this sender has connected.
        let Ok(mut connection) = Connection::open(address) else { return sent };
        for number in 0.. {
            let goes_on = match self.random.below(10) {
                0 | 1 if !self.known.is_empty() => self.retry(&mut connection, &mut sent),
                2 if !self.known.is_empty() => self.contradict(&mut connection, &mut sent),
                _ => self.send_new(number, &mut connection, &mut sent),
            };
            if !goes_on {
                assert!(over.load(Ordering::SeqCst), "the server ended a connection before it was killed");
                break;
            }
        }
        sent
    }

    fn send_new(&mut self, number: u32, connection: &mut Connection, sent: &mut Sent) -> bool {
        let id = format!("{}-{number}", self.prefix);
        let length = match self.random.below(20) {
            0 => 1 + self.random.below(65_536),
            _ => 1 + self.random.below(3_000),
        };
        let body = self.random.bytes(length);
        match self.exchange(connection, &id, &body) {
            Some(202) => {
                self.known.insert(id.clone(), body.clone());
                sent.round.acknowledged.insert(id, body);
                true
            }
            Some(status) => panic!("a new event was answered {status}"),
            None => {
                sent.round.unknown.insert(id, body);
                false
            }
        }
    }

    fn retry(&mut self, connection: &mut Connection, sent: &mut Sent) -> bool {
        let (id, body) = self.pick();
        let status = self.exchange(connection, &id, &body);
        sent.judge(&id, status, 200);
        sent.duplicates += usize::from(status.is_some());
        status.is_some()
    }

    fn contradict(&mut self, connection: &mut Connection, sent: &mut Sent) -> bool {
        let (id, mut body) = self.pick();
        let position = self.random.below(body.len());
        body[position] ^= 1;
        let status = self.exchange(connection, &id, &body);
        sent.judge(&id, status, 409);
        sent.conflicts += usize::from(status.is_some());
        status.is_some()
    }

    fn pick(&mut self) -> (String, Vec<u8>) {
        let index = self.random.below(self.known.len());
        let (id, body) = self.known.iter().nth(index).expect("the index is below the length");
        (id.clone(), body.clone())
    }

    /// The status, or `None` when the connection broke.
    fn exchange(&self, connection: &mut Connection, id: &str, body: &[u8]) -> Option<u16> {
        connection.send(&Request::signed(id, body).bytes()).ok()?;
        self.notify();
        let status = connection.receive().ok()??.status;
        self.notify();
        Some(status)
    }

    /// The killer stops listening once it has heard enough.
    fn notify(&self) {
        self.notices.send(()).unwrap_or_default();
    }
}

impl Sent {
    /// Judges the answer to a request about an event that was acknowledged.
    fn judge(&mut self, id: &str, status: Option<u16>, expected: u16) {
        match status {
            Some(202) => note(&mut self.lost, id, "stored anew under load"),
            Some(status) if status != expected => {
                note(&mut self.altered, id, &format!("{status} under load"));
            }
            _ => {}
        }
    }
}

fn note(faults: &mut Faults, id: &str, what: &str) {
    faults.entry(id.to_owned()).or_insert_with(|| what.to_owned());
}

/// Looks at acknowledged events through a retry and through the admin listener.
struct Checker<'a> {
    intake: Connection,
    admin: Admin,
    figures: &'a mut Figures,
}

impl<'a> Checker<'a> {
    fn new(server: &Server, figures: &'a mut Figures) -> Self {
        Self { intake: server.connect(), admin: server.admin(), figures }
    }

    fn check_all<'e>(&mut self, events: impl IntoIterator<Item = (&'e String, &'e Vec<u8>)>) {
        for (id, body) in events {
            self.check(id, body);
        }
    }

    fn check_at_the_end(&mut self, server: &Server, events: &Events) {
        let step = events.len().div_ceil(RETRIES_AT_THE_END_MAX).max(1);
        events.iter().for_each(|(id, body)| self.look(id, body));
        // After a look at very many the one before was idle for too long, and the server has closed it.
        self.intake = server.connect();
        events.iter().step_by(step).for_each(|(id, body)| self.retry(id, body));
    }

    fn check(&mut self, id: &str, body: &[u8]) {
        // Before the retry, which could store anew what was lost.
        self.look(id, body);
        self.retry(id, body);
    }

    fn look(&mut self, id: &str, body: &[u8]) {
        self.figures.checked += 1;
        match self.admin.body(SOURCE, id) {
            Ok(stored) if stored == body => {}
            Ok(_) => note(&mut self.figures.altered, id, "other bytes"),
            Err(answer) => note(&mut self.figures.lost, id, &answer),
        }
    }

    fn retry(&mut self, id: &str, body: &[u8]) {
        let reply = self.intake.exchange(&Request::signed(id, body).bytes()).expect("an answer");
        match reply.status {
            200 => {}
            409 => note(&mut self.figures.altered, id, "its retry is a conflict"),
            _ => note(&mut self.figures.lost, id, &format!("its retry got {reply}")),
        }
    }
}

/// Sends again what was in flight: stored or duplicate, and acknowledged from here on.
fn settle_unknown(server: &Server, unknown: Events, acknowledged: &mut Events) {
    let mut connection = server.connect();
    for (id, body) in unknown {
        let reply = connection.exchange(&Request::signed(&id, &body).bytes()).expect("an answer");
        assert!([200, 202].contains(&reply.status), "{id}, in flight at the kill: {reply}");
        acknowledged.insert(id, body);
    }
}

impl Figures {
    fn print(&mut self) {
        self.ready.sort();
        println!("kills              {}", self.ready.len());
        println!("acknowledged       {}", self.acknowledged);
        println!("  checked          {}", self.checked);
        println!("  retries          {}", self.duplicates);
        println!("  conflicts        {}", self.conflicts);
        println!("  in flight        {}", self.unknown);
        println!("lost               {}", self.lost.len());
        println!("altered            {}", self.altered.len());
        let [p50, p99, max] = [50, 99, 100].map(|percent| self.ready_percentile(percent).as_secs_f64() * 1e3);
        println!("restart to ready   p50 {p50:.0} ms, p99 {p99:.0} ms, max {max:.0} ms");
    }

    fn note(&self, evidence: &mut Evidence) {
        evidence.count("kills", self.ready.len());
        evidence.count("acknowledged", self.acknowledged);
        evidence.count("checked", self.checked);
        evidence.count("lost", self.lost.len());
        evidence.count("altered", self.altered.len());
        evidence.time("ready_p99_ms", self.ready_percentile(99));
    }

    /// Of the sorted times.
    fn ready_percentile(&self, percent: usize) -> Duration {
        let rank = (self.ready.len() * percent).div_ceil(100).max(1);
        self.ready.get(rank - 1).copied().unwrap_or_default()
    }

    fn judge(&self) {
        assert!(self.lost.is_empty(), "lost: {:#?}", self.lost);
        assert!(self.altered.is_empty(), "altered: {:#?}", self.altered);
        assert!(self.acknowledged > 0, "no event was acknowledged at all");
        if self.ready.len() >= JUDGED_FROM {
            let p99 = self.ready_percentile(99);
            assert!(p99 < READY_P99_MAX, "ready after {p99:?} at the 99th percentile");
        }
    }
}
