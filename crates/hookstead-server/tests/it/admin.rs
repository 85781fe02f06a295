//! The admin listener: who may ask, and what is answered.

use hookstead_server::tokens::{self, Role};

use crate::harness::{Running, Signed, start};

async fn with_events() -> Running {
    let running = start("").await;
    for (id, body, status) in
        [("a", "one", 202), ("a", "one", 200), ("a", "two", 409), ("b/\u{e9}", "x", 400), ("c", "three", 202)]
    {
        let reply = running.send(&Signed::new(id, body.as_bytes()).with("X-Kept", "yes").bytes()).await;
        assert_eq!(reply.status, status, "{id}: {reply:?}");
    }
    running
}

#[tokio::test]
async fn only_a_token_opens_the_api() {
    let running = start("").await;
    let token = running.token();
    assert_eq!(token.len(), 64);
    let ask = async |headers: &str| running.admin_with("GET", "/v1/events", headers).await;
    assert_eq!(ask(&format!("Authorization: Bearer {token}\r\n")).await.status, 200);
    assert_eq!(ask(&format!("authorization: bearer {token}\r\n")).await.status, 200);
    for refused in [
        String::new(),
        "Authorization: Bearer\r\n".to_owned(),
        "Authorization: Bearer wrong\r\n".to_owned(),
        format!("Authorization: Basic {token}\r\n"),
        format!("Authorization: {token}\r\n"),
        format!("Authorization: Bearer {token}0\r\n"),
        format!("Authorization: Bearer {}\r\n", &token[1..]),
        format!("X-Token: {token}\r\n"),
    ] {
        let reply = ask(&refused).await;
        assert_eq!((reply.status, reply.code().as_str()), (401, "unauthorized"), "{refused}");
        assert!(reply.header("www-authenticate").is_some());
    }
    let in_address = running.admin_with("GET", &format!("/v1/events?token={token}"), "").await;
    assert_eq!(in_address.status, 401);
    for target in
        ["/v1/stats", "/v1/sources", "/v1/conflicts", "/v1/events/@", "/v1/events/@/body", "/nowhere"]
    {
        assert_eq!(running.admin_with("GET", target, "").await.status, 401, "{target}");
    }
}

#[tokio::test]
async fn further_tokens_work_at_once_and_only_their_hashes_are_kept() {
    let running = start("").await;
    let data = running.server.facts().data.clone();
    let token = tokens::create(&data, "ci", Role::Read).unwrap();
    let bearer = format!("Authorization: Bearer {token}\r\n");
    assert_eq!(running.admin_with("GET", "/v1/stats", &bearer).await.status, 200);
    let file = std::fs::read_to_string(data.join("tokens")).unwrap();
    assert!(!file.contains(&token) && file.contains("\"ci\""), "{file}");
    for name in ["tokens", "admin.token"] {
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &std::fs::metadata(data.join(name)).unwrap().permissions(),
        );
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert_eq!(tokens::list(&data).unwrap().len(), 1);
}

#[tokio::test]
async fn other_host_names_are_refused() {
    let running = start("").await;
    let token = running.token();
    let ask = async |hosts: &str| {
        let request = format!("GET /v1/stats HTTP/1.1\r\n{hosts}Authorization: Bearer {token}\r\n\r\n");
        running.admin_raw(request.as_bytes()).await.status
    };
    assert_eq!(ask("Host: localhost:4666\r\n").await, 200);
    assert_eq!(ask(&format!("Host: {}\r\n", running.server.facts().admin)).await, 200);
    assert_eq!(ask("Host: rebound.example:4666\r\n").await, 421);
    assert_eq!(ask("").await, 400);
    assert_eq!(ask("Host: localhost\r\nHost: rebound.example\r\n").await, 400);
}

#[tokio::test]
async fn probes_need_no_token_and_learn_nothing() {
    let running = start("").await;
    assert_eq!(running.admin_with("GET", "/livez", "").await.status, 200);
    let bare = running.admin_with("GET", "/readyz", "").await;
    assert_eq!((bare.status, bare.json()), (200, serde_json::json!({ "ready": true })));
    let full = running.admin("/readyz").await.json();
    assert_eq!((&full["ready"], &full["store"]["kind"]), (&true.into(), &"sqlite".into()));
    assert!(full["store"]["durability"].as_str().unwrap().contains("EXTRA"), "{full}");
}

#[tokio::test]
async fn events_are_listed_in_pages() {
    let running = with_events().await;
    let page = running.admin("/v1/events?limit=1").await.json();
    assert_eq!(page["events"][0]["provider_event_id"], "c", "the newest first");
    let next = page["next"].as_str().unwrap();
    let page = running.admin(&format!("/v1/events?limit=1&after={next}")).await.json();
    assert_eq!(page["events"][0]["provider_event_id"], "a");
    assert_eq!(page["next"], serde_json::Value::Null);
    let oldest = running.admin("/v1/events?order=oldest&source=conf").await.json();
    assert_eq!(oldest["events"][0]["provider_event_id"], "a");
    assert!(oldest["cursor"].is_string(), "a follower goes on from here");

    let event = &oldest["events"][0];
    assert_eq!(
        (&event["source"], &event["bytes"], &event["duplicates"]),
        (&"conf".into(), &3.into(), &1.into())
    );
    assert_eq!(event["conflicts"], 1);
    assert!(event["headers"].is_null(), "headers come with one event only");
}

#[tokio::test]
async fn bad_queries_are_named() {
    let running = with_events().await;
    for (target, status, code) in [
        ("/v1/events?limit=0", 400, "query"),
        ("/v1/events?limit=x", 400, "query"),
        ("/v1/events?order=up", 400, "query"),
        ("/v1/events?unknown=1", 400, "query"),
        ("/v1/events?after=%20", 400, "query"),
        ("/v1/events?type=", 400, "query"),
        ("/v1/events?source=nobody", 404, "unknown-source"),
        ("/v1/events/zzz", 404, "not-found"),
        ("/v1/events/9999", 404, "not-found"),
        ("/v1/events/nobody:a", 404, "not-found"),
        ("/v1/nowhere", 404, "not-found"),
    ] {
        let reply = running.admin(target).await;
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{target}: {reply:?}");
    }
    let bearer = format!("Authorization: Bearer {}\r\n", running.token());
    let deleted = running.admin_with("DELETE", "/v1/events", &bearer).await;
    assert_eq!((deleted.status, deleted.code().as_str()), (405, "method"));
}

#[tokio::test]
async fn an_event_has_four_names_and_its_body_is_a_download() {
    let running = with_events().await;
    let newest = running.admin("/v1/events/@").await.json();
    assert_eq!(newest["provider_event_id"], "c");
    for name in [newest["id"].as_str().unwrap(), newest["short_id"].as_str().unwrap(), "conf:c", "conf%3Ac"] {
        assert_eq!(running.admin(&format!("/v1/events/{name}")).await.json(), newest, "{name}");
    }
    let headers = newest["headers"].as_array().unwrap();
    assert!(
        headers.iter().any(|header| header["name"] == "x-kept" && header["value"] == "yes"),
        "{headers:?}"
    );

    let body = running.admin("/v1/events/conf:a/body").await;
    assert_eq!((body.status, body.body.as_slice()), (200, b"one".as_slice()));
    assert_eq!(body.header("content-type"), Some("application/octet-stream"));
    assert_eq!(body.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(body.header("cache-control"), Some("no-store"));
    assert!(body.header("content-disposition").unwrap().starts_with("attachment"));
}

#[tokio::test]
async fn conflicts_stats_and_sources_are_told() {
    let running = with_events().await;
    let conflicts = running.admin("/v1/conflicts?open=true").await.json();
    let conflict = &conflicts["conflicts"][0];
    assert_eq!(
        (&conflict["source"], &conflict["variant"], &conflict["bytes"]),
        (&"conf".into(), &1.into(), &3.into())
    );
    let stats = running.admin("/v1/stats").await.json();
    assert_eq!(
        (&stats["events"], &stats["conflicts_open"], &stats["body_bytes"]),
        (&2.into(), &1.into(), &8.into())
    );
    let sources = running.admin("/v1/sources").await.json();
    let source = &sources["sources"][0];
    assert_eq!((&source["name"], &source["provider"]), (&"conf".into(), &"signed-inbox".into()));
    assert_eq!(source["url"], format!("http://{}/in/conf", running.server.facts().intake));
}

#[tokio::test]
async fn a_run_is_201_once_and_200_again() {
    let running = start("").await;
    let token = running.token();
    running.send(&Signed::new("d", br#"{"eventId":"b","data": {"n":1.0}}"#).bytes()).await;
    let post = async || running.admin_post(&token, "/v1/events/conf:d/runs", br#"{"run":"r"}"#).await;
    let (first, again) = (post().await, post().await);
    assert_eq!((first.status, again.status), (201, 200), "{first:?}");
    assert!(String::from_utf8_lossy(&first.body).contains("\"payload\":{\"n\":1.0},"), "{first:?}");
    let mut known = first.json();
    assert_eq!(known["new"], true);
    known["new"] = false.into();
    assert_eq!(again.json(), known);
    let listed = running.admin("/v1/events/@/runs").await.json();
    assert_eq!((&listed["runs"][0]["runId"], &listed["more"]), (&"r".into(), &false.into()));
    assert!(listed["runs"][0].get("payload").is_none() && listed["runs"][1].is_null(), "{listed}");
}

#[tokio::test]
async fn what_cannot_be_run_is_named_and_leaves_nothing() {
    let running = start("").await;
    let token = running.token();
    let reader = tokens::create(&running.server.facts().data, "ci", Role::Read).unwrap();
    running.send(&Signed::new("d", b"not json").bytes()).await;
    let large = format!("{{\"run\":\"{}\"}}", "x".repeat(70_000));
    let (good, runs) = (r#"{"run":"r"}"#, "/v1/events/conf:d/runs");
    for (token, target, body, status, code) in [
        (&token, runs, good, 422, "unreadable"),
        (&token, "/v1/events/conf:none/runs", good, 404, "not-found"),
        (&token, "/v1/events/zzz/runs", good, 404, "not-found"),
        (&token, runs, r#"{"run":"a b"}"#, 400, "run-name"),
        (&token, runs, r#"{"run":""}"#, 400, "run-name"),
        (&token, runs, r#"{"run":1}"#, 400, "malformed"),
        (&token, runs, r#"{"run":"r","more":1}"#, 400, "malformed"),
        (&token, runs, "", 400, "malformed"),
        (&token, runs, &large, 413, "too-large"),
        (&reader, runs, good, 403, "forbidden"),
        (&"wrong".to_owned(), runs, good, 401, "unauthorized"),
    ] {
        let reply = running.admin_post(token, target, body.as_bytes()).await;
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{target}: {reply:?}");
    }
    assert_eq!(running.admin(runs).await.json(), serde_json::json!({ "runs": [], "more": false }));
}

#[tokio::test]
async fn a_receipt_says_what_it_rests_on() {
    let running = with_events().await;
    let (event, receipt) = (
        running.admin("/v1/events/conf:a").await.json(),
        running.admin("/v1/events/conf:a/receipt").await.json(),
    );
    assert_eq!((&receipt["event"], &receipt["digest"]), (&event["id"], &event["digest"]));
    assert_eq!((&receipt["outcome"], &receipt["scope"]), (&"stored".into(), &"".into()));
    assert!(receipt["store"]["durability"].as_str().unwrap().contains("EXTRA"), "{receipt}");
    assert_eq!(event["answers"], serde_json::json!({ "stored": 202, "duplicate": 200, "conflict": 409 }));
    let none = running.admin("/v1/events/conf:b/receipt").await;
    assert_eq!((none.status, none.code().as_str()), (404, "not-found"));
    assert!(none.json()["searched"].as_str().unwrap().contains("`conf`"), "{none:?}");
}
