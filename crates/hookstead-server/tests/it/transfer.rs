//! `/v1/export` and `/v1/import`: who may, how much at once, and what a request that is refused leaves.

use hookstead_server::tokens::{self, Role};
use serde_json::Value;

use crate::harness::{Running, SECRET, Signed, start};

async fn with_event(id: &str, body: &[u8]) -> Running {
    let running = start("").await;
    assert_eq!(running.send(&Signed::new(id, body).bytes()).await.status, 202);
    running
}

/// The line of an event that another store accepted.
async fn line(id: &str, body: &[u8]) -> Vec<u8> {
    let reply = with_event(id, body).await.admin("/v1/events/@/export").await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/x-ndjson")));
    reply.body
}

#[tokio::test]
async fn only_an_administrator_imports() {
    let (running, line) = (start("").await, line("a", b"one").await);
    let data = running.server.facts().data.clone();
    for (role, status) in [(Role::Read, 403), (Role::Operate, 403), (Role::Admin, 200)] {
        let token = tokens::create(&data, role_name(role), role).unwrap();
        assert_eq!(running.admin_post(&token, "/v1/import", &line).await.status, status, "{role:?}");
    }
    assert_eq!(running.admin("/v1/stats").await.json()["events"], 1);
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Read => "reader",
        Role::Operate => "operator",
        Role::Admin => "administrator",
    }
}

#[tokio::test]
async fn a_request_with_more_lines_than_it_may_bring_stores_nothing() {
    let (running, line) = (start("").await, line("a", b"one").await);
    let limits = running.admin("/v1/import").await.json();
    let most = usize::try_from(limits["lines_max"].as_u64().unwrap()).unwrap();
    let refused = running.admin_post(&running.token(), "/v1/import", &line.repeat(most + 1)).await;
    assert_eq!((refused.status, refused.code().as_str()), (400, "malformed"));
    assert_eq!(running.admin("/v1/stats").await.json()["events"], 0);
    let taken = running.admin_post(&running.token(), "/v1/import", &line.repeat(most)).await;
    let taken = taken.json();
    let outcomes: Vec<&Value> =
        taken["lines"].as_array().unwrap().iter().map(|line| &line["outcome"]).collect();
    assert_eq!(outcomes.len(), most);
    assert_eq!(outcomes[0], "stored");
    assert!(outcomes[1..].iter().all(|outcome| *outcome == "duplicate"), "{outcomes:?}");
}

#[tokio::test]
async fn a_request_that_is_too_large_is_413() {
    let running = start("").await;
    let limits = running.admin("/v1/import").await.json();
    let bytes = limits["line_bytes_max"].as_u64().max(limits["bytes_max"].as_u64()).unwrap();
    let bytes = usize::try_from(bytes).unwrap();
    let refused = running.admin_post(&running.token(), "/v1/import", &vec![b'x'; bytes + 2]).await;
    assert_eq!((refused.status, refused.code().as_str()), (413, "too-large"));
    let long = running.admin_post(&running.token(), "/v1/import", &vec![b'x'; bytes]).await;
    assert_eq!((long.status, &long.json()["lines"][0]["code"]), (200, &Value::from("malformed")));
}

#[tokio::test]
async fn a_page_ends_with_a_line_that_says_so() {
    let running = with_event("a", b"one").await;
    let page = running.admin("/v1/export").await;
    let lines: Vec<Value> = page
        .body
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0]["body_base64"], &lines[1]["more"]), (&Value::from("b25l"), &Value::from(false)));
    assert_eq!(lines[1]["events"], 1);
    for (query, status) in
        [("source=nobody", 404), ("from=yesterday", 400), ("after=%20", 400), ("limit=1", 400)]
    {
        assert_eq!(running.admin(&format!("/v1/export?{query}")).await.status, status, "{query}");
    }
    assert_eq!(running.admin("/v1/events/conf:b/export").await.status, 404);
}

/// A request to `github`, whose type is read out of the body and is nearly all of it.
fn long_type(bytes: usize) -> Vec<u8> {
    let body = format!("{{\"type\":\"{}\"}}", "\\\"".repeat(bytes / 2 - 8));
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, SECRET.as_bytes());
    let signature = hex::encode(aws_lc_rs::hmac::sign(&key, body.as_bytes()));
    let head = format!(
        "POST /in/github HTTP/1.1\r\nHost: a\r\nX-GitHub-Delivery: a\r\nX-Hub-Signature-256: sha256={signature}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head, body].concat().into_bytes()
}

#[tokio::test]
async fn an_event_with_a_type_as_long_as_its_body_is_taken_over() {
    const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;
    let github = "[sources.github]\nsecret = { env = \"SECRET\" }\ntype = \"/type\"\nbody = \"3 MiB\"\n";
    let (first, second) = (start(github).await, start(github).await);
    let accepted = first.send(&long_type(BODY_BYTES_MAX)).await;
    assert_eq!(accepted.status, 202, "{accepted:?}");
    let line = first.admin("/v1/events/@/export").await.body;
    let limits = second.admin("/v1/import").await.json();
    assert!(line.len() as u64 <= limits["line_bytes_max"].as_u64().unwrap(), "{}: {limits}", line.len());
    let taken = second.admin_post(&second.token(), "/v1/import", &line).await.json();
    assert_eq!(taken["lines"][0]["outcome"], "stored", "{taken}");
    let kind = async |running: &Running| running.admin("/v1/events/@").await.json()["type"].clone();
    let (before, after) = (kind(&first).await, kind(&second).await);
    assert_eq!(before.as_str().map(str::len), Some(BODY_BYTES_MAX / 2 - 8));
    assert!(before == after);
}
