//! Lists that go on beyond what is looked at for one page: what lies behind is found all the same.

use hookstead_store::rusqlite::{Connection, params};
use serde_json::{Value, json};

use crate::harness::{Running, start};
use crate::work::{WORKER, lines};

/// More rows than are looked at for one page.
const ROWS: u32 = 100_010;

/// Behind every other id.
const LAST: &str = "ffffffff-ffff-7fff-bfff-ffffffffffff";

const NUMBERS: &str =
    "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1)";

impl Running {
    fn connection(&self) -> Connection {
        Connection::open(self.server.facts().data.join("hookstead.db")).unwrap()
    }
}

/// Redeliveries that ended, whose ids come before all others: to make them one by one would take minutes.
fn add_ended_redeliveries(connection: &Connection, count: u32) {
    let sql = format!(
        "{NUMBERS} INSERT INTO redeliveries (id, destination, fresh_key, asked_by, note, made_at_us, cursor, until,
            made, skipped, state)
         SELECT CAST(printf('%016d', n) AS BLOB), 1, 0, 'somebody', '', 1, 0, 0, 0, 0, 'complete' FROM numbers"
    );
    assert_eq!(connection.execute(&sql, params![count]).unwrap(), ROWS as usize);
}

/// Events as accepts leave them, with an empty body each; the last has the type `rare`.
fn add_events(connection: &Connection, count: u32) {
    let sql = format!(
        "{NUMBERS} INSERT INTO events (seq, id, source, scope, provider_event_id, event_type, received_at_us,
            committed_at_us, digest, body_bytes, body_bytes_total, deliveries_total, body)
         SELECT n, randomblob(16), 1, x'', CAST(n AS BLOB), iif(n = ?1, 'rare', 'usual'), n, n, ?2, 0, 0, 0, x''
         FROM numbers"
    );
    let digest = hookstead::core::Digest::of(b"");
    assert_eq!(connection.execute(&sql, params![count, digest.as_bytes()]).unwrap(), ROWS as usize);
}

#[tokio::test]
async fn a_tail_reads_on_at_once_behind_more_events_of_other_types_than_one_page_looks_at() {
    let running = start("").await;
    add_events(&running.connection(), ROWS);
    // Shorter than the time after which it looks again anyhow.
    let (found, cursor) = lines(&running.admin("/v1/tail?cursor=start&type=rare&wait=9s").await);
    assert_eq!(found, [ROWS.to_string()]);
    let (none, behind) = lines(&running.admin(&format!("/v1/tail?cursor={cursor}&type=rare")).await);
    assert_eq!((none.len(), behind), (0, cursor));
    // Without a wait it looks once, and says where to go on.
    let (none, between) = lines(&running.admin("/v1/tail?cursor=start&type=rare").await);
    assert!(none.is_empty());
    let (found, _) = lines(&running.admin(&format!("/v1/tail?cursor={between}&type=rare")).await);
    assert_eq!(found, [ROWS.to_string()]);
}

#[tokio::test]
async fn a_redelivery_goes_on_behind_more_ended_ones_than_one_page_looks_at() {
    let running = start("").await;
    let ids: Vec<String> = (0..201).map(|id| id.to_string()).collect();
    running.stored(&ids.iter().map(String::as_str).collect::<Vec<_>>()).await;
    add_ended_redeliveries(&running.connection(), ROWS);
    let source = "[sources.conf]\nprovider = \"signed-inbox\"\nsecret = { env = \"SECRET\" }\n";
    running.reconfigure(&format!("{source}{WORKER}"));
    running.took("/v1/reload", Value::Null).await;
    let begun = running.took("/v1/redeliveries", json!({"to": "app", "id": LAST})).await;
    assert_eq!((&begun["state"], &begun["made"]), (&json!("running"), &json!(200)));
    let ended = running.until(&format!("/v1/redeliveries/{LAST}"), |view| view["state"] != "running").await;
    assert_eq!((&ended["state"], &ended["made"]), (&json!("complete"), &json!(201)));
}

#[tokio::test]
async fn a_delivery_is_found_behind_more_redeliveries_of_its_event_than_a_page_has() {
    let running = start(WORKER).await;
    running.stored(&["1"]).await;
    let sql = format!(
        "{NUMBERS} INSERT INTO done (seq, destination, generation, event_id, state, ended_at_us, made_at_us, attempts,
            token, key_generation)
         SELECT events.seq, 1, n + 1, id, 'done', 1, 1, 0, 0, 1 FROM numbers JOIN events"
    );
    assert_eq!(running.connection().execute(&sql, params![1_001]).unwrap(), 1_001);
    for (name, state) in [("0001:app:1", "waiting"), ("0001:app:1002", "done"), ("0001:app", "done")] {
        let found = running.admin(&format!("/v1/deliveries/{name}")).await;
        assert_eq!((found.status, &found.json()["state"]), (200, &json!(state)), "{name}: {found:?}");
    }
    assert_eq!(running.admin("/v1/deliveries/0001:app:1003").await.code(), "unknown-delivery");
}
