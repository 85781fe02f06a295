//! The pull API: claims and their waits, how leases end, and who may do so.

use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hookstead::core::{DestinationName, Store};
use hookstead_server::tokens::{self, Scope};
use serde_json::{Value, json};

use crate::harness::{Client, Reply, Running, Signed, start, within};

const WORKERS: &str = "[destinations.app]\npull = true\n[destinations.other]\npull = true\n\
    [destinations.pushed]\npush = \"https://app.example/hooks\"\nsources = [\"conf\"]\ntypes = [\"none\"]\n";

impl Running {
    fn consumer(&self, destination: &str) -> String {
        let name: DestinationName = destination.parse().unwrap();
        tokens::create(&self.server.facts().data, destination, Scope::Consume(name)).unwrap()
    }

    async fn post(&self, token: &str, target: &str, body: &Value) -> Reply {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        self.admin_post(token, target, &body).await
    }

    async fn leases(&self, token: &str, query: &str) -> Vec<Value> {
        let reply = self.post(token, &format!("/v1/destinations/app/claim{query}"), &Value::Null).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()["leases"].as_array().unwrap().clone()
    }

    async fn accept(&self, id: &str) {
        assert_eq!(self.send(&Signed::new(id, id.as_bytes()).bytes()).await.status, 202);
    }

    async fn state(&self, delivery: &str) -> String {
        let reply = self.admin(&format!("/v1/deliveries/{delivery}")).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()["state"].as_str().unwrap().to_owned()
    }
}

fn lease(view: &Value) -> String {
    view["lease"].as_str().unwrap().to_owned()
}

fn settle(view: &Value, outcome: &str) -> String {
    format!("/v1/leases/{}/{outcome}", lease(view))
}

#[tokio::test]
async fn an_event_is_claimed_with_everything_and_done() {
    let running = start(WORKERS).await;
    let token = running.consumer("app");
    let body = b"\x00bytes\xff";
    let request = Signed::new("evt_1", body).with("Content-Type", "application/x-odd").with("X-Kept", "yes");
    assert_eq!(running.send(&request.bytes()).await.status, 202);
    let leases = running.leases(&token, "?max=10").await;
    assert_eq!(leases.len(), 1);
    let view = &leases[0];
    for (key, value) in [
        ("event", json!("0001")),
        ("source", json!("conf")),
        ("type", Value::Null),
        ("provider_id", json!("evt_1")),
        ("attempt", json!(1)),
        ("content_type", json!("application/x-odd")),
        ("body_base64", json!(STANDARD.encode(body))),
    ] {
        assert_eq!(view[key], value, "{key} in {view}");
    }
    assert!(view["headers"].as_array().unwrap().contains(&json!(["x-kept", "yes"])), "{view}");
    let key = view["idempotency_key"].as_str().unwrap();
    assert!(key.starts_with(view["event_id"].as_str().unwrap()), "{key}");
    assert!(view["lease_until"].as_str().unwrap().ends_with('Z'));
    assert_eq!(running.state("0001:app").await, "leased");

    let done = running.post(&token, &settle(view, "done"), &Value::Null).await;
    assert_eq!((done.status, done.body.len()), (204, 0));
    assert_eq!(running.post(&token, &settle(view, "done"), &Value::Null).await.status, 204, "as before");
    let shown = running.admin("/v1/deliveries/0001:app:1").await.json();
    assert_eq!((&shown["state"], &shown["attempts"]), (&json!("done"), &json!(1)));
    let attempt = &shown["log"][0];
    assert_eq!((&attempt["number"], &attempt["rule"]), (&json!(1), &json!("consumer: done")));
    assert!(running.leases(&token, "").await.is_empty());
    let event = running.admin("/v1/events/0001").await.json();
    assert_eq!((&event["deliveries"]["done"], &event["deliveries"]["waiting"]), (&json!(1), &json!(1)));
}

#[tokio::test]
async fn a_lease_ends_in_each_way() {
    let running = start(WORKERS).await;
    let token = running.consumer("app");
    for id in ["1", "2", "3", "4"] {
        running.accept(id).await;
    }
    let leases = running.leases(&token, "?max=4&lease=5m").await;
    let end = async |at: usize, outcome: &str, body: Value| {
        running.post(&token, &settle(&leases[at], outcome), &body).await
    };
    assert_eq!(end(0, "release", Value::Null).await.status, 204);
    assert_eq!(end(1, "retry", json!({"after": "1h", "reason": "busy"})).await.status, 204);
    assert_eq!(end(2, "dead", json!({"reason": "no such customer"})).await.status, 204);
    let extended = end(3, "extend", json!({"lease": "2h"})).await;
    assert_eq!(extended.status, 200);
    assert!(extended.json()["lease_until"].as_str() > leases[3]["lease_until"].as_str(), "{extended:?}");

    let again = running.leases(&token, "?max=9").await;
    assert_eq!((again.len(), &again[0]["attempt"]), (1, &json!(1)), "a release counts no attempt");
    let retried = running.admin("/v1/deliveries/0002:app").await.json();
    assert_eq!((&retried["state"], &retried["log"][0]["error"]), (&json!("waiting"), &json!("busy")));
    let dead = running.admin("/v1/deliveries/0003:app").await.json();
    assert_eq!((&dead["state"], &dead["reason"]), (&json!("dead"), &json!("no such customer")));
    let settled = end(2, "done", Value::Null).await;
    assert_eq!((settled.status, settled.code().as_str()), (409, "lease-settled"));
    let lost = end(0, "done", Value::Null).await;
    assert_eq!((lost.status, lost.code().as_str()), (409, "lease-settled"), "it was released");
    assert_eq!(running.post(&token, &settle(&again[0], "done"), &Value::Null).await.status, 204);
    let old = end(0, "done", Value::Null).await;
    assert_eq!((old.status, old.code().as_str()), (409, "lease-lost"), "another has been given out since");
}

#[tokio::test]
async fn what_cannot_be_is_refused_and_changes_nothing() {
    let running = start(WORKERS).await;
    let (token, other) = (running.consumer("app"), running.consumer("other"));
    running.accept("1").await;
    let view = running.leases(&token, "").await.remove(0);
    let done = settle(&view, "done");
    let refused = async |token: &str, target: &str, body: Value, status: u16, code: &str| {
        let reply = running.post(token, target, &body).await;
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{target} {body} {reply:?}");
    };
    refused(&other, &done, Value::Null, 403, "forbidden").await;
    refused("nobody", &done, Value::Null, 401, "unauthorized").await;
    refused(&token, "/v1/leases/ls_x/done", Value::Null, 404, "unknown-lease").await;
    refused(&token, &settle(&view, "keep"), Value::Null, 404, "not-found").await;
    refused(&token, &settle(&view, "retry"), json!({"at": "soon"}), 400, "query").await;
    refused(&token, &settle(&view, "retry"), json!({"after": "5"}), 400, "query").await;
    refused(&token, &done, json!({"after": "5s"}), 400, "malformed").await;
    refused(&token, &done, json!({"x": 1}), 400, "malformed").await;
    refused(&token, &settle(&view, "extend"), json!({"for": "1y"}), 400, "query").await;
    let claim = |query: &str| format!("/v1/destinations/app/claim{query}");
    for query in ["?max=0", "?max=1001", "?wait=5", "?wait=2h", "?lease=1ms", "?lease=x", "?mx=1"] {
        refused(&token, &claim(query), Value::Null, 400, "query").await;
    }
    refused(&token, &claim(""), json!({"max": 1}), 400, "malformed").await;
    let admin = running.token();
    refused(&admin, "/v1/destinations/nobody/claim", Value::Null, 404, "unknown-destination").await;
    refused(&admin, "/v1/destinations/pushed/claim", Value::Null, 409, "not-pull").await;
    refused(&token, "/v1/destinations/other/claim", Value::Null, 403, "forbidden").await;
    assert_eq!(running.state("0001:app").await, "leased");
}

#[tokio::test]
async fn a_batch_has_a_result_for_each_lease_and_one_commit() {
    let running = start(WORKERS).await;
    let token = running.consumer("app");
    for id in ["1", "2", "3", "4", "5"] {
        running.accept(id).await;
    }
    let foreign =
        running.post(&running.consumer("other"), "/v1/destinations/other/claim", &Value::Null).await;
    let foreign = foreign.json()["leases"][0].clone();
    let leases = running.leases(&token, "?max=5").await;
    assert_eq!(running.post(&token, &settle(&leases[4], "dead"), &json!({"reason": "x"})).await.status, 204);
    let batch = json!({"settle": [
        {"lease": lease(&leases[0]), "outcome": "done"},
        {"lease": "ls_nothing", "outcome": "done"},
        {"lease": lease(&leases[1]), "outcome": "retry", "after": "1h"},
        {"lease": lease(&foreign), "outcome": "done"},
        {"lease": lease(&leases[2]), "outcome": "extend", "for": "1h"},
        {"lease": lease(&leases[4]), "outcome": "done"},
        {"lease": lease(&leases[3]), "outcome": "dead", "reason": "no"},
    ]});
    let reply = running.post(&token, "/v1/leases/settle", &batch).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let results = reply.json()["results"].as_array().unwrap().clone();
    let words: Vec<_> = results.iter().map(|result| result["result"].as_str().unwrap()).collect();
    assert_eq!(
        words,
        ["settled", "unknown-lease", "settled", "forbidden", "extended", "lease-settled", "settled"]
    );
    assert_eq!((&results[0]["state"], &results[2]["state"]), (&json!("done"), &json!("waiting")));
    assert!(results[2]["due"].is_string() && results[4]["lease_until"].is_string());
    let malformed = json!({"settle": [
        {"lease": lease(&leases[2]), "outcome": "done"},
        {"lease": lease(&leases[2]), "outcome": "done", "after": "1s"},
    ]});
    assert_eq!(running.post(&token, "/v1/leases/settle", &malformed).await.status, 400);
    assert_eq!(running.state("0003:app").await, "leased", "a malformed batch settles nothing");
    assert_eq!(running.state("0001:other").await, "leased");
}

#[tokio::test]
async fn claims_at_once_never_get_one_delivery_twice() {
    let running = start(WORKERS).await;
    let token = running.consumer("app");
    for id in 0..20 {
        running.accept(&id.to_string()).await;
    }
    let claims = (0..8).map(|_| running.leases(&token, "?max=5"));
    let mut events: Vec<String> = Vec::new();
    for leases in futures_all(claims).await {
        events.extend(leases.iter().map(|view| view["event"].as_str().unwrap().to_owned()));
    }
    events.sort_unstable();
    let taken = events.len();
    events.dedup();
    assert_eq!((taken, events.len()), (20, 20));
}

/// Polls all of them until each is ready, and gives their outputs in order.
async fn futures_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(move |cx| {
        for (future, output) in &mut waiting {
            if output.is_none()
                && let std::task::Poll::Ready(ready) = future.as_mut().poll(cx)
            {
                *output = Some(ready);
            }
        }
        if waiting.iter().all(|(_, output)| output.is_some()) {
            let outputs = waiting.iter_mut().filter_map(|(_, output)| output.take());
            return std::task::Poll::Ready(outputs.collect());
        }
        std::task::Poll::Pending
    })
    .await
}

fn claim_request(token: &str, query: &str) -> Vec<u8> {
    format!(
        "POST /v1/destinations/app/claim{query} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Length: 0\r\n\r\n"
    )
    .into_bytes()
}

impl Running {
    async fn waiting(&self, count: usize) {
        let reached = async {
            while self.server.waiting() != count {
                tokio::task::yield_now().await;
            }
        };
        within(reached).await;
    }
}

#[tokio::test]
async fn a_waiting_claim_is_woken_by_an_accept() {
    let running = start(WORKERS).await;
    let token = running.consumer("app");
    let mut client = Client::connect(running.server.facts().admin).await;
    client.write(&claim_request(&token, "?wait=50s")).await;
    running.waiting(1).await;
    let begin = Instant::now();
    running.accept("1").await;
    let reply = client.reply().await;
    assert_eq!(reply.json()["leases"][0]["event"], "0001", "{reply:?}");
    // It would look again by itself after ten seconds.
    assert!(begin.elapsed().as_secs() < 9, "{:?}", begin.elapsed());
    running.waiting(0).await;
    assert!(running.leases(&token, "?wait=10ms").await.is_empty(), "the time is over");
}

#[tokio::test]
async fn a_client_that_vanishes_while_it_waits_takes_nothing() {
    let running = start(WORKERS).await;
    let token = running.consumer("app");
    let mut closed = Client::connect(running.server.facts().admin).await;
    closed.write(&claim_request(&token, "?wait=50s")).await;
    let mut reset = Client::connect(running.server.facts().admin).await;
    reset.write(&claim_request(&token, "?wait=50s")).await;
    running.waiting(2).await;
    drop(closed);
    reset.vanish();
    running.waiting(0).await;
    running.accept("1").await;
    assert_eq!(running.leases(&token, "").await[0]["attempt"], 1);
}

#[tokio::test]
async fn a_stop_ends_what_waits() {
    let running = start(WORKERS).await;
    let token = running.consumer("app");
    let mut client = Client::connect(running.server.facts().admin).await;
    client.write(&claim_request(&token, "?wait=50s")).await;
    running.waiting(1).await;
    let Running { server, folder: _folder } = running;
    let stopped = tokio::spawn(server.shutdown());
    let reply = client.reply().await;
    assert_eq!((reply.status, reply.code().as_str()), (503, "stopping"));
    assert_eq!(within(stopped).await.unwrap(), hookstead_server::RunOutcome::Stopped);
}

#[tokio::test]
async fn a_paused_destination_gives_nothing_out_until_it_is_resumed() {
    let running = start(WORKERS).await;
    let (token, admin) = (running.consumer("app"), running.token());
    let paused = running.post(&admin, "/v1/destinations/app/pause", &json!({"note": "deploy"})).await;
    assert_eq!((paused.status, &paused.json()["paused"]), (200, &json!(true)));
    running.accept("1").await;
    assert!(running.leases(&token, "").await.is_empty());
    let mut client = Client::connect(running.server.facts().admin).await;
    client.write(&claim_request(&token, "?wait=50s")).await;
    running.waiting(1).await;
    let resumed = running.post(&admin, "/v1/destinations/app/resume", &Value::Null).await;
    assert_eq!(resumed.json()["paused"], false);
    assert_eq!(client.reply().await.json()["leases"][0]["event"], "0001");
    let unknown = running.post(&admin, "/v1/destinations/nobody/pause", &Value::Null).await;
    assert_eq!((unknown.status, unknown.code().as_str()), (404, "unknown-destination"));
}

#[tokio::test]
async fn bodies_that_do_not_fit_one_answer_are_given_back() {
    let large = "[sources.large]\nprovider = \"none\"\nidentity = \"none\"\nbody = \"6 MiB\"\n";
    let running = start(&format!("{large}{WORKERS}")).await;
    let token = running.consumer("app");
    for _ in 0..2 {
        let body = vec![b'x'; 5 * 1024 * 1024];
        let head =
            format!("POST /in/large HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
        assert_eq!(running.send(&[head.as_bytes(), &body].concat()).await.status, 202);
    }
    assert_eq!(running.leases(&token, "?max=9").await.len(), 1);
    let rest = running.leases(&token, "?max=9").await;
    assert_eq!((rest.len(), &rest[0]["attempt"]), (1, &json!(1)));
}

#[tokio::test]
async fn destinations_are_shown_with_what_is_configured() {
    let running = start(WORKERS).await;
    running.accept("1").await;
    let listed = running.admin("/v1/destinations").await.json();
    let names: Vec<_> = listed["destinations"].as_array().unwrap().iter().map(|d| &d["name"]).collect();
    assert_eq!(names, ["app", "other", "pushed"]);
    let app = running.admin("/v1/destinations/app").await.json();
    assert_eq!(
        (&app["kind"], &app["lease"], &app["unfinished"]["waiting"]),
        (&json!("pull"), &json!("1m"), &json!(1))
    );
    assert!(app["next_due"].is_string());
    let pushed = running.admin("/v1/destinations/pushed").await.json();
    assert_eq!((&pushed["url"], &pushed["types"]), (&json!("https://app.example/hooks"), &json!(["none"])));
    let store = running.server.inbox().store().clone();
    let registry = tokio::task::spawn_blocking(move || Store::registry(&*store).unwrap()).await.unwrap();
    assert_eq!(registry.destinations.len(), 3);
}
