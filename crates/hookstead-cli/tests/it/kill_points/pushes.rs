//! SIGKILL at every system call between a target's answer to a push and the settle that records it. After the restart
//! the delivery is done, or leased until its lease ends; then it comes again, once, under the same key.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use super::calls::{Threads, calls_during};
use super::send;
use crate::cases::trace::Attached;
use crate::harness::{
    Act, Events, Evidence, Project, SOURCE, Server, StoreKind, WallClock, check_all, size_from, wait_until,
};

/// The network's threads go on for as long as somebody looks whether the delivery is done; these are the first calls.
const CALLS_OF_A_NAME_MAX: usize = 6;

/// Far behind the end of a lease, which lasts the timeout and half a minute. The timeout is as long as can be, so that
/// nothing that a kill left comes again before all kills are over.
const LEASE_IS_OVER_S: i64 = 3_600;

#[test]
fn a_kill_at_any_call_of_the_settle_of_a_push_loses_and_doubles_nothing_on_sqlite() {
    check_sweeps(StoreKind::Sqlite);
}

#[test]
fn a_kill_at_any_call_of_the_settle_of_a_push_loses_and_doubles_nothing_on_files() {
    check_sweeps(StoreKind::Files);
}

fn check_sweeps(store: StoreKind) {
    let step = size_from("HOOKSTEAD_KILL_POINT_STEP", 4);
    let mut evidence = Evidence::begin("kill-points-of-pushes", store);
    let mut sweeps = Sweeps::on(store);
    for threads in Threads::ALL {
        sweeps.sweep(threads, step);
    }
    assert!(!sweeps.left.is_empty(), "no kill came before the settle");
    evidence.count("kills", sweeps.kills);
    evidence.count("pushed_again", sweeps.left.len());
    let server = sweeps.push_what_is_left();
    check_all(&sweeps.project, server, &sweeps.events, 0, evidence);
}

struct Sweeps {
    target: TcpListener,
    project: Project,
    /// Running between two kills; in a kill it is taken out.
    server: Option<Server>,
    events: Events,
    /// The idempotency keys of what was still leased after its kill, by its id.
    left: BTreeMap<String, String>,
    kills: usize,
}

impl Sweeps {
    fn on(store: StoreKind) -> Self {
        let target = TcpListener::bind("127.0.0.1:0").expect("a port");
        target.set_nonblocking(true).expect("a socket can be told not to block");
        let address = target.local_addr().expect("it has one");
        let push = format!(
            "[destinations.app]\npush = \"http://{address}/\"\nallow_private = true\n\
             retry = [\"0s\", \"0s\", \"0s\"]\ntimeout = \"15m\"\n"
        );
        let project = Project::new().on(store).section(&push);
        let server = Some(project.serve());
        Self { target, project, server, events: Events::new(), left: BTreeMap::new(), kills: 0 }
    }

    fn sweep(&mut self, threads: Threads, step: usize) {
        let (before, kills) = (self.left.len(), self.kills);
        let mut calls = calls_during(threads, |watch| self.kill(&format!("{threads:?}"), watch));
        calls.retain(|call| call.number <= CALLS_OF_A_NAME_MAX);
        for call in calls.iter().step_by(step) {
            let name = format!("{threads:?}-{}-{}", call.name, call.number);
            self.kill(&name, &|server| call.kills(server, threads));
            self.kills += 1;
        }
        let (killed, left) = (self.kills - kills, self.left.len() - before);
        println!("{threads:?}: {} calls, {killed} kills, {left} before the settle was there", calls.len());
        // A part of a committer's few calls may all come behind its write.
        assert!(left > 0 || step > 1, "no kill came before the settle: {threads:?}");
    }

    fn kill(&mut self, name: &str, strace: &dyn Fn(&Server) -> Attached) {
        let server = self.server.take().expect("a server runs between two kills");
        let (id, body) = (name.to_owned(), format!("the body of {name} ").repeat(50).into_bytes());
        assert_eq!(send(&mut server.connect(), &id, &body), Some(202), "{name}");
        let mut push = Push::come(&self.target);
        assert_eq!(push.body, body, "{name}: what was pushed");
        let mut admin = server.admin();
        let delivery = admin.delivery(SOURCE, &id, "app");
        assert!(Act::Claim.is_recorded_in(&delivery), "{name}: {delivery}");
        self.events.insert(id.clone(), body);
        let short_id = delivery["id"].as_str().expect("an id").to_owned();
        let strace = strace(&server);
        push.answer();
        // Whichever comes first: the kill, or the settle.
        let mut is_over = || {
            let reply = admin.try_get(&format!("/v1/deliveries/{short_id}"));
            reply.is_none_or(|reply| reply.json()["state"] == "done")
        };
        wait_until(&mut is_over, || format!("{name}: neither killed nor done"));
        server.kill9();
        strace.wait();
        self.check(&id, push.key);
    }

    fn check(&mut self, id: &str, key: String) {
        let server = self.project.serve();
        let mut admin = server.admin();
        let delivery = admin.delivery(SOURCE, id, "app");
        assert_eq!(delivery["idempotency_key"], *key, "{id}");
        if Act::Done.is_absent_from(&delivery) {
            self.left.insert(id.to_owned(), key);
        } else {
            assert!(Act::Done.is_recorded_in(&delivery), "{id}: {delivery}");
        }
        assert_eq!(admin.body(SOURCE, id).as_ref(), Ok(&self.events[id]), "{id}");
        self.server = Some(server);
    }

    /// Lets the leases end, by a start at a later time; what was left comes again, and nothing else.
    fn push_what_is_left(&mut self) -> Server {
        self.server.take().expect("a server runs between two kills").kill9();
        let later = WallClock::ahead_by(LEASE_IS_OVER_S);
        let server = later.serve(&self.project);
        let mut expected: Vec<&String> = self.left.values().collect();
        let mut keys: Vec<String> = Vec::new();
        while keys.len() < expected.len() {
            let mut push = Push::come(&self.target);
            push.answer();
            keys.push(push.key);
        }
        expected.sort();
        keys.sort();
        assert_eq!(keys.iter().collect::<Vec<_>>(), expected, "what is pushed again, and under which keys");
        let mut admin = server.admin();
        for id in self.left.keys() {
            let mut state = || admin.delivery(SOURCE, id, "app")["state"].clone();
            wait_until(|| state() == "done", || format!("{id} is not done"));
            assert_eq!(admin.delivery(SOURCE, id, "app")["attempts"], 2, "{id}");
        }
        server.kill9();
        self.project.serve()
    }
}

/// A push that came and was not answered yet.
struct Push {
    stream: TcpStream,
    key: String,
    body: Vec<u8>,
}

impl Push {
    fn come(target: &TcpListener) -> Self {
        let mut accepted = None;
        wait_until(
            || {
                accepted = target.accept().ok();
                accepted.is_some()
            },
            || "no push came".to_owned(),
        );
        let (stream, _) = accepted.expect("it was waited for");
        stream.set_nonblocking(false).expect("a socket can be told to block");
        let mut reader = BufReader::new(stream);
        let (mut key, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a line of the head");
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                if line.trim_end().is_empty() {
                    break;
                }
                continue;
            };
            match name.to_ascii_lowercase().as_str() {
                "idempotency-key" => value.clone_into(&mut key),
                "content-length" => length = value.parse().expect("a number"),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("the body");
        Self { stream: reader.into_inner(), key, body }
    }

    /// Says that it has the event. The connection ends with it, so that the next push comes on one of its own.
    fn answer(&mut self) {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        self.stream.write_all(answer).expect("the server reads it");
    }
}
