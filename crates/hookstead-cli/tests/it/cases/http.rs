//! Themes http-framing and body-limits: what is sent slowly, in pieces, without end, or too much of.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::case::{Case, hmac_hex, wire};
use super::play::{body, events, find, play};
use super::stage::Stage;
use crate::harness::{Connection, Reply, Server, median};

const SECRET: &str = "hookbox-test-secret-01";

/// How many connections misbehave at once.
const CROWD: usize = 200;

/// Far above every limit that is set here, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// How soon most good requests are answered beside those that misbehave.
const PROMPT: Duration = Duration::from_secs(1);

#[test]
fn b022_chunks_are_put_together_and_their_extensions_dropped() {
    let played = play("B022");
    played.ids(&["ch-2"]);
    let stored = body(&mut played.server.admin(), &played.events[0]);
    assert_eq!(stored, "{\"id\":\"ch-2\",\"t\":\"éé\"}".as_bytes());
}

#[test]
fn b023_a_client_that_asks_first_is_told_to_continue() {
    let (case, _stage, server) = staged("B023");
    let head = case.requests().remove(0).bytes;
    let mut connection = server.connect();
    let interim = connection.exchange(&head).expect("an interim answer");
    assert_eq!(interim.status, 100, "{interim}");
    let reply = connection.exchange(&case.bytes("/then_body_b64")).expect("an answer");
    assert_eq!(reply.status, 202, "{reply}");
    assert_eq!(server.admin().events().len(), 1);

    let head =
        String::from_utf8(head).expect("text").replace("Content-Length: 13", "Content-Length: 99999999");
    let reply = server.connect().exchange(head.as_bytes()).expect("an answer");
    assert_eq!(reply.status, 413, "{reply}");
}

#[test]
fn b027_a_head_that_trickles_is_cut_off_and_harms_nobody() {
    let case = Case::get("B027");
    let header_time = Duration::from_secs(2);
    let stage = Stage::at(case.now()).source(&case.sources()[0]).limit("header_time", "\"2s\"");
    let server = stage.serve();
    let base = server.descriptors();
    let begun = Instant::now();
    let mut slow: Vec<TcpStream> = (0..CROWD).map(|_| trickling(server.intake())).collect();
    let mut times = Vec::new();
    loop {
        slow.retain_mut(goes_on);
        let since = begun.elapsed();
        assert!(since >= header_time || slow.len() == CROWD, "cut off after {since:?} already");
        times.push(post_good(&server, times.len()));
        // The connection of the good request, and what the store has open.
        if slow.is_empty() && server.descriptors() <= base + 8 {
            break;
        }
        assert!(
            since < PATIENCE,
            "{} are still connected, {} files are open",
            slow.len(),
            server.descriptors()
        );
    }
    assert_prompt(times);
}

/// As before, with heads that may take ten minutes: who had to wait for one would not be answered in time.
#[test]
fn b027_heads_that_trickle_keep_nobody_waiting() {
    let case = Case::get("B027");
    let stage = Stage::at(case.now()).source(&case.sources()[0]).limit("header_time", "\"10m\"");
    let server = stage.serve();
    let mut slow: Vec<TcpStream> = (0..CROWD).map(|_| trickling(server.intake())).collect();
    let send = |number: usize| {
        let time = post_good(&server, number);
        slow.retain_mut(goes_on);
        assert_eq!(slow.len(), CROWD, "all of them are still connected");
        time
    };
    assert_prompt((0..10).map(send).collect());
}

#[test]
fn b028_a_body_that_stops_is_cut_off() {
    let case = Case::get("B028");
    let stage = Stage::at(case.now()).source(&case.sources()[0]).limit("body_time", "\"500ms\"");
    let server = stage.serve();
    let whole = signed("half", &[b'x'; 1000]);
    let mut stalled = server.connect();
    stalled.send(&whole[..whole.len() - 500]).expect("sent");
    assert_eq!(post(&server, "meanwhile", b"x").status, 202, "nothing is held while it waits");
    let begun = Instant::now();
    let reply = stalled.receive().expect("408 or the end");
    assert!(reply.as_ref().is_none_or(|reply| reply.status == 408), "{reply:?}");
    assert!(begun.elapsed() < PATIENCE / 2, "{:?}", begun.elapsed());
    assert_eq!(events(&mut server.admin()).len(), 1);
    assert_eq!(refusals(&stage), ["timeout"]);
}

#[test]
fn b119_a_body_over_the_limit_is_413() {
    let (case, stage, server) = staged("B119");
    let body = case.built_body();
    let headers = [("X-GitHub-Delivery", "big-2")];
    let whole = wire("POST", "/in/gh", &headers, &body);
    let head = &whole[..whole.len() - body.len()];
    let reply = server.connect().exchange(head).expect("an answer as soon as the length is known");
    assert_eq!(reply.status, 413, "{reply}");
    // A client that writes everything first finds the answer, and no reset before it.
    let mut connection = server.connect();
    connection.send(&whole).expect("the server reads on for a while");
    let reply = connection.receive().expect("an answer").expect("an answer");
    assert_eq!(reply.status, 413, "{reply}");
    assert!(server.admin().events().is_empty());
    assert_eq!(refusals(&stage), ["too-large", "too-large"]);
}

#[test]
fn b120_bodies_without_end_are_cut_off_and_memory_is_bounded() {
    let (_case, _stage, server) = staged("B120");
    let before = server.memory_peak_kib();
    let address = server.intake();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CROWD).map(|_| scope.spawn(|| stream_without_end(address))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no sender failed")).collect()
    });
    assert!(statuses.iter().all(|status| [413, 503].contains(status)), "{statuses:?}");
    assert!(statuses.contains(&413), "{statuses:?}");
    // The budget for bodies is 32 MiB; the rest is what 200 connections need beside it.
    let grown = server.memory_peak_kib() - before;
    assert!(grown < 96 * 1024, "{grown} KiB more than before");
    assert!(server.admin().events().is_empty());
}

#[test]
fn b121_the_limit_of_the_source_is_the_one_that_rules() {
    let (case, stage, server) = staged("B121");
    let sizes = case.input("/build/sizes");
    let sizes = sizes.as_array().expect("a list of sizes").iter().filter_map(serde_json::Value::as_u64);
    let statuses: Vec<u16> = sizes
        .map(|size| {
            post(&server, &format!("s{size}"), &vec![b'x'; usize::try_from(size).expect("a size")]).status
        })
        .collect();
    assert_eq!(statuses, [202, 202, 413]);
    assert_eq!(events(&mut server.admin()).len(), 2);
    let shown = stage.run(&["config", "show"]);
    assert!(shown.stdout.contains("5 MiB") || shown.stdout.contains("5242880 B"), "{shown:?}");
}

fn staged(id: &str) -> (Case, Stage, Server) {
    let case = Case::get(id);
    let stage = Stage::at(case.now()).source(&case.sources()[0]);
    let server = stage.serve();
    (case, stage, server)
}

/// A request to the generic source.
fn signed(id: &str, body: &[u8]) -> Vec<u8> {
    let signature = hmac_hex(SECRET, body);
    wire("POST", "/in/gen", &[("X-Event-Id", id), ("X-Signature", &signature)], body)
}

fn post(server: &Server, id: &str, body: &[u8]) -> Reply {
    let mut connection = server.connect();
    // The server may answer before it has read everything.
    let sent = connection.send(&signed(id, body));
    connection.receive().expect("an answer").unwrap_or_else(|| panic!("no answer; sent: {sent:?}"))
}

/// A request of somebody who keeps the rules, which must be stored: how long its answer took.
fn post_good(server: &Server, number: usize) -> Duration {
    let begun = Instant::now();
    assert_eq!(post(server, &format!("good-{number}"), b"x").status, 202);
    begun.elapsed()
}

fn assert_prompt(times: Vec<Duration>) {
    let median = median(times);
    assert!(median < PROMPT, "most good requests took {median:?} and more");
}

fn trickling(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.write_all(b"POST /in/gen HTTP/1.1\r\nX-Slow: ").expect("sent");
    stream.set_nonblocking(true).expect("a socket");
    stream
}

/// One more byte; false when the server has answered or closed.
fn goes_on(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    let silent =
        matches!(stream.peek(&mut byte), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock);
    silent && stream.write_all(b"x").is_ok()
}

fn stream_without_end(address: &str) -> u16 {
    let mut connection = Connection::open(address).expect("a connection");
    let head = b"POST /in/gh HTTP/1.1\r\nHost: hook.example\r\nTransfer-Encoding: chunked\r\n\r\n";
    connection.send(head).expect("sent");
    let chunk = [b"10000\r\n".as_slice(), &[b'x'; 65_536], b"\r\n"].concat();
    while connection.send(&chunk).is_ok() {}
    connection.receive().expect("an answer").expect("an answer").status
}

/// The codes of refusals in the log.
fn refusals(stage: &Stage) -> Vec<String> {
    let log = stage.log();
    log.iter().filter_map(|line| find(line, "refusal.code")?.as_str().map(str::to_owned)).collect()
}
