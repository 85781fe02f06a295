//! What the intake answers: every outcome, and every way to be refused.

use crate::harness::{Reply, Running, SECRET, Signed, start, unix_time};

async fn stored(running: &Running) -> u64 {
    running.admin("/v1/stats").await.json()["events"].as_u64().unwrap()
}

#[tokio::test]
async fn an_event_is_stored_once_and_other_bytes_are_a_conflict() {
    let running = start("").await;
    let first = running.send(&Signed::new("a", b"one").bytes()).await;
    assert_eq!(first.status, 202, "{first:?}");
    assert_eq!(first.header("content-type"), Some("application/json"));
    let again = running.send(&Signed::new("a", b"one").bytes()).await;
    assert_eq!(again.status, 200);
    let conflict = running.send(&Signed::new("a", b"two").bytes()).await;
    assert_eq!((conflict.status, conflict.code().as_str()), (409, "conflict"));
    assert_eq!(stored(&running).await, 1);
    assert_eq!(running.server.body_memory_in_use(), 0);
}

#[tokio::test]
async fn the_success_body_names_outcome_and_event() {
    let more = "[sources.partner]\nidentity = \"header:x-id\"\nscheme = { token = \"x-token\" }\nsecret = { env = \"TOKEN\" }\n";
    let running = start(more).await;
    let send = async |id: &str| {
        let token = "X-Token: token-of-the-tests\r\n";
        let request = format!(
            "POST /in/partner HTTP/1.1\r\nHost: a\r\n{token}X-Id: {id}\r\nContent-Length: 1\r\n\r\nx"
        );
        running.send(request.as_bytes()).await
    };
    let first = send("a").await;
    assert_eq!(first.status, 202, "{first:?}");
    assert_eq!(first.json(), serde_json::json!({ "outcome": "stored", "event": "0001" }));
    assert_eq!(send("a").await.json(), serde_json::json!({ "outcome": "duplicate", "event": "0001" }));
    let blank = send("").await;
    assert_eq!((blank.status, blank.code().as_str()), (400, "event-id"));
}

#[tokio::test]
async fn a_source_that_holds_conflicts_answers_success() {
    let more = "on_conflict = \"hold\"\n";
    let running = start(more).await;
    assert_eq!(running.send(&Signed::new("a", b"one").bytes()).await.status, 202);
    assert_eq!(running.send(&Signed::new("a", b"two").bytes()).await.status, 202);
    let conflicts = running.admin("/v1/conflicts").await.json();
    assert_eq!(conflicts["conflicts"][0]["state"], "open");
    assert_eq!(stored(&running).await, 1);
}

#[tokio::test]
async fn a_source_may_have_one_success_status() {
    let running = start("success_status = 204\n").await;
    let reply = running.send(&Signed::new("a", b"one").bytes()).await;
    assert_eq!((reply.status, reply.body.as_slice()), (204, b"".as_slice()));
}

#[tokio::test]
async fn a_provider_gets_the_answer_of_its_record() {
    let running = start("[sources.slack]\nsecret = { env = \"SLACK\" }\n").await;
    let (time, body) = (unix_time(), "{\"type\":\"event_callback\",\"event_id\":\"Ev1\"}");
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, b"8f742231b10e8888abcd99yyyzzz85a5");
    let signature = aws_lc_rs::hmac::sign(&key, format!("v0:{time}:{body}").as_bytes());
    let request = format!(
        "POST /in/slack HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nX-Slack-Request-Timestamp: {time}\r\n\
         X-Slack-Signature: v0={}\r\nContent-Length: {}\r\n\r\n{body}",
        hex::encode(signature),
        body.len()
    );
    let reply = running.send(request.as_bytes()).await;
    assert_eq!((reply.status, reply.body.as_slice()), (200, b"".as_slice()), "{reply:?}");
    assert_eq!(stored(&running).await, 1);
}

#[tokio::test]
async fn refusals_have_their_status_and_leave_nothing() {
    let running = start("").await;
    let good = || Signed::new("a", b"x");
    let cases: Vec<(&str, Signed, u16, &str)> = vec![
        ("unknown source", good().line("POST /in/nobody HTTP/1.1"), 404, "unknown-source"),
        ("no intake", good().line("POST /elsewhere HTTP/1.1"), 404, "not-found"),
        ("the admin API is not here", good().line("POST /v1/events HTTP/1.1"), 404, "not-found"),
        ("method", good().line("PUT /in/conf HTTP/1.1"), 405, "method"),
        ("lower-case method", good().line("post /in/conf HTTP/1.1"), 405, "method"),
        ("options", good().line("OPTIONS /in/conf HTTP/1.1"), 405, "method"),
        ("method of readyz", good().line("POST /readyz HTTP/1.1"), 405, "method"),
        ("no host", good().without("Host"), 400, "malformed"),
        ("two hosts", good().with("Host", "localhost"), 400, "malformed"),
        ("no signature", good().without("X-Signature"), 401, "not-verified"),
        ("wrong signature", good().replacing("X-Signature", "v1=00"), 401, "not-verified"),
        ("stale", Signed::at(unix_time() - 4000, "a", b"x"), 401, "not-verified"),
        ("in the future", Signed::at(unix_time() + 4000, "a", b"x"), 401, "not-verified"),
        ("signature twice", good().with("X-Signature", "v1=00"), 400, "malformed"),
        ("id twice", good().with("X-Delivery-ID", "b"), 400, "malformed"),
        ("no id", good().without("X-Delivery-ID"), 400, "malformed"),
        ("no body", Signed::new("a", b""), 400, "malformed"),
        ("too large", Signed::new("a", &[b'x'; 65_537]), 413, "too-large"),
        ("too large in chunks", Signed::new("a", &[b'x'; 65_537]).chunked(), 413, "too-large"),
        ("too large and stale", Signed::at(1, "a", &[b'x'; 65_537]), 400, "malformed"),
        ("too large and no id", Signed::new("..", &[b'x'; 65_537]), 400, "malformed"),
        (
            "long target",
            good().line(&format!("POST /in/conf?{} HTTP/1.1", "x".repeat(9000))),
            414,
            "target-too-long",
        ),
    ];
    for (what, request, status, code) in cases {
        let reply = running.send(&request.bytes()).await;
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{what}: {reply:?}");
    }
    assert_eq!(stored(&running).await, 0);
    assert_eq!(running.server.body_memory_in_use(), 0);
}

#[tokio::test]
async fn a_refused_method_names_the_right_one() {
    let running = start("").await;
    let put = running.send(&Signed::new("a", b"x").line("DELETE /in/conf HTTP/1.1").bytes()).await;
    assert_eq!(put.header("allow"), Some("POST"));
    let mut client = running.connect().await;
    client.write(b"HEAD /in/conf HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let head = client.try_reply(false).await.unwrap();
    assert_eq!((head.status, head.header("allow")), (405, Some("POST")));
    assert_eq!(client.exchange(&Signed::new("a", b"x").bytes()).await.status, 202);
}

#[tokio::test]
async fn heads_over_their_limit_are_refused() {
    let running = start("").await;
    let large = running.send(&Signed::new("a", b"x").with("X-Large", &"x".repeat(20_000)).bytes()).await;
    assert_eq!(large.status, 431);
    let many = (0..100).fold(Signed::new("a", b"x"), |request, _| request.with("X-Many", "y"));
    assert_eq!(running.send(&many.bytes()).await.status, 431);
    assert_eq!(running.send(&Signed::new("a", b"x").bytes()).await.status, 202);
}

#[tokio::test]
async fn every_401_is_the_same_to_the_byte() {
    let running = start("[sources.slack]\nsecret = { env = \"SLACK\" }\n").await;
    let plain = |reply: &Reply| {
        let head: Vec<_> =
            reply.head.lines().filter(|line| !line.starts_with("date:")).map(str::to_owned).collect();
        (head, reply.body.clone())
    };
    let mut answers = Vec::new();
    for request in [
        Signed::new("a", b"x").without("X-Signature"),
        Signed::new("a", b"x").replacing("X-Signature", "v1=00"),
        Signed::at(5, "a", b"x"),
        Signed::new("a", b"x").line("POST /in/slack HTTP/1.1"),
    ] {
        let reply = running.send(&request.bytes()).await;
        assert_eq!(reply.status, 401, "{reply:?}");
        answers.push(plain(&reply));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:#?}");
}

#[tokio::test]
async fn an_address_may_end_with_a_slash_and_may_be_whole() {
    let running = start("").await;
    for (id, line) in [
        ("a", "POST /in/conf/ HTTP/1.1"),
        ("b", "POST http://localhost/in/conf HTTP/1.1"),
        ("c", "POST /in/conf?a=b HTTP/1.1"),
    ] {
        let reply = running.send(&Signed::new(id, b"x").line(line).bytes()).await;
        assert_eq!(reply.status, 202, "{line}: {reply:?}");
    }
}

#[tokio::test]
async fn http_1_0_and_half_closed_connections_are_served() {
    let running = start("").await;
    let old = Signed::new("a", b"x").line("POST /in/conf HTTP/1.0").without("Host");
    let mut client = running.connect().await;
    assert_eq!(client.exchange(&old.bytes()).await.status, 202);
    client.ended().await;
    let mut client = running.connect().await;
    client.write(&Signed::new("b", b"x").bytes()).await;
    client.finish_writing().await;
    assert_eq!(client.reply().await.status, 202);
    client.ended().await;
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let running = start("").await;
    let requests = [
        (Signed::new("a", b"one"), 202),
        (Signed::new("a", b"two"), 409),
        (Signed::new("a", b"one").replacing("X-Signature", "v1=00"), 401),
        (Signed::new("a", b"one").line("PUT /in/conf HTTP/1.1"), 405),
        (Signed::new("a", b"one").line("POST /in/nobody HTTP/1.1"), 404),
        (Signed::new("a", b"one"), 200),
    ];
    let mut client = running.connect().await;
    client.write(&requests.iter().flat_map(|(request, _)| request.bytes()).collect::<Vec<_>>()).await;
    for (_, status) in requests {
        assert_eq!(client.reply().await.status, status);
    }
}

#[tokio::test]
async fn the_body_is_asked_for_only_after_what_needs_none() {
    let running = start("").await;
    let request = |request: Signed| request.with("Expect", "100-continue");
    for (refused, status) in [
        (Signed::new("a", b"x").line("POST /in/nobody HTTP/1.1"), 404),
        (Signed::new("a", b"x").line("PUT /in/conf HTTP/1.1"), 405),
        (Signed::new("a", b"x").with("Host", "b"), 400),
        (Signed::new("a", b"x").replacing("Content-Length", "65537"), 413),
    ] {
        let mut client = running.connect().await;
        client.write(&request(refused).head()).await;
        let reply = client.reply().await;
        assert_eq!((reply.status, reply.closes()), (status, true), "{reply:?}");
    }
    let good = request(Signed::new("a", b"x"));
    let mut client = running.connect().await;
    client.write(&good.head()).await;
    assert_eq!(client.reply().await.status, 100);
    assert_eq!(client.exchange(&good.body).await.status, 202);
}

#[tokio::test]
async fn a_chunked_request_ends_its_connection() {
    let running = start("").await;
    let mut client = running.connect().await;
    let reply = client.exchange(&Signed::new("a", b"hello").chunked().bytes()).await;
    assert_eq!((reply.status, reply.closes()), (202, true));
    client.ended().await;
    assert_eq!(
        running.send(&Signed::new("a", b"hello").bytes()).await.status,
        200,
        "the decoded bytes count"
    );
}

#[tokio::test]
async fn a_sender_of_far_too_much_still_sees_its_answer() {
    let running = start("").await;
    for chunked in [false, true] {
        let request = Signed::new("a", &vec![b'x'; 1_500_000]);
        let request = if chunked { request.chunked() } else { request };
        let mut client = running.connect().await;
        client.write_some(&request.bytes()).await;
        let reply = client.reply().await;
        assert_eq!((reply.status, reply.closes()), (413, true), "{reply:?}");
    }
    assert_eq!(running.server.body_memory_in_use(), 0);
}

#[tokio::test]
async fn readyz_says_one_word() {
    let running = start("").await;
    let reply = running.send(b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!((reply.status, reply.json()), (200, serde_json::json!({ "ready": true })));
}

#[tokio::test]
async fn what_is_refused_is_told_to_the_operator_and_nothing_of_it_to_the_sender() {
    let running = start("body = \"1 KiB\"\n").await;
    let refusals =
        async |query: &str| running.admin(&format!("/v1/sources/conf/refusals{query}")).await.json();
    assert_eq!(refusals("").await, serde_json::json!({ "source": "conf", "refusals": [] }));
    let wrong = || Signed::new("a", b"x").replacing("X-Signature", &format!("v1={}", "0".repeat(64)));
    let first = running.send(&wrong().bytes()).await;
    let again = running.send(&wrong().bytes()).await;
    let stale = running.send(&Signed::at(unix_time() - 3_600, "a", b"x").bytes()).await;
    assert_eq!((first.status, &first.body), (401, &again.body));
    assert_eq!(stale.body, first.body);
    assert_eq!(running.send(&Signed::new("a", &[b'x'; 2_000]).bytes()).await.status, 413);
    assert_eq!(running.send(&Signed::new("a", b"x").line("GET /in/conf HTTP/1.1").bytes()).await.status, 405);
    assert_eq!(running.send(&Signed::new("a", b"x").bytes()).await.status, 202);

    let told = refusals("").await;
    let told = told["refusals"].as_array().unwrap();
    let codes: Vec<_> =
        told.iter().map(|one| (one["code"].as_str().unwrap(), one["count"].as_u64().unwrap())).collect();
    assert_eq!(codes, [("signature-differs", 2), ("too-old", 1), ("too-large", 1), ("method", 1)]);
    assert!(told[0]["fix"].as_str().unwrap().contains("sources secret conf"), "{told:?}");
    assert!(told[1]["age_ms"].as_i64().unwrap() >= 3_600_000, "{told:?}");
    assert_eq!(told[0]["from"], "127.0.0.1");
    let behind = refusals(&format!("?after={}", told[2]["number"])).await;
    assert_eq!(behind["refusals"].as_array().unwrap().len(), 1);
    for (target, status) in [("/v1/sources/nobody/refusals", 404), ("/v1/sources/conf/refusals?after=x", 400)]
    {
        assert_eq!(running.admin(target).await.status, status, "{target}");
    }
    assert_eq!(running.admin_with("GET", "/v1/sources/conf/refusals", "").await.status, 401);
}

/// The codes of what a source refused, each once, the oldest first.
async fn refused(running: &Running, source: &str) -> Vec<String> {
    let told = running.admin(&format!("/v1/sources/{source}/refusals")).await.json();
    let told = told["refusals"].as_array().unwrap().clone();
    for one in &told {
        assert!(one["meaning"].as_str().unwrap() != "nothing is known of this code", "{one}");
    }
    told.iter().map(|one| one["code"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn what_has_no_fault_in_its_signature_and_is_refused_is_told_to_the_operator_as_well() {
    let running = start("").await;
    let long = format!("POST /in/conf?{} HTTP/1.1", "a".repeat(9_000));
    for (request, status) in [
        (Signed::new("a", b"x"), 202),
        (Signed::new("a", b"other"), 409),
        (Signed::new("a", b"x").with("Host", "localhost"), 400),
        (Signed::new("a", b"x").line(&long), 414),
        (Signed::new("a", b"x").line("POST /in/nobody HTTP/1.1").with("Host", "localhost"), 400),
        (Signed::new("a", b"x"), 200),
    ] {
        assert_eq!(running.send(&request.bytes()).await.status, status, "{}", request.request_line);
    }
    assert_eq!(refused(&running, "conf").await, ["conflict", "malformed", "target-too-long"]);
}

#[tokio::test]
async fn a_body_that_is_refused_under_another_id_is_told_to_the_operator() {
    let running = start("[sources.github]\nsecret = { env = \"SECRET\" }\nbody_reuse = \"refuse\"\n").await;
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, SECRET.as_bytes());
    let signature = hex::encode(aws_lc_rs::hmac::sign(&key, b"{}"));
    for (id, status) in [("a", 202), ("b", 409)] {
        let request = format!(
            "POST /in/github HTTP/1.1\r\nHost: a\r\nX-GitHub-Delivery: {id}\r\nX-Hub-Signature-256: sha256={signature}\r\n\
             Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
        );
        let reply = running.send(request.as_bytes()).await;
        assert_eq!(reply.status, status, "{reply:?}");
    }
    assert_eq!(refused(&running, "github").await, ["body-reused"]);
}

#[tokio::test]
async fn a_handshake_that_is_refused_is_told_to_the_operator() {
    let meta = "[sources.meta]\nsecret = { env = \"SECRET\" }\nconf = { verify_token = \"token\" }\n";
    let asana = "[sources.asana]\nidentity = \"body\"\n";
    let running = start(&format!("{meta}{asana}")).await;
    for (token, status) in [("token", 200), ("another", 403)] {
        let target = format!("/in/meta?hub.mode=subscribe&hub.challenge=1&hub.verify_token={token}");
        let reply = running.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).await;
        assert_eq!(reply.status, status, "{reply:?}");
    }
    assert_eq!(refused(&running, "meta").await, ["handshake-refused"]);

    let short = "POST /in/asana HTTP/1.1\r\nHost: a\r\nX-Hook-Secret: 1234567\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(running.send(short.as_bytes()).await.status, 401);
    assert_eq!(refused(&running, "asana").await, ["not-verified"]);
}
