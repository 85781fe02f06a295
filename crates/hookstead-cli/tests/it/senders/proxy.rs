//! What proxies do to a request on its way: split, trickle, chunk and pipeline it. The bytes of the event stay the
//! same, so the outcome must too.
//!
//! A split counts only if the server has read the first part before the second is sent. The kernel tells when it
//! has: nothing is left in the receive queue of the server's end of the connection.

use std::fs;
use std::ops::Range;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{SECRET, configured, sdk::Sdk, stripe, text, with_headers};
use crate::harness::{Connection, Random, Reply, Request, Server};
use crate::terminal::Terminal;

/// The server reads within microseconds, if it is given a processor.
const PATIENCE: Duration = Duration::from_secs(60);

const SDK: Sdk = stripe::SDK;

/// A server with one signed request, which has not been sent yet.
struct Scene {
    server: Server,
    signed: Value,
    /// Holds the server's files.
    _terminal: Terminal,
}

impl Scene {
    fn new() -> Self {
        let terminal = configured(SDK.provider);
        let signed = SDK.sign(SECRET, "http://localhost/in/stripe");
        Self { server: terminal.serve(), signed, _terminal: terminal }
    }

    fn body(&self) -> &[u8] {
        text(&self.signed, "body").as_bytes()
    }

    fn request(&self) -> Request {
        with_headers(Request::new("POST", "/in/stripe", "localhost"), &self.signed).with_body(self.body())
    }

    /// The request with its body in chunks of these sizes, the last of which is cut to what is left.
    fn chunked(&self, mut size: impl FnMut() -> usize) -> Vec<u8> {
        let head = self.request().without("Content-Length").with("Transfer-Encoding", "chunked").head();
        let (mut bytes, mut rest) = (head, self.body());
        while !rest.is_empty() {
            let (chunk, left) = rest.split_at(size().min(rest.len()));
            bytes.extend(format!("{:X}\r\n", chunk.len()).bytes());
            bytes.extend(chunk);
            bytes.extend(b"\r\n");
            rest = left;
        }
        bytes.extend(b"0\r\n\r\n");
        bytes
    }

    fn connect(&self) -> Wire {
        let connection = self.server.connect();
        let own = connection.local_port().expect("a connected socket has a port");
        let (_, port) = self.server.intake().rsplit_once(':').expect("host and port");
        Wire { connection, own, server: port.parse().expect("a port") }
    }

    /// The first answer is to the event, every other one to a duplicate of it, and what is stored is what was sent.
    fn check(&self, replies: &[Reply]) {
        assert!(replies.len() > 1);
        for (number, reply) in replies.iter().enumerate() {
            let (status, outcome) = if number == 0 { (202, "stored") } else { (200, "duplicate") };
            assert_eq!(
                (reply.status, reply.json()["outcome"].as_str()),
                (status, Some(outcome)),
                "{number}: {reply}"
            );
        }
        let mut admin = self.server.admin();
        assert_eq!(admin.events().len(), 1);
        assert_eq!(admin.body(SDK.provider, text(&self.signed, "id")).as_deref(), Ok(self.body()));
    }
}

/// A connection of which both ends are known.
struct Wire {
    connection: Connection,
    own: u16,
    server: u16,
}

impl Wire {
    /// Sends a part, and waits until the server has read it.
    fn part(&mut self, bytes: &[u8]) {
        self.connection.send(bytes).expect("the server takes it");
        let deadline = Instant::now() + PATIENCE;
        while self.unread() {
            assert!(Instant::now() < deadline, "the server reads nothing, or has closed the connection");
            std::thread::yield_now();
        }
    }

    /// Sends the parts between these positions and gives the answer.
    fn parts(&mut self, bytes: &[u8], cuts: impl IntoIterator<Item = usize>) -> Reply {
        let mut start = 0;
        for cut in cuts {
            self.part(&bytes[start..cut]);
            start = cut;
        }
        self.connection.exchange(&bytes[start..]).expect("an answer")
    }

    fn unread(&self) -> bool {
        let table = fs::read_to_string("/proc/net/tcp").expect("the kernel tells its connections");
        let ends = format!(" 0100007F:{:04X} 0100007F:{:04X} ", self.server, self.own);
        // While other connections come and go, a reading of the table can miss a line.
        let Some(connection) = table.lines().find(|line| line.contains(&ends)) else { return true };
        let queues = connection.split_whitespace().nth(4).and_then(|queues| queues.split_once(':'));
        queues.expect("two queues").1 != "00000000"
    }
}

#[test]
fn split_at_every_byte_of_the_head() {
    let scene = Scene::new();
    let (bytes, head) = (scene.request().bytes(), scene.request().head());
    let mut wire = scene.connect();
    let replies: Vec<Reply> = (1..=head.len()).map(|cut| wire.parts(&bytes, [cut])).collect();
    scene.check(&replies);
}

#[test]
fn split_in_many_places() {
    let scene = Scene::new();
    let bytes = scene.request().bytes();
    let mut random = Random::new(0x5EED);
    let mut wire = scene.connect();
    let mut cuts = || {
        let mut cuts: Vec<usize> = (0..4).map(|_| 1 + random.below(bytes.len() - 1)).collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts
    };
    let replies: Vec<Reply> = (0..20).map(|_| wire.parts(&bytes, cuts())).collect();
    scene.check(&replies);
}

#[test]
fn trickled_byte_by_byte() {
    let scene = Scene::new();
    let bytes = scene.request().bytes();
    let mut wire = scene.connect();
    let trickled = wire.parts(&bytes, 1..bytes.len());
    let whole = wire.parts(&bytes, []);
    scene.check(&[trickled, whole]);
}

#[test]
fn chunked_in_odd_sizes() {
    let scene = Scene::new();
    let mut random = Random::new(0x5EED);
    let mut bodies: Vec<Vec<u8>> = [1, 2, 3, 7, 13, 64, 1021].map(|size| scene.chunked(|| size)).into();
    bodies.extend((0..20).map(|_| scene.chunked(|| 1 + random.below(40))));
    // The server ends the connection after a chunked request, so each has its own.
    let replies: Vec<Reply> = bodies.iter().map(|bytes| scene.connect().parts(bytes, [])).collect();
    scene.check(&replies);
}

#[test]
fn chunked_and_trickled() {
    let scene = Scene::new();
    let bytes = scene.chunked(|| 17);
    let body = head_length(&bytes)..bytes.len();
    let trickled = scene.connect().parts(&bytes, body);
    let whole = scene.connect().parts(&bytes, []);
    scene.check(&[trickled, whole]);
}

#[test]
fn pipelined() {
    const COPIES: usize = 25;
    let scene = Scene::new();
    let bytes = scene.request().bytes().repeat(COPIES);
    let mut random = Random::new(0x5EED);
    let mut wire = scene.connect();
    wire.connection.send(&bytes).expect("the server takes it");
    let mut replies = receive(&mut wire, 0..COPIES);
    // The cuts lie anywhere: also where one request ends and the next begins.
    let mut start = 0;
    while start < bytes.len() {
        let end = bytes.len().min(start + 1 + random.below(700));
        wire.part(&bytes[start..end]);
        start = end;
    }
    replies.extend(receive(&mut wire, COPIES..2 * COPIES));
    scene.check(&replies);
}

fn receive(wire: &mut Wire, numbers: Range<usize>) -> Vec<Reply> {
    let mut reply = |number| {
        let reply = wire.connection.receive().expect("an answer");
        reply.unwrap_or_else(|| panic!("closed instead of answer {number}"))
    };
    numbers.map(&mut reply).collect()
}

/// With the blank line.
fn head_length(request: &[u8]) -> usize {
    let blank = request.windows(4).position(|window| window == b"\r\n\r\n");
    blank.expect("a blank line") + 4
}
