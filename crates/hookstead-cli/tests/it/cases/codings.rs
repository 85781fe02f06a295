//! Themes content-encoding and redirects-inbound: nothing is decoded, and nobody is sent elsewhere.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::case::{Case, hmac_hex, wire};
use super::play::{body, play, play_on};
use super::stage::Stage;
use crate::harness::{Reply, Server};

const SECRET: &str = "hookbox-test-secret-01";

/// What a bomb may cost; unpacked it has 60 MB.
const BOMB_KIB_MAX: u64 = 16 * 1024;

/// A case whose source wishes for what is never done: bytes that are decoded before they are checked.
fn staged(id: &str, wishes: &[&str]) -> (Case, Stage) {
    let case = Case::get(id);
    let mut sketch = case.sources().remove(0);
    let sketch_keys = sketch.as_object_mut().expect("a sketch is an object");
    for wish in wishes {
        assert!(sketch_keys.remove(*wish).is_some(), "{id} has no `{wish}`");
    }
    let stage = Stage::at(case.now()).source(&sketch);
    (case, stage)
}

fn send(server: &Server, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    server.connect().exchange(&wire("POST", "/in/gen", headers, body)).expect("an answer")
}

#[test]
fn b016_a_signature_is_that_of_the_bytes_on_the_wire() {
    let (case, stage) = staged("B016", &["signature_over"]);
    let compressed = case.requests().remove(0).body.expect("a body");
    let played = play_on(case, stage);
    played.refusals(&["signature-differs"]);

    let signature = hmac_hex(SECRET, &compressed);
    let headers = [("X-Event-Id", "gz-1"), ("X-Signature", &signature), ("Content-Encoding", "gzip")];
    assert_eq!(send(&played.server, &headers, &compressed).status, 202);
    let mut admin = played.server.admin();
    let event = admin.get("/v1/events/gen:gz-1").json();
    assert_eq!(body(&mut admin, &event), compressed, "as it came");
    let is_coding = |header: &Value| {
        header["name"].as_str().is_some_and(|name| name.eq_ignore_ascii_case("content-encoding"))
            && header["value"] == "gzip"
    };
    let headers = event["headers"].as_array().expect("the header fields");
    assert!(headers.iter().any(is_coding), "{headers:?}");
}

#[test]
fn b018_both_forms_of_deflate_are_bytes_without_an_id() {
    let played = play("B018");
    let codes: Vec<_> = played.replies.iter().map(|reply| reply.json()["code"].clone()).collect();
    assert_eq!(codes, ["event-id", "event-id"]);
}

#[test]
fn b019_a_bomb_stays_packed() {
    let (case, stage) = staged("B019", &["max_decoded_bytes"]);
    let server = stage.serve();
    let bomb = packed(&case.built("/build/decoded"));
    assert!(bomb.len() < 100_000, "{} bytes", bomb.len());
    let before = server.memory_peak_kib();
    let signature = hmac_hex(SECRET, &bomb);
    for (signature, status) in [(signature.as_str(), 400), (&"0".repeat(64), 401)] {
        let headers = [("X-Signature", signature), ("Content-Encoding", "gzip")];
        let reply = send(&server, &headers, &bomb);
        assert_eq!(reply.status, status, "{reply}");
    }
    let grown = server.memory_peak_kib() - before;
    assert!(grown < BOMB_KIB_MAX, "{grown} KiB more than before");
    assert!(server.admin().events().is_empty());
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = Command::new("gzip")
        .arg("-9")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("gzip starts");
    let mut input = gzip.stdin.take().expect("stdin is a pipe");
    std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(bytes).expect("gzip reads to the end"));
        gzip.wait_with_output().expect("gzip ends").stdout
    })
}

#[test]
fn b116_no_address_of_the_intake_is_a_redirect() {
    let played = play("B116");
    played.ids(&["sl-1", "sl-2"]);
    assert!(played.replies.iter().all(|reply| reply.header("location").is_none()));
    for path in ["/IN/gh", "/in/gh//", "/in//gh", "/in", "/in/gh/.", "/./in/gh", "/in/g%68"] {
        let reply = played.server.connect().exchange(&wire("POST", path, &[], b"{}")).expect("an answer");
        assert_eq!((reply.status, reply.header("location")), (404, None), "{path}");
    }
}
