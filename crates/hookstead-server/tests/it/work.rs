//! Deliveries as people see and decide them, redeliveries, the tail, and a configuration that changes.

use serde_json::{Value, json};

use crate::harness::{BEGIN, Client, Reply, Running, Signed, start, within};

pub(crate) const WORKER: &str = "[destinations.app]\npull = true\n";

impl Running {
    async fn ask(&self, target: &str, body: Value) -> Reply {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        self.admin_post(&self.token(), target, &body).await
    }

    pub(crate) async fn took(&self, target: &str, body: Value) -> Value {
        let reply = self.ask(target, body).await;
        assert!((200..300).contains(&reply.status), "{target}: {reply:?}");
        reply.json()
    }

    async fn refused(&self, target: &str, body: Value, status: u16, code: &str) {
        let reply = self.ask(target, body).await;
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{target}: {reply:?}");
    }

    pub(crate) async fn stored(&self, ids: &[&str]) {
        for id in ids {
            assert_eq!(self.send(&Signed::new(id, id.as_bytes()).bytes()).await.status, 202);
        }
    }

    /// Claims and settles everything that waits.
    async fn finish(&self) {
        let leases = self.took("/v1/destinations/app/claim?max=100", Value::Null).await;
        let item = |view: &Value| json!({"lease": view["lease"], "outcome": "done"});
        let batch: Vec<_> = leases["leases"].as_array().unwrap().iter().map(item).collect();
        self.took("/v1/leases/settle", json!({ "settle": batch })).await;
    }

    /// Asks until it holds; the answer to `target` then.
    pub(crate) async fn until(&self, target: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let reached = async {
            loop {
                let view = self.admin(target).await.json();
                if holds(&view) {
                    return view;
                }
                tokio::task::yield_now().await;
            }
        };
        within(reached).await
    }

    pub(crate) fn reconfigure(&self, text: &str) {
        std::fs::write(self.folder.path().join("hookstead.toml"), format!("{BEGIN}{text}")).unwrap();
    }
}

#[tokio::test]
async fn deliveries_are_listed_by_their_parts() {
    let running = start(WORKER).await;
    running.stored(&["1", "2", "3"]).await;
    running.ask("/v1/deliveries/0002:app/hold", json!({"note": "wait"})).await;
    let event = running.admin("/v1/events/0002").await.json();
    assert_eq!((&event["owed"][0]["id"], &event["owed"][0]["state"]), (&json!("0002:app:1"), &json!("held")));
    let ids = async |query: &str| {
        let reply = running.admin(&format!("/v1/deliveries{query}")).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let list = reply.json()["deliveries"].as_array().unwrap().clone();
        list.iter().map(|view| view["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids("").await, ["0003:app:1", "0002:app:1", "0001:app:1"]);
    assert_eq!(ids("?state=held").await, ["0002:app:1"]);
    assert_eq!(ids("?event=0001&destination=app").await, ["0001:app:1"]);
    let page = running.admin("/v1/deliveries?limit=2").await.json();
    let next = page["next"].as_str().unwrap();
    assert_eq!(ids(&format!("?limit=2&cursor={next}")).await, ["0001:app:1"]);
    for (query, code) in [
        ("?state=lost", "query"),
        ("?limit=0", "query"),
        ("?event=x", "query"),
        ("?event=0099", "not-found"),
        ("?destination=nobody", "unknown-destination"),
        ("?x=1", "query"),
    ] {
        assert_eq!(running.admin(&format!("/v1/deliveries{query}")).await.code(), code, "{query}");
    }
    for name in ["0001:nobody", "0001", "0099:app", "0001:app:9", "0001:app:x"] {
        assert_eq!(running.admin(&format!("/v1/deliveries/{name}")).await.status, 404, "{name}");
    }
}

#[tokio::test]
async fn people_decide_about_deliveries_within_the_table() {
    let running = start(WORKER).await;
    running.stored(&["1"]).await;
    let held = running.took("/v1/deliveries/0001:app/hold", json!({"note": "look first"})).await;
    assert_eq!((&held["state"], &held["decision"]["note"]), (&json!("held"), &json!("look first")));
    assert_eq!(held["decision"]["by"], "api, admin");
    running.refused("/v1/deliveries/0001:app/hold", Value::Null, 409, "delivery-state").await;
    let released = running.took("/v1/deliveries/0001:app/release", Value::Null).await;
    assert_eq!(released["state"], "waiting");
    running.refused("/v1/deliveries/0001:app/release", Value::Null, 409, "delivery-state").await;
    running.took("/v1/destinations/app/claim", Value::Null).await;
    running.refused("/v1/deliveries/0001:app/done", Value::Null, 409, "delivery-state").await;
    running.stored(&["2"]).await;
    let done = running.took("/v1/deliveries/0002:app/done", json!({"note": "by hand"})).await;
    assert_eq!((&done["state"], &done["decision"]["note"]), (&json!("done"), &json!("by hand")));
    let long = "x".repeat(2000);
    running.refused("/v1/deliveries/0002:app/hold", json!({ "note": long }), 400, "malformed").await;
}

#[tokio::test]
async fn one_event_is_delivered_again() {
    let running = start(WORKER).await;
    running.stored(&["1", "2"]).await;
    running.refused("/v1/events/0001/redeliver", json!({"to": "app"}), 409, "delivery-state").await;
    running.finish().await;
    let again = running.took("/v1/events/0001/redeliver", json!({"to": "app", "note": "lost"})).await;
    let first = running.admin("/v1/deliveries/0001:app:1").await.json();
    assert_eq!((&again["id"], &again["state"]), (&json!("0001:app:2"), &json!("waiting")));
    assert_eq!(again["idempotency_key"], first["idempotency_key"]);
    assert_eq!(
        running.admin("/v1/deliveries?event=0002").await.json()["deliveries"].as_array().unwrap().len(),
        1
    );
    running.finish().await;
    let fresh = running.took("/v1/events/@/redeliver", json!({"to": "app", "fresh_key": true})).await;
    assert_eq!(fresh["id"], "0002:app:2");
    let old = running.admin("/v1/deliveries/0002:app:1").await.json();
    assert_ne!(fresh["idempotency_key"], old["idempotency_key"]);
    let third = running.took("/v1/deliveries/0001:app/redeliver", Value::Null).await;
    assert_eq!(third["id"], "0001:app:3");
    running.refused("/v1/events/0001/redeliver", json!({"to": "nobody"}), 404, "unknown-destination").await;
    running.refused("/v1/events/0009/redeliver", json!({"to": "app"}), 404, "not-found").await;
    running.refused("/v1/events/0001/redeliver", json!({}), 400, "malformed").await;
}

#[tokio::test]
async fn many_events_are_delivered_again_and_each_asked_for_once() {
    let running = start(WORKER).await;
    running.stored(&["1", "2", "3"]).await;
    running.finish().await;
    let id = "0193b0a0-0000-7000-8000-0000000000ff";
    let asked = json!({"id": id, "to": "app", "source": "conf", "note": "outage"});
    let made = running.took("/v1/redeliveries", asked.clone()).await;
    assert_eq!((&made["made"], &made["state"], &made["to"]), (&json!(3), &json!("complete"), &json!("app")));
    assert_eq!(running.took("/v1/redeliveries", asked).await, made, "the same id again");
    assert_eq!(running.admin(&format!("/v1/redeliveries/{id}")).await.json(), made);
    assert_eq!(running.admin("/v1/redeliveries?state=complete").await.json()["redeliveries"], json!([made]));
    assert_eq!(running.admin("/v1/redeliveries?state=running").await.json()["redeliveries"], json!([]));
    running.refused(&format!("/v1/redeliveries/{id}/cancel"), Value::Null, 409, "redelivery-ended").await;
    for (asked, status, code) in [
        (json!({"to": "nobody"}), 404, "unknown-destination"),
        (json!({"to": "app", "source": "nobody"}), 404, "unknown-source"),
        (json!({"to": "app", "from": "yesterday"}), 400, "query"),
        (json!({"to": "app", "id": "1"}), 400, "malformed"),
        (json!({"to": "app", "everything": true}), 400, "malformed"),
    ] {
        running.refused("/v1/redeliveries", asked, status, code).await;
    }
    let none = running.admin("/v1/redeliveries/0193b0a0-0000-7000-8000-000000000000").await;
    assert_eq!(none.code(), "unknown-redelivery");
}

#[tokio::test]
async fn a_redelivery_of_more_than_one_step_goes_on_by_itself() {
    let running = start("").await;
    let ids: Vec<String> = (0..250).map(|id| id.to_string()).collect();
    running.stored(&ids.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let source = "[sources.conf]\nprovider = \"signed-inbox\"\nsecret = { env = \"SECRET\" }\n";
    running.reconfigure(&format!("{source}{WORKER}"));
    running.took("/v1/reload", Value::Null).await;
    let begun = running.took("/v1/redeliveries", json!({"to": "app"})).await;
    assert_eq!((&begun["state"], &begun["made"]), (&json!("running"), &json!(200)));
    let target = format!("/v1/redeliveries/{}", begun["id"].as_str().unwrap());
    let ended = running.until(&target, |view| view["state"] != "running").await;
    assert_eq!((&ended["state"], &ended["made"]), (&json!("complete"), &json!(250)));
}

pub(crate) fn lines(reply: &Reply) -> (Vec<String>, String) {
    assert_eq!(reply.header("content-type"), Some("application/x-ndjson"), "{reply:?}");
    let text = String::from_utf8(reply.body.clone()).unwrap();
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let end = lines.pop().unwrap();
    let ids = lines.iter().map(|line| line["event"]["provider_event_id"].as_str().unwrap().to_owned());
    (ids.collect(), end["cursor"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_tail_resumes_where_it_ended_and_is_woken() {
    let running = start("").await;
    let (none, start_of_all) = lines(&running.admin("/v1/tail").await);
    assert_eq!((none.len(), start_of_all.as_str()), (0, "start"));
    running.stored(&["1", "2", "3"]).await;
    let (first, cursor) = lines(&running.admin("/v1/tail?cursor=start&limit=2").await);
    assert_eq!(first, ["1", "2"]);
    let (second, cursor) = lines(&running.admin(&format!("/v1/tail?cursor={cursor}")).await);
    assert_eq!(second, ["3"]);
    let (from_now, now) = lines(&running.admin("/v1/tail").await);
    assert!(from_now.is_empty());

    let mut clients = Vec::new();
    for cursor in [&cursor, &now] {
        let mut client = Client::connect(running.server.facts().admin).await;
        let token = running.token();
        let request = format!(
            "GET /v1/tail?cursor={cursor}&wait=50s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        client.write(request.as_bytes()).await;
        clients.push(client);
    }
    within(async {
        while running.server.waiting() < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    running.stored(&["4"]).await;
    for client in &mut clients {
        assert_eq!(lines(&client.reply().await).0, ["4"]);
    }
    for (query, code) in
        [("?cursor=a%20b", "query"), ("?wait=1h", "query"), ("?source=nobody", "unknown-source")]
    {
        assert_eq!(running.admin(&format!("/v1/tail{query}")).await.code(), code, "{query}");
    }
}

#[tokio::test]
async fn a_reload_takes_a_good_file_over_and_leaves_a_bad_one() {
    let running = start("").await;
    running.stored(&["1"]).await;
    let event = running.admin("/v1/events/0001").await.json();
    assert_eq!(
        (&event["deliveries"]["waiting"], &event["owed"]),
        (&json!(0), &json!([])),
        "nobody wanted it"
    );
    let source = "[sources.conf]\nprovider = \"signed-inbox\"\nsecret = { env = \"SECRET\" }\n";
    running.reconfigure(&format!("{source}[destinations.app]\npul = true\n"));
    let bad = running.ask("/v1/reload", Value::Null).await;
    assert_eq!((bad.status, bad.code().as_str()), (422, "config"));
    assert!(bad.json()["detail"].as_str().unwrap().contains("did you mean `pull`?"), "{bad:?}");
    assert!(running.server.inbox().destination("app").is_none());
    assert_eq!(running.send(&Signed::new("2", b"2").bytes()).await.status, 202, "the old one is in force");

    running.reconfigure(&format!(
        "drain = \"1s\"\n{source}[sources.new]\nprovider = \"none\"\nidentity = \"none\"\n{WORKER}"
    ));
    let good = running.took("/v1/reload", Value::Null).await;
    assert_eq!((&good["sources"], &good["destinations"]), (&json!(["conf", "new"]), &json!(["app"])));
    assert_eq!(good["restart_needed"], json!(["server.drain"]));
    let request = b"POST /in/new HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx";
    assert_eq!(running.send(request).await.status, 202);
    let leases = running.took("/v1/destinations/app/claim?max=9", Value::Null).await;
    assert_eq!(leases["leases"].as_array().unwrap().len(), 1, "only what came since");

    running.reconfigure(source);
    running.took("/v1/reload", Value::Null).await;
    assert_eq!(running.send(request).await.status, 404);
    let settled = format!("/v1/leases/{}/done", leases["leases"][0]["lease"].as_str().unwrap());
    assert_eq!(running.ask(&settled, Value::Null).await.status, 204, "also when its destination is gone");
    running.refused("/v1/destinations/app/claim", Value::Null, 404, "unknown-destination").await;
    assert_eq!(running.admin("/v1/destinations/app").await.json()["kind"], Value::Null);
}

#[tokio::test]
async fn an_expired_lease_is_given_out_again_with_the_same_key() {
    let running = start(&format!("{WORKER}retry = [\"0s\", \"0s\"]\n")).await;
    running.stored(&["1"]).await;
    let first = running.took("/v1/destinations/app/claim?lease=1s", Value::Null).await["leases"][0].clone();
    let second = running.took("/v1/destinations/app/claim?wait=30s", Value::Null).await["leases"][0].clone();
    assert_eq!((&first["attempt"], &second["attempt"]), (&json!(1), &json!(2)));
    assert_eq!(first["idempotency_key"], second["idempotency_key"]);
    let late = format!("/v1/leases/{}/done", first["lease"].as_str().unwrap());
    running.refused(&late, Value::Null, 409, "lease-lost").await;
    let done = format!("/v1/leases/{}/done", second["lease"].as_str().unwrap());
    assert_eq!(running.ask(&done, Value::Null).await.status, 204);
}

#[tokio::test]
async fn a_program_is_run_for_each_event() {
    let running = start("[destinations.program]\nexec = [\"/bin/cat\"]\n").await;
    running.stored(&["1"]).await;
    let done = running.until("/v1/deliveries/0001:program", |view| view["state"] == "done").await;
    assert_eq!((&done["log"][0]["status"], &done["log"][0]["excerpt"]), (&json!(0), &json!("1")));
    let shown = running.admin("/v1/destinations/program").await.json();
    assert_eq!((&shown["kind"], &shown["circuit"]), (&json!("exec"), &json!("closed")));
}
