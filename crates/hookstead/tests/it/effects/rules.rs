//! What a handler's effect comes to, on each store.

use std::sync::Arc;
use std::time::Duration;

use hookstead::core::{Claim, Lease, RetryPolicy, Settle, Settled, Settlement, StateName, Verdict};
use hookstead::store::{OpenOptions, sqlite_effect};
use hookstead::{ConsumeError, Destination, Done, Inbox, LeaseAnswer, LeaseWrite, Unavailable, settle_with};
use rusqlite::Connection;

use crate::scene::{Scene, start};
use crate::stores::on_disk;

const GRACE: Duration = Duration::from_secs(5);

struct Ledger {
    scene: Scene,
    folder: tempfile::TempDir,
}

impl Ledger {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [sqlite, _] = on_disk(folder.path());
        let options = OpenOptions { effect_time_max: Duration::from_secs(20), ..OpenOptions::default() };
        let builder = Inbox::builder().store(sqlite).open_options(options);
        Self { scene: Scene::on(builder, start(), []), folder }
    }

    fn entries(&self) -> Vec<String> {
        let reader = Connection::open(self.folder.path().join("inbox.db")).unwrap();
        let mut statement = reader.prepare("SELECT id FROM app_ledger ORDER BY rowid").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }
}

fn quick() -> RetryPolicy {
    RetryPolicy { schedule_s: vec![0], attempts_max: 9, age_max_s: 3600, jitter_percent: 0 }
}

const MAKE: &str = "CREATE TABLE IF NOT EXISTS app_ledger (id TEXT PRIMARY KEY)";

#[tokio::test(start_paused = true)]
async fn an_effect_that_is_returned_is_committed_with_done_and_one_that_fails_is_tried_again() {
    let ledger = Ledger::new();
    let consumer = ledger.scene.inbox.consume("ledger").retry(quick()).run(|event| async move {
        let id = String::from_utf8_lossy(event.provider_id()).into_owned();
        let attempt = event.attempt();
        Ok::<_, String>(settle_with(move |tx| {
            tx.execute(MAKE, ())?;
            tx.execute("INSERT INTO app_ledger VALUES (?1)", [&id])?;
            match (id.as_str(), attempt) {
                ("bad", 1) => Err("the account is closed".into()),
                ("bad", 2) => panic!("worse"),
                ("bad", 3) => Ok(tx.execute_batch("DELETE FROM done")?),
                ("bad", 4) => Ok(tx.execute_batch("INSERT OR ROLLBACK INTO app_ledger VALUES ('bad')")?),
                _ => Ok(()),
            }
        }))
    });
    let consumer = consumer.await.unwrap();
    for id in ["good", "bad", "better"] {
        ledger.scene.record(id).await;
    }
    ledger.scene.until("ledger", StateName::Done, 3).await;
    let mut entries = ledger.entries();
    entries.sort_unstable();
    assert_eq!(entries, ["bad", "better", "good"]);
    let bad = ledger.scene.deliveries("ledger").into_iter().find(|delivery| delivery.attempts > 1).unwrap();
    let rules: Vec<_> = ledger
        .scene
        .inbox
        .store()
        .attempts(&bad.id)
        .unwrap()
        .into_iter()
        .map(|attempt| attempt.rule)
        .collect();
    let expected = ["effect-error", "effect-panic", "effect-refused", "effect-error", "effect-committed"];
    assert_eq!(rules, expected.map(|rule| Some(rule.to_owned())));
    consumer.stop(GRACE).await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_with_an_effect_is_refused_on_stores_that_have_none_before_anything_is_owed() {
    let folder = tempfile::tempdir().unwrap();
    let [_, files] = on_disk(folder.path());
    for (kind, url) in [("memory", "memory:".to_owned()), ("files", files)] {
        let scene = Scene::on(Inbox::builder().store(url), start(), []);
        let refused = scene
            .inbox
            .consume("ledger")
            .run(|_| async { Ok::<_, String>(settle_with(|_| Ok(()))) })
            .await
            .err()
            .unwrap();
        assert!(
            matches!(refused, ConsumeError::NoEffects { needed: "sqlite", found } if found == kind),
            "{refused}"
        );
        assert!(refused.to_string().contains("open the inbox on `sqlite:PATH`"), "{refused}");
        assert!(scene.inbox.destination("ledger").is_none());
        let without = scene.inbox.consume("ledger").run(|_| async { Ok::<_, String>(Done) }).await.unwrap();
        without.stop(GRACE).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_effect_that_writes_through_its_own_inbox_is_told_so_and_waits_for_nothing() {
    let ledger = Ledger::new();
    let inbox = ledger.scene.inbox.clone();
    let said = Arc::new(std::sync::Mutex::new(None));
    let heard = said.clone();
    let consumer = ledger.scene.inbox.consume("ledger").retry(quick()).run(move |_| {
        let (inbox, heard) = (inbox.blocking(), heard.clone());
        async move {
            Ok::<_, String>(settle_with(move |_| {
                let recorded = inbox.record("shop", "from within", "{}");
                *heard.lock().unwrap() = Some(recorded.unwrap_err().to_string());
                Ok(())
            }))
        }
    });
    let consumer = consumer.await.unwrap();
    ledger.scene.record("evt_1").await;
    ledger.scene.until("ledger", StateName::Done, 1).await;
    let said = said.lock().unwrap().clone().unwrap();
    let expected = "an effect cannot write through the inbox whose commit it is part of";
    assert_eq!(said, Unavailable::Failed(expected.into()).to_string());
    consumer.stop(GRACE).await;
}

#[tokio::test(start_paused = true)]
async fn a_settle_with_an_effect_fails_on_a_store_that_has_none_and_its_neighbours_do_not() {
    let scene = Scene::new([Destination::pull("worker".parse().unwrap())]);
    scene.record("evt_1").await;
    scene.record("evt_2").await;
    let claim = Claim { destination: scene.number("worker"), max: 2, lease_for: Duration::from_secs(60) };
    let leases = scene.inbox.claim(claim).await.unwrap();
    let settle = |lease: &Lease, verdict| {
        LeaseWrite::Settle(Settle { delivery: lease.delivery, token: lease.token, verdict, attempt: None })
    };
    let effect = Verdict::DoneWith(sqlite_effect(|_| Ok(())));
    let changes = vec![settle(&leases[0], effect), settle(&leases[1], Verdict::Done)];
    let answers = scene.inbox.change_leases(changes).await.unwrap();
    assert!(
        matches!(&answers[0], Err(Unavailable::Failed(why)) if why.contains("`memory:` store")),
        "{answers:?}"
    );
    assert_eq!(answers[1], Ok(LeaseAnswer::Settled(Settlement::Settled(Settled::Done))));
    assert_eq!((scene.count("worker", StateName::Leased), scene.count("worker", StateName::Done)), (1, 1));
}
