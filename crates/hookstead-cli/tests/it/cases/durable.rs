//! Themes durability, sqlite and files-storage, and the case of the crash between dedupe and event: what was
//! acknowledged is there after a cut at any point, and each store keeps clear of its own trap.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::case::{Case, hmac_hex, text, wire};
use super::play::{body, events};
use super::stage::Stage;
use super::trace::{self, Call};
use crate::harness::{Connection, Reply, Server};

const SECRET: &str = "hookbox-test-secret-01";
const NOW: i64 = 1_760_000_000;
const FILES: &str = "url = \"files:records\"\n";

/// A stage with the generic source, whose ids stand in a header.
fn stage() -> Stage {
    Stage::at(NOW).source(&json!({
        "name": "gen", "preset": "hmac", "signature_header": "X-Signature", "event_id": "header:X-Event-Id",
        "secrets": [SECRET], "max_body_bytes": 16_777_216
    }))
}

fn signed(id: &str, body: &[u8]) -> Vec<u8> {
    let signature = hmac_hex(SECRET, body);
    wire("POST", "/in/gen", &[("X-Event-Id", id), ("X-Signature", &signature)], body)
}

fn post(server: &Server, id: &str, body: &[u8]) -> Reply {
    server.connect().exchange(&signed(id, body)).expect("an answer")
}

/// What is stored, by id.
fn stored(server: &Server) -> BTreeMap<String, Vec<u8>> {
    let mut admin = server.admin();
    let pair = |event: &Value, bytes| (text(&event["provider_event_id"]).to_owned(), bytes);
    let events = events(&mut admin);
    events.iter().map(|event| pair(event, body(&mut admin, event))).collect()
}

/// The server is killed by the kernel at its `when`-th write, sync or answer after the request came; then the same
/// request comes again.
#[test]
fn b099_no_crash_leaves_a_mark_without_its_event() {
    let case = Case::get("B099");
    let mut outcomes = BTreeMap::new();
    for calls in ["pwrite64", "fsync,fdatasync", "write,writev,sendto"] {
        for when in 1..=6 {
            let status = killed_and_asked_again(&case, calls, when);
            *outcomes.entry(status).or_insert(0) += 1;
        }
    }
    // Both sides of the commit were met.
    assert!(outcomes.keys().eq([&200, &202]), "{outcomes:?}");
}

fn killed_and_asked_again(case: &Case, calls: &str, when: usize) -> u16 {
    // The tracer may take its time to attach, and a connection's own writes must be behind it by then.
    let stage = Stage::at(case.now()).source(&case.sources()[0]).limit("header_time", "\"10m\"");
    let request = case.requests().remove(0);
    let server = stage.serve();
    let mut connection = server.connect();
    let fault = trace::attach(&server, calls, &format!("inject={calls}:signal=KILL:when={when}"));
    connection.send(&request.bytes).expect("sent");
    // An answer or the end; if the call that kills has not come by then, so does another kill.
    let acknowledged = matches!(connection.receive(), Ok(Some(reply)) if reply.status == 202);
    server.kill9();
    fault.wait();

    let server = stage.serve();
    let before = events(&mut server.admin()).len();
    let again = server.connect().exchange(&request.bytes).expect("an answer");
    let expected = if before == 1 { 200 } else { 202 };
    assert_eq!(again.status, expected, "{calls} {when}: {before} events before: {again}");
    assert!(!acknowledged || before == 1, "{calls} {when}: acknowledged and lost");
    let mut admin = server.admin();
    let events = events(&mut admin);
    assert_eq!(events.len(), 1, "{calls} {when}: {events:#?}");
    assert_eq!(body(&mut admin, &events[0]), request.body.expect("a body"));
    again.status
}

/// A file as a disk holds it: what was written, and what a power cut leaves.
#[derive(Clone, Default)]
struct OnDisk {
    written: Vec<u8>,
    synced: Vec<u8>,
}

/// The writes and syncs of a run are played back up to each answer, and everything that was not synced by then is
/// dropped: a disk that forgets as much as it may.
#[test]
fn b134_what_was_acknowledged_survives_a_power_cut() {
    let stage = stage();
    // The store is made before, and had its time.
    stage.serve().stop();
    let mut disk = disk(&stage.data().join(".hookstead"));
    let file = stage.data().join("power.strace");
    let calls = "pwrite64,ftruncate,fallocate,fsync,fdatasync,write,writev,sendto";
    let server = stage.serve_traced(trace::strace(&file, calls, 1 << 20));
    let mut connection = server.connect();
    let sent: Vec<(String, Vec<u8>)> =
        (0..24_usize).map(|number| (format!("e{number}"), vec![b'a'; number * 997])).collect();
    for (id, body) in &sent {
        assert_eq!(connection.exchange(&signed(id, body)).expect("an answer").status, 202);
    }
    server.kill9();

    let mut acknowledged = 0;
    for call in trace::calls(&fs::read_to_string(&file).expect("strace wrote its file")) {
        if is_success(&call) {
            acknowledged += 1;
            if acknowledged % 4 == 1 {
                check_after_cut(&disk, &sent[..acknowledged]);
            }
        } else if let Some(file) = disk.get_mut(&call.path()) {
            apply(&call, file);
        }
    }
    assert_eq!(acknowledged, sent.len());
}

/// The database and its log, which must be there, all synced.
fn disk(data: &Path) -> BTreeMap<String, OnDisk> {
    let read = |name: &str| {
        let path = data.join(name);
        let written = fs::read(&path).expect("a file of the store");
        (path.display().to_string(), OnDisk { synced: written.clone(), written })
    };
    ["hookstead.db", "hookstead.db-wal"].map(read).into()
}

fn is_success(call: &Call) -> bool {
    matches!(call.name.as_str(), "write" | "writev" | "sendto")
        && call.arguments.contains(&format!("\"{}", hexed("HTTP/1.1 202")))
}

fn hexed(text: &str) -> String {
    text.bytes().map(|byte| format!("\\x{byte:02x}")).collect()
}

/// What a call that returned did to its file.
fn apply(call: &Call, file: &mut OnDisk) {
    let number = |from_end: usize| -> usize {
        let argument = call.arguments.rsplit(", ").nth(from_end).expect("an argument");
        argument.parse().unwrap_or_else(|_| panic!("no number: {argument}"))
    };
    match call.name.as_str() {
        _ if call.result < 0 => {}
        "pwrite64" => {
            let (bytes, offset) = (trace::bytes(&call.arguments), number(0));
            let written = usize::try_from(call.result).expect("a length");
            let end = offset + written;
            file.written.resize(file.written.len().max(end), 0);
            file.written[offset..end].copy_from_slice(&bytes[..written]);
        }
        "ftruncate" => file.written.resize(number(0), 0),
        "fallocate" => file.written.resize(file.written.len().max(number(0) + number(1)), 0),
        "fsync" | "fdatasync" => file.synced.clone_from(&file.written),
        "write" => panic!("a write without a place: {}", call.path()),
        _ => {}
    }
}

fn check_after_cut(disk: &BTreeMap<String, OnDisk>, acknowledged: &[(String, Vec<u8>)]) {
    let stage = stage();
    let data = stage.data().join(".hookstead");
    fs::create_dir(&data).expect("a folder");
    for (path, file) in disk {
        let name = Path::new(path).file_name().expect("a file");
        fs::write(data.join(name), &file.synced).expect("the image can be written");
    }
    let server = stage.serve();
    let stored = stored(&server);
    for (id, body) in acknowledged {
        assert_eq!(stored.get(id), Some(body), "{id} after a cut behind answer {}", acknowledged.len());
    }
}

#[test]
fn b137_a_full_disk_is_told_now_and_then() {
    let stage = stage();
    let server = stage.serve();
    assert_eq!(post(&server, "before", b"x").status, 202);
    let log_before = stage.log_bytes();
    let fault = trace::attach(
        &server,
        "pwrite64,ftruncate,fallocate",
        "inject=pwrite64,ftruncate,fallocate:error=ENOSPC",
    );
    let refused = signed("refused", b"x");
    let address = server.intake();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut connection = Connection::open(address).expect("a connection");
                for _ in 0..2_500 {
                    let reply = connection.exchange(&refused).expect("an answer");
                    assert_eq!(reply.status, 503, "{reply}");
                    if reply.closes() {
                        connection = Connection::open(address).expect("a connection");
                    }
                }
            });
        }
    });
    let grown = stage.log_bytes() - log_before;
    assert!(grown > 0 && grown < 1_000_000, "{grown} bytes of log");
    fault.detach();
    assert_eq!(stored(&server).len(), 1);
}

#[test]
fn b175_writers_and_long_reads_do_not_lock_each_other_out() {
    const WRITERS: usize = 4;
    const EACH: usize = 150;
    let stage = stage();
    let server = stage.serve();
    let (address, over) = (server.intake(), AtomicBool::new(false));
    let mut admin = server.admin();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    let mut connection = Connection::open(address).expect("a connection");
                    for number in 0..EACH {
                        let request = signed(&format!("w{writer}-{number}"), &vec![b'x'; 4_000]);
                        let reply = connection.exchange(&request).expect("an answer");
                        assert_eq!(reply.status, 202, "{reply}");
                    }
                })
            })
            .collect();
        let over = &over;
        let reader = scope.spawn(move || {
            while !over.load(Ordering::SeqCst) {
                admin.events();
            }
        });
        for writer in writers {
            writer.join().expect("no writer failed");
        }
        over.store(true, Ordering::SeqCst);
        reader.join().expect("no read failed");
    });
    assert_eq!(server.admin().events().len(), WRITERS * EACH);
    let log = fs::read_to_string(stage.data().join("server.log")).unwrap_or_default();
    assert!(!log.contains("locked") && !log.contains("busy"), "{log}");
}

#[test]
fn b176_a_reader_that_does_not_read_does_not_let_the_log_grow() {
    const LARGE: usize = 8 << 20;
    let stage = stage();
    let server = stage.serve();
    assert_eq!(post(&server, "large", &vec![b'x'; LARGE]).status, 202);
    // Asked for and not read: far more than sockets buffer.
    let data = Path::new(text(&server.ready()["data"]));
    let token = fs::read_to_string(data.join("admin.token")).expect("the token can be read");
    let mut stuck = Connection::open(server.admin_address()).expect("a connection");
    let asked = format!(
        "GET /v1/events/gen:large/body HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        server.admin_address(),
        token.trim()
    );
    stuck.send(asked.as_bytes()).expect("sent");
    let wal = data.join("hookstead.db-wal");
    let mut largest = 0;
    for number in 0..48 {
        assert_eq!(post(&server, &format!("e{number}"), &vec![b'y'; 2 << 20]).status, 202);
        largest = largest.max(fs::metadata(&wal).map_or(0, |metadata| metadata.len()));
    }
    assert!(largest > 0 && largest < 64 << 20, "the log has {largest} bytes after 96 MiB");
}

#[test]
fn b178_a_network_file_system_is_refused_by_name() {
    for (magic, name) in
        [("6969000000000000", "NFS"), ("424d53ff00000000", "CIFS"), ("9719020100000000", "9p")]
    {
        for store in ["url = \"sqlite:hookstead.db\"\n", FILES] {
            let stage = stage().store(store);
            let mut strace = Command::new("strace");
            let fault = format!("inject=statfs:poke_exit=@arg2={magic}");
            strace.args([
                "-f",
                "-qq",
                "-e",
                "trace=statfs",
                "-e",
                &fault,
                "-e",
                "signal=none",
                "-o",
                "/dev/null",
            ]);
            let refused = stage.refused_start_traced(strace);
            assert_ne!(refused.exit_code, Some(0), "{refused:?}");
            assert!(refused.stderr.contains(name), "{refused:?}");
            assert!(refused.stderr.contains(".hookstead"), "the place is named: {refused:?}");
        }
    }
}

/// The journal, whose own name is durable since the start, is synced with the record in it before the answer; the
/// record's file and its name may be lost in a cut, and come back.
#[test]
fn b184_the_directory_is_synced_before_the_answer() {
    let stage = stage().store(FILES);
    let file = stage.data().join("files.strace");
    let server =
        stage.serve_traced(trace::strace(&file, "openat,pwrite64,fsync,fdatasync,write,writev,sendto", 4096));
    assert_eq!(post(&server, "first", b"one").status, 202);
    assert_eq!(post(&server, "second", b"two").status, 202);
    server.kill9();
    let calls = trace::calls(&fs::read_to_string(&file).expect("strace wrote its file"));
    let made = |call: &Call| call.name == "openat" && call.arguments.contains("O_EXCL");
    let name = |call: &Call| trace::string(&call.arguments, 0);
    let synced = |calls: &[Call], is_it: &dyn Fn(&str) -> bool| {
        let is_sync = |call: &Call| matches!(&*call.name, "fsync" | "fdatasync") && call.result == 0;
        let at = calls.iter().position(|call| is_sync(call) && is_it(&call.path()));
        at.unwrap_or_else(|| panic!("no sync of it before the answer:\n{}", shown(calls)))
    };
    let answers: Vec<usize> = (0..calls.len()).filter(|at| is_success(&calls[*at])).collect();
    let journal = calls.iter().position(|call| made(call) && name(call).contains("/journal-"));
    let begun = &calls[journal.expect("a journal is made")..answers[0]];
    synced(begun, &|path| path.ends_with("/records"));
    // The second accept alone.
    let accept = &calls[answers[0]..answers[1]];
    let is_write = |call: &Call| call.name == "pwrite64" && call.path().contains("/journal-");
    let written = accept.iter().position(is_write).expect("the record is written to the journal");
    assert!(written < synced(accept, &|path| path.contains("/journal-")), "{}", shown(accept));

    // The disk forgets every record's name that no sync of its folder came after.
    let names = calls.iter().rev().take_while(|call| !call.path().ends_with("/deliveries"));
    let names: Vec<_> = names.filter(|call| made(call)).map(name).collect();
    let records: Vec<_> = names.into_iter().filter(|name| name.contains("/deliveries/")).collect();
    assert_eq!(records.len(), 2, "{}", shown(&calls));
    for name in records {
        fs::remove_file(name).expect("a name to forget");
    }
    let stored = stored(&stage.serve());
    assert_eq!(stored, [("first".into(), b"one".to_vec()), ("second".into(), b"two".to_vec())].into());
}

fn shown(calls: &[Call]) -> String {
    let line = |call: &Call| format!("{} {} = {}", call.name, call.path(), call.result);
    calls.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn b186_long_ids_are_names_of_no_files() {
    let ids = ["a".repeat(200), "b".repeat(255), "c".repeat(256), "d".repeat(1000), "\u{1F600}".repeat(128)];
    for store in ["url = \"sqlite:hookstead.db\"\n", FILES] {
        let stage = stage().store(store);
        let server = stage.serve();
        for id in &ids {
            assert_eq!(post(&server, id, id.as_bytes()).status, 202, "{store}: {} bytes", id.len());
        }
        let stored = stored(&server);
        assert_eq!(stored.len(), ids.len());
        assert!(ids.iter().all(|id| stored[id] == id.as_bytes()));
    }
}
